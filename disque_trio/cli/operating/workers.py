"""`disque-trio workers`: who works, on what, and orders to them."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import attrs

from disque_trio.cli.frame import FAILED, duration, run
from disque_trio.cli.operating.frame import (
    EPILOG,
    NotDoneError,
    Options,
    operation,
    warn_of,
)
from disque_trio.terminal.options import Family, argument, option, seconds, text
from disque_trio.terminal.output import complain, say, say_facts, say_json, say_lines, say_table
from disque_trio.worker.operating.admin import Admin, KnownWorker, Obeyed
from disque_trio.worker.operating.asking import Found
from disque_trio.worker.operating.notes import ORDERS, OrderName

NAME: Final = "workers"
_HEADS: Final = ("NAME", "STATE", "SEEN", "BUSY", "HELD", "ENDED", "LAG", "MB", "NODE", "QUEUES")
_ABOUT: Final[dict[OrderName, str]] = {
    "quiet": "Let workers take no more jobs, until resume.",
    "resume": "Let workers take jobs again, after quiet.",
    "stop": "End workers when the jobs that run have ended.",
    "dump": "Show where all tasks and threads of workers are.",
}


@attrs.frozen(kw_only=True)
class Named(Options):
    """Commands about some workers."""

    name: str = argument(text("NAME"), "a worker's name, or a pattern: 'shop-*'")


@attrs.frozen(kw_only=True)
class Order(Named):
    """Orders to them."""

    timeout: float = option("--timeout", seconds(0.001, 3600), "how long to wait for answers", 10.0)


def main(argv: Sequence[str]) -> int:
    """Run a command. The exit status; `--help` says what it means."""
    return run(NAME, PROGRAM, argv)


# Seeing.


async def _list(admin: Admin, options: Options) -> int:
    found = await admin.workers()
    warn_of(NAME, found.unreached)
    if options.is_json:
        say_json([_told(each) for each in found.items])
    else:
        say_table(_HEADS, [_row(each) for each in found.items])
    return 0


async def _show(admin: Admin, options: Named) -> int:
    workers = (await _named(admin, options.name)).items
    if options.is_json:
        say_json([_told(each) for each in workers])
        return 0
    for worker in workers:
        report = worker.report
        say_facts(
            [(report.name, worker.state)]
            + [(name, value) for name, value in _told(worker).items() if name not in _SHOWN]
        )
        jobs = [
            (job.id, job.task, job.queue, duration(job.age_s), _lease(job.lease_s))
            for job in report.jobs
        ]
        if jobs:
            say_table(("JOB", "TASK", "QUEUE", "RUNS", "LEASE"), jobs)
    return 0


_SHOWN: Final = ("name", "state", "jobs")


def _lease(left: float | None) -> str:
    return "none" if left is None else duration(left)


def _row(worker: KnownWorker) -> list[object]:
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
        report.node or "-",
        ",".join(report.queues),
    ]


def _told(worker: KnownWorker) -> dict[str, Any]:
    return {**attrs.asdict(worker.report), "state": worker.state, "seen_s": worker.age_s}


async def _named(admin: Admin, name: str) -> Found[KnownWorker]:
    found = await admin.workers(name)
    warn_of(NAME, found.unreached)
    if not found.items:
        names = sorted({each.report.name for each in (await admin.workers()).items})
        shown = f"there are {', '.join(names)}" if names else "there are none"
        raise NotDoneError(f"no worker is called {name}; {shown}")
    return found


# Orders.


async def _order(order: OrderName, admin: Admin, options: Order) -> int:
    found = await _named(admin, options.name)
    told = await admin.order(order, *found.items, timeout=options.timeout)
    if options.is_json:
        say_json([_answer(each) for each in told])
    else:
        for each in told:
            _say(order, each)
    return FAILED if any(each.answer is None for each in told) else 0


def _answer(obeyed: Obeyed) -> dict[str, Any]:
    answer, error = obeyed.answer, obeyed.error
    told = {"name": obeyed.worker.report.name, "pid": obeyed.worker.report.pid, "error": error}
    if answer is not None:
        told |= {"state": answer.report.state, "busy": answer.report.busy, "stacks": answer.stacks}
    return told


def _say(order: OrderName, obeyed: Obeyed) -> None:
    name, answer = obeyed.worker.report.name, obeyed.answer
    if answer is None:
        complain(f"disque-trio {NAME}: {name}: {obeyed.error}")
        return
    say(f"{name}: {order}; {answer.report.busy} jobs run")
    if answer.stacks:
        say_lines(answer.stacks)


PROGRAM: Final = Family(
    about="See the workers of a cluster, and give them orders.",
    epilog=EPILOG,
    commands={
        "list": operation(NAME, "List the workers that run.", _list, Options),
        "show": operation(NAME, "Show workers and their running jobs.", _show, Named),
        **{name: operation(NAME, _ABOUT[name], partial(_order, name), Order) for name in ORDERS},
    },
)
