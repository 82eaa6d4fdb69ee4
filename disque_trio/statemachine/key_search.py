"""All nodes are asked what they know of a key, for a client or for a job here (docs/bus.md).

They are asked as for an ADDJOB (`claims`), but no job is to be added, so nobody has to wait for
what becomes of this. What follows from the answers is up to the `Rule` of the search: see
`key_show`, `key_reconcile` and `key_ordering`.

Owns `Keys.searches`, the fields of a `Search`, and `Keys.last_number`.
"""

from collections.abc import Iterable

from disque_trio.statemachine import claims, key_index, key_quorum, send
from disque_trio.statemachine.base import JobId, Millis, NodeId
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.key_facts import ENDED, KEPT, MOVED, KeyFact, join
from disque_trio.statemachine.key_quorum import ASK_EVERY, NO_JOB
from disque_trio.statemachine.keys import KeyName, Rule, Search
from disque_trio.statemachine.messages import KeyAnswer, KeyClaim
from disque_trio.statemachine.state import NodeState

Told = dict[NodeId, tuple[KeyFact, ...]]
"""What each node has said."""


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
    """Nothing is asked any more."""
    node.keys.searches.pop(search.number, None)
    node.timers.disarm(search)


def awaited(node: NodeState, search: Search) -> list[Peer]:
    """The nodes whose answers are needed."""
    return key_quorum.awaited(node, search.began, search.heard, search.answers)


def ask_about(node: NodeState, search: Search, job_id: JobId) -> None:
    """Ask all anew, now also whether this job has ended."""
    search.about = job_id
    ask_all(node, search)


def ask_about_moved(node: NodeState, search: Search, facts: Iterable[KeyFact]) -> None:
    """If one of these jobs is on its way, ask all what has become of it: where it has come to it
    may have ended."""
    moved = [fact.id for fact in facts if fact.word == MOVED]
    if moved and search.about not in moved:
        ask_about(node, search, min(moved))


def ask_all(node: NodeState, search: Search) -> None:
    """A new round: earlier answers do not count."""
    search.round += 1
    search.heard.update(dict.fromkeys(search.answers, node.mono))
    search.answers.clear()
    if search.rule.before is not None and search.cancelled:
        search.rule.before(node, search)
    _send(node, search, awaited(node, search))
    consider(node, search)


def pause(node: NodeState, search: Search, wait: Millis) -> None:
    """Ask again only after so long, unless something has happened since all were asked."""
    if search.due > node.mono:
        node.timers.arm(search, node.mono + wait)


def _send(node: NodeState, search: Search, peers: list[Peer]) -> None:
    about = search.about or NO_JOB
    waits = search.job is not None and key_index.is_held_back(search.job)
    mine = search.job.id if search.job is not None and waits else NO_JOB
    message = KeyClaim(search.number, search.round, mine, 0, about, *search.name)
    send.broadcast(node, key_quorum.links(peers), message)
    node.timers.arm(search, node.mono + ASK_EVERY)


def on_due(node: NodeState, search: Search) -> None:
    """Ask again: those that have not answered, or all, if what they said settles nothing."""
    if search.rule.is_cancelled(node, search):
        end(node, search)
        return
    silent = [peer for peer in awaited(node, search) if peer.id not in search.answers]
    if silent:
        _send(node, search, silent)
        return
    # A node that has not answered may not be waited for any more.
    consider(node, search)
    if search.number in node.keys.searches and not search.due:
        ask_all(node, search)


def on_keyanswer(node: NodeState, sender: Peer, message: KeyAnswer) -> None:
    """A node tells what it knows of a key, for a search or for an ADDJOB."""
    search = node.keys.searches.get(message.number)
    if search is None:
        claims.take_answer(node, sender, message)
        return
    search.heard[sender.id] = node.mono
    if message.round == search.round:
        search.answers[sender.id] = message.facts
        consider(node, search)


def consider(node: NodeState, search: Search) -> None:
    """If all have answered, let its rule decide."""
    ids = [peer.id for peer in awaited(node, search)]
    if any(id not in search.answers for id in ids):
        return
    told = {id: search.answers[id] for id in ids}
    told[node.cluster.myself.id] = tuple(key_index.facts(node, search.name, b"", search.about))
    search.rule.decide(node, search, told)


def known(search: Search, told: Told) -> dict[JobId, KeyFact]:
    """What all of them know, by job. That a job has ended is remembered."""
    found = join([*told.values(), search.ended.values()])
    for job_id, fact in found.items():
        if fact.word in (ENDED, KEPT):
            search.ended[job_id] = fact
    return found
