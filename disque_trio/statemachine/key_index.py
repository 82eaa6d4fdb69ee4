"""The index of jobs here by key, and of keys that stay reserved for a time (decision 70).

A job is in the index while it is in the job table. Afterwards its key may stay reserved: for KEEP
if the job has ended, or for `TRAIL` if it has moved to another node. Otherwise, a node that asks
all nodes could reach the receiver before the job arrives, and this node after it has left.

Owns `Keys.index`, `kept` and `dirty`; `Memory.held` for the entries; `Job.extensions` of a job that
is cancelled, or no longer held back. Adds to `Reconciliation.ids` and `Ordering.jobs`.
"""

from typing import Final

import attrs

from disque_trio.statemachine import journaling
from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    DEAD,
    DELIVERED,
    GIVEN,
    LEASED,
    POSTPONED,
    QUEUED,
    TAKEN,
    WAIT_REPL,
    JobId,
    Millis,
)
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.extensions import FOLLOWS, HAS_FOLLOWED
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.key_facts import (
    BACKING_OFF,
    DONE_KEPT,
    ENDED,
    GIVEN_OUT,
    HELD,
    HELD_BACK,
    IN_QUEUE,
    KEPT,
    MOVED,
    PENDING,
    WAITING,
    WITH_WORKER,
    KeyFact,
)
from disque_trio.statemachine.key_facts import DEAD as KEY_DEAD
from disque_trio.statemachine.keys import Kept, KeyName, Search
from disque_trio.statemachine.memory import of_kept, of_key
from disque_trio.statemachine.state import NodeState

TRAIL: Final[Millis] = 2000
"""How long this node reports a job that has moved to another node."""
_GOES_ELSEWHERE: Final = (Cause.HANDED_OVER, Cause.MOVED)
_ENDS: Final = (Cause.EXPIRED, Cause.FASTACK)


def name_of(job: Job) -> KeyName | None:
    """The key that the job has, with its queue."""
    extensions = job.extensions
    if extensions is None or extensions.key is None or job.queue is None:
        return None
    return job.queue, extensions.key


def hold(node: NodeState, job: Job) -> None:
    """Add a new job to the index."""
    name = name_of(job)
    if name is not None:
        node.keys.index[name] = (*node.keys.index.get(name, ()), job)
        node.memory.held += of_key(name)


def drop(node: NodeState, job: Job, cause: Cause, *, is_alone: bool) -> None:
    """Remove a dropped job from the index. `is_alone` means that no other node has ever had a
    copy."""
    name = name_of(job)
    if name is None:
        return
    index = node.keys.index
    left = tuple([each for each in index[name] if each is not job])
    if left:
        index[name] = left
    else:
        del index[name]
    node.memory.held -= of_key(name)
    is_elsewhere = cause in _GOES_ELSEWHERE or (cause is Cause.CLIENT_DELJOB and not is_alone)
    if is_elsewhere and job.state != ACKED:
        _keep(node, Kept(name, job.id, job.ctime, MOVED, node.mono + TRAIL))
    elif cause in _ENDS and job.state != ACKED:
        end(node, job)
    # The job is gone, so the journal keeps only its key.
    for kept in node.keys.kept.get(name, ()):
        if kept.id == job.id and kept.word == KEPT:
            journaling.keep(node, kept)
    mark_dirty(node, job)


def end(node: NodeState, job: Job) -> None:
    """Keep the key of a job that has ended for its KEEP."""
    name = name_of(job)
    if name is None or job.extensions is None:
        return
    if job.extensions.keep:
        keep(node, name, job.id, job.ctime, job.extensions.keep)
    mark_dirty(node, job)


def keep(node: NodeState, name: KeyName, job_id: JobId, stamp: int, wait: Millis) -> None:
    """Reserve the key of a job that has ended for `wait` ms."""
    _keep(node, Kept(name, job_id, stamp, KEPT, node.mono + wait))


def _keep(node: NodeState, kept: Kept) -> None:
    others = node.keys.kept.get(kept.name, ())
    node.keys.kept[kept.name] = (*others, kept)
    node.memory.held += of_kept(kept.name)
    node.timers.arm(kept, kept.until)


def on_due(node: NodeState, kept: Kept) -> None:
    """The key is free."""
    _release(node, kept)


def _release(node: NodeState, kept: Kept) -> None:
    left = tuple([each for each in node.keys.kept[kept.name] if each is not kept])
    if left:
        node.keys.kept[kept.name] = left
    else:
        del node.keys.kept[kept.name]
    node.memory.held -= of_kept(kept.name)
    node.timers.disarm(kept)
    if kept.word == KEPT and kept.id not in node.jobs:
        journaling.release(node, kept)


def free(node: NodeState, name: KeyName, job_id: JobId) -> None:
    """Free the key at the end of the job, regardless of KEEP."""
    for job in node.keys.index.get(name, ()):
        if job.id == job_id and job.extensions is not None and job.extensions.keep:
            job.extensions = attrs.evolve(job.extensions, keep=0)
            journaling.hold(node, job)
    for kept in node.keys.kept.get(name, ()):
        if kept.id == job_id and kept.word == KEPT:
            _release(node, kept)


