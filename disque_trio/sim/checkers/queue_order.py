"""A worker with a strict order begins held jobs in the order of its queues (W12;
docs/guarantees.md)."""

from typing import Final

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.obligations import SECOND
from disque_trio.sim.checkers.run_records import Process
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.rows import Row

ENOUGH: Final[Micros] = SECOND
"""With less than this left of its lease, a job may have to wait for a renewal."""


def before_begin(case: Case, row: Row, process: Process) -> None:
    """W12: the worker holds no job of an earlier queue that could begin."""
    plan = process.plan
    if not plan.strict or len(plan.queues) == 1:
        return
    case.check("W12")
    before = plan.queues[: plan.queues.index(row.queue)]
    for id, delivery in process.deliveries.items():
        job = case.job(id)
        left = delivery.base + (case.retry_of(job) if job.is_at_least_once else 0) - row.time
        is_fit = (
            delivery.is_held and not delivery.is_lost and not delivery.additional and left > ENOUGH
        )
        if is_fit and id != row.job and job.queue in before:
            case.violate("W12", f"{row.client} begins it and holds {id} of {job.queue}", row.job)
