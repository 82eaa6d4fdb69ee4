"""Nodes of which something is broken: each function breaks one thing, until the patch is undone.

Verbs look up their neighbours in modules when they are called, and messages and timers in tables,
so all can be replaced from outside; the package itself knows nothing of this.
"""

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from disque_trio.statemachine import (
    acks,
    federation,
    lifecycle,
    machine,
    post,
    replication,
    requeue,
    trace,
)
from disque_trio.statemachine.base import JobId, NodeId
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.commands import addjob
from disque_trio.statemachine.copies import snapshot
from disque_trio.statemachine.events import Cause, Kind
from disque_trio.statemachine.job import Job, make_id
from disque_trio.statemachine.messages import (
    DelJob,
    GotJob,
    JobCopy,
    NeedJobs,
    Queued,
    ReplJob,
)
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import NodeState

Patch = pytest.MonkeyPatch


def nothing(*_: object, **__: object) -> None:
    """What a missing verb does."""


def ignoring(message: type) -> Callable[[Patch], None]:
    """Do nothing upon a message of this kind."""
    return lambda patch: patch.setitem(machine.ON_MESSAGE, message, nothing)


# Who has it queued.


def without_tie_break(patch: Patch) -> None:
    """Of two that have queued a job nobody gives way."""
    patch.setattr(requeue, "wins", lambda *_: False)


def never_armed_again(patch: Patch) -> None:
    """The retry period begins anew, and nobody looks at it."""

    def restart(node: NodeState, job: Job) -> None:
        if job.retry:
            job.requeue_at = node.mono + job.retry + lifecycle.desync(node)
            node.timers.disarm(job)

    patch.setattr(lifecycle, "restart_retry", restart)


def silent_requeue(patch: Patch) -> None:
    """Queueing a job again is not announced."""
    intact = post.to_holders

    def to_holders(node: NodeState, job: Job, message: Any) -> None:
        if not isinstance(message, Queued):
            intact(node, job, message)

    patch.setattr(post, "to_holders", to_holders)


# Leases and time.


def without_lease(patch: Patch) -> None:
    """A delivery does not begin the period anew."""
    patch.setattr(lifecycle, "start_lease", nothing)


def half_a_period(patch: Patch) -> None:
    """The period is half of RETRY."""

    def restart(node: NodeState, job: Job) -> None:
        if job.retry:
            lifecycle.mark(job, 2)
            job.requeue_at = node.mono + job.retry // 2 + lifecycle.desync(node)
        lifecycle.schedule(node, job)

    patch.setattr(lifecycle, "restart_retry", restart)


def by_the_wall_clock(patch: Patch) -> None:
    """All timers go by the wall clock."""
    epoch = 1_799_999_000_000

    def set_clocks(self: machine.Machine, now: Any) -> None:
        node = self.state
        node.mono = max(node.mono, now.wall - epoch)
        node.wall, node.micros = now.wall, now.micros
        vars(self)["ahead"] = node.mono - now.mono

    def deadline(self: machine.Machine) -> int:
        return self.state.timers.deadline() - int(vars(self).get("ahead", 0))

    patch.setattr(machine.Machine, "_set_clocks", set_clocks)
    patch.setattr(machine.Machine, "deadline", deadline)


def without_expiry(patch: Patch) -> None:
    """Nobody looks at the TTL."""

    def on_due(node: NodeState, job: Job) -> None:
        life, job.expires = job.expires, 1 << 60
        try:
            requeue.on_due(node, job)
        finally:
            job.expires = life

    def fetch(node: NodeState, queue: Queue, cause: Cause) -> Job | None:
        job = queue.oldest()
        if job is not None:
            job.expires += 3_600_000
        return intact(node, queue, cause)

    intact = lifecycle.fetch
    patch.setitem(machine.ON_TIMER, Job, on_due)
    patch.setattr(lifecycle, "fetch", fetch)


def half_the_delay(patch: Patch) -> None:
    """Half of DELAY is waited for."""

    def begin(node: NodeState, job: Job) -> None:
        job.requeue_at -= job.delay // 2
        intact(node, job)

    intact = lifecycle.begin
    patch.setattr(lifecycle, "begin", begin)


# Copies.


def _mutes_holders(patch: Patch, room: Any) -> None:
    patch.setattr(room, "add_holders", nothing)


def senders_unlisted(patch: Patch) -> None:
    """Nobody learns of a holder by hearing from it."""
    _mutes_holders(patch, requeue)


def confirmed_by_one(patch: Patch) -> None:
    """ADDJOB is answered as soon as one node has confirmed its copy."""

    def on_gotjob(node: NodeState, sender: Peer, message: GotJob) -> None:
        job = node.jobs.get(message.id)
        if job is not None and job.client is not None:
            replication.achieved(node, job)

    patch.setitem(machine.ON_MESSAGE, GotJob, on_gotjob)


