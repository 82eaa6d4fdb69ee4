"""Plans of the operations that add jobs."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

from disque_trio.client import commands
from disque_trio.client.client import Client
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.client.records import JobDetails
from disque_trio.observe.operations.jobs import live
from disque_trio.observe.operations.members import names_of
from disque_trio.observe.operations.operation import LATER, Argument, silent
from disque_trio.observe.operations.queues import stats_of
from disque_trio.observe.queues import is_delayed
from disque_trio.observe.values import Json, given_name, raw, readable
from disque_trio.statemachine.base import CommandError
from disque_trio.statemachine.commands.addoptions import parse_options
from disque_trio.statemachine.joboptions import CARRIED, OPTIONS, Option, decimals
from disque_trio.terminal.counting import counted
from disque_trio.worker.operating.plans import MistakeError, Outcome, Plan, Report
from disque_trio.worker.operating.states import Copy, added_at
from disque_trio.worker.runtime import runtime

_WORDS: Final = 4
"""The number of words of ADDJOB before its options."""
_NET_S: Final = 60
"""If the job with the key cannot be added, a copy without the key is enqueued after this delay."""


def argument_of(option: Option) -> Argument:
    """Return the argument for an option of ADDJOB."""
    about = option.meaning.partition(";")[0].partition(". ")[0].replace("`", "")
    argument = partial(
        Argument, name=option.name, about=f"{option.form}: {about}", is_rare=True, is_asked=True
    )
    if not option.usage:
        return argument(kind="flag")
    if option.name == "if_exists":
        return argument(choices=tuple(option.usage.split("|")))
    if not (option.is_time or option.usage == "n"):
        return argument()
    kind: Literal["seconds", "number"] = "seconds" if option.has_decimals else "number"
    return argument(kind=kind, least=option.least, most=option.most)


def _body(args: Json) -> bytes:
    """Return the body. Raise `MistakeError` if it is missing."""
    return b"" if args.get("body") == "" else raw(given_name(args, "body"))


def _asked(queue: str, body: bytes, values: Mapping[str, Any]) -> Command[str]:
    """Return ADDJOB. Raise `MistakeError` for options that contradict each other."""
    asked = commands.addjob(raw(queue), body, **values)
    try:
        parse_options(list(asked.words[_WORDS:]))
    except CommandError as error:
        text = error.args[0].decode(errors="replace")
        raise MistakeError(text.removeprefix("ERR ").removeprefix("SYNTAXERR ")) from None
    return asked


def _options(args: Json) -> dict[str, Any]:
    """Return the given options of ADDJOB, in the types of the client."""
    values: dict[str, Any] = {}
    for option in OPTIONS:
        value = args.get(option.name)
        if option.name == "unique" and (value or "unique_b64" in args):
            value = raw(given_name(args, "unique"))
        if value is None or value is False or value == "":
            continue
        if option.name == "sync":
            value = value.lower() if not value.isdecimal() else int(value)
            if value != "auto" and not (isinstance(value, int) and value <= option.most):
                raise MistakeError(f"sync '{value}' is neither a number of nodes nor AUTO")
        is_whole = option.is_number and not option.has_decimals and isinstance(value, float)
        values[option.name] = int(value) if is_whole else value
    return values


def _in_words(values: Mapping[str, Any]) -> str:
    """Return the options in words, such as `RETRY 60, LIMIT 3`."""
    parts = []
    for option in OPTIONS:
        if (value := values.get(option.name)) is None:
            continue
        if option.is_text:
            value = f'"{readable(value.decode("utf-8", "surrogateescape"))}"'
        elif option.is_time:
            value = decimals(value)
        parts.append(f"{option.text} {value}" if option.usage else option.text)
    return ", ".join(parts)


async def add(client: Client, args: Json) -> Plan:
    """Plan ADDJOB at any node."""
    queue, body, values = given_name(args, "queue"), _body(args), _options(args)
    asked = _asked(queue, body, values)
    names = await names_of(client)
    found = await stats_of(client, queue)
    stats, missing = found.items, ", ".join(map(names, found.unreached))
    stopped = [names(node) for node, each in stats if each and each.pause in ("in", "all")]
    lines = [
        f'a job with a body of {counted(len(body), "byte")} is added to queue "{readable(queue)}"',
        f"options: {_in_words(values)}" if values else "all options have their defaults",
    ]
    so_far = f", but {missing} did not answer" if missing else ""
    if stopped:
        lines.append(f"the input of the queue is paused at {', '.join(stopped)}: jobs are refused")
    elif not any(each and each.blocked for _, each in stats):
        lines.append("no client waits for jobs of this queue now" + so_far)

    async def run(outcome: Outcome, _report: Report) -> None:
        id = await client.run(asked)
        may_exist = "unique" in values and values.get("if_exists") != "reject"
        had = f"; if the key was in use, {id} is the job that has it" if may_exist else ""
        outcome.says.append(f"added {id}{had}")
        outcome.details.append({"id": id})
        outcome.count = 1

    return Plan(target=readable(queue), says=lines, run=run)


def _carried(job: JobDetails, now: float) -> dict[str, Any]:
    """Return the options for the replacement of a job. It expires when the job would have
    expired."""
    values: dict[str, Any] = {"replicate": job.repl, "retry": job.retry, "ttl": max(job.ttl, 1)}
    if is_delayed(job):
        values["delay"] = round(added_at(job) + job.delay - now, 3)
    for option in CARRIED:
        value = job.more.get(option.shown)
        if isinstance(value, int | bytes):
            values[option.name] = value / 1000 if option.is_time else value  # type: ignore[operator]
    return values


def _check_free(id: str, copies: Sequence[Copy]) -> list[str]:
    """Return possible side effects of a replacement. Raise `MistakeError` if a worker has the
    job."""
    states = {copy.job.state for copy in copies}
    phases = {copy.job.more.get("phase") for copy in copies}
    if any(copy.job.more.get("follows") == 1 for copy in copies):
        raise MistakeError(f"{id} waits for the end of the job that has its key", "edit that job")
    waits = any(is_delayed(copy.job) or copy.job.backing_off is not None for copy in copies)
    if states <= {"active"} and not waits and b"restored" not in phases:
        raise MistakeError(f"a worker has {id}", "cancel it, or wait for the end of the attempt")
    if b"restored" in phases:
        return ["a worker that had it before a restart may still run it"]
    return ["a worker that takes it meanwhile runs the old body"] if "queued" in states else []


async def edit(client: Client, args: Json) -> Plan:
    """Plan the replacement of a job: ADDJOB with its options and another body, then ACKJOB. For a
    job with a key, a delayed copy without the key is added before CANCEL KEY, so that a job with
    the new or old body exists at each moment."""
    live_job = await live(client, args)
    id, copies = live_job.id, live_job.copies
    body, doubts = _body(args), _check_free(id, copies)
    job = next((copy.job for copy in copies if copy.job.queue is not None), copies[0].job)
    queue, values = job.queue or "", _carried(job, runtime().now())
    key = values.pop("unique", None)
    keep = {"keep": values.pop("keep", None)}
    asked = _asked(queue, body, values)
    lines = [
        f"a new job with a body of {counted(len(body), 'byte')} replaces it, and has a new id",
        "its attempts and deliveries count from 0, and its history is empty",
        f"it keeps {_in_words(values)}" + (", and the key" if key is not None else ""),
        "the new job is added before the old one is acknowledged" if key is None else
        "CANCEL KEY cancels the old job, and frees the key for the new one",
        *doubts,
    ]  # fmt: skip

    async def replace(outcome: Outcome, _report: Report) -> None:
        new = await client.run(asked)
        outcome.says.append(f"added {new}")
        outcome.count += 1
        had = await client.run(commands.ackjob(id), first=copies[0].node)
        outcome.says.append(
            f"acknowledged {id}"
            if had
            else f"{id} had already ended and may have run; {new} runs in addition"
        )

    async def replace_key(outcome: Outcome, _report: Report) -> None:
        net_s = min(_NET_S, values["ttl"] // 2)
        delayed = {**values, "delay": max(net_s, values.get("delay", 0))}
        net = await client.run(_asked(queue, body, delayed))
        assert key is not None
        await client.run(commands.cancel_key(raw(queue), key))
        try:
            new = await client.run(
                _asked(queue, body, {**values, **keep, "unique": key, "if_exists": "reject"})
            )
        except DisqueError as error:
            outcome.failed.append(f"{net} has the new body, but not the key: {error}")
            return
        outcome.count += 1
        outcome.says.extend([f"cancelled {id}", f"added {new}"])
        await client.run(commands.ackjob(net))

    run = replace if key is None else replace_key
    unasked = silent(
        live_job.silent_holders, live_job.names, f"it may deliver the old job, and {LATER}"
    )
    return Plan(target=id, says=[*lines, *unasked], run=run, unasked=unasked)
