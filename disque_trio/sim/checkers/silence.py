"""Links that nodes have closed because a PING was not answered.

Where single messages are lost, the loss of a PING or of its PONG is enough: half a node timeout
later the sender closes the connection, and can send nothing until it has connected again. No row
records that, but PINGs show it: a node with an unanswered PING sends another only over a new link.
"""

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.intervals import Interval
from disque_trio.sim.checkers.obligations import SECOND
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.rows import Row


def on_ping(case: Case, row: Row) -> None:
    """A node sends a PING to another."""
    pair = (row.node, row.peer)
    asked = case.unanswered.get(pair)
    if asked is not None:
        case.given_up[pair] = Interval(_gives_up_at(case, asked), row.time)
    case.unanswered[pair] = row.time


def on_pong(case: Case, row: Row) -> None:
    """The other node has answered."""
    case.unanswered.pop((row.node, row.peer), None)


def had_given_up(case: Case, node: str, peer: str, since: Micros, until: Micros) -> bool:
    """Had the node no link to the peer at some time between, because of a random loss? Stream links
    have no random losses."""
    if case.obligations.is_stream:
        return False
    pair = (node, peer)
    asked, last = case.unanswered.get(pair), case.given_up.get(pair)
    if asked is not None and _gives_up_at(case, asked) <= until:
        return True
    return last is not None and last.meets(since, until)


def is_waiting(case: Case, node: str, peer: str) -> bool:
    """May the node still wait for the answer to a PING? If that may have been lost at random, for
    longer: the node closes no link that is younger than the node timeout."""
    asked = case.unanswered.get((node, peer))
    if asked is None:
        return False
    latest = asked + 4 * case.obligations.latency
    if not case.obligations.is_stream:
        latest += case.obligations.longest(case.obligations.node_timeout + SECOND)
    return case.now <= latest


def _gives_up_at(case: Case, asked: Micros) -> Micros:
    """When the node closes the link."""
    return asked + case.obligations.shortest(case.obligations.node_timeout // 2)
