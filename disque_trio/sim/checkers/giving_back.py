"""How workers that run the engine of the worker library return jobs to a node (W10, W13, W14).

A node without `DELAY` cannot wait after a NACK, so the worker holds the job during the delay. A
node without tokens cannot detect a repeated NACK, so the worker repeats none that may have arrived.
The worker never returns a job with RETRY 0: no node would deliver it again.
"""

from typing import Final

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.obligations import MILLI, SECOND
from disque_trio.sim.checkers.records import FOREVER, NEVER, Job
from disque_trio.sim.checkers.run_records import Delivery, Process
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.sim.workload.engine_workers import DRAIN
from disque_trio.tracing.details import number
from disque_trio.tracing.rows import Row

PROMPT: Final[Micros] = SECOND
"""How late a worker may be if nothing is wrong."""


def _found(case: Case, row: Row) -> tuple[Process, Delivery] | None:
    process = case.processes.get(row.client)
    delivery = None if process is None else process.deliveries.get(row.job)
    return None if process is None or delivery is None else (process, delivery)


def after_end(case: Case, row: Row, _job: Job) -> None:
    """Record the end of a run; its outcome may be another attempt after a delay."""
    found = _found(case, row)
    if found is not None and row.cause == "retry":
        _, delivery = found
        delivery.wait_until = row.time + number(row.detail, "delay") * MILLI
        delivery.ended_at = row.time


def on_give_back(case: Case, row: Row, job: Job) -> None:
    """W13: a worker that waits itself sends NACK when the delay is over. W14: it does not repeat a
    NACK, RELEASE or ENQUEUE without a token unless a node has refused it."""
    found = _found(case, row)
    if found is None:
        return
    process, delivery = found
    if row.cause != "delay" and job.is_at_least_once:
        _judge_wait(case, row, process, delivery)
    delivery.wait_until = NEVER
    case.check("W14")
    if delivery.is_untold and not row.detail:
        detail = f"{row.client} gives it back again without a token, and a node may have done it"
        case.violate("W14", detail, row.job, row.node)
    delivery.is_untold = True


def on_given_back(case: Case, row: Row, _job: Job) -> None:
    """The node has replied, or the outcome is unknown."""
    found = _found(case, row)
    if found is not None and not row.kind.endswith(".unknown"):
        found[1].is_untold = False


def _judge_wait(case: Case, row: Row, process: Process, delivery: Delivery) -> None:
    if delivery.wait_until <= delivery.ended_at or process.stop_at != FOREVER:
        return  # no delay, or the worker stops and the node waits for the rest
    case.check("W13")
    early = delivery.wait_until - row.time
    if early > 0:
        detail = f"{row.client} gives it back {early / SECOND:.3f} s before the delay is over"
        case.violate("W13", detail, row.job)
    elif -early > PROMPT and not _was_hindered(case, process, delivery):
        detail = f"{row.client} gives it back {-early / SECOND:.3f} s after the delay"
        case.violate("W13", detail, row.job)


def _was_hindered(case: Case, process: Process, delivery: Delivery) -> bool:
    return process.stalled_at >= delivery.ended_at or bool(case.plan.faults)


def before_drop(case: Case, row: Row, _job: Job) -> None:
    """W10: a job with RETRY 0 that a worker holds begins as long as there is time, and is not
    returned."""
    found = _found(case, row)
    if found is None or not (found[1].is_once and found[1].is_held):
        return
    process, _ = found
    case.check("W10")
    is_early = row.cause == "shutdown" and row.time < process.stop_at + DRAIN
    if is_early or row.cause == "released":
        detail = f"{row.client} drops it ({row.cause}) without a run, and nobody else gets it"
        case.violate("W10", detail, row.job)


def finish(case: Case) -> None:
    """W13: at the end of the run no worker is late with a NACK."""
    for name, process in case.processes.items():
        for job_id, delivery in process.deliveries.items() if process.is_up else ():
            is_due = delivery.ended_at < delivery.wait_until < case.now - PROMPT
            if is_due and not delivery.is_lost and not _was_hindered(case, process, delivery):
                late = (case.now - delivery.wait_until) / SECOND
                case.violate("W13", f"{name} has kept it for {late:.3f} s after the delay", job_id)
