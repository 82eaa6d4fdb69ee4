"""Jobs where the consumers are: NEEDJOBS and YOURJOBS (reference 6.7).

A node whose clients find a queue empty asks everybody, ever more rarely; whoever gave jobs lately
is asked directly, and for as many as are consumed. Who had no job when it was asked remembers
that, and answers when one comes. Owns the import and broadcast fields of `Queue`,
`NodeState.asked` and `Ask`.
"""

import enum
from collections.abc import Callable
from typing import Final

from disque_trio.statemachine import journaling, lifecycle, post, trace
from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    BCAST_QUEUED,
    GIVEN,
    PAUSE_OUT,
    Millis,
)
from disque_trio.statemachine.cluster import UNREACHABLE, Peer
from disque_trio.statemachine.copies import add_holder, add_holders, adopt, is_over, named, snapshot
from disque_trio.statemachine.events import Cause, Kind
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import JobCopy, NeedJobs, Queued, SetAck, Working, YourJobs
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import Ask, NodeState

Judge = Callable[[NodeState, Job | None], bool]
"""May the job go?"""

MIN_REQUEST: Final = 5
MAX_REQUEST: Final = 100
MAX_TRANSFER_BYTES: Final = 16 << 20
"""A transfer takes no further job once its bodies are this long."""
BROADCAST_DELAY: Final[Millis] = 2000
MAX_BROADCAST_DELAY: Final[Millis] = 30_000
ADHOC_DELAY: Final[Millis] = 25
MAX_ADHOC_DELAY: Final[Millis] = 2000
RESPONDER_MEMORY: Final[Millis] = 5000
RATE_BUCKET: Final[Millis] = 1000
RATE_WINDOW: Final[Millis] = 5000
IDLE_CHECK: Final[Millis] = 10_000
"""How often a queue is looked at that nobody has used for long, but that is not empty."""
RATE_MIN_INTERVAL: Final[Millis] = 50
ADHOC_MEMORY: Final[Millis] = MAX_ADHOC_DELAY + 500
LATENESS: Final[Millis] = 1000
"""So much later than announced an ask may come."""
MAX_ASKED: Final = 256
MAX_ASKERS: Final = 16
MAX_ASKED_NAME: Final = 1024
"""Of so many queues asks are remembered, of so many nodes each, and of names not longer than that:
less than a megabyte and a half, which is in no account."""
MAX_ATTEMPT: Final = 7
"""Enough for both delays to reach their limits; the original's counters overflow (defect 17)."""


class Why(enum.Enum):
    """What makes a node ask for jobs."""

    CLIENTS_WAIT = "a client found the queue empty"
    REACHED_ZERO = "a fetch took the last job"


