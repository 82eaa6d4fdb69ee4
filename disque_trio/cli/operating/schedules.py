"""`disque-trio schedules`: when tasks are due, and schedules that are added at run time."""

from collections.abc import Sequence
from typing import Any, Final

from disque_trio.cli.frame import duration, run
from disque_trio.cli.operating.frame import EPILOG, Options, operation, operations, warn_of
from disque_trio.observe.schedules import rows
from disque_trio.terminal.options import Family
from disque_trio.terminal.output import say_json, say_table
from disque_trio.worker.operating.admin import Admin
from disque_trio.worker.runtime import runtime

NAME: Final = "schedules"
_HEADS: Final = ("NAME", "STATE", "TASK", "QUEUE", "WHEN", "NEXT", "WORKERS")


def main(argv: Sequence[str]) -> int:
    """Run a command. Return the exit status, as described in `--help`."""
    return run(NAME, PROGRAM, argv)


async def _list(admin: Admin, options: Options) -> int:
    workers, kept = await admin.workers(), await admin.schedules.all()
    status = await warn_of(admin.client, NAME, workers.unreached | kept.unreached)
    found = rows(workers.items, kept.items, runtime().now())
    if options.is_json:
        say_json(found)
    else:
        say_table(_HEADS, [_row(each) for each in found])
    return status


def _row(row: dict[str, Any]) -> list[object]:
    due = row["next_ms"]
    left = "-" if due is None else duration(max(due / 1000 - runtime().now(), 0))
    name, queue = row["schedule"] or "-", row["queue"] or "-"
    return [name, row["state"], row["name"], queue, row["when"], left, row["workers"]]


PROGRAM: Final = Family(
    about="List schedules of tasks, and change those that were added at run time.",
    epilog=EPILOG,
    commands={
        "list": operation(
            "List the schedules declared in code and those added at run time.", _list,
            Options,
        ),
        **operations(NAME),
    },
)  # fmt: skip
