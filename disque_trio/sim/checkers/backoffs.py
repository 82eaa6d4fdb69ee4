"""BACKOFF and MAXBACKOFF of ADDJOB: how long a NACK without DELAY makes a job wait (S32).

Each wait is twice the previous one, up to MAXBACKOFF, with a deviation of up to a fifth. It is
never longer than half of the remaining life of the job.
"""

from typing import Final

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.obligations import MILLI, SECOND
from disque_trio.sim.checkers.records import NEVER, Job
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.details import number
from disque_trio.tracing.rows import Row

_HOPS: Final = 4
"""A node may learn of a NACK this many latencies, and a tenth of a second, later."""


def on_postpone(case: Case, row: Row, job: Job) -> None:
    """A NACK makes the job wait at this node, or the node learns of such a wait."""
    if row.cause != "nack":
        return
    expected = _expected(case, row, job)
    if expected is not None:
        low, high = expected
        wait = number(row.detail, "wait") * MILLI
        if not low <= wait <= high:
            detail = (
                f"NACK {_known(case, job)[0] + 1} lets the job wait for {wait / SECOND:.3f} s, not "
            )
            detail += f"for {low / SECOND:.3f} to {high / SECOND:.3f} s as BACKOFF says"
            case.violate("S32", detail, job.id, row.node)
    _count(case, job, row)


def before_queue(case: Case, row: Row, job: Job) -> None:
    """A NACK queues the job at once."""
    if row.cause != "nack":
        return
    expected = _expected(case, row, job)
    if expected is not None and expected[0] > SECOND:
        case.violate("S32", "a NACK queues the job at once, despite BACKOFF", job.id, row.node)
    _count(case, job, row)


def _known(case: Case, job: Job) -> tuple[int, Micros]:
    return case.nacks.get(job.id, (0, NEVER))


def _count(case: Case, job: Job, row: Row) -> None:
    if job.options is not None and job.options.backoff:
        case.nacks[job.id] = (_known(case, job)[0] + 1, row.time)


def _expected(case: Case, row: Row, job: Job) -> tuple[Micros, Micros] | None:
    """Return the shortest and the longest wait, or None if they are unknown."""
    options, created = job.options, job.created_at
    if options is None or not options.backoff or not options.retry or created is None:
        return None
    world, obligations = case.world, case.obligations
    propagation = _HOPS * obligations.latency + SECOND // 10
    count, last = _known(case, job)
    if case.is_live or obligations.has_tail or row.time - last < propagation:
        return None
    if options.limit or not _has_plain_nacks(case, job) or not world.is_calm(created, row.time):
        return None
    case.check("S32")
    wait = min(options.backoff << min(count, 40), options.max_backoff)
    half = (created + options.ttl - row.time) // 2 - SECOND
    low = min(obligations.shortest(wait * 4 // 5), half)
    return low - MILLI, obligations.longest(wait * 6 // 5) + MILLI


def _has_plain_nacks(case: Case, job: Job) -> bool:
    """Are all NACKs of the queue's consumers without DELAY? The rows do not contain it."""
    return case.plan.apps is None and not any(
        job.queue in each.queues
        and (each.kind == "engine" or any(way in {"nack-delay", "bury"} for way, _ in each.mix))
        for each in case.plan.consumers
    )
