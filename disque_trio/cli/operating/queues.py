"""`disque-trio queues`: the queues of a cluster."""

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from disque_trio.cli.frame import FAILED, counted, duration, run
from disque_trio.cli.operating.frame import EPILOG, Options, operation, warn_of
from disque_trio.terminal.options import (
    COUNT,
    Family,
    UsageError,
    argument,
    modes,
    option,
    switch,
    text,
)
from disque_trio.terminal.output import complain, say, say_json, say_table
from disque_trio.worker.operating.admin import Admin
from disque_trio.worker.operating.notes import RESERVED
from disque_trio.worker.operating.queues import QueueTotals, Stopped

NAME: Final = "queues"
_HEADS: Final = (
    "QUEUE",
    "JOBS",
    "OLDEST",
    "DELAYED",
    "LEASED",
    "DEAD",
    "RESTORED",
    "WAITERS",
    "PAUSED",
)


@attrs.frozen(kw_only=True)
class List(Options):
    """`queues list`."""

    has_all: bool = switch("--all", f"also those of the library, {RESERVED}…")


@attrs.frozen(kw_only=True)
class Named(Options):
    """Commands about one queue."""

    queue: str = argument(text("QUEUE"))
    side: Stopped = "none"
    """Which sides a pause stops."""


@attrs.frozen(kw_only=True)
class Pause(Named):
    """`queues pause`."""

    side: Stopped = modes(
        "all",
        ("--in", "in", "take no jobs from producers"),
        ("--out", "out", "give none to workers"),
    )


@attrs.frozen(kw_only=True)
class Enqueue(Named):
    """`queues enqueue`."""

    count: int | None = option("--count", COUNT, "this number at most at each node")


@attrs.frozen(kw_only=True)
class Purge(Named):
    """`queues purge`."""

    is_dead: bool = switch("--dead", "its dead jobs instead")
    is_sure: bool = switch("--yes", "do it")


def main(argv: Sequence[str]) -> int:
    """Run a command. The exit status; `--help` says what it means."""
    return run(NAME, PROGRAM, argv)


async def _list(admin: Admin, options: List) -> int:
    found = await admin.queues.all()
    warn_of(NAME, found.unreached)
    shown = [each for each in found.items if options.has_all or not each.name.startswith(RESERVED)]
    if options.is_json:
        say_json([attrs.asdict(each) for each in shown])
    else:
        say_table(_HEADS, [_row(each) for each in shown])
    return 0


def _row(queue: QueueTotals) -> list[object]:
    counts = (queue.delayed, queue.leased, queue.dead, queue.restored)
    figures: list[object] = ["?" if each is None else each for each in counts]
    for at, due_s in ((0, queue.delayed_due_s), (-1, queue.restored_due_s)):
        if due_s is not None:
            figures[at] = f"{figures[at]}, next in {duration(due_s)}"
    paused = ", ".join(f"{state} at {node}" for node, state in queue.paused.items())
    oldest = duration(queue.next_age_s) if queue.length else "-"
    return [queue.name, queue.length, oldest, *figures, queue.blocked, paused or "-"]


async def _pause(admin: Admin, options: Named) -> int:
    side = options.side
    found = await admin.queues.pause(options.queue, side)
    if options.is_json:
        say_json({"queue": options.queue, "pause": side, "nodes": found.items})
    else:
        what = {"none": "resumed", "all": "paused"}.get(side, f"paused ({side})")
        say(f"{options.queue}: {what} at {', '.join(found.items)}")
    return _missing(found.unreached)


async def _enqueue(admin: Admin, options: Enqueue) -> int:
    found = await admin.queues.enqueue(options.queue, options.count)
    count = sum(found.items)
    if options.is_json:
        say_json({"queue": options.queue, "enqueued": count})
    else:
        say(f"{options.queue}: {counted(count, 'job')} enqueued")
    return _missing(found.unreached)


async def _purge(admin: Admin, options: Purge) -> int:
    kind = "dead job" if options.is_dead else "queued job"
    if not options.is_sure:
        raise UsageError(f"this ends all {kind}s of {options.queue}, for good: give --yes")
    found = await admin.queues.purge(options.queue, is_dead=options.is_dead)
    count = max(found.items) if options.is_dead else sum(found.items)
    if options.is_json:
        say_json({"queue": options.queue, "ended": count})
    else:
        say(f"{options.queue}: {counted(count, kind)} ended")
    return _missing(found.unreached)


def _missing(unreached: Mapping[str, str]) -> int:
    """An order counts as done if all nodes have it."""
    for node, why in unreached.items():
        complain(f"disque-trio {NAME}: {node} has not done it: {why}")
    return FAILED if unreached else 0


PROGRAM: Final = Family(
    about="See, pause and empty the queues of a cluster.",
    epilog=EPILOG,
    commands={
        "list": operation(NAME, "List the queues, with their figures of all nodes.", _list, List),
        "pause": operation(NAME, "Stop a queue's input and output, or one of them.", _pause, Pause),
        "resume": operation(NAME, "End a pause.", _pause, Named),
        "enqueue": operation(
            NAME, "Queue now what waits for its RETRY after a restart of a node.", _enqueue, Enqueue
        ),
        "purge": operation(NAME, "End all jobs that a queue has.", _purge, Purge),
    },
)
