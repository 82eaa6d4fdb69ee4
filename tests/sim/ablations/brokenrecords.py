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
    failure,
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
from disque_trio.statemachine.messages import Fail, JobCopy, ReplJob, WillQueue, Working
from disque_trio.statemachine.records import Record
from disque_trio.statemachine.state import Demand, NodeState, Offer
from tests.sim.ablations.broken import Patch, nothing

# What copies say.


def _altered(patch: Patch, **changes: Any) -> None:
    """Copies of new jobs come with other options."""
    intact = copies.adopt

    def adopt(node: NodeState, copy: JobCopy) -> Job:
        return intact(node, attrs.evolve(copy, **changes))

    patch.setattr(replication, "adopt", adopt)


def retry_of_copies_doubled(patch: Patch) -> None:
    """A copy has twice the RETRY of the ADDJOB."""
    _altered(patch, retry=4)


def copies_live_anew(patch: Patch) -> None:
    """The TTL of a copy begins when it arrives, however old the job is."""
    intact = copies.adopt

    def adopt(node: NodeState, copy: JobCopy) -> Job:
        return intact(node, attrs.evolve(copy, etime=3601))

    patch.setattr(transfer, "adopt", adopt)


def copies_want_no_others(patch: Patch) -> None:
    """A copy has REPLICATE 1, so that lost copies are not replaced."""
    _altered(patch, replicas=1)


def copies_without_delay(patch: Patch) -> None:
    """A copy has no DELAY."""
    _altered(patch, delay=0)


def copies_born_now(patch: Patch) -> None:
    """The creation time of a copy is its arrival, so that it is queued behind younger jobs."""
    intact = copies.adopt

    def adopt(node: NodeState, copy: JobCopy) -> Job:
        return intact(node, attrs.evolve(copy, ctime=node.wall * 1_000_000))

    patch.setattr(replication, "adopt", adopt)


def copies_cut_short(patch: Patch) -> None:
    """The body of a copy is cut short."""
    intact = copies.adopt

    def adopt(node: NodeState, copy: JobCopy) -> Job:
        return intact(node, attrs.evolve(copy, body=bytes(copy.body)[:-1]))

    patch.setattr(replication, "adopt", adopt)


# Meetings.


def offers_not_made(patch: Patch) -> None:
    """Jobs for which no local client waits are not offered."""
    patch.setattr(offering, "offer", nothing)


def offered_once(patch: Patch) -> None:
    """Jobs are offered to one node only, even if it does not answer."""
    patch.setitem(due.ON_TIMER, Demand, nothing)


def declined_and_offered_at_once(patch: Patch) -> None:
    """A node that declines an offer gets it again at once."""

    def answered(demand: Demand, sender: Peer, offer: Offer) -> None:
        intact(demand, sender, Offer.NONE if offer is Offer.KNOWN else offer)

    intact = offering._answered
    patch.setattr(offering, "_answered", answered)


def not_told_who_waits(patch: Patch) -> None:
    """A node is not told over a new link that clients wait here."""
    patch.setattr(greetings, "greet", nothing)


def asked_later(patch: Patch) -> None:
    """A node that declined an offer does not ask for the jobs when a client arrives."""
    patch.setattr(federation, "_ask_for_clients", nothing)


# Pauses.


def paused_queues_give(patch: Patch) -> None:
    """PAUSE out does not stop jobs from moving to other nodes."""
    patch.setattr(offering, "PAUSE_OUT", 0)


def paused_queues_take_copies(patch: Patch) -> None:
    """PAUSE in does not stop copies."""
    intact = replication.on_repljob

    def on_repljob(node: NodeState, sender: Peer, message: Any) -> None:
        with patch.context() as inner:
            inner.setattr(lifecycle, "is_paused_in", lambda *_: False)
            intact(node, sender, message)

    patch.setitem(dispatch.ON_MESSAGE, ReplJob, on_repljob)


def paused_queues_deliver_once(patch: Patch) -> None:
    """PAUSE out does not stop deliveries of jobs with RETRY 0."""
    patch.setattr(delivery, "PAUSE_OUT", 0)
    patch.setattr(lifecycle, "PAUSE_OUT", 0)


# Time.


def a_second_late(patch: Patch) -> None:
    """The retry period is a second too long."""
    intact = lifecycle.restart_retry

    def restart(node: NodeState, job: Job) -> None:
        intact(node, job)
        if job.retry and job.requeue_at:
            job.requeue_at += 1000
            lifecycle.schedule(node, job)

    patch.setattr(lifecycle, "restart_retry", restart)


def late_after_delay(patch: Patch) -> None:
    """DELAY is a second too long."""

    def begin(node: NodeState, job: Job) -> None:
        if job.delay:
            job.requeue_at += 1000
        intact(node, job)

    intact = lifecycle.begin
    patch.setattr(lifecycle, "begin", begin)


def put_off_for_ever(patch: Patch) -> None:
    """A node that receives WILLQUEUE always answers WORKING."""

    def on_willqueue(node: NodeState, sender: Peer, message: WillQueue) -> None:
        send.to_node(node, sender, Working(message.id))

    patch.setitem(dispatch.ON_MESSAGE, WillQueue, on_willqueue)


def queued_once_told(patch: Patch) -> None:
    """A new job is queued only after RETRY."""
    intact = lifecycle.enqueue

    def enqueue(node: NodeState, job: Job, cause: Cause) -> bool:
        if cause is Cause.FIRST:
            lifecycle.schedule(node, job)
            return False
        return intact(node, job, cause)

    patch.setattr(lifecycle, "enqueue", enqueue)


