"""SHOW KEY and CANCEL KEY, and KEYCANCEL: a job with a key ends at all nodes (docs/bus.md).

KEYCANCEL is sent for CANCEL KEY, for a job that yields to an earlier one, and for a job that is
replaced. A replaced job ends only if it was never delivered; the node that is to deliver it decides
that.

Both commands ask all nodes which job has the key; SHOW KEY then asks them whether that job has
ended. CANCEL KEY ends the jobs that it has found, and replies when no node has any of them. The
commands wait up to `ANSWERS_WITHIN` for a silent node that is not suspected yet. Owns
`Search.cancelled` of these searches.
"""

from typing import Final

from disque_trio.statemachine import acks, key_index, key_search, send, waiters
from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    DELAYED,
    PENDING,
    QUEUED,
    Failure,
    JobId,
    Millis,
    Reply,
)
from disque_trio.statemachine.client import Blocked, Client
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.key_facts import (
    ALWAYS,
    DONE_KEPT,
    ENDED,
    IN_QUEUE,
    KEPT,
    KEY_STATES,
    MOVED,
    UNLESS_TAKEN,
    KeyFact,
    holder_of_key,
    is_live,
    join,
)
from disque_trio.statemachine.key_search import Answers
from disque_trio.statemachine.keys import KeyName, Rule, Search
from disque_trio.statemachine.messages import KeyCancel, SetAck
from disque_trio.statemachine.state import NodeState

ANSWERS_WITHIN: Final[Millis] = 5000
_TOO_LATE: Final = b"TIMEOUT Of the other nodes %d did not answer within %d seconds: %b"
_UNSETTLED: Final = b"TIMEOUT After %d seconds the job with the key is still on its way: try again"
_SO_FAR: Final = b"; the job has ended where it could be reached"


def cancel(node: NodeState, search: Search, fact: KeyFact, cause: Cause) -> None:
    """End the job, here and at the nodes that the search asks."""
    _broadcast(node, search, KeyCancel(fact.id, *search.name))
    key_index.free(node, search.name, fact.id)
    if is_live(fact) and not _is_acked(node, fact.id):
        acks.ack(node, fact.id, cause)


def replace(node: NodeState, search: Search, fact: KeyFact, unless: int) -> None:
    """End the job at nodes where it was certainly never delivered."""
    _broadcast(node, search, KeyCancel(fact.id, *search.name, unless))
    _end_untaken(node, search.name, fact.id, unless)


def free(node: NodeState, search: Search, fact: KeyFact) -> None:
    """Free the key of a replaced job, also at nodes where the job had ended before."""
    _broadcast(node, search, KeyCancel(fact.id, *search.name))
    key_index.free(node, search.name, fact.id)


def _broadcast(node: NodeState, search: Search, message: KeyCancel) -> None:
    links = [peer.link for peer in key_search.awaited(node, search) if peer.link]
    send.broadcast(node, links, message)


def _is_acked(node: NodeState, job_id: JobId) -> bool:
    job = node.jobs.get(job_id)
    return job_id in node.tombstones if job is None else job.state == ACKED


def on_keycancel(node: NodeState, sender: Peer, message: KeyCancel) -> None:
    """Handle KEYCANCEL: a client of another node has cancelled or replaced the job, or the job
    yields."""
    name = message.queue, message.key
    if message.unless != ALWAYS:
        _end_untaken(node, name, message.id, message.unless)
        return
    key_index.free(node, name, message.id)
    job = node.jobs.get(message.id)
    if job is not None and job.state != ACKED:
        acks.on_setack(node, sender, SetAck(job.id, 0))


def _end_untaken(node: NodeState, name: KeyName, job_id: JobId, unless: int) -> None:
    job = node.jobs.get(job_id)
    if job is None or job.state not in (ACTIVE, QUEUED) or key_index.was_given_out(job):
        return
    if unless != UNLESS_TAKEN or is_to_deliver(node, job):
        key_index.free(node, name, job_id)
        acks.ack(node, job_id, Cause.REPLACED)


def is_to_deliver(node: NodeState, job: Job) -> bool:
    """Is this the node that will deliver the job, according to its record, and has not delivered it
    yet?"""
    if key_index.was_given_out(job) or job.state not in (ACTIVE, QUEUED):
        return False
    search = key_index.search_for(node, job)
    # After it has asked about an earlier job, no other node enqueues this one.
    will_queue = search is not None and bool(search.about)
    return job.state == QUEUED or bool(job.flags & DELAYED) or will_queue


# The commands.