def import_rate(node: NodeState, queue: Queue) -> int:
    """Jobs per second that come from other nodes, of two buckets of a second."""
    if node.mono - queue.import_started > RATE_WINDOW:
        return 0
    elapsed = max(node.mono - queue.import_previous_started, RATE_MIN_INTERVAL)
    imported = queue.import_previous_count + queue.import_count
    return -(-imported * 1000 // elapsed)


def _count_import(node: NodeState, queue: Queue) -> None:
    if node.mono - queue.import_started > RATE_BUCKET:
        queue.import_previous_started = queue.import_started
        queue.import_previous_count = queue.import_count
        queue.import_started = node.mono
        queue.import_count = 0
    queue.import_count += 1


def need_jobs(node: NodeState, queue: Queue, why: Why) -> None:
    """Ask other nodes for jobs, as often as it makes sense.

    A queue paused in output asks for nothing, since nothing could be delivered (quirk 20).
    """
    cluster = node.cluster
    if cluster.size == 1 or cluster.is_leaving or queue.paused & PAUSE_OUT:
        return
    rate = import_rate(node, queue)
    if why is Why.REACHED_ZERO and rate == 0:
        return
    _forget_silent(node, queue)
    responders = len(queue.responders)
    if node.mono >= _next_broadcast(queue):
        queue.broadcast_at = node.mono
        queue.broadcast_attempt = min(queue.broadcast_attempt + 1, MAX_ATTEMPT)
        post.to_all(node, NeedJobs(queue.name, 1))
    if responders and (why is Why.REACHED_ZERO or node.mono >= _next_adhoc(queue)):
        wanted = min(max(rate // responders, MIN_REQUEST), MAX_REQUEST)
        queue.adhoc_at = node.mono
        queue.adhoc_attempt = min(queue.adhoc_attempt + 1, MAX_ATTEMPT)
        post.to_ids(node, queue.responders, NeedJobs(queue.name, wanted))


def _next_broadcast(queue: Queue) -> Millis:
    delay = min(BROADCAST_DELAY << queue.broadcast_attempt, MAX_BROADCAST_DELAY)
    return queue.broadcast_at + delay


def _next_adhoc(queue: Queue) -> Millis:
    return queue.adhoc_at + min(ADHOC_DELAY << queue.adhoc_attempt, MAX_ADHOC_DELAY)


def _forget_silent(node: NodeState, queue: Queue) -> None:
    for id, last in list(queue.responders.items()):
        if node.mono - last > RESPONDER_MEMORY:
            del queue.responders[id]


def watch(node: NodeState, queue: Queue) -> None:
    """If clients wait on this queue, come back when asking again makes sense."""
    if not queue.waiting or queue.paused & PAUSE_OUT or node.cluster.size == 1:
        return
    next_ask = _next_broadcast(queue)
    if queue.responders:
        next_ask = min(next_ask, _next_adhoc(queue))
    node.timers.arm(queue, max(next_ask, node.mono + ADHOC_DELAY))


def watch_all(node: NodeState) -> None:
    """The cluster has grown: clients that wait here may have waited for just that."""
    for queue in node.queues.values():
        watch(node, queue)


def on_queue_due(node: NodeState, queue: Queue) -> None:
    """A queue's timer: its clients still wait, or nobody has used it for long."""
    if queue.waiting:
        need_jobs(node, queue, Why.CLIENTS_WAIT)
    elif lifecycle.drop_queue_if_idle(node, queue):
        return
    idle_at = queue.accessed + lifecycle.QUEUE_IDLE_LIMIT
    node.timers.arm(queue, max(idle_at, node.mono + IDLE_CHECK))
    watch(node, queue)


def on_needjobs(node: NodeState, sender: Peer, message: NeedJobs) -> None:
    """Give jobs to a node that needs them, but not what we import ourselves."""
    if not sender.link:
        return
    count = min(max(message.count, 1), MAX_REQUEST)
    queue = node.queues.get(message.queue)
    if queue is None or not queue.length:
        _remember(node, sender, message.queue, count)
    elif not queue.paused & PAUSE_OUT and not import_rate(node, queue):
        _give_some(node, queue, sender, count)


def _give_some(
    node: NodeState, queue: Queue, receiver: Peer, count: int, may_go: Judge | None = None
) -> None:
    """Up to `count` jobs, at most half of a short queue, and none from one that may not go on."""
    if len(queue) < 2 * count:
        count = max(len(queue) // 2, 1)
    copies = [_give(node, job, receiver) for job in _fetch_many(node, queue, count, may_go)]
    if copies:
        post.to_node(node, receiver, YourJobs(tuple(copies), unasked=may_go is not None))


def _remember(node: NodeState, sender: Peer, name: bytes, count: int) -> None:
    """Somebody waits for jobs of a queue that has none. His word is good until he asks again."""
    if len(name) > MAX_ASKED_NAME:
        return
    asked = node.asked
    # Put back at the end: who has been asked for longest is forgotten first.
    askers = asked[name] = asked.pop(name, {})
    if len(asked) > MAX_ASKED:
        del asked[next(iter(asked))]
    if len(askers) >= MAX_ASKERS and sender.id not in askers:
        for id in [id for id, ask in askers.items() if not _is_worth(node, ask)]:
            del askers[id]
        if len(askers) >= MAX_ASKERS:
            return
    ask = askers.get(sender.id)
    if ask is None:
        ask = askers[sender.id] = Ask()
    elif not _is_worth(node, ask):
        askers[sender.id] = askers.pop(sender.id)
    if count > 1:
        ask.count, ask.many_until = count, node.mono + ADHOC_MEMORY
    else:
        ask.one_until = node.mono + _silence(node.mono - ask.one_at) + LATENESS
        ask.one_at = node.mono


def _silence(gap: Millis) -> Millis:
    """In what time somebody who still waits asks everybody again, when he last did so after `gap`.

    Each time he is silent for twice as long (reference 6.7). Whoever was for longer than he would
    have been has not waited all the time, and is taken to begin anew.
    """
    first = BROADCAST_DELAY * 2
    if gap > MAX_BROADCAST_DELAY + LATENESS:
        return first
    return min(max(2 * gap, first), MAX_BROADCAST_DELAY)


def _is_worth(node: NodeState, ask: Ask) -> bool:
    return node.mono <= max(ask.many_until, ask.one_until)


def answer_asked(node: NodeState) -> None:
    """Jobs have come that others had asked for, and that no client here has waited for."""
    offers = node.offers
    while offers:
        name = next(iter(offers))
        del offers[name]
        queue = node.queues.get(name)
        if queue is None or queue.paused & PAUSE_OUT or import_rate(node, queue):
            continue
        if node.hindrance is None:
            _answer_askers(node, queue)


def _answer_askers(node: NodeState, queue: Queue) -> None:
    """Whoever asked first is answered first, and once."""
    askers = node.asked.get(queue.name, {})
    for id, ask in list(askers.items()):
        if not _goes_unasked(node, queue.oldest()):
            return
        del askers[id]
        peer = node.cluster.nodes.get(id)
        if peer is None or not peer.is_connected or peer.flags & UNREACHABLE:
            continue
        if _is_worth(node, ask):
            count = ask.count if node.mono <= ask.many_until else 1
            _give_some(node, queue, peer, count, _goes_unasked)
    if not askers and queue.name in node.asked:
        del node.asked[queue.name]


def _goes_unasked(node: NodeState, job: Job | None) -> bool:
    """One that is new, can come again, and has not expired (a fetch would step over it)."""
    if job is None or not job.retry or job.expires <= node.mono:
        return False
    return not lifecycle.has_been_out(job)


def _fetch_many(
    node: NodeState, queue: Queue, count: int, may_go: Judge | None = None
) -> list[Job]:
    """Up to `count` jobs, fewer when their bodies are large: they travel in one frame."""
    jobs: list[Job] = []
    size = 0
    while len(jobs) < count and size < MAX_TRANSFER_BYTES:
        if may_go is not None and not may_go(node, queue.oldest()):
            break
        job = lifecycle.fetch(node, queue, Cause.GIVEN)
        if job is None:
            break
        jobs.append(job)
        size += len(job.body or b"")
    return jobs


def _give(node: NodeState, job: Job, receiver: Peer) -> JobCopy:
    """What the receiver gets. An at-most-once job leaves this node; another keeps waiting here,
    and knows from now on that the receiver may hold it (defect 16)."""
    trace.note(node, Kind.GIVE, job, Cause.GIVEN, peer=receiver.id)
    if job.retry:
        add_holder(job, receiver.id)
        lifecycle.mark(job, GIVEN)
        lifecycle.restart_retry(node, job)
        journaling.hold(node, job)
        return snapshot(node, job)
    copy = snapshot(node, job)
    lifecycle.unregister(node, job, Cause.MOVED)
    return copy


def on_yourjobs(node: NodeState, sender: Peer, message: YourJobs) -> None:
    """Take jobs into the queue. A move is not a delivery, so it does not count as one."""
    for copy in message.copies:
        _import(node, sender, copy, unasked=message.unasked)


def _import(node: NodeState, sender: Peer, copy: JobCopy, *, unasked: bool) -> None:
    job = node.jobs.get(copy.id)
    is_news = job is None or not job.retry
    if job is not None and job.state == ACKED:
        # Resurrecting it here is the original's defect 15; the sender learns of the ack instead.
        _tell_of_ack(node, sender, job, copy)
        return
    if job is None and is_over(node, sender, copy.id):
        return
    if job is None:
        job = adopt(node, copy)
        lifecycle.register(node, job, Cause.YOURJOBS)
    else:
        add_holders(job, named(node, copy.holders))
    if job.retry:
        add_holder(job, sender.id)
    if lifecycle.lease_runs(node, job):
        # The giver has not heard of it yet: it may even have given the job twice.
        post.to_node(node, sender, Working(job.id))
        return
    lifecycle.unmark(job, BCAST_QUEUED)
    if not job.retry and job.state == ACTIVE and not lifecycle.had_its_turn(job):
        lifecycle.requeue_in(node, job, 0)
    if job.queue is not None and lifecycle.enqueue(node, job, Cause.IMPORT):
        _show_to_holders(node, job, sender)
        queue = lifecycle.queue_for(node, job.queue)
        _note_responder(node, queue, sender)
        if queue.waiting or not unasked:
            # Else whoever asked has gone, and the job may go to the next one who does.
            _count_import(node, queue)
    if is_news:
        journaling.hold(node, job)


def _tell_of_ack(node: NodeState, sender: Peer, job: Job, copy: JobCopy) -> None:
    """The giver has heard nothing of the ack, and may know of holders that have not either.

    He may be gone before he can ask them. A dummy ack asks everybody as it is.
    """
    known = job.holders
    if not job.is_dummy:
        add_holders(job, named(node, copy.holders))
    news = SetAck(job.id, len(job.holders))
    post.to_node(node, sender, news)
    post.to_ids(node, [id for id in job.holders if id not in known and id != sender.id], news)


def _show_to_holders(node: NodeState, job: Job, giver: Peer) -> None:
    """Only the giver knows who has the job queued now. Without a word to the other holders, the
    first whose period is over would queue it too (docs/differences.md, importers)."""
    if job.retry:
        others = [id for id in job.holders if id != giver.id]
        post.to_ids(node, others, Queued(job.id))


def _note_responder(node: NodeState, queue: Queue, sender: Peer) -> None:
    if sender.id not in queue.responders:
        queue.broadcast_attempt = 0
    queue.responders[sender.id] = node.mono
    queue.adhoc_attempt = 0
