"""Copies of jobs in messages: a live job as a `JobCopy`, and a copy as a live job (original 4.5).

Owns `Job.holders`; sets `Repair.has_changes` and `again`.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import attrs

from disque_trio.statemachine import counts, results, send
from disque_trio.statemachine.base import (
    ACTIVE,
    BCAST_WILLQUEUE,
    BURIES,
    CARRIED_FLAGS,
    DEAD,
    FAIL,
    MAX_SECONDS,
    MYSELF,
    PFAIL,
    JobId,
    Millis,
    NodeId,
)
from disque_trio.statemachine.cluster import UNREACHABLE, Peer
from disque_trio.statemachine.job import STAMPS, Job, needs
from disque_trio.statemachine.lifecycle import desync
from disque_trio.statemachine.messages import JobCopy, JobState, Working
from disque_trio.statemachine.nodetable import is_banned
from disque_trio.statemachine.state import NodeState

RESTART: Final[Millis] = 10_000
"""The time within which a node that is restarted at once answers: until then, it may still confirm
copies."""

CREATOR_FIRST: Final[Millis] = 30_000
"""The time in which the creator of a job may find the missing holders before the others do."""


def spread(
    node: NodeState, holders: tuple[NodeId, ...], candidates: list[NodeId], count: int
) -> list[NodeId]:
    """Choose up to `count` candidates. Each choice is from the zone with the fewest holders and
    chosen nodes, within it from the address with the fewest, and within that the first.

    Nodes of one zone, or at one address, may fail together. Nodes without a zone count as one zone.
    All candidates must be in the node table.
    """
    nodes = node.cluster.nodes
    zones: dict[bytes, int] = {}
    places: dict[str, int] = {}
    left, chosen = list(candidates), [id for id in holders if id in nodes]
    known = len(chosen)
    for id in chosen:
        zones[nodes[id].zone] = zones.get(nodes[id].zone, 0) + 1
        places[nodes[id].ip] = places.get(nodes[id].ip, 0) + 1
    while left and len(chosen) < known + count:
        best = min(left, key=lambda id: (zones.get(nodes[id].zone, 0), places.get(nodes[id].ip, 0)))
        left.remove(best)
        chosen.append(best)
        zones[nodes[best].zone] = zones.get(nodes[best].zone, 0) + 1
        places[nodes[best].ip] = places.get(nodes[best].ip, 0) + 1
    return chosen[known:]


def has_enough(node: NodeState, job: Job, sync: int) -> bool:
    """Does a new job have `sync` confirmed copies, in as many zones as its holders that are up
    allow?"""
    confirmed = job.confirmed or ()
    if len(confirmed) < sync or not node.cluster.is_crowded:
        return len(confirmed) >= sync
    able = [id for id in job.holders if _is_up(node.cluster.nodes.get(id))]
    return _zones(node, confirmed) >= min(sync, _zones(node, able))


def _is_up(peer: Peer | None) -> bool:
    return peer is not None and not peer.flags & UNREACHABLE


def _zones(node: NodeState, ids: Iterable[NodeId]) -> int:
    nodes = node.cluster.nodes
    return len({nodes[id].zone for id in ids if id in nodes})


def candidates_for(node: NodeState, needs: int) -> int:
    """How many reachable nodes can keep a job that needs these capabilities."""
    reachable = node.cluster.reachable
    return sum([keeps(peer, needs) for peer in reachable]) if needs else len(reachable)


def snapshot(node: NodeState, job: Job) -> JobCopy:
    """The job in the form of messages: with its remaining TTL, and without delivery flags."""
    left = max(job.expires - node.mono, 0) // 1000 + 1
    return JobCopy(
        id=job.id,
        state=job.state,
        gc_attempt=job.gc_attempt,
        flags=job.flags & CARRIED_FLAGS,
        replicas=job.replicas,
        etime=min(left, MAX_SECONDS),
        ctime=job.ctime,
        delay=job.delay_s,
        retry=job.retry // 1000,
        nacks=job.nacks,
        deliveries=job.deliveries,
        queue=job.queue or b"",
        body=job.body or b"",
        holders=job.holders,
        extensions=job.extensions,
    )


def adopt(node: NodeState, copy: JobCopy, confirmed: tuple[NodeId, ...] | None = None) -> Job:
    """Make a live job, not registered yet, from a copy in a message.

    The job is due after its delay and one retry period, so this node enqueues it only if no message
    postpones it meanwhile.
    """
    counts.copy_taken(node)
    if len(copy.holders) < copy.replicas:
        _leave_to_next_pass(node)
    wait = (copy.delay + copy.retry) * 1000 + desync(node)
    shared = node.timers.shared
    return Job(
        id=copy.id,
        queue=shared_name(copy.queue),
        body=copy.body,
        replicas=copy.replicas,
        made=shared(copy.ctime // STAMPS),
        number=copy.ctime % STAMPS,
        expires=shared(node.mono + copy.etime * 1000),
        delay=millis(copy.delay),
        retry=millis(copy.retry),
        holders=named(node, copy.holders),
        confirmed=confirmed,
        state=DEAD if is_dead(copy) else ACTIVE,
        flags=BCAST_WILLQUEUE if copy.retry else 0,
        requeue_at=shared(node.mono + wait) if copy.retry and not is_dead(copy) else 0,
        nacks=copy.nacks,
        deliveries=copy.deliveries,
        extensions=copy.extensions,
    )


def _leave_to_next_pass(node: NodeState) -> None:
    """A copy has fewer holders than REPLICATE: its creator has found no other nodes. The creator
    continues, unless it restarts without the job. So a pass of `repair` must check it."""
    repair = node.repair
    if not repair.has_changes:
        repair.has_changes = True
        if not repair.lacking:  # otherwise a pass is due anyway
            repair.again = max(repair.again, node.mono + CREATOR_FIRST)


def is_orphan(node: NodeState, job_id: JobId, holders: tuple[NodeId, ...]) -> bool:
    """Is the node lost that added the job and is among its holders? Only that node had the list of
    confirmed copies."""
    origin = job_id[2:10]
    lost, nodes = node.repair.lost, node.cluster.nodes
    for id in holders:  # noqa: SIM110 - runs for each received copy, and any() takes twice as long
        if id.startswith(origin) and (id in lost or id not in nodes):
            return True
    return False


def known_to_hold(node: NodeState, giver: Peer, copy: JobCopy) -> tuple[NodeId, ...] | None:
    """The certain holders of a job that moves to this node: this node and `giver`. None if the list
    of holders in the copy is reliable. It is not if the job's creator is lost, because it may
    include nodes that never received a copy (decision 127)."""
    if not copy.retry or giver.id.startswith(copy.id[2:10]):
        return None  # most jobs come from their creator
    if not is_orphan(node, copy.id, copy.holders):
        return None
    known = _shared((*node.cluster.myself.holding, giver.id))
    return known if any(id not in known for id in named(node, copy.holders)) else None


def is_dead(copy: JobCopy) -> bool:
    """Is the job of this copy dead?"""
    return copy.extensions is not None and copy.extensions.dead.is_dead


def reads(peer: Peer, job: Job) -> bool:
    """Can the node keep a copy of this job, with its extensions and its longest periods?"""
    return keeps(peer, needs(job))


def readers(node: NodeState, holders: tuple[NodeId, ...], job: Job) -> tuple[NodeId, ...]:
    """The holders for which `reads` is true. A holder may have been downgraded since it received
    the job."""
    if not needs(job):
        return holders
    find = node.cluster.nodes.get
    return tuple([id for id in holders if (peer := find(id)) is not None and reads(peer, job)])


def keeps(peer: Peer, capabilities: int) -> bool:
    """Does the node have all of these capabilities?"""
    return peer.capabilities & capabilities == capabilities


def could_hold(node: NodeState, job: Job) -> int:
    """How many nodes have confirmed a copy of a new job, or may still confirm one.

    A suspected node may only be slow. It counts until a majority marks it as failed, or until it
    has been silent for twice the node timeout, because there may be no majority. A failed node
    counts for `RESTART`.
    """
    confirmed = job.confirmed or ()
    others = [peer for id, peer in node.cluster.nodes.items() if id not in confirmed]
    return len(confirmed) + sum([reads(peer, job) and _may_answer(node, peer) for peer in others])


def restarting(node: NodeState, capabilities: int) -> int:
    """How many nodes with these capabilities have failed less than `RESTART` ago."""
    failed = [peer for peer in node.cluster.nodes.values() if peer.flags & (PFAIL | FAIL)]
    return sum(
        [
            keeps(peer, capabilities)
            and not peer.flags & UNREACHABLE & ~(PFAIL | FAIL)
            and _is_silent_for_less(node, peer, RESTART)
            for peer in failed
        ]
    )


def _is_silent_for_less(node: NodeState, peer: Peer, time: Millis) -> bool:
    return bool(peer.ping_sent) and node.mono - peer.ping_sent < time


def _may_answer(node: NodeState, peer: Peer) -> bool:
    flags = peer.flags & (UNREACHABLE | MYSELF)
    if flags & ~(PFAIL | FAIL):
        return False
    doubt = 0 if flags & FAIL else 2 * node.config.cluster_node_timeout
    return not flags or _is_silent_for_less(node, peer, max(doubt, RESTART))


def sent_to(peer: Peer, copy: JobCopy) -> JobCopy:
    """The copy for `peer`, for which `reads` is true, with the extensions that it keeps. POSTPONED
    has the count of snoozes for nodes that do not keep it here."""
    if copy.extensions is None:
        return copy
    return attrs.evolve(copy, extensions=copy.extensions.kept_by(peer.capabilities))


def named(node: NodeState, holders: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    """The holders in a message, without duplicates, and this node.

    Includes holders that are not in the node table: this node may meet them at any moment, and must
    then send them changes of the job. Excludes forgotten nodes.
    """
    cluster = node.cluster
    if cluster.blacklist:
        nodes = cluster.nodes
        holders = tuple([id for id in holders if id in nodes or not is_banned(node, id)])
    return _with(holders, cluster.myself.id)


@lru_cache(maxsize=1 << 12)
def _with(holders: tuple[NodeId, ...], mine: NodeId) -> tuple[NodeId, ...]:
    """The holders without duplicates, and this node. Cached, because nearly every received job has
    the holders of an earlier one."""
    kept = dict.fromkeys(holders)
    kept[mine] = None
    return _shared(tuple(kept))


@lru_cache(maxsize=1 << 12)
def _shared(holders: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    """One tuple object for these holders, shared by all jobs with the same ones (`memory`)."""
    return holders


@lru_cache(maxsize=1 << 10)
def millis(seconds: int) -> Millis:
    """Milliseconds, as one int object shared by all jobs with the same value."""
    return seconds * 1000


@lru_cache(maxsize=1 << 10)
def shared_name(queue: bytes) -> bytes:
    """The queue's name, as one bytes object shared by its jobs."""
    return queue


