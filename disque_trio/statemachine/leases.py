"""The lease of a delivery: a worker has the job for a whole RETRY period (decision 13).

Sets `Job.flags`, as `lifecycle` does.
"""

from disque_trio.statemachine import counts, lifecycle, reasons, send
from disque_trio.statemachine.base import (
    ACTIVE,
    DELAYED,
    LAPSED,
    LEASED,
    POSTPONED,
    RESTORED,
    RETURNING,
)
from disque_trio.statemachine.job import ANNOUNCE_AHEAD, Job
from disque_trio.statemachine.messages import Working
from disque_trio.statemachine.state import NodeState


def start(node: NodeState, job: Job) -> None:
    """Restart the retry period at a delivery, here and at the other holders.

    So a worker always has the whole RETRY period; in the original, it has the rest of the period
    that began when the job was enqueued (docs/differences.md, "Delivery lease").
    """
    if job.retry and node.config.delivery_lease:
        renew(node, job)


def renew(node: NodeState, job: Job) -> None:
    """Begin or renew the lease of a worker, for the whole RETRY period."""
    if not job.flags & LEASED:
        reasons.clear(node, job, DELAYED | LAPSED | POSTPONED | RESTORED | RETURNING)
        counts.lease(node, job)
        job.flags |= LEASED
    lifecycle.restart_retry(node, job)
    if job.holders is not node.cluster.myself.holding:
        send.to_holders(node, job, Working(job.id))


def runs(node: NodeState, job: Job) -> bool:
    """Has this node delivered the job to a worker whose lease may still run?

    A lease ends at the earliest time at which a holder may announce a requeue: retry times vary at
    random, and WILLQUEUE precedes the requeue.
    """
    if job.state != ACTIVE or not job.flags & LEASED:
        return False
    return job.requeue_at - ANNOUNCE_AHEAD > node.mono
