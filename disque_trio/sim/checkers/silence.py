"""PINGs without an answer, and links that nodes have closed because of them.

On links that lose single messages, the loss of a PING or of its PONG is enough: half a node timeout
later the sender closes the connection, and cannot send until it has connected again. No row records
that, but the next PING shows it: a node with an unanswered PING sends another only on a new link. A
PONG answers the last PING that its sender has received.
"""

from collections.abc import Iterable

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.intervals import Interval
from disque_trio.sim.checkers.obligations import SECOND
from disque_trio.sim.checkers.records import NEVER, Question
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.details import fields
from disque_trio.tracing.rows import Row


def on_send(case: Case, row: Row) -> None:
    """A node sends a PING, or a PONG, which may be the answer."""
    if row.cause == "ping":
        _on_ping(case, row)
    elif row.cause == "pong":
        question = case.unanswered.get((row.peer, row.node))
        if question is not None and question.has_arrived and not question.answer:
            question.answer = row.ref


def _on_ping(case: Case, row: Row) -> None:
    pair = (row.node, row.peer)
    before = case.unanswered.get(pair)
    question = case.unanswered[pair] = Question(row.time, row.ref, since=row.time)
    if before is not None:
        question.since = before.since
        case.given_up[pair] = Interval(_gives_up_at(case, before), row.time)
        question.follows_lost = before.is_lost


def on_receive(case: Case, row: Row) -> None:
    """A PING or its answer arrives."""
    if row.cause == "ping":
        question = case.unanswered.get((row.peer, row.node))
        if question is not None and question.ref == row.ref:
            question.has_arrived = True
    elif row.cause == "pong":
        case.unanswered.pop((row.node, row.peer), None)
        case.ponged[row.node, row.peer] = row.time


def on_lost(case: Case, row: Row) -> None:
    """A message is lost, maybe a PING or its answer."""
    asker = (row.node, row.peer) if row.cause == "ping" else (row.peer, row.node)
    question = case.unanswered.get(asker)
    if question is not None and row.ref in (question.ref, question.answer):
        question.is_lost = True


def had_given_up(case: Case, node: str, peer: str, since: Micros, until: Micros) -> bool:
    """Had the node no link to the peer at some time of this interval because of a random loss?
    Stream links have no random losses."""
    if case.obligations.is_stream:
        return False
    pair = (node, peer)
    question, last = case.unanswered.get(pair), case.given_up.get(pair)
    if question is not None and _gives_up_at(case, question) <= until:
        return True
    return last is not None and last.meets(since, until)


def unlinked(case: Case, node: str) -> tuple[str, ...]:
    """Return the nodes to which the node may have no link now because they have not answered."""
    return tuple(
        peer
        for (asker, peer), question in case.unanswered.items()
        if asker == node and _gives_up_at(case, question) <= case.now
    )


def may_be_unlinked(case: Case, node: str, peer: str) -> bool:
    """May the node have no link to the peer now because the peer has not answered, or a new link on
    which it has not answered yet?"""
    pair = (node, peer)
    question, last = case.unanswered.get(pair), case.given_up.get(pair)
    if question is None:
        return False
    return _gives_up_at(case, question) <= case.now or (
        last is not None and last.end == question.time
    )


def is_unanswered_since_start(case: Case, node: str, peer: str) -> bool:
    """Has the peer not answered the node since one of them started? Until then the node does not
    know the peer's capabilities."""
    started = max(case.world.started_at(node), case.world.started_at(peer))
    return case.ponged.get((node, peer), NEVER) < started


def is_suspected(case: Case, node: str, peer: str) -> bool:
    """Has the node waited a whole node timeout for an answer, so that it suspects the peer?"""
    question = case.unanswered.get((node, peer))
    timeout = case.obligations.shortest(case.obligations.node_timeout)
    return question is not None and case.now - question.since > timeout


def on_claim(case: Case, row: Row) -> None:
    """A node asks another one about a key for a job. It repeats the question until it has an
    answer."""
    claims = case.claims.setdefault((row.node, row.peer), {})
    search = _search(row)
    if claims.get(search, ("", 0))[0] != row.job:
        claims[search] = (row.job, row.time)


def on_claim_answer(case: Case, row: Row) -> None:
    """The node has its answer; a later KEYCLAIM is another question."""
    case.claims.get((row.node, row.peer), {}).pop(_search(row), None)


def _search(row: Row) -> str:
    """Return the number of a question, without that of its round."""
    return fields(row.detail, "key")["number"].partition("/")[0]


def is_one_awaited(case: Case, node: str, job: str, others: Iterable[str]) -> bool:
    """Does the node await the answer of one of these nodes about the key of the job? Slow messages
    alone may make it suspect another node, or leave it without an answer for two node timeouts;
    then it continues without the answer."""
    return not all(
        is_suspected(case, node, other) or _was_asked_in_vain(case, node, job, other)
        for other in others
    )


def _was_asked_in_vain(case: Case, node: str, job: str, other: str) -> bool:
    timeout = case.obligations.shortest(2 * case.obligations.node_timeout)
    claims = case.claims.get((node, other), {})
    return any(about == job and case.now - since > timeout for about, since in claims.values())


def is_waiting(case: Case, node: str, peer: str) -> bool:
    """May the node still await the answer to a PING? If a rule or, possibly, chance dropped only
    this one, it may do so for longer: a node does not close a link that is younger than the node
    timeout."""
    question = case.unanswered.get((node, peer))
    if question is None:
        return False
    latest = question.time + 4 * case.obligations.latency
    if question.is_lost or not case.obligations.is_stream:
        latest += case.obligations.longest(case.obligations.node_timeout + SECOND)
    return case.now <= latest


def is_answer_lost(case: Case, node: str, peer: str) -> bool:
    """On links that lose messages: was the unanswered PING or its answer lost; or the previous one,
    so recently that the answer to the present one may be in transit?"""
    question = case.unanswered.get((node, peer))
    if question is None or case.obligations.is_stream:
        return False
    may_come = case.now <= question.time + 4 * case.obligations.latency
    return question.is_lost or (question.follows_lost and may_come)


def _gives_up_at(case: Case, question: Question) -> Micros:
    """Return when the node closes the link."""
    return question.time + case.obligations.shortest(case.obligations.node_timeout // 2)
