"""The journal's records: what a restart must know of this node's jobs (reference 7.1).

Nothing is recorded while there is no journal. Of a job the journal has the last record; what
changes without one (a place in the queue, counters, further holders) starts anew after a restart.
Two things are recorded here that the original forgets (docs/differences.md):

* an acknowledgement, as a job without its body, until every copy is collected;
* that an at-most-once job has been handed out: it is deleted, before it leaves.

Owns `Outbox.records` and `NodeState.is_recording`.
"""

from disque_trio.statemachine.base import ACKED, DELIVERED, MAX_SECONDS, RECORDED, WAIT_REPL
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import JobCopy
from disque_trio.statemachine.records import DeleteJob, LoadJob
from disque_trio.statemachine.state import NodeState


def record(node: NodeState, *, on: bool) -> None:
    """Is there a journal from now on?"""
    node.is_recording = on


def hold(node: NodeState, job: Job) -> None:
    """This node holds the job, as it is now."""
    if node.is_recording and has_record(job):
        node.out.records.append(LoadJob(stored(node, job)))


def delivered(node: NodeState, job: Job) -> None:
    """The job leaves the node by the queue. An at-most-once job must never do so again."""
    if not job.retry and node.is_recording:
        node.out.records.append(DeleteJob(job.id))


def drop(node: NodeState, job: Job) -> None:
    """This node does not hold the job any more."""
    if node.is_recording and has_record(job):
        node.out.records.append(DeleteJob(job.id))


def unwrite(node: NodeState) -> None:
    """Take back what has been recorded since the last `take`: the journal is right already."""
    node.out.records.clear()


def has_record(job: Job) -> bool:
    """Is there anything about the job that a restart must know?"""
    if job.state == WAIT_REPL:
        return False
    return bool(job.retry) or job.state == ACKED or not job.flags & DELIVERED


def stored(node: NodeState, job: Job) -> JobCopy:
    """The job in storage form (reference 4.5): it expires at a second of the wall clock.

    An acknowledged job has no body any more, and a dummy ack neither queue nor holders.
    """
    expires = -(-(node.wall + job.expires - node.mono) // 1000)
    return JobCopy(
        job.id,
        job.state,
        job.gc_attempt,
        job.flags if job.retry else job.flags | RECORDED,
        job.replicas,
        min(expires, MAX_SECONDS),
        job.ctime,
        job.delay // 1000,
        job.retry // 1000,
        job.nacks,
        job.deliveries,
        job.queue or b"",
        b"" if job.state == ACKED else job.body or b"",
        job.holders,
    )
