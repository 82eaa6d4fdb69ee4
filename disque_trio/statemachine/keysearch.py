"""SHOW KEY and CANCEL KEY: all nodes are asked which job has a key (docs/bus.md).

They are asked as for an ADDJOB (`claims`), but no job is to be added, so nobody has to wait for
what becomes of this. Before a job is shown all are asked whether it has ended. CANCEL KEY ends what
it has found, and answers when no node has any of it.

Owns `Searches.running`, the fields of a `Search`, and `Keys.last_number`.
"""

from disque_trio.statemachine import acks, claims, keyasking, keyindex, send, waiters
from disque_trio.statemachine.base import ACKED, PENDING, JobId, NodeId, Reply
from disque_trio.statemachine.client import Blocked, Client
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.keyasking import ASK_EVERY, NO_JOB
from disque_trio.statemachine.keyfacts import (
    DONE_KEPT,
    ENDED,
    IN_QUEUE,
    KEPT,
    KEY_STATES,
    MOVED,
    KeyFact,
    holder_of_key,
    is_live,
    join,
)
from disque_trio.statemachine.keys import KeyName, Search, Searches
from disque_trio.statemachine.messages import KeyAnswer, KeyCancel, KeyClaim, SetAck
from disque_trio.statemachine.state import NodeState


def begin(node: NodeState, client: Client, name: KeyName, *, cancels: bool) -> Reply:
    """From now on the client waits for what the nodes know of the key."""
    keys, searches = node.keys, node.keys.searches
    keys.last_number += 1
    search = Search(keys.last_number, name, client, cancels, node.mono)
    searches.running[search.number] = search
    waiters.block(node, client, Blocked.KEY, 0)
    _ask_all(node, search)
    _consider(node, search)
    return PENDING


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
        if node.clients.get(search.client.id) is not search.client:
            del searches.running[search.number]
        elif search.again_at <= node.mono:
            _go_on(node, search)
    if searches.running:
        node.timers.arm(searches, min(each.again_at for each in searches.running.values()))


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
    if node.clients.get(search.client.id) is search.client:
        waiters.release(node, search.client, reply)


# The end of a job that is cancelled.


def _cancel(node: NodeState, search: Search, fact: KeyFact) -> None:
    links = [peer.link for peer in _awaited(node, search) if peer.link]
    send.broadcast(node, links, KeyCancel(fact.id, *search.name))
    keyindex.free(node, search.name, fact.id)
    if is_live(fact) and not _is_acked(node, fact.id):
        acks.ack(node, fact.id, Cause.CANCEL)


def _is_acked(node: NodeState, job_id: JobId) -> bool:
    job = node.jobs.get(job_id)
    return job_id in node.tombstones if job is None else job.state == ACKED


def _await_end(node: NodeState, search: Search, told: dict[NodeId, tuple[KeyFact, ...]]) -> None:
    """A node may not have heard of it, or the job may be on its way: then all are told again."""
    ids = [fact.id for fact in search.cancelled]
    left = [fact for facts in told.values() for fact in facts if fact.id in ids]
    if all(fact.word == ENDED for fact in left):
        _finish(node, search, 1)


def on_keycancel(node: NodeState, sender: Peer, message: KeyCancel) -> None:
    """Another node's client has cancelled the job."""
    keyindex.free(node, (message.queue, message.key), message.id)
    job = node.jobs.get(message.id)
    if job is not None and job.state != ACKED:
        acks.on_setack(node, sender, SetAck(job.id, 0))
