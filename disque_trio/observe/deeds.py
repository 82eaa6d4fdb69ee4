"""What the console can change. Each verb says what it will do, and then does it, node by node.

A plan changes nothing. To carry it out is another step, so that a person reads it first.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, get_args

import anyio
import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.observe.observer import Observer
from disque_trio.observe.people import found_worker
from disque_trio.observe.queues import is_delayed
from disque_trio.observe.survey import KnownNode
from disque_trio.observe.values import Json, MistakeError, given_name, readable, word
from disque_trio.statemachine.base import Reply
from disque_trio.worker.operating.admin import Admin
from disque_trio.worker.operating.asking import given
from disque_trio.worker.operating.jobs import Jobs
from disque_trio.worker.operating.notes import OrderName
from disque_trio.worker.operating.queues import Queues, Stopped
from disque_trio.worker.operating.states import Copy

MANY: Final = 100
"""To redrive more dead jobs the queue's name must be typed."""
RATE: Final = 50
"""Jobs a second that are redriven if no rate is given."""
_DIGITS: Final = 8


@attrs.define
class Outcome:
    """What has become of it, node by node."""

    says: list[str] = attrs.Factory(list)
    failed: list[str] = attrs.Factory(list)


Tell = Callable[[str], None]
"""Tells how far it is."""
Run = Callable[[Outcome, Tell], Awaitable[None]]
"""Does it; the outcome has what is done even if it is stopped."""


@attrs.frozen(kw_only=True)
class Plan:
    """What will be done."""

    target: str
    """For the log."""
    says: list[str]
    run: Run
    confirm: str | None = None
    """What a person must type first."""


Verb = Callable[[Observer, Json], Awaitable[Plan]]


async def _nodes(observer: Observer) -> tuple[list[KnownNode], list[str]]:
    """The nodes that answer, and a line for each other one."""
    nodes = await observer.look()
    silent = [f"{each.name} {each.where} is not told: {each.why}" for each in nodes if each.why]
    return [each for each in nodes if not each.why], silent


