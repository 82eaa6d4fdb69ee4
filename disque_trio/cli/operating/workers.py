"""`disque-trio workers`: who works, on what, and orders to them."""

import argparse
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import attrs

from disque_trio.cli.operating.frame import (
    FAILED,
    Command,
    NotDoneError,
    duration,
    run_family,
    warn_of,
)
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


def main(argv: Sequence[str]) -> int:
    """Run a command. The exit status; `--help` says what it means."""
    return run_family(NAME, "See the workers of a cluster, and give them orders.", COMMANDS, argv)


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a worker's name, or a pattern: 'shop-*'")


def _add_order(parser: argparse.ArgumentParser) -> None:
    _add_name(parser)
    parser.add_argument(
        "--timeout", type=_seconds, default=10.0, metavar="SECONDS",
        help="how long to wait for answers (10)",
    )  # fmt: skip


def _seconds(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{word} is no number of seconds, up to 3600")
    return seconds


# Seeing.


async def _list(admin: Admin, given: argparse.Namespace) -> int:
    found = await admin.workers()
    warn_of(NAME, found.unreached)
    if given.is_json:
        say_json([_told(each) for each in found.items])
    else:
        say_table(_HEADS, [_row(each) for each in found.items])
    return 0


async def _show(admin: Admin, given: argparse.Namespace) -> int:
    workers = (await _named(admin, given.name)).items
    if given.is_json:
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


# QueueLists.


async def _order(order: OrderName, admin: Admin, given: argparse.Namespace) -> int:
    found = await _named(admin, given.name)
    told = await admin.order(order, *found.items, timeout=given.timeout)
    if given.is_json:
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


COMMANDS: Final = {
    "list": Command("List the workers that run.", _list),
    "show": Command("Show workers and their running jobs.", _show, _add_name),
} | {order: Command(_ABOUT[order], partial(_order, order), _add_order) for order in ORDERS}
