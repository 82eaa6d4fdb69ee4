"""Nodes of which something is broken: each function breaks one thing, until the patch is undone.

Verbs look up their neighbours in modules when they are called, and messages and timers in tables,
so all can be replaced from outside; the package itself knows nothing of this.
"""

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from disque_trio.sim.engines.heap.journal import Journal
from disque_trio.statemachine import (
    delivery,
    dispatch,
    due,
    leases,
    lifecycle,
    machine,
    pressure,
    requeue,
    send,
    trace,
    transfer,
)
from disque_trio.statemachine import job as job_module
from disque_trio.statemachine.base import ACTIVE, JobId, NodeId
from disque_trio.statemachine.cluster import Cluster, Peer
from disque_trio.statemachine.commands import addjob
from disque_trio.statemachine.copies import snapshot
from disque_trio.statemachine.events import Cause, Kind
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import JobCopy, NeedJobs, Queued
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import NodeState, Repair
from disque_trio.statemachine.tombstones import Tombstones

Patch = pytest.MonkeyPatch


def nothing(*_: object, **__: object) -> None:
    """Do nothing, whatever the arguments."""


def ignoring(message: type) -> Callable[[Patch], None]:
    """Ignore messages of this type."""
    return lambda patch: patch.setitem(dispatch.ON_MESSAGE, message, nothing)


# Who has it queued.


def without_tie_break(patch: Patch) -> None:
    """Of two nodes that have queued a job, neither gives way."""
    patch.setattr(requeue, "wins", lambda *_: False)


def never_armed_again(patch: Patch) -> None:
    """The retry period begins anew, but its timer is not armed."""

    def restart(node: NodeState, job: Job) -> None:
        if job.retry:
            job.requeue_at = node.mono + job.retry + lifecycle.desync(node)
            node.timers.disarm(job)

    patch.setattr(lifecycle, "restart_retry", restart)


def on_some_nodes_reversed(patch: Patch) -> None:
    """When two nodes have queued a job, every second node reverses the tie-break."""
    intact = job_module.wins

    def wins(mine: NodeId, other: NodeId, job_id: JobId) -> bool:
        return intact(mine, other, job_id) != bool(mine[0] & 1)

    patch.setattr(requeue, "wins", wins)


def paused_queues_take_back(patch: Patch) -> None:
    """A job whose RETRY is over is queued again in a paused queue."""
    intact = requeue._requeue

    def again(node: NodeState, job: Job) -> None:
        with patch.context() as inner:
            inner.setattr(lifecycle, "is_paused_in", lambda *_: False)
            intact(node, job)

    patch.setattr(requeue, "_requeue", again)


def paused_queues_deliver(patch: Patch) -> None:
    """PAUSE out does not stop deliveries."""
    patch.setattr(delivery, "PAUSE_OUT", 0)
    patch.setattr(lifecycle, "PAUSE_OUT", 0)


def silent_import(patch: Patch) -> None:
    """A node that imports a job does not announce it."""
    patch.setattr(transfer, "_show_to_holders", nothing)


def silent_requeue(patch: Patch) -> None:
    """Queueing a job again is not announced."""
    intact = send.to_holders

    def to_holders(node: NodeState, job: Job, message: Any) -> None:
        if not isinstance(message, Queued):
            intact(node, job, message)

    patch.setattr(send, "to_holders", to_holders)


# Leases and time.


def without_lease(patch: Patch) -> None:
    """A delivery does not restart the retry period."""
    patch.setattr(leases, "start", nothing)


def lease_not_told(patch: Patch) -> None:
    """A delivery restarts the retry period at its node only."""

    def start_lease(node: NodeState, job: Job) -> None:
        if job.retry:
            lifecycle.restart_retry(node, job)

    patch.setattr(leases, "start", start_lease)


def delivered_and_done(patch: Patch) -> None:
    """A delivered job is never queued again."""

    def restart(node: NodeState, job: Job) -> None:
        intact(node, job)
        if job.state == ACTIVE:
            job.requeue_at = 0
            lifecycle.schedule(node, job)

    intact = lifecycle.restart_retry
    patch.setattr(lifecycle, "restart_retry", restart)


def half_a_period(patch: Patch) -> None:
    """The retry period is half of RETRY."""

    def restart(node: NodeState, job: Job) -> None:
        if job.retry:
            lifecycle.mark(job, 2)
            job.requeue_at = node.mono + job.retry // 2 + lifecycle.desync(node)
        lifecycle.schedule(node, job)

    patch.setattr(lifecycle, "restart_retry", restart)


def by_the_wall_clock(patch: Patch) -> None:
    """All timers use the wall clock."""
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
    """TTL is ignored."""

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
    patch.setitem(due.ON_TIMER, Job, on_due)
    patch.setattr(lifecycle, "fetch", fetch)


