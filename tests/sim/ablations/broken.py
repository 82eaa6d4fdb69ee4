"""Nodes of which something is broken: each function breaks one thing, until the patch is undone.

Verbs look up their neighbours in modules when they are called, and messages and timers in tables,
so all can be replaced from outside; the package itself knows nothing of this.
"""

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from disque_trio.sim.journal import Journal
from disque_trio.statemachine import (
    acks,
    delivery,
    federation,
    lifecycle,
    links,
    machine,
    membership,
    post,
    pressure,
    replication,
    requeue,
    trace,
)
from disque_trio.statemachine import job as job_module
from disque_trio.statemachine.base import ACKED, ACTIVE, CommandError, JobId, NodeId
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.commands import addjob
from disque_trio.statemachine.copies import adopt, snapshot
from disque_trio.statemachine.events import Cause, Kind
from disque_trio.statemachine.job import Job, make_id
from disque_trio.statemachine.messages import (
    DelJob,
    GotAck,
    GotJob,
    JobCopy,
    NeedJobs,
    Queued,
    ReplJob,
    SetAck,
)
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import NodeState, Repair
from disque_trio.statemachine.tombstones import Tombstones

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


def on_some_nodes_reversed(patch: Patch) -> None:
    """Of two that have queued a job, every other node thinks that it is the other way round."""
    intact = job_module.wins

    def wins(mine: NodeId, other: NodeId, job_id: JobId) -> bool:
        return intact(mine, other, job_id) != bool(mine[0] & 1)

    patch.setattr(requeue, "wins", wins)


def paused_queues_take_back(patch: Patch) -> None:
    """A job whose period is over comes back into a queue that is paused."""
    intact = requeue._requeue

    def again(node: NodeState, job: Job) -> None:
        with patch.context() as inner:
            inner.setattr(lifecycle, "is_paused_in", lambda *_: False)
            intact(node, job)

    patch.setattr(requeue, "_requeue", again)


def paused_queues_deliver(patch: Patch) -> None:
    """PAUSE out keeps nobody from being served."""
    patch.setattr(delivery, "PAUSE_OUT", 0)
    patch.setattr(lifecycle, "PAUSE_OUT", 0)


def silent_import(patch: Patch) -> None:
    """Who has taken a job over tells nobody."""
    patch.setattr(federation, "_show_to_holders", nothing)


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


def lease_not_told(patch: Patch) -> None:
    """A delivery begins the period anew, but at this node only."""

    def start_lease(node: NodeState, job: Job) -> None:
        if job.retry:
            lifecycle.restart_retry(node, job)

    patch.setattr(lifecycle, "start_lease", start_lease)


def delivered_and_done(patch: Patch) -> None:
    """What has been delivered is not looked at again."""

    def restart(node: NodeState, job: Job) -> None:
        intact(node, job)
        if job.state == ACTIVE:
            job.requeue_at = 0
            lifecycle.schedule(node, job)

    intact = lifecycle.restart_retry
    patch.setattr(lifecycle, "restart_retry", restart)


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


def never_buried(patch: Patch) -> None:
    """Nobody looks at the TTL of what is not in a queue."""

    def on_due(node: NodeState, job: Job) -> None:
        life, job.expires = job.expires, 1 << 60
        try:
            requeue.on_due(node, job)
        finally:
            job.expires = life

    patch.setitem(machine.ON_TIMER, Job, on_due)


def without_delay(patch: Patch) -> None:
    """DELAY is not waited for at all."""

    def begin(node: NodeState, job: Job) -> None:
        job.delay = 0
        intact(node, job)

    intact = lifecycle.begin
    patch.setattr(lifecycle, "begin", begin)


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


def lists_not_joined(patch: Patch) -> None:
    """Of a job that is here already, the holders that a copy names are not learned."""
    for room in (replication, federation):
        patch.setattr(room, "named", lambda *_: ())


def importers_unlisted(patch: Patch) -> None:
    """Who gives a job away does not know afterwards who has it, nor who takes it from whom."""
    _mutes_holders(patch, federation)


def without_widening(patch: Patch) -> None:
    """If nodes do not confirm, no other node is asked for a copy."""

    def widen(node: NodeState, client: Any, job: Job) -> None:
        client.widen_at = node.mono + replication.RESEND_EVERY
        replication._send_to(node, job, job.holders, no_reply=False)

    patch.setattr(replication, "_widen", widen)


