"""Nodes of which something is broken that only their own records, tables and timers show.

Like `broken`: each function breaks one thing, until the patch is undone.
"""

from collections.abc import Iterable
from typing import Any

import attrs

from disque_trio.statemachine import (
    acks,
    copies,
    delivery,
    dispatch,
    due,
    federation,
    gossip,
    greetings,
    handshake,
    journaling,
    lifecycle,
    membership,
    nodetable,
    offering,
    recovery,
    replication,
    send,
    transfer,
)
from disque_trio.statemachine.base import JobId, NodeId
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import JobCopy, ReplJob, WillQueue, Working
from disque_trio.statemachine.records import Record
from disque_trio.statemachine.state import Demand, NodeState
from tests.sim.ablations.broken import Patch, nothing

# What copies say.


def _altered(patch: Patch, **changes: Any) -> None:
    """Copies of new jobs come with other options."""
    intact = copies.adopt

    def adopt(node: NodeState, copy: JobCopy) -> Job:
        return intact(node, attrs.evolve(copy, **changes))

    patch.setattr(replication, "adopt", adopt)


def retry_of_copies_doubled(patch: Patch) -> None:
    """A copy has twice the RETRY that was asked for."""
    _altered(patch, retry=4)


def copies_live_anew(patch: Patch) -> None:
    """A copy lives for the whole TTL from when it comes, however old the job is."""
    intact = copies.adopt

    def adopt(node: NodeState, copy: JobCopy) -> Job:
        return intact(node, attrs.evolve(copy, etime=3601))

    patch.setattr(transfer, "adopt", adopt)


def copies_want_no_others(patch: Patch) -> None:
    """A copy says that one copy was asked for, so nobody would make others again."""
    _altered(patch, replicas=1)


def copies_without_delay(patch: Patch) -> None:
    """A copy knows nothing of DELAY."""
    _altered(patch, delay=0)


def copies_born_now(patch: Patch) -> None:
    """A copy is as old as its record, and so stands at the end of its queue."""
    intact = copies.adopt

    def adopt(node: NodeState, copy: JobCopy) -> Job:
        return intact(node, attrs.evolve(copy, ctime=node.wall * 1_000_000))

    patch.setattr(replication, "adopt", adopt)


def copies_cut_short(patch: Patch) -> None:
    """The body of a copy loses its end."""
    intact = copies.adopt

    def adopt(node: NodeState, copy: JobCopy) -> Job:
        return intact(node, attrs.evolve(copy, body=bytes(copy.body)[:-1]))

    patch.setattr(replication, "adopt", adopt)


# Meetings.


def offers_not_made(patch: Patch) -> None:
    """Nobody is told of jobs for which no client waits."""
    patch.setattr(offering, "offer", nothing)


def offered_once(patch: Patch) -> None:
    """Jobs are offered to one node, whether or not it has an answer."""
    patch.setitem(due.ON_TIMER, Demand, nothing)


def not_told_who_waits(patch: Patch) -> None:
    """Over a new link a node is not told that clients wait here."""
    patch.setattr(greetings, "greet", nothing)


def asked_later(patch: Patch) -> None:
    """Who has declined an offer does not ask when a client comes."""
    patch.setattr(federation, "_ask_for_clients", nothing)


# Pauses.


def paused_queues_give(patch: Patch) -> None:
    """PAUSE out keeps no other node from being given jobs."""
    patch.setattr(offering, "PAUSE_OUT", 0)


def paused_queues_take_copies(patch: Patch) -> None:
    """PAUSE in keeps no copies out."""
    intact = replication.on_repljob

    def on_repljob(node: NodeState, sender: Peer, message: Any) -> None:
        with patch.context() as inner:
            inner.setattr(lifecycle, "is_paused_in", lambda *_: False)
            intact(node, sender, message)

    patch.setitem(dispatch.ON_MESSAGE, ReplJob, on_repljob)


def paused_queues_deliver_once(patch: Patch) -> None:
    """PAUSE out keeps nobody from being served with jobs of RETRY 0."""
    patch.setattr(delivery, "PAUSE_OUT", 0)
    patch.setattr(lifecycle, "PAUSE_OUT", 0)


# Time.


def a_second_late(patch: Patch) -> None:
    """Periods last for a second more than RETRY."""
    intact = lifecycle.restart_retry

    def restart(node: NodeState, job: Job) -> None:
        intact(node, job)
        if job.retry and job.requeue_at:
            job.requeue_at += 1000
            lifecycle.schedule(node, job)

    patch.setattr(lifecycle, "restart_retry", restart)


def late_after_delay(patch: Patch) -> None:
    """A DELAY lasts for a second more."""

    def begin(node: NodeState, job: Job) -> None:
        if job.delay:
            job.requeue_at += 1000
        intact(node, job)

    intact = lifecycle.begin
    patch.setattr(lifecycle, "begin", begin)


def put_off_for_ever(patch: Patch) -> None:
    """A node that hears WILLQUEUE says that somebody works on the job, whoever gave it away."""

    def on_willqueue(node: NodeState, sender: Peer, message: WillQueue) -> None:
        send.to_node(node, sender, Working(message.id))

    patch.setitem(dispatch.ON_MESSAGE, WillQueue, on_willqueue)