def forget_all(node: NodeState) -> None:
    """Free all keys that stay reserved."""
    for kept in [each for some in node.keys.kept.values() for each in some]:
        _release(node, kept)


def await_turn(node: NodeState, job: Job) -> None:
    """Check the key of a job that this node is to deliver, if a node has returned recently: another
    job may have the key."""
    reconciliation = node.keys.reconciliation
    if node.mono < reconciliation.until and name_of(job) is not None:
        reconciliation.ids.append(job.id)
        if not reconciliation.due:
            node.timers.arm(reconciliation, node.mono)


def is_held_back(job: Job) -> bool:
    """Must the job not be enqueued before the earlier jobs with its key have ended?"""
    return job.extensions is not None and job.extensions.follows == FOLLOWS


def await_end(node: NodeState, job: Job) -> None:
    """Have `key_ordering` determine when a job that is held back may be enqueued."""
    ordering = node.keys.ordering
    ordering.jobs[job.id] = job
    node.timers.arm(ordering, node.mono)


def search_for(node: NodeState, job: Job) -> Search | None:
    """The search of this node for the end of the jobs for which `job` waits; None if there is
    none."""
    name = name_of(job)
    searches = () if name is None else node.keys.ordering.waiting.get(name, ())
    return next((search for search in searches if search.job is job), None)


def let_go(node: NodeState, job: Job) -> None:
    """End the wait of a job that is held back: the earlier jobs have ended, or a node has enqueued
    it."""
    if is_held_back(job) and job.extensions is not None:
        job.extensions = attrs.evolve(job.extensions, follows=HAS_FOLLOWED)
        journaling.hold(node, job)
        mark_dirty(node, job)


def mark_dirty(node: NodeState, job: Job) -> None:
    """Schedule the ADDJOBs and searches that may wait for this change of a job with a key."""
    name = name_of(job)
    if name is None:
        return
    keys = node.keys
    if name in keys.claims or name in keys.askers:
        keys.dirty[name] = None
        node.timers.arm(keys, node.mono)
    for search in keys.ordering.waiting.get(name, ()):
        node.timers.arm(search, node.mono)


def facts(node: NodeState, name: KeyName, but: JobId, about: JobId) -> list[KeyFact]:
    """This node's facts about the jobs with this key, except the job `but`; and the fact that the
    job `about` has ended, if it has."""
    found = [fact_of(node, job) for job in node.keys.index.get(name, ()) if job.id != but]
    for kept in node.keys.kept.get(name, ()):
        state = DONE_KEPT if kept.word == KEPT else WAITING
        found.append(KeyFact(kept.id, kept.stamp, kept.word, state, 0))
    end = _end_of(node, about) if about else None
    return found if end is None else [*found, end]


def _end_of(node: NodeState, job_id: JobId) -> KeyFact | None:
    """The fact that the job has ended; None if this node has no record of that."""
    job = node.jobs.get(job_id)
    if job is not None:
        return KeyFact(job_id, 0, ENDED, DONE_KEPT, 0) if job.state == ACKED else None
    if job_id not in node.tombstones:
        return None
    state = DONE_KEPT if node.tombstones.is_acked(job_id) else WAITING
    return KeyFact(job_id, 0, ENDED, state, 0)


def fact_of(node: NodeState, job: Job) -> KeyFact:
    """This node's fact about the job."""
    if job.state == ACKED:
        return KeyFact(job.id, job.ctime, ENDED, DONE_KEPT, 0)
    word = PENDING if job.state == WAIT_REPL or job.id in node.adding else HELD
    keep = 0 if job.extensions is None else job.extensions.keep
    marks = GIVEN_OUT if was_given_out(job) else 0
    marks |= HELD_BACK if is_held_back(job) else 0
    return KeyFact(job.id, job.ctime, word, state_of(node, job), keep, marks)


def was_given_out(job: Job) -> bool:
    """Was it ever delivered to a worker, according to this node?"""
    # A job that is sent to another node's queue is flagged as delivered, too.
    delivered = 0 if job.flags & GIVEN else DELIVERED
    counted = job.nacks or job.deliveries or job.snoozes
    return bool(counted or job.flags & (delivered | LEASED | TAKEN))


def state_of(node: NodeState, job: Job) -> int:
    """The state of a live job for replies, according to this node."""
    if job.state == QUEUED:
        return IN_QUEUE
    if job.state == DEAD:
        return KEY_DEAD
    is_delivered_once = not job.retry and job.flags & DELIVERED
    if job.state == ACTIVE and (job.flags & (LEASED | TAKEN) or is_delivered_once):
        return WITH_WORKER
    if job.flags & POSTPONED:
        return BACKING_OFF
    return WITH_WORKER if _is_delivered_without_lease(node, job) else WAITING


def _is_delivered_without_lease(node: NodeState, job: Job) -> bool:
    """Was it delivered here, with `delivery-lease no`? If another node has enqueued it since, that
    node reports a greater state, which applies."""
    is_delivered = job.flags & (DELIVERED | GIVEN) == DELIVERED
    return job.state == ACTIVE and is_delivered and not node.config.delivery_lease