def sleeping_copies(patch: Patch) -> None:
    """Copies never queue a job by themselves."""

    def sleeping(node: NodeState, copy: JobCopy) -> Job:
        job = adopt(node, copy)
        job.requeue_at = 0
        return job

    patch.setattr(replication, "adopt", sleeping)
    patch.setattr(
        lifecycle, "restart_retry", _only_for(lifecycle.restart_retry, lambda job: job.requeue_at)
    )


def _only_for(
    verb: Callable[[NodeState, Job], None], fits: Callable[[Job], object]
) -> Callable[[NodeState, Job], None]:
    def narrowed(node: NodeState, job: Job) -> None:
        if fits(job):
            verb(node, job)

    return narrowed


def refused_by_minorities(patch: Patch) -> None:
    """A node that cannot reach a majority takes no jobs, whatever is asked."""

    def check_nodes(node: NodeState, replicas: int, *, external: bool) -> None:
        if len(node.cluster.reachable) + 1 <= node.cluster.size // 2:
            raise CommandError(replication.NOT_ENOUGH_NODES)
        intact(node, replicas, external=external)

    intact = addjob._check_nodes
    patch.setattr(addjob, "_check_nodes", check_nodes)


def links_not_restored(patch: Patch) -> None:
    """A link that has ended is not opened again."""
    dialled: dict[tuple[int, NodeId], None] = {}

    def dial(node: NodeState, peer: Peer) -> int:
        if (id(node), peer.id) in dialled:
            return 0
        dialled[id(node), peer.id] = None
        return intact(node, peer)

    intact = links.dial
    patch.setattr(membership, "dial", dial)


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


def acked_holders_silent(patch: Patch) -> None:
    """Who has a job as acknowledged does not say so to one that works on it or will queue it."""

    def pending(node: NodeState, sender: Peer, job_id: JobId) -> Job | None:
        job = node.jobs.get(job_id)
        if job is not None and job.state == ACKED:
            return None
        return intact(node, sender, job_id)

    intact = requeue._pending
    patch.setattr(requeue, "_pending", pending)


def setack_not_heeded(patch: Patch) -> None:
    """SETACK is confirmed, and nothing noted."""

    def on_setack(node: NodeState, sender: Peer, message: SetAck) -> None:
        acks.answer_setack(node, sender, message.id, node.jobs.get(message.id))

    patch.setitem(machine.ON_MESSAGE, SetAck, on_setack)


def dummies_vouch(patch: Patch) -> None:
    """A dummy ack answers SETACK as if it were a copy."""

    def answer(node: NodeState, sender: Peer, job_id: JobId, job: Job | None) -> None:
        post.to_node(node, sender, GotAck(job_id, known=job is not None))

    patch.setattr(acks, "answer_setack", answer)


def acks_overruled(patch: Patch) -> None:
    """A job that moves here is queued, acknowledged or not."""

    def take(node: NodeState, sender: Peer, copy: JobCopy) -> None:
        job = node.jobs.get(copy.id)
        if job is not None and job.state == ACKED and not job.is_dummy:
            job.state = ACTIVE
            job.requeue_at = node.mono + 1
        intact(node, sender, copy)

    intact = federation._import
    patch.setattr(federation, "_import", take)


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
        return attrs.evolve(copy, body=bytes(copy.body)[:-1])

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


def without_repair(patch: Patch) -> None:
    """Copies that are gone for good are not made again."""
    patch.setitem(machine.ON_TIMER, Repair, nothing)


def promised_before_synced(patch: Patch) -> None:
    """Nodes talk of what their disks have not kept yet."""
    patch.setattr(Journal, "_safe", lambda journal: journal._handed)


def anything_evicted(patch: Patch) -> None:
    """A node that is short of memory drops its oldest job, acknowledged or not."""

    def oldest(node: NodeState) -> Job | None:
        return next(iter(node.jobs.values()), None)

    patch.setattr(pressure, "_next_victim", oldest)


def without_tombstones(patch: Patch) -> None:
    """Nobody remembers which jobs are over."""
    patch.setattr(Tombstones, "bury", nothing)


def in_step(patch: Patch) -> None:
    """All holders of a job wake at the same time."""
    patch.setattr(lifecycle, "desync", lambda _: 0)