# Whom a node knows, and how its state fits together.


def forgetting_nobody(patch: Patch) -> None:
    """CLUSTER FORGET answers OK and does nothing."""
    patch.setattr(membership, "remove", nothing)


def back_by_gossip(patch: Patch) -> None:
    """Gossip adds a forgotten node again at once."""
    patch.setattr(gossip, "is_banned", lambda *_: False)


def failed_for_good(patch: Patch) -> None:
    """A suspicion is never withdrawn."""
    patch.setattr(gossip, "recover", nothing)


def verdicts_not_checked(patch: Patch) -> None:
    """A node that is told that another has failed does not ask that node."""

    def on_fail(node: NodeState, _sender: Peer, message: Fail) -> None:
        peer = node.cluster.nodes.get(message.node)
        if peer is not None and peer is not node.cluster.myself:
            failure.mark_failed(node, peer)

    patch.setitem(dispatch.ON_MESSAGE, Fail, on_fail)


def left_for_good(patch: Patch) -> None:
    """A node that once announced to leave counts as leaving for ever."""
    intact = nodetable.mark_leaving

    def mark(node: NodeState, peer: Peer, *, leaving: bool) -> None:
        if leaving or peer is node.cluster.myself:
            intact(node, peer, leaving=leaving)

    patch.setattr(membership, "mark_leaving", mark)


def names_made_up(patch: Patch) -> None:
    """A node keeps its temporary name after the handshake."""
    intact = nodetable.rename

    def rename(node: NodeState, peer: Peer, name: NodeId) -> None:
        if name[-1] & 1:
            intact(node, peer, name)
        else:
            intact(node, peer, name[::-1])

    patch.setattr(handshake, "rename", rename)


def memory_not_let_off(patch: Patch) -> None:
    """Collected jobs still count as used memory."""
    intact = lifecycle.unregister

    def unregister(node: NodeState, job: Job, cause: Cause) -> None:
        held = node.memory.held
        intact(node, job, cause)
        if cause is Cause.COLLECTED:
            node.memory.held = held

    patch.setattr(lifecycle, "unregister", unregister)


# What a restart must know.


def acks_not_written(patch: Patch) -> None:
    """An acknowledgement is announced, but not written to the journal."""
    patch.setattr(acks, "_record", nothing)


def dummies_not_written(patch: Patch) -> None:
    """A dummy ack is not written to the journal."""
    intact = acks._record

    def record(node: NodeState, job: Job) -> None:
        if not job.is_dummy:
            intact(node, job)

    patch.setattr(acks, "_record", record)


def drops_not_written(patch: Patch) -> None:
    """The deletion of a job is announced, but not written to the journal."""
    patch.setattr(journaling, "drop", nothing)


def copies_not_written(patch: Patch) -> None:
    """A copy is confirmed with GOTJOB, but not written to the journal."""
    intact = journaling.hold

    def hold(node: NodeState, job: Job) -> None:
        if job.id[2:10] == node.cluster.myself.id[:8]:
            intact(node, job)

    patch.setattr(journaling, "hold", hold)


def delays_by_creators(patch: Patch) -> None:
    """After a restart the rest of a delay is counted by the creator's clock."""
    patch.setattr(journaling, "_due", lambda *_: 0)


def stopped_without_mark(patch: Patch) -> None:
    """The mark of a clean stop is not written, or not read."""
    patch.setattr(recovery, "STOPPED", journaling.STARTED)


def mark_never_void(patch: Patch) -> None:
    """The mark of a clean stop stays valid after the next start."""
    intact = recovery.load

    def load(node: NodeState, records: Iterable[Record]) -> None:
        read = list(records)
        intact(node, read)
        node.was_stopped = journaling.STOPPED in read

    patch.setattr(recovery, "load", load)


def queues_not_followed(patch: Patch) -> None:
    """Changes of queues during a clean stop are not written to the journal."""
    patch.setattr(journaling, "moved", nothing)


def receivers_not_written(patch: Patch) -> None:
    """The journal does not record to which node a job has moved."""
    intact = transfer._give

    def give(node: NodeState, job: Job, receiver: Peer) -> JobCopy:
        if not job.retry:
            return intact(node, job, receiver)
        with patch.context() as inner:
            inner.setattr(journaling, "hold", nothing)
            return intact(node, job, receiver)

    patch.setattr(transfer, "_give", give)


def once_not_written(patch: Patch) -> None:
    """A job with RETRY 0 is not written to the journal."""
    intact = journaling.hold

    def hold(node: NodeState, job: Job) -> None:
        if job.retry:
            intact(node, job)

    patch.setattr(journaling, "hold", hold)


# What clients are told.


def acks_counted_by_words(patch: Patch) -> None:
    """ACKJOB answers with the number of its arguments."""
    intact = acks.ack_all

    def ack_all(node: NodeState, ids: list[JobId]) -> int:
        intact(node, ids)
        return len(ids)

    patch.setattr(acks, "ack_all", ack_all)


def acks_not_counted(patch: Patch) -> None:
    """ACKJOB answers 0."""
    intact = acks.ack_all

    def ack_all(node: NodeState, ids: list[JobId]) -> int:
        intact(node, ids)
        return 0

    patch.setattr(acks, "ack_all", ack_all)


def right_to_left(patch: Patch) -> None:
    """GETJOB begins with the last queue."""
    intact = delivery._round

    def one_round(
        node: NodeState, client: Client, names: list[bytes], count: int, taken: list[Job]
    ) -> list[bytes]:
        return intact(node, client, names[::-1], count, taken)[::-1]

    patch.setattr(delivery, "_round", one_round)
