"""Work is bounded (S33): while nothing is wrong, nodes look for jobs and offer them only as often
as something happens to jobs and clients."""

from typing import Final

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.obligations import SECOND
from disque_trio.sim.checkers.records import Job
from disque_trio.tracing.rows import Row

IDLE: Final = 50
"""Messages of a kind that one node may send to another in a second for no reason."""
FOR_EACH: Final = 4
"""How many more for each consumer, each queue, and each time that a job is queued or served."""


def note(case: Case, row: Row, _job: Job) -> None:
    """Something happens to a job, of which others may have to hear in this second and the next."""
    second = row.time // SECOND
    for each in (second, second + 1):
        case.activity[each] = case.activity.get(each, 0) + 1
    case.activity.pop(second - 2, None)


def on_send(case: Case, row: Row) -> None:
    """S33: WAITING, HAVEJOBS or NEEDJOBS."""
    second, key = row.time // SECOND, (row.node, row.peer, row.cause)
    since, count = case.work.get(key, (second, 0))
    count = count + 1 if since == second else 1
    case.work[key] = (second, count)
    if count <= IDLE or case.is_live or case.obligations.has_tail:
        return
    reasons = len(case.plan.consumers) + len(case.queues) + case.activity.get(second, 0)
    case.check("S33")
    if count > IDLE + FOR_EACH * reasons and case.world.is_calm(second * SECOND, row.time):
        detail = f"{count} {row.cause} to {row.peer} in a second, in which little has happened"
        case.violate("S33", detail, node=row.node)
