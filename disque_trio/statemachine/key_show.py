"""SHOW KEY and CANCEL KEY: all nodes are asked which job has a key (docs/bus.md).

Before a job is shown all are asked whether it has ended. CANCEL KEY ends what it has found, and
answers when no node has any of it. A node that is silent and not suspected yet is waited for
`ANSWERS_WITHIN` at most. Owns `Search.cancelled` of these searches.
"""

from typing import Final

from disque_trio.statemachine import key_cancel, key_quorum, key_search, waiters
from disque_trio.statemachine.base import PENDING, Failure, Millis, Reply
from disque_trio.statemachine.client import Blocked, Client
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.key_facts import (
    DONE_KEPT,
    ENDED,
    IN_QUEUE,
    KEPT,
    KEY_STATES,
    MOVED,
    KeyFact,
    holder_of_key,
    is_live,
)
from disque_trio.statemachine.key_search import Told
from disque_trio.statemachine.keys import KeyName, Rule, Search
from disque_trio.statemachine.state import NodeState

ANSWERS_WITHIN: Final[Millis] = 5000
_TOO_LATE: Final = b"TIMEOUT Of the other nodes %d did not answer within %d seconds: %b"
_UNSETTLED: Final = b"TIMEOUT After %d seconds the job with the key is still on its way: try again"
_SO_FAR: Final = b"; the job has ended where it could be reached"


def begin(node: NodeState, client: Client, name: KeyName, *, cancels: bool) -> Reply:
    """From now on the client waits for what the nodes know of the key, unless one of them can
    never say it."""
    if (refusal := key_quorum.refusal(node)) is not None:
        return refusal
    waiters.block(node, client, Blocked.KEY, 0)
    key_search.begin(node, name, _CANCEL if cancels else _SHOW, client)
    return PENDING


def _finish(node: NodeState, search: Search, reply: Reply) -> None:
    key_search.end(node, search)
    client = search.client
    if client is not None and node.clients.get(client.id) is client:
        waiters.release(node, client, reply)


def _is_cancelled(node: NodeState, search: Search) -> bool:
    """Has the client gone, or has it waited for too long?"""
    client = search.client
    if client is None or node.clients.get(client.id) is not client:
        return True
    if node.mono - search.began < ANSWERS_WITHIN:
        return False
    _finish(node, search, Failure(_why(node, search) + (_SO_FAR if search.cancelled else b"")))
    return True


def _why(node: NodeState, search: Search) -> bytes:
    within = ANSWERS_WITHIN // 1000
    silent = [p.id for p in key_search.awaited(node, search) if p.id not in search.answers]
    if not silent:
        return _UNSETTLED % within
    return _TOO_LATE % (len(silent), within, b" ".join(silent))


def _show(node: NodeState, search: Search, told: Told) -> None:
    found = _found(node, search, told)
    if found is None:
        return
    if is_live(found) and search.about != found.id:
        key_search.ask_about(node, search, found.id)
    else:
        _finish(node, search, _described(found, told))


def _found(node: NodeState, search: Search, told: Told) -> KeyFact | None:
    """The job that has the key. None if there is none, and the client has been told, or if it is on
    its way from one node to another."""
    known = key_search.known(search, told)
    found = holder_of_key(known) or next((each for each in known.values() if is_live(each)), None)
    if found is None and any(fact.word == MOVED for fact in known.values()):
        key_search.ask_about_moved(node, search, known.values())
    elif found is None:
        _finish(node, search, 0 if search.rule is _CANCEL else None)
    return found


def _described(found: KeyFact, told: Told) -> Reply:
    """Names and values of the job, or of the one that has ended and keeps the key."""
    state = found.state if is_live(found) else DONE_KEPT
    words = [(id, fact) for id, facts in told.items() for fact in facts if fact.id == found.id]
    nodes: list[Reply] = [id for id, fact in words if is_live(fact) or fact.word == KEPT]
    queued: list[Reply] = [id for id, fact in words if is_live(fact) and fact.state == IN_QUEUE]
    return [
        *(b"id", found.id, b"state", KEY_STATES[state]),
        *(b"nodes", nodes, b"queued-at", queued),
    ]


def _cancel(node: NodeState, search: Search, told: Told) -> None:
    """End what is found, and ask until no node has any of it: one may not have heard of it, or the
    job may be on its way."""
    if search.cancelled:
        ids = [fact.id for fact in search.cancelled]
        left = [fact for facts in told.values() for fact in facts if fact.id in ids]
        if all(fact.word == ENDED for fact in left):
            _finish(node, search, 1)
        return
    found = _found(node, search, told)
    if found is not None:
        known = key_search.known(search, told)
        search.cancelled = tuple([fact for fact in known.values() if _has_key(fact, found)])
        key_search.ask_all(node, search)


def _has_key(fact: KeyFact, found: KeyFact) -> bool:
    """Is this to be ended, too, such as the job of the other side of a cut?"""
    return is_live(fact) or fact.word == KEPT or fact is found


def _cancel_again(node: NodeState, search: Search) -> None:
    for fact in search.cancelled:
        key_cancel.cancel(node, search, fact, Cause.CANCEL)


_SHOW: Final = Rule(_show, _is_cancelled)
_CANCEL: Final = Rule(_cancel, _is_cancelled, _cancel_again)
