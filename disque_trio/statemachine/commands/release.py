"""RELEASE: jobs are given back that were not begun. They are queued again, at once or after a
DELAY, and counted neither as failed nor as delivered.

Sets `NodeState.begun`.
"""

from typing import Final

from disque_trio.statemachine import postponing
from disque_trio.statemachine.base import ACTIVE, DELIVERED, LEASED, TAKEN, Millis, Reply
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commands.jobs import end_deliveries, give_back, held
from disque_trio.statemachine.commands.nack import check_life, delay_of, end_of_ids
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.state import NodeState

_WITH_WORKER: Final = DELIVERED | LEASED | TAKEN
_OPTIONS: Final = (b"DELAY",)


def release(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """How many were given back: jobs that were with workers, but for those that these have lost,
    and for those that wait already."""
    at = end_of_ids(args, _OPTIONS, b"RELEASE id [DELAY sec]")
    delay = delay_of(args[at:], b"RELEASE", _OPTIONS) or 0
    jobs = [job for job in held(node, args[:at]) if job.flags & _WITH_WORKER]
    if delay:
        for job in jobs:
            check_life(node, job, delay)
    node.begun = args
    released = sum([_release(node, job, delay) for job in jobs])
    end_deliveries(node, args[:at])
    return released


def _release(node: NodeState, job: Job, delay: Millis) -> bool:
    """A job with RETRY 0 that has been delivered is never queued again, so it cannot wait
    either."""
    if job.state != ACTIVE or postponing.is_postponed(job):
        return False
    if not delay:
        return give_back(node, job, Cause.RELEASE)
    if not job.retry:
        return False
    postponing.postpone(node, job, delay, Cause.RELEASE)
    return True