def confirmed_without_a_copy(patch: Patch) -> None:
    """GOTJOB is sent, and no copy kept."""

    def on_repljob(node: NodeState, sender: Peer, message: ReplJob) -> None:
        if not message.no_reply:
            post.to_node(node, sender, GotJob(message.copies[0].id))

    patch.setitem(machine.ON_MESSAGE, ReplJob, on_repljob)


def cleaned_up_after_success(patch: Patch) -> None:
    """Copies are dropped when the producer has been told that they exist."""
    intact = replication.achieved

    def achieved(node: NodeState, job: Job) -> None:
        intact(node, job)
        post.to_holders(node, job, DelJob(job.id))

    patch.setattr(replication, "achieved", achieved)


def without_clean_up(patch: Patch) -> None:
    """When an ADDJOB fails, the copies stay where they are."""

    def give_up(node: NodeState, job: Job, reply: Any) -> None:
        replication._release(node, job, reply)
        lifecycle.unregister(node, job, Cause.ADD_FAILED)

    patch.setattr(replication, "give_up", give_up)


def ids_told_wrong(patch: Patch) -> None:
    """The ids of jobs with RETRY 0 look like those of others."""

    def always_odd(node: NodeId, bits: int, ttl_s: int, *, at_least_once: bool) -> JobId:
        return make_id(node, bits, ttl_s, at_least_once=True)

    patch.setattr(addjob, "make_id", always_odd)


# Acknowledgements.


def collected_at_once(patch: Patch) -> None:
    """Nobody's confirmation is waited for."""
    patch.setattr(acks, "unconfirmed", lambda *_: [])


def ack_not_kept(patch: Patch) -> None:
    """Upon ACKJOB the copy here is dropped, and nobody told."""

    def ack(node: NodeState, job_id: JobId) -> bool:
        job = node.jobs.get(job_id)
        if job is not None:
            lifecycle.acknowledge(node, job, Cause.ACKJOB)
            lifecycle.unregister(node, job, Cause.COLLECTED)
        return job is not None

    patch.setattr(acks, "ack", ack)


def without_dummies(patch: Patch) -> None:
    """An ack for a job that is not here is forgotten."""
    patch.setattr(acks, "_remember_unknown", nothing)


def without_back_off(patch: Patch) -> None:
    """The collection of an ack is tried every second."""
    patch.setattr(lifecycle, "gc_wait", lambda _: 1000)


# Federation and queues.


def given_and_kept(patch: Patch) -> None:
    """A job with RETRY 0 is given away, and stays here too."""
    intact = federation._give

    def give(node: NodeState, job: Job, receiver: Peer) -> JobCopy:
        if job.retry:
            return intact(node, job, receiver)
        trace.note(node, Kind.GIVE, job, Cause.GIVEN, peer=receiver.id)
        copy = snapshot(node, job)
        job.flags, job.requeue_at = 0, node.mono
        lifecycle.enqueue(node, job, Cause.FIRST)
        return copy

    patch.setattr(federation, "_give", give)


def once_queued_again(patch: Patch) -> None:
    """A job with RETRY 0 is queued again after two seconds."""

    def restart(node: NodeState, job: Job) -> None:
        if job.retry:
            intact(node, job)
        else:
            lifecycle.unmark(job, 8)
            job.requeue_at = node.mono + 2000
            lifecycle.schedule(node, job)

    intact = lifecycle.restart_retry
    patch.setattr(lifecycle, "restart_retry", restart)
    patch.setattr(lifecycle, "had_its_turn", lambda _: False)


def youngest_first(patch: Patch) -> None:
    """The youngest job of a queue is delivered."""

    def pop(self: Queue) -> Job | None:
        youngest = self.peek(-1)
        if not youngest:
            return None
        self._length -= 1
        self._in_order = type(self._in_order)(
            job for job in self._in_order if job is not youngest[0]
        )
        self._late = [entry for entry in self._late if entry[-1] is not youngest[0]]
        youngest[0].in_line = False
        return youngest[0]

    patch.setattr(Queue, "pop", pop)


def bodies_cut_short(patch: Patch) -> None:
    """Bodies lose their end when they cross machines."""
    intact = snapshot

    def cut(node: NodeState, job: Job) -> JobCopy:
        copy = intact(node, job)
        return attrs.evolve(copy, body=copy.body[:-1])

    patch.setattr(federation, "snapshot", cut)


def counting_twice(patch: Patch) -> None:
    """NACKs and additional deliveries count double."""
    intact = lifecycle.count_delivery

    def count(job: Job, *, nack: bool, redelivery: bool) -> None:
        intact(job, nack=nack, redelivery=redelivery)
        intact(job, nack=nack, redelivery=redelivery)

    patch.setattr(lifecycle, "count_delivery", count)


def raising(patch: Patch) -> None:
    """A message makes the machine raise."""

    def on_needjobs(node: NodeState, sender: Peer, message: NeedJobs) -> None:
        raise KeyError(message.queue)

    patch.setitem(machine.ON_MESSAGE, NeedJobs, on_needjobs)
