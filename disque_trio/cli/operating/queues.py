"""`disque-trio queues`: the queues of a cluster."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from disque_trio.cli.frame import UsageError, counted
from disque_trio.cli.operating.frame import (
    FAILED,
    Command,
    duration,
    run_family,
    warn_of,
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


def main(argv: Sequence[str]) -> int:
    """Run a command. The exit status; `--help` says what it means."""
    return run_family(NAME, "See, pause and empty the queues of a cluster.", COMMANDS, argv)


def _add_all(parser: argparse.ArgumentParser) -> None:
    about = f"also those of the library, {RESERVED}…"
    parser.add_argument("--all", dest="has_all", action="store_true", help=about)


def _add_queue(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("queue", metavar="QUEUE")


def _add_pause(parser: argparse.ArgumentParser) -> None:
    _add_queue(parser)
    side = parser.add_mutually_exclusive_group()
    for name, about in (("in", "take no jobs from producers"), ("out", "give none to workers")):
        side.add_argument(
            f"--{name}", dest="side", action="store_const", const=name, default="all", help=about
        )


def _add_enqueue(parser: argparse.ArgumentParser) -> None:
    _add_queue(parser)
    about = "at most so many at each node"
    parser.add_argument("--count", type=int, default=None, metavar="N", help=about)


def _add_purge(parser: argparse.ArgumentParser) -> None:
    _add_queue(parser)
    parser.add_argument("--dead", dest="is_dead", action="store_true", help="its dead jobs instead")
    parser.add_argument("--yes", dest="is_sure", action="store_true", help="do it")


async def _list(admin: Admin, given: argparse.Namespace) -> int:
    found = await admin.queues.all()
    warn_of(NAME, found.unreached)
    shown = [each for each in found.items if given.has_all or not each.name.startswith(RESERVED)]
    if given.is_json:
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


async def _pause(admin: Admin, given: argparse.Namespace) -> int:
    side: Stopped = getattr(given, "side", "none")
    found = await admin.queues.pause(given.queue, side)
    if given.is_json:
        say_json({"queue": given.queue, "pause": side, "nodes": found.items})
    else:
        what = {"none": "resumed", "all": "paused"}.get(side, f"paused ({side})")
        say(f"{given.queue}: {what} at {', '.join(found.items)}")
    return _missing(found.unreached)


async def _enqueue(admin: Admin, given: argparse.Namespace) -> int:
    found = await admin.queues.enqueue(given.queue, given.count)
    count = sum(found.items)
    if given.is_json:
        say_json({"queue": given.queue, "enqueued": count})
    else:
        say(f"{given.queue}: {counted(count, 'job')} enqueued")
    return _missing(found.unreached)


async def _purge(admin: Admin, given: argparse.Namespace) -> int:
    kind = "dead job" if given.is_dead else "queued job"
    if not given.is_sure:
        raise UsageError(f"this ends all {kind}s of {given.queue}, for good: give --yes")
    found = await admin.queues.purge(given.queue, is_dead=given.is_dead)
    count = max(found.items) if given.is_dead else sum(found.items)
    if given.is_json:
        say_json({"queue": given.queue, "ended": count})
    else:
        say(f"{given.queue}: {counted(count, kind)} ended")
    return _missing(found.unreached)


def _missing(unreached: Mapping[str, str]) -> int:
    """An order counts as done if all nodes have it."""
    for node, why in unreached.items():
        complain(f"disque-trio {NAME}: {node} has not done it: {why}")
    return FAILED if unreached else 0


COMMANDS: Final = {
    "list": Command("List the queues, with their figures of all nodes.", _list, _add_all),
    "pause": Command("Stop a queue's input and output, or one of them.", _pause, _add_pause),
    "resume": Command("End a pause.", _pause, _add_queue),
    "enqueue": Command(
        "Queue now what waits for its RETRY after a restart of a node.", _enqueue, _add_enqueue
    ),
    "purge": Command("End all jobs that a queue has.", _purge, _add_purge),
}
