"""The flags with the reason why a job is not queued here, set and cleared with their counts
(`counts`).

Sets `Job.flags`, as `lifecycle` does.
"""

from functools import lru_cache
from typing import Final

from disque_trio.statemachine import counts
from disque_trio.statemachine.base import (
    DELAYED,
    LAPSED,
    LEASED,
    RESTORED,
    RETURNING,
    TAKEN,
    TRACED,
)
from disque_trio.statemachine.counts import COUNTED
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.state import NodeState

OF_PERIOD: Final[int] = LEASED | LAPSED | TAKEN | RESTORED | RETURNING
"""Reasons to wait for the end of the current period: the job is leased by this node or another one,
its lease has just ended, it may have been leased before a restart, or other holders are asked after
a restart."""


def await_delay(node: NodeState, job: Job) -> None:
    """Flag a job that this node must enqueue when its delay ends."""
    if not job.flags & DELAYED:
        job.flags |= DELAYED
        counts.delay(node, job)


def await_retry(node: NodeState, job: Job) -> None:
    """Flag a job that was read from the journal, and about which no other node has reported
    since."""
    job.flags = _restored(job.flags)
    counts.restore(node, job)


@lru_cache(maxsize=TRACED)
def _restored(flags: int) -> int:
    """The flags with RESTORED, as a shared object: a separate number takes 32 bytes per job."""
    return flags | RESTORED


def await_answers(job: Job) -> None:
    """Flag a job that was queued when the node stopped, and whose other holders are asked first."""
    job.flags = _returning(job.flags)


@lru_cache(maxsize=TRACED)
def _returning(flags: int) -> int:
    """The flags with RETURNING, as a shared object."""
    return flags | RETURNING


def lapse(node: NodeState, job: Job) -> None:
    """The period ends, and the job is requeued soon. A leased job counts as leased until then."""
    if job.flags & LEASED:
        job.flags ^= LEASED | LAPSED
    clear(node, job, TAKEN | RESTORED)


def clear(node: NodeState, job: Job, flags: int) -> None:
    """Clear flags that may be counted."""
    counted = job.flags & flags & COUNTED
    if counted:
        counts.leave(node, job, counted)
    job.flags &= ~flags
