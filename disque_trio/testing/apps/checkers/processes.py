"""A11 and A12: processes end only by faults and orders, and log few lines."""

from typing import Final

from disque_trio.terminal.counting import counted
from disque_trio.testing.apps.checkers.history import History
from disque_trio.tracing.details import fields
from disque_trio.tracing.rows import Row

LINES: Final = 3
"""The maximum number of lines that a run may log about its job."""
_TROUBLED: Final = 15
"""The same while nodes reject requests, because retries are logged."""
_OTHERS: Final = 25
"""The number of other lines in each life of a worker."""


def see(history: History, row: Row) -> None:
    """A process has ended by itself."""
    if fields(row.detail).get("told") != "ordered" and row.cause != "status-75":
        text = f"the process of {row.client} has ended: {row.cause}"
        history.violate("A11", text, row.time)


def check(history: History) -> None:
    """Check the number of lines of jobs, and of all others."""
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
