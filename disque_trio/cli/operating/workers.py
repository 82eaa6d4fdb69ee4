"""`disque-trio workers`: the workers, their jobs, and operations on them."""

from collections.abc import Sequence
from typing import Any, Final

import attrs

from disque_trio.cli.frame import NotDoneError, duration, run
from disque_trio.cli.operating.frame import (
    EPILOG,
    Options,
    operation,
    operations,
    warn_of,
)
from disque_trio.observe.operations.members import Names, names_of
from disque_trio.observe.operations.operation import unanswered
from disque_trio.observe.workers import QUANTILES, task_rows
from disque_trio.terminal.options import Family, argument, text
from disque_trio.terminal.output import say_facts, say_json, say_table
from disque_trio.worker.operating.admin import Admin, KnownWorker

NAME: Final = "workers"
_HEADS: Final = ("NAME", "STATE", "SEEN", "BUSY", "HELD", "ENDED", "LAG", "MB", "NODE", "QUEUES")


@attrs.frozen(kw_only=True)
class Named(Options):
    """Options of commands on named workers."""

    name: str = argument(text("NAME"), "name of the worker, or a pattern such as 'shop-*'")


def main(argv: Sequence[str]) -> int:
    """Run a command. Return the exit status, as described in `--help`."""
    return run(NAME, PROGRAM, argv)


async def _list(admin: Admin, options: Options) -> int:
    found = await admin.workers()
    status = await warn_of(admin.client, NAME, found.unreached)
    names = await names_of(admin.client)
    if options.is_json:
        say_json([_as_json(each, names) for each in found.items])
    else:
        say_table(_HEADS, [_row(each, names) for each in found.items])
    return status


async def _tasks(admin: Admin, options: Options) -> int:
    found = await admin.workers()
    status = await warn_of(admin.client, NAME, found.unreached)
    rows = task_rows(found.items)
    if options.is_json:
        say_json(rows)
    else:
        say_table(_TASK_HEADS, [_task_row(each) for each in rows])
    return status


_TASK_HEADS: Final = (
    "TASK", "RUNS", "FAILED", "MEAN", "P50", "P95", "P99", "RUNNING", "WORKERS",
)  # fmt: skip


def _time(seconds: float) -> str:
    """Return the time as text, such as `0.04ms` or `2m`."""
    return duration(seconds) if seconds >= 1 else f"{seconds * 1000:.3g}ms"


def _task_row(row: dict[str, Any]) -> list[object]:
    times = [row[name] for name in ("mean_s", *QUANTILES)]
    unknown = "-" if row["runs"] or row["longest_s"] is None else f">={_time(row['longest_s'])}"
    cells = [unknown if each is None else _time(each) for each in times]
    return [row["task"], row["runs"], row["failures"], *cells, row["running"], row["workers"]]


async def _show(admin: Admin, options: Named) -> int:
    (workers, status), names = await _named(admin, options.name), await names_of(admin.client)
    if options.is_json:
        say_json([_as_json(each, names) for each in workers])
        return status
    for worker in workers:
        report = worker.report
        say_facts(
            [(report.name, worker.state)]
            + [
                (name, value)
                for name, value in _as_json(worker, names).items()
                if name not in _SHOWN
            ]
        )
        jobs = [
            (job.id, job.task, job.queue, duration(job.age_s), _lease(job.lease_s))
            for job in report.jobs
        ]
        if jobs:
            say_table(("JOB", "TASK", "QUEUE", "RUNS", "LEASE"), jobs)
    return status


_SHOWN: Final = ("name", "state", "jobs")


def _lease(left: float | None) -> str:
    return "none" if left is None else duration(left)


def _row(worker: KnownWorker, names: Names) -> list[object]:
    report = worker.report
    return [
        report.name,
        worker.state,
        duration(worker.age_s),
        f"{report.busy}/{report.slots}",
        report.held,
        report.ended,
        duration(report.lag_s),
        report.rss_bytes >> 20,
        names(report.node or "-"),
        ",".join(report.queues),
    ]


def _as_json(worker: KnownWorker, names: Names) -> dict[str, Any]:
    report = worker.report
    of_node = {"node_name": names(report.node) if report.node else None}
    return {**attrs.asdict(report), **of_node, "state": worker.state, "seen_s": worker.age_s}


async def _named(admin: Admin, name: str) -> tuple[list[KnownWorker], int]:
    """Return the workers with this name or pattern, and the exit status."""
    found = await admin.workers(name)
    status = await warn_of(admin.client, NAME, found.unreached)
    if not found.items:
        names = sorted({each.report.name for each in (await admin.workers()).items})
        shown = f"there are {', '.join(names)}" if names else "there are none"
        doubt = unanswered(found.unreached, await names_of(admin.client))
        raise NotDoneError(f"no worker has the name {name}; {shown}{doubt}")
    return found.items, status


PROGRAM: Final = Family(
    about="List and control the workers of a cluster.",
    epilog=EPILOG,
    commands={
        "list": operation("List the running workers.", _list, Options),
        "tasks": operation("Show recent run times by task.", _tasks, Options),
        "show": operation("Show workers and their running jobs.", _show, Named),
        **operations(NAME),
    },
)
