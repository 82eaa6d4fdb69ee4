"""Jobs that cross machines: a live job as a `JobCopy`, and a copy as a live job (original 4.5).

Owns `Job.holders`.
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
"""A node that is started again at once answers within so long: its copies can come until then."""


def spread(
    node: NodeState, holders: tuple[NodeId, ...], candidates: list[NodeId], count: int
) -> list[NodeId]:
    """Up to `count` of the candidates: the next is always one of the zone with the fewest holders
    and chosen nodes, there of the address with the fewest, and there the first.

    Nodes of one zone, or at one address, fail together. Nodes that name no zone are taken to be in
    one. All candidates are in the node table.
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
    """Has a new job `sync` confirmed copies, in as many zones as its holders allow?"""
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
    """How many other nodes could be given a copy of a job that needs these capabilities."""
    reachable = node.cluster.reachable
    return sum([keeps(peer, needs) for peer in reachable]) if needs else len(reachable)


def snapshot(node: NodeState, job: Job) -> JobCopy:
    """The job as a message carries it: with the rest of its TTL, and without delivery flags."""
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
    """A live job, not registered yet, of a copy that a message brought.

    It waits for its delay and one retry period, so that it is queued here only if the node that has
    it sends no message about it meanwhile.
    """
    counts.copy_taken(node)
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


def is_orphan(node: NodeState, job_id: JobId, holders: tuple[NodeId, ...]) -> bool:
    """Is the node lost that added the job and held it? It alone knew who had confirmed a copy."""
    origin = job_id[2:10]
    lost, nodes = node.repair.lost, node.cluster.nodes
    for id in holders:  # noqa: SIM110 - each copy that comes asks, and any() takes twice as long
        if id.startswith(origin) and (id in lost or id not in nodes):
            return True
    return False


def known_to_hold(node: NodeState, giver: Peer, copy: JobCopy) -> tuple[NodeId, ...] | None:
    """Who has a copy of a job that moves to this node, if its list may name others that have
    received none, because its creator is lost: this node and the giver (decision 127)."""
    if not copy.retry or giver.id.startswith(copy.id[2:10]):
        return None  # most jobs come from their creator
    if not is_orphan(node, copy.id, copy.holders):
        return None
    known = _shared((*node.cluster.myself.holding, giver.id))
    return known if any(id not in known for id in named(node, copy.holders)) else None


def is_dead(copy: JobCopy) -> bool:
    """Is it the copy of a dead job?"""
    return copy.extensions is not None and copy.extensions.dead.is_dead


def reads(peer: Peer, job: Job) -> bool:
    """Can the node keep a copy of this job, with its extensions, and count its times?"""
    return keeps(peer, needs(job))


def readers(node: NodeState, holders: tuple[NodeId, ...], job: Job) -> tuple[NodeId, ...]:
    """Those of the holders that read the job: one that did may be of an earlier version by now."""
    if not needs(job):
        return holders
    find = node.cluster.nodes.get
    return tuple([id for id in holders if (peer := find(id)) is not None and reads(peer, job)])


def keeps(peer: Peer, capabilities: int) -> bool:
    """Does the node have all of these capabilities?"""
    return peer.capabilities & capabilities == capabilities


def could_hold(node: NodeState, job: Job) -> int:
    """How many nodes have confirmed a copy of a new job, or may confirm one yet.

    One that is only suspected may be slow, and its confirmation on the way: it counts until a
    majority says that it has failed, or it has been silent for as long again (nobody may be left to
    say so). One that has failed counts for `RESTART`.
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
    """The copy for a node that `reads` it, with what it keeps. Others learn the count of snoozes
    from POSTPONED, if at all."""
    if copy.extensions is None:
        return copy
    return attrs.evolve(copy, extensions=copy.extensions.kept_by(peer.capabilities))


def named(node: NodeState, holders: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    """The holders that a message names, each once, and this node.

    A holder that is not in the node table stays: this node may meet it at any moment, and then has
    to tell it of changes of the job. A holder that this node was told to forget is left out.
    """
    cluster = node.cluster
    if cluster.blacklist:
        nodes = cluster.nodes
        holders = tuple([id for id in holders if id in nodes or not is_banned(node, id)])
    return _with(holders, cluster.myself.id)


@lru_cache(maxsize=1 << 12)
def _with(holders: tuple[NodeId, ...], mine: NodeId) -> tuple[NodeId, ...]:
    """Each once, and this node: nearly every job that comes has the holders of one before it."""
    kept = dict.fromkeys(holders)
    kept[mine] = None
    return _shared(tuple(kept))


@lru_cache(maxsize=1 << 12)
def _shared(holders: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    """The one tuple for these holders, so that jobs with the same ones share it (`memory`)."""
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
    """Remember that these nodes may hold a copy too."""
    holders = job.holders
    missing = [id for id in ids if id not in holders]
    if missing:
        job.holders = _shared(holders + tuple(dict.fromkeys(missing)))


def add_holder(job: Job, id: NodeId) -> None:
    """Remember that this node may hold a copy too; usually it is in the list already."""
    if id not in job.holders:
        job.holders = _shared((*job.holders, id))


def send_state(node: NodeState, job: Job, ids: Iterable[NodeId]) -> None:
    """Tell holders that the job is dead, or has been redriven. Nodes that do not know of dead jobs
    are told that a worker has it, so that they do not queue it for now."""
    found = [peer for id in ids if (peer := node.cluster.nodes.get(id)) is not None and peer.link]
    knowing = [peer.link for peer in found if peer.capabilities & BURIES]
    others = [peer.link for peer in found if not peer.capabilities & BURIES]
    left = max(job.expires - node.mono, 0)
    send.broadcast(node, knowing, JobState(job.id, left, job.dead_state))
    if job.state == DEAD:
        send.broadcast(node, others, Working(job.id))


def is_over(node: NodeState, sender: Peer, job_id: JobId) -> bool:
    """Does a job that is not here have a tombstone? Then the sender, which still has it, is
    told."""
    if job_id not in node.tombstones:
        return False
    results.say_ack(node, (sender.id,), job_id, ())
    return True


def send_ack_back(node: NodeState, sender: Peer, job: Job, holders: tuple[NodeId, ...]) -> None:
    """Tell the sender of the ack, and those of its holders that were not known here.

    The sender may end before it can tell them. A dummy ack needs no list: it asks all nodes.
    """
    known = job.holders
    if not job.is_dummy:
        add_holders(job, named(node, holders))
    unknown = [id for id in job.holders if id not in known and id != sender.id]
    results.say_ack(node, (sender.id, *unknown), job.id, job.holders)
