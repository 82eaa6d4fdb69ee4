"""BEGIN and RELEASE: begin jobs of GETJOB HELD (decision 103), or return them.

RELEASE is for jobs that were not begun. They are requeued, at once or after DELAY, and count
neither as failed nor as delivered.
"""

from typing import Final

from disque_trio.statemachine import longcommands, postponing, tracked_deliveries
from disque_trio.statemachine.base import ACTIVE, DELIVERED, LEASED, TAKEN, Millis, Reply
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commandoptions import RELEASE
from disque_trio.statemachine.commands.jobs import give_back
from disque_trio.statemachine.commands.nack import end_of_ids, give_back_all
from disque_trio.statemachine.commands.parse import read_options, with_tokens
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.state import NodeState

_WITH_WORKER: Final = DELIVERED | LEASED | TAKEN


def release(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """RELEASE. The reply is the number of delivered jobs that were returned. Excludes jobs that are
    postponed already, and those with a token that is no longer valid."""
    at = end_of_ids(args, RELEASE, b"RELEASE id [DELAY sec]")
    delay = read_options(args[at:], b"RELEASE", RELEASE).get("delay", 0)
    steps = give_back_all(
        node, args, at, lambda job: _release(node, job, delay), delay, _WITH_WORKER
    )
    return longcommands.run(node, client, steps)


def _release(node: NodeState, job: Job, delay: Millis) -> bool:
    """Requeue an active job, at once or after a delay. A delivered job with RETRY 0 is never
    requeued, so it cannot be postponed."""
    if job.state != ACTIVE or postponing.is_postponed(job):
        return False
    if not delay:
        return give_back(node, job, Cause.RELEASE)
    if not job.retry:
        return False
    postponing.postpone(node, job, delay, Cause.RELEASE)
    return True


def begin(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """BEGIN. The reply is the number of jobs that begin. Excludes jobs that are not held here, or
    not by this delivery."""
    found = tracked_deliveries.held(node, args[1:])
    if None in found:
        # Held jobs have well-formed ids; check the others.
        with_tokens(args[1:])
    return tracked_deliveries.begin(found)
