"""SHOW KEY and CANCEL KEY: all nodes are asked which job has a key (docs/bus.md).

They are asked as for an ADDJOB (`claims`), but no job is to be added, so nobody has to wait for
what becomes of this. Before a job is shown all are asked whether it has ended. CANCEL KEY ends what
it has found, and answers when no node has any of it.

Owns `Searches.running`, the fields of a `Search`, and `Keys.last_number`.
"""

from collections.abc import Container
from typing import Final

from disque_trio.statemachine import acks, claims, keyasking, keyindex, send, waiters
from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    CLAIMS,
    DELAYED,
    DELIVERED,
    MYSELF,
    PENDING,
    QUEUED,
    TAKEN,
    JobId,
    Millis,
    NodeId,
    Reply,
)
from disque_trio.statemachine.client import Blocked, Client
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job, is_at_least_once
from disque_trio.statemachine.keyasking import ASK_EVERY, AWAY, NO_JOB
from disque_trio.statemachine.keyfacts import (
    DEAD,
    DONE_KEPT,
    ENDED,
    HELD,
    IN_QUEUE,
    KEPT,
    KEY_STATES,
    MOVED,
    WITH_WORKER,
    KeyFact,
    holder_of_key,
    is_live,
    is_undecided,
    join,
)
from disque_trio.statemachine.keys import KeyName, Search, Searches
from disque_trio.statemachine.messages import KeyAnswer, KeyCancel, KeyClaim, SetAck
from disque_trio.statemachine.state import NodeState

MEETS_WITHIN: Final[Millis] = 30_000
"""For so long a job waits for what becomes of an earlier ADDJOB, or of a job that moves."""


def begin(node: NodeState, client: Client, name: KeyName, *, cancels: bool) -> Reply:
    """From now on the client waits for what the nodes know of the key."""
    waiters.block(node, client, Blocked.KEY, 0)
    _begin(node, Search(_next_number(node), name, client, cancels, node.mono))
    return PENDING


def begin_for_job(node: NodeState, job: Job, name: KeyName) -> None:
    """Is there an earlier job with its key? Then this one ends."""
    _begin(node, Search(_next_number(node), name, None, False, node.mono, job))


def _next_number(node: NodeState) -> int:
    keys = node.keys
    keys.last_number += 1
    return keys.last_number


def _begin(node: NodeState, search: Search) -> None:
    searches = node.keys.searches
    searches.running[search.number] = search
    _ask_all(node, search)
    _consider(node, search)


def _awaited(node: NodeState, search: Search) -> list[Peer]:
    return keyasking.awaited(node, search.began, search.heard)


def _ask_all(node: NodeState, search: Search) -> None:
    """A new round: earlier answers do not count. What is to be ended is ended before."""
    search.round += 1
    search.answers.clear()
    for fact in search.cancelled:
        _cancel(node, search, fact)
    _send(node, search, _awaited(node, search))


def _send(node: NodeState, search: Search, peers: list[Peer]) -> None:
    about = search.about or NO_JOB
    message = KeyClaim(search.number, search.round, NO_JOB, 0, about, *search.name)
    send.broadcast(node, [peer.link for peer in peers if peer.link], message)
    search.again_at = node.mono + ASK_EVERY
    timer = node.keys.searches
    if not timer.due or search.again_at < timer.due:
        node.timers.arm(timer, search.again_at)


def on_due(node: NodeState, searches: Searches) -> None:
    """Ask again: those that have not answered, or all, if what they said settles nothing."""
    for search in list(searches.running.values()):
        if _is_vain(node, search):
            del searches.running[search.number]
        elif search.again_at <= node.mono:
            _go_on(node, search)
    if searches.running:
        node.timers.arm(searches, min(each.again_at for each in searches.running.values()))


def _is_vain(node: NodeState, search: Search) -> bool:
    """Has the client gone, or may the job not go any more?"""
    if search.job is not None:
        return not may_yield(node, search.job) or node.mono - search.began > MEETS_WITHIN
    return search.client is None or node.clients.get(search.client.id) is not search.client


def _go_on(node: NodeState, search: Search) -> None:
    silent = [peer for peer in _awaited(node, search) if peer.id not in search.answers]
    if silent:
        _send(node, search, silent)
        return
    # A node that has not answered may not be waited for any more.
    _consider(node, search)
    if search.number in node.keys.searches.running and search.again_at <= node.mono:
        _ask_all(node, search)
        _consider(node, search)


def on_keyanswer(node: NodeState, sender: Peer, message: KeyAnswer) -> None:
    """A node tells what it knows of a key, to a client or for an ADDJOB."""
    search = node.keys.searches.running.get(message.number)
    if search is None:
        claims.on_keyanswer(node, sender, message)
        return
    search.heard[sender.id] = node.mono
    if message.round == search.round:
        search.answers[sender.id] = message.facts
        _consider(node, search)


def _consider(node: NodeState, search: Search) -> None:
    """Have all answered, and what do they know?"""
    awaited = [peer.id for peer in _awaited(node, search)]
    if any(id not in search.answers for id in awaited):
        return
    told = {id: search.answers[id] for id in awaited}
    told[node.cluster.myself.id] = tuple(keyindex.facts(node, search.name, b"", search.about))
    if search.cancelled:
        _await_end(node, search, told)
        return
    known = _known(search, told)
    if search.job is not None:
        _meet(node, search, search.job, known)
        return
    found = holder_of_key(known) or next((each for each in known.values() if is_live(each)), None)
    if found is None and any(fact.word == MOVED for fact in known.values()):
        return
    if found is None:
        _finish(node, search, 0 if search.cancels else None)
    elif search.cancels:
        search.cancelled = tuple(fact for fact in known.values() if _has_key(fact, found))
        _ask_all(node, search)
        _consider(node, search)
    elif is_live(found) and search.about != found.id:
        search.about = found.id
        _ask_all(node, search)
        _consider(node, search)
    else:
        _finish(node, search, _described(found, told))


