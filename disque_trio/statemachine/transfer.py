"""Transfer of jobs to another node's queue with YOURJOBS: sending and receiving (docs/bus.md,
"Federation").

Owns `Queue.import_started`, `import_count`, `import_previous_started`, `import_previous_count`.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from disque_trio.statemachine import (
    counts,
    deadletters,
    journaling,
    key_index,
    leases,
    lifecycle,
    postponing,
    send,
    trace,
)
from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    BCAST_QUEUED,
    GIVEN,
    KEEPS_ALL,
    TAKEN,
    Millis,
)
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.copies import (
    add_holder,
    adopt,
    is_over,
    known_to_hold,
    named,
    reads,
    send_ack_back,
    sent_to,
    snapshot,
)
from disque_trio.statemachine.events import Cause, Kind
from disque_trio.statemachine.holder_exchange import learn
from disque_trio.statemachine.job import Job, had_its_turn
from disque_trio.statemachine.messages import JobCopy, Queued, Working, YourJobs
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import NodeState

Judge = Callable[[NodeState, Job], bool]
"""Decides whether the job may be sent."""

MAX_TRANSFER_BYTES: Final = 16 << 20
"""A transfer adds no further job once its bodies have this size, in bytes."""
MOST_SKIPPED: Final = 1000
"""How many jobs with extensions are skipped for a node that cannot keep them."""
RATE_BUCKET: Final[Millis] = 1000
RATE_WINDOW: Final[Millis] = 5000
RATE_MIN_INTERVAL: Final[Millis] = 50


def import_rate(node: NodeState, queue: Queue) -> int:
    """The rate of jobs received from other nodes, per second, over two buckets of a second."""
    if node.mono - queue.import_started > RATE_WINDOW:
        return 0
    elapsed = max(node.mono - queue.import_previous_started, RATE_MIN_INTERVAL)
    return -(-imported(node, queue) * 1000 // elapsed)


def imported(node: NodeState, queue: Queue) -> int:
    """The number of jobs received from other nodes in the two buckets; 0 if the last one began more
    than `RATE_WINDOW` ago."""
    if node.mono - queue.import_started > RATE_WINDOW:
        return 0
    return queue.import_previous_count + queue.import_count


def _count_import(node: NodeState, queue: Queue) -> None:
    if node.mono - queue.import_started > RATE_BUCKET:
        queue.import_previous_started = queue.import_started
        queue.import_previous_count = queue.import_count
        queue.import_started = node.mono
        queue.import_count = 0
    queue.import_count += 1


def give(
    node: NodeState, queue: Queue, receiver: Peer, count: int, may_go: Judge | None = None
) -> int:
    """Send up to `count` of the first jobs in one frame: up to the first one that `may_go` rejects,
    and fewer if bodies are large. Skips jobs that the receiver cannot keep. Returns the number of
    jobs sent."""
    copies: list[JobCopy] = []
    kept: Iterator[Job] | None = None
    if receiver.capabilities & KEEPS_ALL != KEEPS_ALL:
        kept = iter(_kept(node, queue, receiver, count))
    size = 0
    while len(copies) < count and size < MAX_TRANSFER_BYTES:
        job = queue.oldest() if kept is None else next(kept, None)
        if job is None or (may_go is not None and not may_go(node, job)):
            break
        if kept is not None:
            lifecycle.fetch_within(node, queue, job, Cause.GIVEN)
        elif (job := lifecycle.fetch(node, queue, Cause.GIVEN)) is None:
            break
        size += len(job.body or b"")
        copies.append(_give(node, job, receiver))
    if copies:
        counts.gave(node, queue, len(copies))
        send.to_node(node, receiver, YourJobs(tuple(copies), more=bool(queue.length)))
    return len(copies)


def _kept(node: NodeState, queue: Queue, receiver: Peer, most: int) -> list[Job]:
    """Up to `most` of the first jobs that the receiver can keep. Skips at most `MOST_SKIPPED`
    others. These stay in the queue, so that groups keep their turns."""
    kept: list[Job] = []
    expired: list[Job] = []
    skipped = 0
    for job in islice(queue.in_order(), MOST_SKIPPED + most):
        if len(kept) == most or skipped > MOST_SKIPPED:
            break
        if job.expires <= node.mono:
            expired.append(job)
        elif reads(receiver, job):
            kept.append(job)
        else:
            skipped += 1
    for job in expired:
        lifecycle.unregister(node, job, Cause.EXPIRED)
    return kept


def _give(node: NodeState, job: Job, receiver: Peer) -> JobCopy:
    """Make the copy for the receiver. An at-most-once job is dropped here; any other job stays,
    with the receiver among its holders (original, defect 16)."""
    trace.note(node, Kind.GIVE, job, Cause.GIVEN, peer=receiver.id)
    if job.retry:
        add_holder(job, receiver.id)
        lifecycle.mark(job, GIVEN)
        lifecycle.restart_retry(node, job)
        journaling.hold(node, job)
        return sent_to(receiver, snapshot(node, job))
    copy = sent_to(receiver, snapshot(node, job))
    lifecycle.unregister(node, job, Cause.MOVED)
    return copy


def take(node: NodeState, sender: Peer, copy: JobCopy, *, is_for_clients: bool) -> Queue | None:
    """Receive a job, and enqueue it. Returns the queue, or None if the job was not enqueued. A
    transfer does not count as a delivery.

    `is_for_clients`: the job was requested because clients waited. If none waits any longer, the
    job does not count as an import, so that it may be sent to the next node that requests it.
    """
    job = node.jobs.get(copy.id)
    is_new = job is None or not job.retry
    if job is not None and job.state == ACKED:
        # The job is not restored (original, defect 15); the sender receives SETACK.
        send_ack_back(node, sender, job, copy.holders)
        return None
    if job is None and is_over(node, sender, copy.id):
        return None
    if job is None:
        job = adopt(node, copy, known_to_hold(node, sender, copy))
        lifecycle.register(node, job, Cause.YOURJOBS)
    else:
        learn(job, named(node, copy.holders))
        if not deadletters.on_copy(node, sender, job, copy):
            return None
        # The sender had it queued.
        key_index.let_go(node, job)
    if job.retry:
        learn(job, (sender.id,))
    is_refused = _is_refused(node, sender, job, copy)
    postponing.learn(node, job, copy.snoozes)
    if is_refused:
        return None
    queue = _queue(node, sender, job)
    if queue is not None and (queue.waiting or not is_for_clients):
        _count_import(node, queue)
    if is_new:
        journaling.renew(node, job)
    return queue


def _is_refused(node: NodeState, sender: Peer, job: Job, copy: JobCopy) -> bool:
    """Must the job not be enqueued, because of an event that the sender's copy lacks? If so, the
    sender receives WORKING or POSTPONED."""
    if leases.runs(node, job):
        # The sender may even have sent the job twice.
        send.to_node(node, sender, Working(job.id))
        return True
    if postponing.rest(node, job) and not postponing.is_known_to(job, copy):
        postponing.announce(node, job, (sender.id,))
        return True
    # Has another node delivered the job since the sender enqueued it? A later enqueue counts an
    # additional NACK or delivery, or QUEUED arrives before the job.
    if not (job.retry and job.flags & TAKEN):
        return False
    if copy.nacks > job.nacks or copy.deliveries > job.deliveries:
        return False
    return copy.snoozes <= job.snoozes


def _queue(node: NodeState, sender: Peer, job: Job) -> Queue | None:
    lifecycle.unmark(job, BCAST_QUEUED)
    if not job.retry and job.state == ACTIVE and not had_its_turn(job):
        lifecycle.requeue_in(node, job, 0)
    if job.queue is None or not lifecycle.enqueue(node, job, Cause.IMPORT):
        return None
    key_index.await_turn(node, job)
    _show_to_holders(node, job, sender)
    return node.queues[job.queue]


def _show_to_holders(node: NodeState, job: Job, giver: Peer) -> None:
    """Send QUEUED to the other holders, because only the sender has a record of the transfer.
    Otherwise the first holder whose period ends would enqueue the job, too (docs/differences.md,
    "Who has an imported job queued")."""
    if job.retry:
        others = [id for id in job.holders if id != giver.id]
        send.to_ids(node, others, Queued(job.id))
