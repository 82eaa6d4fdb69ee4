"""L9: in a connected cluster, a queued job reaches a waiting client within a second.

The simulator writes a row ``unmet`` for a pair that has not met (`sim.meetings`) while the links of
both nodes are up. Only the rows of the world show whether a fault delayed their messages.
"""

from disque_trio.sim.checkers.case import Case, Flight
from disque_trio.sim.checkers.obligations import SECOND
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.knobs import DEFAULTS
from disque_trio.tracing.details import numbers
from disque_trio.tracing.rows import Row


def on_unmet(case: Case, row: Row) -> None:
    """L9: a node has the job queued while a client waits for it at another node. For queues with
    limits, L15 is judged instead."""
    since = numbers(row.detail)["since"]
    waited = row.time - since
    if waited <= bound(case) or not case.obligations.is_stream or _was_hindered(case, row, since):
        return
    if (row.node, row.queue, row.peer) in case.dropped_demands or row.queue in case.limits:
        return
    detail = (
        f"queued there for {waited / SECOND:.1f} s at least, while a client waits for "
        f"{row.queue} at {row.peer}"
    )
    case.violate("L9", detail, row.job, row.node)


def note_demand(case: Case, row: Row, _flight: Flight | None) -> None:
    """WAITING or NEEDJOBS: the node now knows that a client of the sender wants the queue. It keeps
    `Knobs.demands` queues, and forgets those that were wanted longest ago."""
    if row.detail != "count=0":
        case.dropped_demands.pop((row.node, row.queue, row.peer), None)
        note_possible_demand(case, row, None)


def note_possible_demand(case: Case, row: Row, _flight: Flight | None) -> None:
    """WAITING or NEEDJOBS of a sender that the node may not know: it may have forgotten another
    queue for this one, and may forget this one."""
    most = dict(case.plan.knobs).get("demands", DEFAULTS.demands)
    if most >= len(case.queues) or row.detail == "count=0":
        return
    known = case.demands.setdefault(row.node, {})
    known[row.queue] = {**known.pop(row.queue, {}), row.peer: None}
    if len(known) > most:
        _forget_oldest(case, row.node, known)


def _forget_oldest(case: Case, node: str, known: dict[str, dict[str, None]]) -> None:
    queue = next(iter(known))
    for sender in known.pop(queue):
        case.dropped_demands[node, queue, sender] = None


def on_pairs(case: Case, row: Row) -> None:
    """Count pairs of a queued job and a waiting client at different nodes."""
    case.check("L9", int(row.detail))


def bound(case: Case) -> Micros:
    """Return a second, and the latency of the four messages that are needed."""
    return case.obligations.longest(SECOND) + 4 * case.obligations.latency


def _was_hindered(case: Case, row: Row, since: Micros) -> bool:
    """Was there a fault of a link between the two nodes, or of one of the nodes?"""
    world = case.world
    for node, other in ((row.node, row.peer), (row.peer, row.node)):
        if world.is_held(node, other, since, row.time) or world.may_be_unknown(
            node, other, row.time
        ):
            return True
        if world.is_lagging(node, other, since, row.time):
            return True
        if world.is_stopped(node, since, row.time) or world.was_mute(node, since, row.time):
            return True
    return case.may_leave(row.peer) or world.was_disk_faulty(row.node, row.time)