def _at(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


# Queues.

_MODES: Final[tuple[Stopped, ...]] = get_args(Stopped)
_STOPS: Final[Mapping[str, str]] = {
    "in": 'new jobs of queue "{}" are refused',
    "out": 'deliveries of queue "{}" stop',
    "all": 'queue "{}" takes no jobs and delivers none',
    "none": 'queue "{}" takes and delivers jobs again',
}


async def _pause(observer: Observer, args: Json) -> Plan:
    name, given_mode = given_name(args, "queue"), args.get("mode")
    mode = next((each for each in _MODES if each == given_mode), None)
    if mode is None:
        raise MistakeError(f"'{given_mode}' is not one of in, out, all and none")
    nodes, silent = await _nodes(observer)

    async def run(outcome: Outcome, _tell: Tell) -> None:
        found = await Queues(observer.client).pause(name, mode)
        outcome.says += [f"{node}: {mode}" for node in found.items]
        outcome.failed += [f"{node}: {why}" for node, why in found.unreached.items()]

    forgets = [] if mode == "none" else ["a node that is started again forgets it"]
    says = [f"{_STOPS[mode].format(readable(name))} at {_at(len(nodes))}", *forgets, *silent]
    return Plan(target=f"{readable(name)} {mode}", says=says, run=run)


async def _purge(observer: Observer, args: Json) -> Plan:
    name = given_name(args, "queue")
    nodes, silent = await _nodes(observer)
    await observer.census.renew([name])
    parts = observer.census.parts.get(name, {})
    jobs = sum(part.stats.length for part in parts.values())

    async def run(outcome: Outcome, _tell: Tell) -> None:
        for node in nodes:
            try:
                [told] = await observer.client.ask(node.address, [commands.purge(name)])
                outcome.says.append(f"{node.where}: ended {given(told):,}")
            except DisqueError as error:
                outcome.failed.append(f"{node.where}: {error}")

    ends = f'the {jobs:,} jobs that are queued in "{readable(name)}" end, and are never delivered'
    says = [ends, "jobs that workers have, and delayed ones, stay", *silent]
    return Plan(target=readable(name), says=says, run=run, confirm=readable(name))


async def _redrive(observer: Observer, args: Json) -> Plan:
    name = given_name(args, "queue")
    rate, limit = _count(args, "rate") or RATE, _count(args, "limit")
    nodes, silent = await _nodes(observer)
    found = await Jobs(observer.client).dead(name, limit=limit or 1000)
    count = len(found.items)
    if not count:
        raise MistakeError(f'queue "{readable(name)}" has no dead jobs')
    most = f"up to {limit:,}" if limit else ("all" if count < 1000 else "all (1,000 or more)")
    says = [
        f'{most} dead jobs of "{readable(name)}" are queued again as if new, {rate} a second',
        f"found: {count:,}",
        *silent,
    ]

    async def run(outcome: Outcome, tell: Tell) -> None:
        left, done = limit, 0
        for node in nodes:
            while left is None or left > 0:
                asked = commands.redrive_queue(name, min(rate, left or rate))
                try:
                    some = given(*await observer.client.ask(node.address, [asked]))
                except DisqueError as error:
                    outcome.failed.append(f"{node.where}: {error}")
                    break
                done += some
                left = None if left is None else left - some
                outcome.says[:] = [f"queued again: {done:,}"]
                if some < rate:
                    break
                tell(f"redriven {done:,} of {count:,}")
                await anyio.sleep(1.0)
        outcome.says[:] = [f"queued again: {done:,}"]

    confirm = readable(name) if count > MANY else None
    return Plan(target=readable(name), says=says, run=run, confirm=confirm)


def _count(args: Json, field: str) -> int | None:
    value = args.get(field)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 1_000_000:
        raise MistakeError(f"'{field}' is not a number from 1 to 1,000,000")
    return value


# Jobs.


async def _live(observer: Observer, args: Json) -> tuple[str, list[Copy]]:
    """The copies of a job that has not ended. Raises `MistakeError` if there is none."""
    id = word(args, "id")
    found = await Jobs(observer.client).find(id)
    copies = [copy for copy in found.items if copy.job.state != "acked"]
    if not copies:
        raise MistakeError(f"no node that answers has {id}: it has ended, or was never added")
    return id, copies


def _one(observer: Observer, id: str, node: Address, make: Callable[..., Command[int]]) -> Run:
    """Tell one node of a job."""

    async def run(outcome: Outcome, _tell: Tell) -> None:
        done = given(*await observer.client.ask(node, [make(id)]))
        if done:
            outcome.says.append(f"{node}: done")
        else:
            outcome.failed.append(f"{node}: the job has changed meanwhile, so nothing was done")

    return run


async def _enqueue(observer: Observer, args: Json) -> Plan:
    id, copies = await _live(observer, args)
    if any(copy.job.state == "queued" for copy in copies):
        raise MistakeError(f"{id} is queued already")
    if any(copy.job.state == "dead" for copy in copies):
        raise MistakeError(f"{id} is dead: redrive its queue")
    copy = copies[0]
    says = [f"{copy.node} queues it now, which counts as a further delivery"]
    left = copy.job.next_requeue_within
    if not is_delayed(copy.job) and copy.job.backing_off is None and left is not None:
        says.append(f"a worker may have it for {left:.0f} s more: then it runs twice")
    return Plan(target=id, says=says, run=_one(observer, id, copy.node, commands.enqueue))


async def _ack(observer: Observer, args: Json) -> Plan:
    id, copies = await _live(observer, args)
    says = [f"the job ends at all {_at(len(copies))} that have it, and is never delivered again"]
    return Plan(target=id, says=says, run=_one(observer, id, copies[0].node, commands.ackjob))


async def _nack(observer: Observer, args: Json) -> Plan:
    id, copies = await _live(observer, args)
    active = [copy for copy in copies if copy.job.state == "active"]
    if not active:
        raise MistakeError(f"{id} is {copies[0].job.state}: no worker has it")
    says = [f"{active[0].node} queues it again as if its worker had given it back"]
    return Plan(target=id, says=says, run=_one(observer, id, active[0].node, commands.nack))


async def _deljob(observer: Observer, args: Json) -> Plan:
    id, copies = await _live(observer, args)

    async def run(outcome: Outcome, tell: Tell) -> None:
        for copy in copies:
            try:
                await _one(observer, id, copy.node, commands.deljob)(outcome, tell)
            except DisqueError as error:
                outcome.failed.append(f"{copy.node}: {error}")

    where = ", ".join(str(copy.node) for copy in copies)
    says = [f"the copies at {where} are dropped", "a node that is silent keeps its copy"]
    return Plan(target=id, says=says, run=run)


async def _trace(observer: Observer, args: Json) -> Plan:
    id = word(args, "id")
    asked = commands.call("TRACE", "JOB", id)
    nodes, silent = await _nodes(observer)

    async def run(outcome: Outcome, _tell: Tell) -> None:
        for node in nodes:
            try:
                here = given(*await observer.client.ask(node.address, [asked]))
                outcome.says.append(f"{node.where}: {'traced' if here else 'traced if it comes'}")
            except DisqueError as error:
                outcome.failed.append(f"{node.where}: {error}")

    says = [f"{_at(len(nodes))} write down what happens to the job, for an hour", *silent]
    return Plan(target=id, says=says, run=run)


# Who is connected.


async def _kick(observer: Observer, args: Json) -> Plan:
    node, client = await _node(observer, args), word(args, "client")
    if not client.isdecimal():
        raise MistakeError(f"'{client}' is no number of a connection")

    async def run(outcome: Outcome, _tell: Tell) -> None:
        asked = commands.call("CLIENT", "KILL", "ID", client)
        killed = given(*await observer.client.ask(node.address, [asked]))
        (outcome.says if killed else outcome.failed).append(
            f"{node.where}: {'ended' if killed else 'the connection has gone already'}"
        )

    says = [
        f"{node.where} ends connection {client}",
        "jobs that its client has come back when their lease is over; a client may connect again",
    ]
    return Plan(target=f"{node.where} {client}", says=says, run=run)


def _order(order: OrderName, says: str) -> Verb:
    async def plan(observer: Observer, args: Json) -> Plan:
        name, admin = word(args, "worker"), Admin(observer.client)
        worker = found_worker(name, (await admin.workers()).items)
        if worker is None:
            raise MistakeError(f"there is no worker '{name}', or several")

        async def run(outcome: Outcome, _tell: Tell) -> None:
            [obeyed] = await admin.order(order, worker)
            told = f"{worker.report.name}: {obeyed.error or 'has obeyed'}"
            (outcome.failed if obeyed.error else outcome.says).append(told)

        return Plan(target=name, says=[f"{worker.report.name} {says}"], run=run)

    return plan


# Members.


async def _node(observer: Observer, args: Json) -> KnownNode:
    """The node with this address or id. Raises `MistakeError`."""
    name = word(args, "node")
    for node in await observer.look():
        if name in (node.where, node.id):
            return node
    raise MistakeError(f"there is no node '{name}'")


async def _told(observer: Observer, node: KnownNode, outcome: Outcome, *words: str) -> None:
    try:
        asked = commands.call("CLUSTER", *words)
        reply: Reply = given(*await observer.client.ask(node.address, [asked]))
        outcome.says.append(f"{node.where}: {_text(reply)}")
    except DisqueError as error:
        outcome.failed.append(f"{node.where}: {error}")


def _text(reply: Reply) -> str:
    text = getattr(reply, "text", reply)
    return text.decode(errors="replace") if isinstance(text, bytes) else str(text)


async def _leave(observer: Observer, args: Json) -> Plan:
    node = await _node(observer, args)
    others = len([each for each in observer.survey.nodes.values() if not each.why]) - 1

    async def run(outcome: Outcome, _tell: Tell) -> None:
        await _told(observer, node, outcome, "LEAVING", "yes")

    says = [
        f"{node.name} {node.where} takes no new jobs and gives its own to {_at(others)}",
        "it can be stopped when it has no jobs left; CLUSTER LEAVING no takes it back",
    ]
    return Plan(target=node.where, says=says, run=run, confirm=node.id[:_DIGITS])


async def _forget(observer: Observer, args: Json) -> Plan:
    node = await _node(observer, args)
    nodes, silent = await _nodes(observer)
    others = [each for each in nodes if each is not node]

    async def run(outcome: Outcome, _tell: Tell) -> None:
        for other in others:
            await _told(observer, other, outcome, "FORGET", node.id)

    says = [
        f"{_at(len(others))} forget {node.name} {node.where}; do this only if it is gone for good",
        "jobs of which it has the only copy are lost with it",
        *silent,
    ]
    return Plan(target=node.where, says=says, run=run, confirm=node.id[:_DIGITS])


async def _meet(observer: Observer, args: Json) -> Plan:
    address = word(args, "address")
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise MistakeError(f"'{address}' is no address: give 10.0.0.1:7711")
    nodes, _ = await _nodes(observer)
    if not nodes:
        raise MistakeError("no node answers")

    async def run(outcome: Outcome, _tell: Tell) -> None:
        await _told(observer, nodes[0], outcome, "MEET", host.strip("[]"), port)

    says = [f"the cluster of {nodes[0].where} and that of {address} become one"]
    return Plan(target=address, says=says, run=run, confirm=address)


VERBS: Final[Mapping[str, Verb]] = {
    "pause": _pause,
    "enqueue": _enqueue,
    "ack": _ack,
    "nack": _nack,
    "deljob": _deljob,
    "trace": _trace,
    "purge": _purge,
    "redrive": _redrive,
    "kick": _kick,
    "quiet": _order("quiet", "takes no more jobs; those that it has go on"),
    "resume": _order("resume", "takes jobs again"),
    "leave": _leave,
    "forget": _forget,
    "meet": _meet,
}
"""By name. Each raises `MistakeError` for what cannot be done, and `DisqueError`."""
