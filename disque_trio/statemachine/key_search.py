"""Requests to all nodes about a key (docs/bus.md, decision 70).

`quorum` returns the nodes whose answers are needed, both for an ADDJOB (`key_claim`) and for a
`Search`. A search adds no job, so no node waits for its outcome. The `Rule` of the search decides
about the answers: see `key_cancel` and `key_ordering`.

Owns `Keys.searches`, the fields of a `Search`, and `Keys.last_number`.
"""

from collections.abc import Container, Iterable
from typing import Final

from disque_trio.statemachine import key_index, send
from disque_trio.statemachine.base import (
    CLAIMS,
    EXTENDS,
    FAIL,
    HANDSHAKE,
    MYSELF,
    NOADDR,
    PFAIL,
    POSTPONES,
    Failure,
    JobId,
    LinkId,
    Millis,
    NodeId,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.key_facts import ENDED, KEPT, MOVED, KeyFact, join
from disque_trio.statemachine.keys import KeyName, Rule, Search
from disque_trio.statemachine.messages import KeyAnswer, KeyClaim
from disque_trio.statemachine.state import NodeState

ASK_EVERY: Final[Millis] = 100
"""How often a node that has not answered is asked again."""
TIMED_OUT: Final = b"NOREPL Timeout reached before all nodes have said whether the key is free"
_MUTE: Final = (
    b"NOREPL It cannot be known who has the key, because nodes of an earlier version cannot be"
    b" asked; upgrade them: "
)
NO_JOB: Final[JobId] = bytes(40)
AWAY: Final = HANDSHAKE | PFAIL | FAIL | NOADDR
"""Flags of a node that cannot be asked."""
_NOT_ASKED: Final = MYSELF | AWAY
_ANSWERS: Final = CLAIMS | POSTPONES
"""The capabilities of nodes that support KEYCLAIM: the first nodes with CLAIMS had another form of
it, and no POSTPONES."""


def quorum(
    node: NodeState, began: Millis, last_answers: dict[NodeId, Millis], answered: Container[NodeId]
) -> list[Peer]:
    """The nodes whose answers are needed: our reachable nodes, and nodes that have not announced
    their capabilities on the current link yet.

    Excludes nodes that are not suspected but have not answered for twice the node timeout: this
    node is not in their tables. `began` is when this node began to ask, and `last_answers` are the
    times of the last answers. The silence of a node that has joined or returned since begins with
    its link. Nodes that have answered are not silent until they are asked again.
    """
    silent_since = node.mono - 2 * node.config.cluster_node_timeout
    return [
        peer
        for peer in node.cluster.nodes.values()
        if not peer.flags & _NOT_ASKED
        and (peer.resent_on != peer.link or not peer.link or understands(peer) or _is_mute(peer))
        and (
            peer.id in answered
            or max(last_answers.get(peer.id, began), peer.link_created) >= silent_since
            or _is_mute(peer)
        )
    ]


def understands(peer: Peer) -> bool:
    """Does it support KEYCLAIM?"""
    return peer.capabilities & _ANSWERS == _ANSWERS


def _is_mute(peer: Peer) -> bool:
    """Is it a node that may have jobs with keys, and never answers?"""
    return bool(peer.capabilities & EXTENDS) and not understands(peer)


def links(peers: Iterable[Peer]) -> list[LinkId]:
    """The links of the nodes that may answer."""
    return [peer.link for peer in peers if peer.link and not _is_mute(peer)]


def refusal(node: NodeState) -> Failure | None:
    """Why the jobs with a key cannot be determined while certain nodes are reachable; None if they
    can."""
    mute = [
        f"{peer.ip}:{peer.port}".encode()
        for peer in node.cluster.nodes.values()
        if not peer.flags & _NOT_ASKED and _is_mute(peer)
    ]
    return Failure(_MUTE + b", ".join(mute)) if mute else None


def timed_out(node: NodeState, job: Job) -> Failure:
    """The reply to an ADDJOB whose key was not confirmed as free in time. It names the nodes that
    have not answered, unless an earlier ADDJOB here is asking for the same key."""
    silent = [
        f"{peer.ip}:{peer.port}".encode()
        for claim in node.keys.asking.values()
        if claim.job is job
        for peer in quorum(node, claim.began, claim.last_answers, claim.answers)
        if peer.id not in claim.answers
    ]
    missing = b": no answer from " + b", ".join(silent) if silent else b""
    return Failure(TIMED_OUT + missing)


# Searches.

Answers = dict[NodeId, tuple[KeyFact, ...]]
"""The facts of each node about the jobs with the key."""


def begin(
    node: NodeState,
    name: KeyName,
    rule: Rule,
    client: Client | None = None,
    job: Job | None = None,
) -> Search:
    """Ask all nodes, until `end`."""
    keys = node.keys
    keys.last_number += 1
    search = Search(keys.last_number, name, rule, node.mono, client, job)
    keys.searches[search.number] = search
    ask_all(node, search)
    return search


def end(node: NodeState, search: Search) -> None:
    """Stop asking."""
    node.keys.searches.pop(search.number, None)
    node.timers.disarm(search)


def awaited(node: NodeState, search: Search) -> list[Peer]:
    """The nodes whose answers are needed."""
    return quorum(node, search.began, search.last_answers, search.answers)


def ask_about(node: NodeState, search: Search, job_id: JobId) -> None:
    """Ask all nodes again, now also whether this job has ended."""
    search.about = job_id
    ask_all(node, search)


def ask_about_moved(node: NodeState, search: Search, facts: Iterable[KeyFact]) -> None:
    """If one of these jobs is in transit, ask all nodes about it: it may have ended where it
    arrived."""
    moved = [fact.id for fact in facts if fact.word == MOVED]
    if moved and search.about not in moved:
        ask_about(node, search, min(moved))


def ask_all(node: NodeState, search: Search) -> None:
    """Begin a new round, in which earlier answers do not count."""
    search.round += 1
    search.last_answers.update(dict.fromkeys(search.answers, node.mono))
    search.answers.clear()
    if search.rule.before_asking is not None and search.cancelled:
        search.rule.before_asking(node, search)
    _send(node, search, awaited(node, search))
    consider(node, search)


def pause(node: NodeState, search: Search, wait: Millis) -> None:
    """Ask again only after this time, unless something has changed since all were asked."""
    if search.due > node.mono:
        node.timers.arm(search, node.mono + wait)


def _send(node: NodeState, search: Search, peers: list[Peer]) -> None:
    about = search.about or NO_JOB
    waits = search.job is not None and key_index.is_held_back(search.job)
    mine = search.job.id if search.job is not None and waits else NO_JOB
    message = KeyClaim(search.number, search.round, mine, 0, about, *search.name)
    send.broadcast(node, links(peers), message)
    node.timers.arm(search, node.mono + ASK_EVERY)


def on_due(node: NodeState, search: Search) -> None:
    """Ask again: the nodes that have not answered, or all, if their answers were not sufficient."""
    if search.rule.is_cancelled(node, search):
        end(node, search)
        return
    silent = [peer for peer in awaited(node, search) if peer.id not in search.answers]
    if silent:
        _send(node, search, silent)
        return
    # The answer of a node that has not answered may no longer be needed.
    consider(node, search)
    if search.number in node.keys.searches and not search.due:
        ask_all(node, search)


def take_answer(node: NodeState, search: Search, sender: Peer, message: KeyAnswer) -> None:
    """Handle a node's answer, unless it is to an earlier round."""
    search.last_answers[sender.id] = node.mono
    if message.round == search.round:
        search.answers[sender.id] = message.facts
        consider(node, search)


def consider(node: NodeState, search: Search) -> None:
    """If all have answered, apply the rule of the search."""
    ids = [peer.id for peer in awaited(node, search)]
    if any(id not in search.answers for id in ids):
        return
    answers = {id: search.answers[id] for id in ids}
    answers[node.cluster.myself.id] = tuple(key_index.facts(node, search.name, b"", search.about))
    search.rule.decide(node, search, answers)


def known(search: Search, answers: Answers) -> dict[JobId, KeyFact]:
    """The joined facts of all nodes, by job. Records the ends of jobs in the search."""
    found = join([*answers.values(), search.ended.values()])
    for job_id, fact in found.items():
        if fact.word in (ENDED, KEPT):
            search.ended[job_id] = fact
    return found
