"""Refusals: a node refuses jobs for a queue that has MAXLEN jobs, and all jobs while it leaves
(S20); and jobs for which it has no memory (S34)."""

from typing import Final

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.intervals import meets_any
from disque_trio.sim.checkers.obligations import SECOND
from disque_trio.sim.checkers.records import Job
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.terminal.counting import counted
from disque_trio.tracing.rows import Row


def _has_long_been_leaving(case: Case, row: Row) -> bool:
    """Has the node certainly received the order to leave? A stopped node has not; one that crashes
    at once may have lost it."""
    world, since = case.world, case.world.leaving.get(row.node)
    if since is None or case.is_live:
        return False
    case.check("S20")
    has_crashed = meets_any(world.outages.get(row.node, ()), since, since + SECOND)
    return (
        row.time - since > SECOND
        and not has_crashed
        and not world.is_stopped(row.node, since, row.time)
    )


SMALL: Final = 16 << 20
"""The largest `maxmemory` in bytes for which S34 is judged: each check counts all bodies of the
node."""


def may_be_short_of_memory(case: Case) -> bool:
    """May a node leave copies to other nodes for lack of memory?"""
    is_small = 0 < case.obligations.memory <= SMALL
    return is_small or any(fault.kind == "memory" for fault in case.plan.faults)


def was_short_of_memory(case: Case, node: str, since: Micros, until: Micros) -> bool:
    """May the node have had no memory for a copy at any time of this interval?"""
    is_small = 0 < case.obligations.memory <= SMALL
    return is_small or meets_any(case.world.squeezes.get(node, ()), since, until)


def _judge_memory(case: Case, row: Row) -> None:
    """S34: there is memory for the new copy. Only bodies count, and they are not judged if they may
    be on disk."""
    if "spill-directory" in dict(case.plan.config) or case.is_live:
        return
    case.check("S34")
    held = sum(
        len(options.body or "")
        for job_id in case.table(row.node)
        if (options := case.jobs[job_id].options) is not None
    )
    limit = case.world.memory_limit(row.node, row.time)
    if held > limit:
        detail = f"has {counted(held, 'byte')} of bodies, maxmemory is {limit}"
        case.violate("S34", detail, row.job, row.node)


def on_pause_order(case: Case, row: Row) -> None:
    """S19: PAUSE is refused only for lack of memory, or by a node that loads its journal. A stopped
    process may have refused it earlier."""
    if not row.cause or row.cause == "bcast":
        return
    case.check("S19")
    since = row.time - SECOND
    may = case.world.was_out(row.node, since, row.time) or (
        row.cause == "OOM" and was_short_of_memory(case, row.node, since, row.time)
    )
    if not (may or case.world.is_stopped(row.node, since, row.time)):
        case.violate("S19", f"PAUSE is refused with {row.cause}", node=row.node)


def after_hold(case: Case, row: Row, job: Job) -> None:
    """S20: a leaving node accepts no copies. If any ADDJOB has MAXLEN, also record the queue length
    of a new job."""
    if row.cause == "repljob" and _has_long_been_leaving(case, row):
        case.violate("S20", "a node that is about to leave takes a copy", job.id, row.node)
    if 0 < case.obligations.memory <= SMALL and row.cause in {"add", "repljob"}:
        _judge_memory(case, row)
    if row.cause == "add" and case.has_maxlen:
        job.queue_length_at_add = sum(
            copy.queueing is not None and case.jobs[id].queue == row.queue
            for id, copy in case.table(row.node).items()
        )


def after_add_ok(case: Case, row: Row, job: Job) -> None:
    """S20: no job is accepted into a queue that has MAXLEN jobs."""
    most = None if job.add is None else job.add.options.maxlen
    if most is None or not case.has_maxlen:
        return
    case.check("S20")
    if job.queue_length_at_add >= most:
        detail = f"taken with MAXLEN {most} by a queue of {counted(job.queue_length_at_add, 'job')}"
        case.violate("S20", detail, job.id, row.node)
