"""Links that nodes have given up because nobody answered on them.

Where messages are lost one by one, the loss of a PING or of its PONG is enough: half a node timeout
later the node that has asked takes the connection for dead, and has no link until it has dialled
again. What it had to say meanwhile it could not send. No row tells of that, but PINGs do: a node
whose PING is unanswered sends another only over a new link.
"""

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.intervals import Interval
from disque_trio.sim.checkers.obligations import SECOND
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.rows import Row


def on_ping(case: Case, row: Row) -> None:
    """A node asks another whether it is there."""
    pair = (row.node, row.peer)
    asked = case.unanswered.get(pair)
    if asked is not None:
        case.given_up[pair] = Interval(_gives_up_at(case, asked), row.time)
    case.unanswered[pair] = row.time


def on_pong(case: Case, row: Row) -> None:
    """The other is there."""
    case.unanswered.pop((row.node, row.peer), None)


def had_given_up(case: Case, node: str, peer: str, since: Micros, until: Micros) -> bool:
    """Had the node no link at some time between, though nothing but chance was in the way? Links
    that are streams lose nothing by chance."""
    if case.obligations.is_stream:
        return False
    pair = (node, peer)
    asked, last = case.unanswered.get(pair), case.given_up.get(pair)
    if asked is not None and _gives_up_at(case, asked) <= until:
        return True
    return last is not None and last.meets(since, until)


def is_waiting(case: Case, node: str, peer: str) -> bool:
    """Has the node lost an answer by chance, and keeps its link for the time being? It gives none
    up that is younger than the node timeout."""
    asked = case.unanswered.get((node, peer))
    if case.obligations.is_stream or asked is None:
        return False
    latest = asked + case.obligations.longest(case.obligations.node_timeout + SECOND)
    return case.now <= latest + 4 * case.obligations.latency


def _gives_up_at(case: Case, asked: Micros) -> Micros:
    """When the node gives the link up."""
    return asked + case.obligations.shortest(case.obligations.node_timeout // 2)