def add_holders(job: Job, ids: tuple[NodeId, ...]) -> None:
    """Add these nodes to the holders, because they may have a copy."""
    holders = job.holders
    missing = [id for id in ids if id not in holders]
    if missing:
        job.holders = _shared(holders + tuple(dict.fromkeys(missing)))


def add_holder(job: Job, id: NodeId) -> None:
    """Add this node to the holders; usually it is in the list already."""
    if id not in job.holders:
        job.holders = _shared((*job.holders, id))


def send_state(node: NodeState, job: Job, ids: Iterable[NodeId]) -> None:
    """Send JOBSTATE to these holders: the job is dead, or has been redriven. If it is dead, nodes
    without BURIES receive WORKING instead, so that they do not enqueue it for now."""
    found = [peer for id in ids if (peer := node.cluster.nodes.get(id)) is not None and peer.link]
    knowing = [peer.link for peer in found if peer.capabilities & BURIES]
    others = [peer.link for peer in found if not peer.capabilities & BURIES]
    left = max(job.expires - node.mono, 0)
    send.broadcast(node, knowing, JobState(job.id, left, job.dead_state))
    if job.state == DEAD:
        send.broadcast(node, others, Working(job.id))


def is_over(node: NodeState, sender: Peer, job_id: JobId) -> bool:
    """Does a job that is not here have a tombstone? Then the sender, which still has the job,
    receives SETACK."""
    if job_id not in node.tombstones:
        return False
    results.say_ack(node, (sender.id,), job_id, ())
    return True


def send_ack_back(node: NodeState, sender: Peer, job: Job, holders: tuple[NodeId, ...]) -> None:
    """Send SETACK to `sender`, and to those of its holders that are new here.

    The sender may stop before it can send SETACK to them. A dummy ack needs no list of holders,
    because its node sends SETACK to all nodes.
    """
    known = job.holders
    if not job.is_dummy:
        add_holders(job, named(node, holders))
    unknown = [id for id in job.holders if id not in known and id != sender.id]
    results.say_ack(node, (sender.id, *unknown), job.id, job.holders)
