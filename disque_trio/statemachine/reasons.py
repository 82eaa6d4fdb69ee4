"""The flags that say why a job is not queued here, set and cleared with their counts (`counts`).

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
"""Why it waits for the end of the period that runs: a worker has the job, from this node or from
another one, as far as is known here; or had it until now; or may have had it before a restart. Or
other holders are asked after a restart."""


def await_delay(node: NodeState, job: Job) -> None:
    """This node is to queue the job for the first time when its delay is over."""
    if not job.flags & DELAYED:
        job.flags |= DELAYED
        counts.delay(node, job)


def await_retry(node: NodeState, job: Job) -> None:
    """The job has been read from the journal, and nothing is known of it since."""
    job.flags = _restored(job.flags)
    counts.restore(node, job)


@lru_cache(maxsize=TRACED)
def _restored(flags: int) -> int:
    """The one object for these flags: a number of its own takes 32 bytes, for each job."""
    return flags | RESTORED


def await_answers(job: Job) -> None:
    """The job was queued when the node ended, and the other holders are asked first."""
    job.flags = _returning(job.flags)


@lru_cache(maxsize=TRACED)
def _returning(flags: int) -> int:
    """As `_restored`."""
    return flags | RETURNING


def lapse(node: NodeState, job: Job) -> None:
    """The period is over, and the job is queued soon. One that was leased is counted so until
    then."""
    if job.flags & LEASED:
        job.flags ^= LEASED | LAPSED
    clear(node, job, TAKEN | RESTORED)


def clear(node: NodeState, job: Job, flags: int) -> None:
    """Clear flags that may be counted."""
    counted = job.flags & flags & COUNTED
    if counted:
        counts.leave(node, job, counted)
    job.flags &= ~flags