def begin(node: NodeState, client: Client, name: KeyName, *, cancels: bool) -> Reply:
    """Begin SHOW KEY or CANCEL KEY: block the client until all nodes have answered. Returns an
    error if a node cannot answer."""
    if (refusal := key_search.refusal(node)) is not None:
        return refusal
    waiters.block(node, client, Blocked.KEY, 0)
    key_search.begin(node, name, _CANCEL if cancels else _SHOW, client)
    return PENDING


def known_here(node: NodeState, name: KeyName) -> Reply:
    """SHOW KEY LOCAL: the job with the key, according to this node only."""
    facts = tuple(key_index.facts(node, name, b"", b""))
    found = _of(join([facts]))
    return None if found is None else _described(found, {node.cluster.myself.id: facts})


def _of(known: dict[JobId, KeyFact]) -> KeyFact | None:
    """The job that has the key, or else one that is being added with it."""
    return holder_of_key(known) or next((each for each in known.values() if is_live(each)), None)


def _finish(node: NodeState, search: Search, reply: Reply) -> None:
    key_search.end(node, search)
    client = search.client
    if client is not None and node.clients.get(client.id) is client:
        waiters.release(node, client, reply)


def _is_cancelled(node: NodeState, search: Search) -> bool:
    """Has the client disconnected, or has its wait timed out? After a timeout, replies with an
    error."""
    client = search.client
    if client is None or node.clients.get(client.id) is not client:
        return True
    if node.mono - search.began < ANSWERS_WITHIN:
        return False
    _finish(node, search, Failure(_timeout(node, search) + (_SO_FAR if search.cancelled else b"")))
    return True


def _timeout(node: NodeState, search: Search) -> bytes:
    within = ANSWERS_WITHIN // 1000
    silent = [p.id for p in key_search.awaited(node, search) if p.id not in search.answers]
    if not silent:
        return _UNSETTLED % within
    return _TOO_LATE % (len(silent), within, b" ".join(silent))


def _show(node: NodeState, search: Search, answers: Answers) -> None:
    found = _found(node, search, answers)
    if found is None:
        return
    if is_live(found) and search.about != found.id:
        key_search.ask_about(node, search, found.id)
    else:
        _finish(node, search, _described(found, answers))


def _found(node: NodeState, search: Search, answers: Answers) -> KeyFact | None:
    """The job that has the key. If there is none, replies to the client and returns None. If the
    job is moving between nodes, asks again and returns None."""
    known = key_search.known(search, answers)
    found = _of(known)
    if found is None and any(fact.word == MOVED for fact in known.values()):
        key_search.ask_about_moved(node, search, known.values())
    elif found is None:
        _finish(node, search, 0 if search.rule is _CANCEL else None)
    return found


def _described(found: KeyFact, answers: Answers) -> Reply:
    """The reply for the job that has the key, or for an ended one that keeps it."""
    state = found.state if is_live(found) else DONE_KEPT
    words = [(id, fact) for id, facts in answers.items() for fact in facts if fact.id == found.id]
    nodes: list[Reply] = [id for id, fact in words if is_live(fact) or fact.word == KEPT]
    queued: list[Reply] = [id for id, fact in words if is_live(fact) and fact.state == IN_QUEUE]
    return [
        *(b"id", found.id, b"state", KEY_STATES[state]),
        *(b"nodes", nodes, b"queued-at", queued),
    ]


def _cancel(node: NodeState, search: Search, answers: Answers) -> None:
    """End the jobs that are found, and ask until no node has any of them: a message may be lost, or
    a job may be moving."""
    if search.cancelled:
        ids = [fact.id for fact in search.cancelled]
        left = [fact for facts in answers.values() for fact in facts if fact.id in ids]
        if all(fact.word == ENDED for fact in left):
            _finish(node, search, 1)
        return
    found = _found(node, search, answers)
    if found is not None:
        known = key_search.known(search, answers)
        search.cancelled = tuple([fact for fact in known.values() if _has_key(fact, found)])
        key_search.ask_all(node, search)


def _has_key(fact: KeyFact, found: KeyFact) -> bool:
    """Is this job to be ended too, such as a job from the other side of a partition?"""
    return is_live(fact) or fact.word == KEPT or fact is found


def _cancel_again(node: NodeState, search: Search) -> None:
    for fact in search.cancelled:
        cancel(node, search, fact, Cause.CANCEL)


_SHOW: Final = Rule(_show, _is_cancelled)
_CANCEL: Final = Rule(_cancel, _is_cancelled, _cancel_again)