def queued_once_told(patch: Patch) -> None:
    """A new job waits for a whole period before it is queued."""
    intact = lifecycle.enqueue

    def enqueue(node: NodeState, job: Job, cause: Cause) -> bool:
        if cause is Cause.FIRST:
            lifecycle.schedule(node, job)
            return False
        return intact(node, job, cause)

    patch.setattr(lifecycle, "enqueue", enqueue)


# Whom a node knows, and how its state fits together.


def forgetting_nobody(patch: Patch) -> None:
    """CLUSTER FORGET is answered with OK, and that is all."""
    patch.setattr(membership, "remove", nothing)


def back_by_gossip(patch: Patch) -> None:
    """Who was forgotten comes back with the next gossip."""
    patch.setattr(gossip, "is_banned", lambda *_: False)


def failed_for_good(patch: Patch) -> None:
    """Who has been suspected once stays so."""
    patch.setattr(gossip, "recover", nothing)


def left_for_good(patch: Patch) -> None:
    """Who has announced once that it leaves is believed to for ever."""
    intact = nodetable.mark_leaving

    def mark(node: NodeState, peer: Peer, *, leaving: bool) -> None:
        if leaving or peer is node.cluster.myself:
            intact(node, peer, leaving=leaving)

    patch.setattr(membership, "mark_leaving", mark)


def names_made_up(patch: Patch) -> None:
    """A node that completes its handshake keeps the name that it was given for it."""
    intact = nodetable.rename

    def rename(node: NodeState, peer: Peer, name: NodeId) -> None:
        if name[-1] & 1:
            intact(node, peer, name)
        else:
            intact(node, peer, name[::-1])

    patch.setattr(handshake, "rename", rename)


def memory_not_let_off(patch: Patch) -> None:
    """Jobs that are collected stay on the account."""
    intact = lifecycle.unregister

    def unregister(node: NodeState, job: Job, cause: Cause) -> None:
        held = node.memory.held
        intact(node, job, cause)
        if cause is Cause.COLLECTED:
            node.memory.held = held

    patch.setattr(lifecycle, "unregister", unregister)


# What a restart must know.


def acks_not_written(patch: Patch) -> None:
    """An acknowledgement is told, and not written down."""
    patch.setattr(acks, "_record", nothing)


def dummies_not_written(patch: Patch) -> None:
    """An acknowledgement of a job that is elsewhere is told, and not written down."""
    intact = acks._record

    def record(node: NodeState, job: Job) -> None:
        if not job.is_dummy:
            intact(node, job)

    patch.setattr(acks, "_record", record)


def drops_not_written(patch: Patch) -> None:
    """That a job is over is told, and not written down."""
    patch.setattr(journaling, "drop", nothing)


def copies_not_written(patch: Patch) -> None:
    """GOTJOB vouches for a copy that is only in memory."""
    intact = journaling.hold

    def hold(node: NodeState, job: Job) -> None:
        if job.id[2:10] == node.cluster.myself.id[:8]:
            intact(node, job)

    patch.setattr(journaling, "hold", hold)


def stopped_without_mark(patch: Patch) -> None:
    """A stop in order leaves its mark out, or the start passes over it."""
    patch.setattr(recovery, "STOPPED", journaling.STARTED)


def mark_never_void(patch: Patch) -> None:
    """The mark of a stop is heeded though the node has started since."""
    intact = recovery.load

    def load(node: NodeState, records: Iterable[Record]) -> None:
        read = list(records)
        intact(node, read)
        node.was_stopped = journaling.STOPPED in read

    patch.setattr(recovery, "load", load)


def queues_not_followed(patch: Patch) -> None:
    """What comes into a queue and leaves it while a node stops is not recorded."""
    patch.setattr(journaling, "moved", nothing)


def receivers_not_written(patch: Patch) -> None:
    """The journal does not say to whom its node has given a job."""
    intact = transfer._give

    def give(node: NodeState, job: Job, receiver: Peer) -> JobCopy:
        if not job.retry:
            return intact(node, job, receiver)
        with patch.context() as inner:
            inner.setattr(journaling, "hold", nothing)
            return intact(node, job, receiver)

    patch.setattr(transfer, "_give", give)


def once_not_written(patch: Patch) -> None:
    """A job with RETRY 0 is not written down."""
    intact = journaling.hold

    def hold(node: NodeState, job: Job) -> None:
        if job.retry:
            intact(node, job)

    patch.setattr(journaling, "hold", hold)


# What clients are told.


def acks_counted_by_words(patch: Patch) -> None:
    """ACKJOB tells how many jobs it was given, known or not."""
    intact = acks.ack_all

    def ack_all(node: NodeState, ids: list[JobId]) -> int:
        intact(node, ids)
        return len(ids)

    patch.setattr(acks, "ack_all", ack_all)


def acks_not_counted(patch: Patch) -> None:
    """ACKJOB tells 0."""
    intact = acks.ack_all

    def ack_all(node: NodeState, ids: list[JobId]) -> int:
        intact(node, ids)
        return 0

    patch.setattr(acks, "ack_all", ack_all)


def right_to_left(patch: Patch) -> None:
    """GETJOB begins with the last of its queues."""
    intact = delivery._round

    def one_round(
        node: NodeState, client: Client, names: list[bytes], count: int, taken: list[Job]
    ) -> list[bytes]:
        return intact(node, client, names[::-1], count, taken)[::-1]

    patch.setattr(delivery, "_round", one_round)
