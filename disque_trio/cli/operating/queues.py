"""`disque-trio queues`: the queues of a cluster."""

from collections.abc import Sequence
from typing import Final

import attrs

from disque_trio.cli.frame import duration, run
from disque_trio.cli.operating.frame import EPILOG, Options, operation, operations, warn_of
from disque_trio.terminal.options import Family, switch
from disque_trio.terminal.output import say_json, say_table
from disque_trio.worker.operating.admin import Admin
from disque_trio.worker.operating.notes import RESERVED
from disque_trio.worker.operating.queues import QueueTotals

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


PROGRAM: Final = Family(
    about="See, pause and empty the queues of a cluster.",
    epilog=EPILOG,
    commands={
        "list": operation(NAME, "List the queues, with their figures of all nodes.", _list, List),
        **operations(NAME),
    },
)