def never_expired(patch: Patch) -> None:
    """TTL is ignored for jobs that are not queued."""

    def on_due(node: NodeState, job: Job) -> None:
        life, job.expires = job.expires, 1 << 60
        try:
            requeue.on_due(node, job)
        finally:
            job.expires = life

    patch.setitem(due.ON_TIMER, Job, on_due)


def without_delay(patch: Patch) -> None:
    """DELAY is ignored."""

    def begin(node: NodeState, job: Job) -> None:
        job.delay = 0
        intact(node, job)

    intact = lifecycle.begin
    patch.setattr(lifecycle, "begin", begin)


def half_the_delay(patch: Patch) -> None:
    """A job is queued after half of its DELAY."""

    def begin(node: NodeState, job: Job) -> None:
        job.requeue_at -= job.delay // 2
        intact(node, job)

    intact = lifecycle.begin
    patch.setattr(lifecycle, "begin", begin)


# Federation and queues.


def given_and_kept(patch: Patch) -> None:
    """A job with RETRY 0 that moves to another node also stays at the old one."""
    intact = transfer._give

    def give(node: NodeState, job: Job, receiver: Peer) -> JobCopy:
        if job.retry:
            return intact(node, job, receiver)
        trace.note(node, Kind.GIVE, job, Cause.GIVEN, peer=receiver.id)
        copy = snapshot(node, job)
        job.flags, job.requeue_at = 0, node.mono
        lifecycle.enqueue(node, job, Cause.FIRST)
        return copy

    patch.setattr(transfer, "_give", give)


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
    for module in (job_module, transfer):
        patch.setattr(module, "had_its_turn", lambda _: False)


def youngest_first(patch: Patch) -> None:
    """The youngest job of a queue is delivered."""

    def pop(self: Queue) -> Job | None:
        youngest = self.peek(-1)
        if not youngest:
            return None
        self.length -= 1
        self._in_order = type(self._in_order)(
            job for job in self._in_order if job is not youngest[0]
        )
        if self._late is not None:
            self._late.only(entry for entry in self._late if entry[-1] is not youngest[0])
        youngest[0].in_line = False
        return youngest[0]

    patch.setattr(Queue, "pop", pop)


def bodies_cut_short(patch: Patch) -> None:
    """Bodies are cut short when they are sent to another node."""
    intact = snapshot

    def cut(node: NodeState, job: Job) -> JobCopy:
        copy = intact(node, job)
        return attrs.evolve(copy, body=bytes(copy.body)[:-1])

    patch.setattr(transfer, "snapshot", cut)


def counting_twice(patch: Patch) -> None:
    """NACKs and additional deliveries count double."""
    intact = lifecycle.count_delivery

    def count(job: Job, *, nack: bool, redelivery: bool) -> None:
        intact(job, nack=nack, redelivery=redelivery)
        intact(job, nack=nack, redelivery=redelivery)

    patch.setattr(lifecycle, "count_delivery", count)


def counting_nothing(patch: Patch) -> None:
    """NACKs and additional deliveries do not count."""
    patch.setattr(lifecycle, "count_delivery", lambda _job, *, nack, redelivery: None)  # noqa: ARG005


def raising(patch: Patch) -> None:
    """A message makes the machine raise."""

    def on_needjobs(node: NodeState, sender: Peer, message: NeedJobs) -> None:
        raise KeyError(message.queue)

    patch.setitem(dispatch.ON_MESSAGE, NeedJobs, on_needjobs)


def without_repair(patch: Patch) -> None:
    """Copies that are gone for good are not replaced."""
    patch.setitem(due.ON_TIMER, Repair, nothing)


def confirmed_before_synced(patch: Patch) -> None:
    """Replies and messages do not wait until the journal is synced."""
    patch.setattr(Journal, "_safe", lambda journal: journal._handed)


def anything_evicted(patch: Patch) -> None:
    """A node that is short of memory drops its oldest job, acknowledged or not."""

    def oldest(node: NodeState) -> Job | None:
        return next(iter(node.jobs.values()), None)

    patch.setattr(pressure, "_next_victim", oldest)


def without_tombstones(patch: Patch) -> None:
    """There are no tombstones."""
    patch.setattr(Tombstones, "bury", nothing)


def in_step(patch: Patch) -> None:
    """The retry timers of all holders of a job expire at the same time."""
    patch.setattr(lifecycle, "desync", lambda _: 0)


# What clients ask for, and what operators say.


def maxlen_ignored(patch: Patch) -> None:
    """MAXLEN is ignored."""
    patch.setattr(addjob, "_check_length", nothing)


def stays_while_leaving(patch: Patch) -> None:
    """A leaving node behaves as before, but refuses new jobs of its own clients."""
    patch.setattr(Cluster, "is_leaving", False)
