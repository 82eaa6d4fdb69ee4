"""How workers that run the worker library's engine give jobs back (W10, W13, W14).

A node without `DELAY` has no wait after NACK, so the worker waits itself, and holds the job. A node
without tokens cannot tell whether a NACK comes twice, so the worker sends none again that may have
arrived. A job with RETRY 0 is not given back at all: nobody would get it.
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
"""How late a worker may be while nothing is wrong."""


def _found(case: Case, row: Row) -> tuple[Process, Delivery] | None:
    process = case.processes.get(row.client)
    delivery = None if process is None else process.deliveries.get(row.job)
    return None if process is None or delivery is None else (process, delivery)


def after_end(case: Case, row: Row, _job: Job) -> None:
    """A run has ended; the outcome may be another attempt after a delay."""
    found = _found(case, row)
    if found is not None and row.cause == "retry":
        _, delivery = found
        delivery.wait_until = row.time + number(row.detail, "delay") * MILLI
        delivery.ended_at = row.time


def on_give_back(case: Case, row: Row, job: Job) -> None:
    """W13: a worker that waits itself sends NACK when the delay is over. W14: it repeats no NACK,
    RELEASE or ENQUEUE without a token unless a node has refused it."""
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
    """A node has answered, or it is unknown whether it has done it."""
    found = _found(case, row)
    if found is not None and not row.kind.endswith(".unknown"):
        found[1].is_untold = False


def _judge_wait(case: Case, row: Row, process: Process, delivery: Delivery) -> None:
    if delivery.wait_until <= delivery.ended_at or process.stop_at != FOREVER:
        return  # without a delay, or the node has to wait for what is left
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
    """W10: a job with RETRY 0 that a worker holds begins as long as there is time, and is not given
    back."""
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
    """W13: at the end no delay is over for long."""
    for name, process in case.processes.items():
        for job_id, delivery in process.deliveries.items() if process.is_up else ():
            is_due = delivery.ended_at < delivery.wait_until < case.now - PROMPT
            if is_due and not delivery.is_lost and not _was_hindered(case, process, delivery):
                late = (case.now - delivery.wait_until) / SECOND
                case.violate("W13", f"{name} has kept it for {late:.3f} s after the delay", job_id)
