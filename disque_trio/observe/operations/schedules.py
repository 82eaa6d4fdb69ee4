"""Plans of the operations on schedules that were added at run time."""

import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs

from disque_trio.client.client import Client
from disque_trio.client.settings import DEFAULT_URL
from disque_trio.observe.operations.operation import Argument
from disque_trio.observe.values import Json, readable, word
from disque_trio.worker.cron.ticks import text
from disque_trio.worker.enqueue import Enqueuer
from disque_trio.worker.envelope import MAX_BODY
from disque_trio.worker.operating.plans import MistakeError, Outcome, Plan, Report
from disque_trio.worker.runtime import runtime
from disque_trio.worker.timetable.records import Entry, Timetable, check

NAME: Final = Argument(name="name", about="name of the schedule", is_required=True)
_ASKED: Final = (
    Argument(name="task", about="name of its task", is_required=True),
    Argument(name="queue", about="queue of its jobs", default="default"),
    Argument(name="cron", about="five fields, such as '30 2 * * *', or a nickname, such as @daily"),
    Argument(name="every", about="or an interval in seconds", kind="number"),
    Argument(name="tz", about="time zone of the fields", default="UTC"),
)
_RARE: Final = (
    Argument(name="args", about="arguments, as a JSON list"),
    Argument(name="kwargs", about="keyword arguments, as a JSON object"),
    Argument(
        name="missed", about="which ticks are added late if no worker ran",
        choices=("skip", "latest", "all"),
    ),
    Argument(name="within", about="maximum lateness of a tick in seconds", kind="number"),
    Argument(name="scheduled", about="pass the scheduled time to the task", kind="flag"),
)  # fmt: skip
ARGUMENTS: Final = (
    attrs.evolve(NAME, is_asked=True),
    *(attrs.evolve(each, is_asked=True) for each in _ASKED),
    *(attrs.evolve(each, is_asked=True, is_rare=True) for each in _RARE),
)
"""The arguments of a new schedule."""


async def add(client: Client, args: Json) -> Plan:
    """Plan to record a schedule; it replaces the one with the same name."""
    entry, timetable = _entry(args), Timetable(client)
    before = await timetable.find(entry.name)
    upcoming = entry.next(runtime().now())
    then = "never" if upcoming is None else text(upcoming)
    what = f'a job of task {readable(entry.task)} is added to queue "{readable(entry.queue)}"'
    lines = [
        f"{what}: {entry.when}, next at {then}",
        "workers whose app has the task add the jobs",
    ]
    if before is not None:
        lines.append(f"it replaces the schedule with this name: {before.when}")
        lines += ["it stays paused"] if before.is_paused else []

    async def run(outcome: Outcome, _report: Report) -> None:
        await timetable.add(entry)
        outcome.says.append("added" if before is None else "replaced")
        outcome.count = 1

    return Plan(target=readable(entry.name), says=lines, run=run)


def _entry(args: Json) -> Entry:
    """Return the schedule. Raise `MistakeError` for invalid arguments."""
    every, within = args.get("every"), args.get("within")
    queue = args.get("queue") or "default"
    entry = Entry(
        name=word(args, "name"),
        task=word(args, "task"),
        cron=args.get("cron") or "",
        every=None if every is None else int(every),
        tz=args.get("tz") or "UTC",
        missed=args.get("missed") or "skip",
        within=None if within is None else int(within),
        args=_json(args, "args", list),
        kwargs=_json(args, "kwargs", dict),
        options={} if queue == "default" else {"queue": queue},
        is_told=bool(args.get("scheduled")),
    )
    try:
        check(entry)
    except (ValueError, TypeError) as error:
        raise MistakeError(str(error)) from None
    return entry


def _json(args: Json, name: str, kind: type) -> Any:
    encoded = args.get(name)
    if not encoded:
        return kind()
    try:
        value = json.loads(encoded)
    except (ValueError, RecursionError) as error:
        raise MistakeError(f"'{name}' is not valid JSON: {error}") from None
    if not isinstance(value, kind):
        raise MistakeError(f"'{name}' is not a JSON {'list' if kind is list else 'object'}")
    return value


def changing(
    change: Callable[[Timetable, str], Awaitable[bool]], effect: str, done: str, was: str
) -> Callable[[Client, Json], Awaitable[Plan]]:
    """Return a plan function that changes one schedule. The outcome is `was` if nothing was
    changed."""

    async def plan(client: Client, args: Json) -> Plan:
        timetable, name = Timetable(client), word(args, "name")
        entry = await timetable.get(name)

        async def run(outcome: Outcome, _report: Report) -> None:
            outcome.count = int(await change(timetable, name))
            outcome.says.append(done if outcome.count else was)

        lines = [f"schedule {readable(name)}, {entry.when}, task {readable(entry.task)}: {effect}"]
        return Plan(target=readable(name), says=lines, run=run)

    return plan


async def run_now(client: Client, args: Json) -> Plan:
    """Plan to add a job of a schedule, in addition to its ticks."""
    entry = await Timetable(client).get(word(args, "name"))
    form = Enqueuer(DEFAULT_URL, "json", MAX_BODY)  # used only to encode the body

    async def run(outcome: Outcome, _report: Report) -> None:
        request = entry.request(form, int(runtime().now()), is_tick=False)
        id = await client.run(request.command)
        outcome.says.append(f"added {id}")
        outcome.details.append({"id": id})
        outcome.count = 1

    lines = [
        f'a job of task {readable(entry.task)} is added to queue "{readable(entry.queue)}" now',
        "the schedule itself does not change",
    ]
    return Plan(target=readable(entry.name), says=lines, run=run)
