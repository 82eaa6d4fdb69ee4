"""A11 and A12: processes end by faults and orders only, and log a few lines."""

from typing import Final

from disque_trio.terminal.counting import counted
from disque_trio.testing.apps.checkers.history import History
from disque_trio.tracing.details import fields
from disque_trio.tracing.rows import Row

LINES: Final = 3
"""What a run may log of its job."""
_TROUBLED: Final = 15
"""The same while nodes take nothing: trying again is told."""
_OTHERS: Final = 25
"""What each life of a worker may log besides."""


def see(history: History, row: Row) -> None:
    """A process has ended by itself."""
    if fields(row.detail).get("told") != "ordered" and row.cause != "status-75":
        text = f"the process of {row.client} has ended: {row.cause}"
        history.violate("A11", text, row.time)


def check(history: History) -> None:
    """Lines of jobs, and all others."""
    for id, lines in history.lines.items():
        runs = sum(run.job == id for job in history.jobs.values() for run in job.runs)
        least = LINES if history.is_calm(0, history.over_at) else _TROUBLED
        if lines > least * (runs + 1):
            text = f"{counted(lines, 'line')} of a job that ran {counted(runs, 'time')}"
            history.violate("A12", text, history.over_at, id)
    runs = sum(len(job.runs) for job in history.jobs.values())
    most = _OTHERS * (history.lives + len(history.troubles)) + LINES * runs
    if history.other_lines > most:
        text = f"{counted(history.other_lines, 'line')} besides; {most} would be many"
        history.violate("A12", text, history.over_at)