def _known(search: Search, told: dict[NodeId, tuple[KeyFact, ...]]) -> dict[JobId, KeyFact]:
    known = join([*told.values(), search.ended.values()])
    for job_id, fact in known.items():
        if fact.word in (ENDED, KEPT):
            search.ended[job_id] = fact
    return known


def _has_key(fact: KeyFact, found: KeyFact) -> bool:
    """Is this to be ended, too, such as the job of the other side of a cut?"""
    return is_live(fact) or fact.word == KEPT or fact is found


def _described(found: KeyFact, told: dict[NodeId, tuple[KeyFact, ...]]) -> Reply:
    """Names and values of the job, or of the one that has ended and keeps the key."""
    state = found.state if is_live(found) else DONE_KEPT
    words = [(id, fact) for id, facts in told.items() for fact in facts if fact.id == found.id]
    nodes: list[Reply] = [id for id, fact in words if is_live(fact) or fact.word == KEPT]
    queued: list[Reply] = [id for id, fact in words if is_live(fact) and fact.state == IN_QUEUE]
    return [
        *(b"id", found.id, b"state", KEY_STATES[state]),
        *(b"nodes", nodes, b"queued-at", queued),
    ]


def _finish(node: NodeState, search: Search, reply: Reply) -> None:
    searches = node.keys.searches
    del searches.running[search.number]
    client = search.client
    if client is not None and node.clients.get(client.id) is client:
        waiters.release(node, client, reply)


# The end of a job that is cancelled.


def _cancel(node: NodeState, search: Search, fact: KeyFact) -> None:
    links = [peer.link for peer in _awaited(node, search) if peer.link]
    send.broadcast(node, links, KeyCancel(fact.id, *search.name))
    keyindex.free(node, search.name, fact.id)
    if is_live(fact) and not _is_acked(node, fact.id):
        acks.ack(node, fact.id, Cause.CANCEL if search.job is None else Cause.YIELDED)


def _is_acked(node: NodeState, job_id: JobId) -> bool:
    job = node.jobs.get(job_id)
    return job_id in node.tombstones if job is None else job.state == ACKED


def _await_end(node: NodeState, search: Search, told: dict[NodeId, tuple[KeyFact, ...]]) -> None:
    """A node may not have heard of it, or the job may be on its way: then all are told again."""
    ids = [fact.id for fact in search.cancelled]
    left = [fact for facts in told.values() for fact in facts if fact.id in ids]
    if all(fact.word == ENDED for fact in left):
        _finish(node, search, 1)


# Two jobs of a key meet, which have been added on two sides of a cut.


def may_yield(node: NodeState, job: Job) -> bool:
    """Is this node to deliver the job, which was never delivered, as far as is known here?"""
    if job.nacks or job.deliveries or job.flags & (DELIVERED | TAKEN):
        return False
    is_ours = job.state == QUEUED or (job.state == ACTIVE and job.flags & DELAYED)
    return bool(is_ours) and node.jobs.get(job.id) is job


def sees_all(node: NodeState, but: Container[NodeId] = ()) -> bool:
    """Can all members be reached, except perhaps these, and is it known which are ours?

    One that cannot be reached may know that the earlier job has ended, so the later one stays.
    """
    return all(
        peer.id in but or (peer.resent_on == peer.link != 0 and not peer.flags & AWAY)
        for peer in node.cluster.nodes.values()
        if not peer.flags & MYSELF
    )


def _meet(node: NodeState, search: Search, job: Job, known: dict[JobId, KeyFact]) -> None:
    """The job ends if an earlier one lives; of that, too, all have been asked whether it has ended.
    It is asked again while an earlier one may be added, or is on its way."""
    earlier = [fact for fact in known.values() if _is_earlier(fact, job)]
    living = [fact for fact in earlier if fact.word == HELD and _stays(fact)]
    if not may_yield(node, job) or not _have_all_answered(node, search):
        _finish(node, search, None)
    elif any(fact.id == search.about for fact in living):
        _cancel(node, search, KeyFact(job.id, job.ctime, HELD, IN_QUEUE, 0))
        _finish(node, search, None)
    elif living:
        search.about = min((fact.stamp, fact.id) for fact in living)[1]
        _ask_all(node, search)
        _consider(node, search)
    elif not is_undecided({fact.id: fact for fact in earlier}):
        _finish(node, search, None)


def _is_earlier(fact: KeyFact, job: Job) -> bool:
    return (fact.stamp, fact.id) < (job.ctime, job.id)


def _have_all_answered(node: NodeState, search: Search) -> bool:
    peers = node.cluster.nodes.values()
    ours = [peer.id for peer in peers if peer.capabilities & CLAIMS and not peer.flags & MYSELF]
    return sees_all(node) and all(id in search.answers for id in ours)


def _stays(fact: KeyFact) -> bool:
    """Will the job be delivered, or is it with a worker and would be delivered again?"""
    is_spent = fact.state == WITH_WORKER and not is_at_least_once(fact.id)
    return fact.state != DEAD and not is_spent


def on_keycancel(node: NodeState, sender: Peer, message: KeyCancel) -> None:
    """Another node's client has cancelled the job."""
    keyindex.free(node, (message.queue, message.key), message.id)
    job = node.jobs.get(message.id)
    if job is not None and job.state != ACKED:
        acks.on_setack(node, sender, SetAck(job.id, 0))
