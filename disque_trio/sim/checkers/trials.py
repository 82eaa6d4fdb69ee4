"""Suspects begin alone in their worker (W11; docs/guarantees.md)."""

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.records import FOREVER, NEVER
from disque_trio.sim.checkers.run_records import Delivery, Process
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.rows import Row
from disque_trio.worker.engine.suspects import ALONE_FROM, PATIENCE, TRIAL


def before_begin(case: Case, row: Row, process: Process, delivery: Delivery) -> None:
    """W11: a job that runs beside this one began at the same time, or has passed its trial. Beside
    a suspect no other job runs or is held, except suspects that may run together; after `PATIENCE`
    it may begin anyway."""
    if delivery.is_once:
        return
    case.check("W11")
    others = [process.deliveries[id] for id in process.runs if id != row.job]
    if any(other.trial_until > row.time and other.began_at != row.time for other in others):
        case.violate("W11", f"{row.client} begins it during the trial of another job", row.job)
    if not delivery.additional:
        return
    case.mark("worker.suspect")
    if row.time - delivery.came_at < PATIENCE:
        _judge_suspect(case, row, process, delivery, others)
    is_strict = delivery.additional >= ALONE_FROM
    delivery.trial_until = FOREVER if is_strict else row.time + TRIAL
    process.trial_over_at = max(process.trial_over_at, row.time + TRIAL)


def _judge_suspect(
    case: Case, row: Row, process: Process, delivery: Delivery, others: list[Delivery]
) -> None:
    is_strict = delivery.additional >= ALONE_FROM
    if any(is_strict or not other.additional for other in others):
        case.violate("W11", f"{row.client} begins a suspect beside another job", row.job)
    for id, other in process.deliveries.items():
        is_chosen = other.additional and not is_strict
        if other.is_held and not other.is_once and id != row.job and not is_chosen:
            case.violate("W11", f"{row.client} begins a suspect and holds {id}", row.job)
        # If the node that delivered it has gone since, the worker's first attempt has failed.
        if other.is_leaving and not case.world.has_been_down(other.node, other.came_at):
            case.violate("W11", f"{row.client} begins a suspect before {id} is back", row.job)


def over(process: Process, delivery: Delivery, now: Micros) -> None:
    """A job has ended, or is returned: its worker may take other jobs again."""
    if delivery.additional and (delivery.is_held or delivery.trial_until > now):
        process.trial_over_at = max(process.trial_over_at, now)
    delivery.trial_until = NEVER


def occupies(process: Process) -> bool:
    """Does the worker run or hold a suspect alone, so that it takes no other jobs?"""
    return any(
        delivery.additional and (delivery.is_held or delivery.trial_until == FOREVER)
        for delivery in process.deliveries.values()
    )
