"""Replies in time (L13): GETJOB and WAITJOB within TIMEOUT, or at once with NOHANG; ADDJOB as soon
as SYNC holders have confirmed, or at once with ASYNC. A GETJOB that returns fewer jobs than COUNT
leaves none in the queues of its node (S19).

A simulated client waits 5 s longer than its TIMEOUT and then gives up, which writes a row.
"""

from typing import Final

import attrs

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.cluster_liveness import was_disturbed
from disque_trio.sim.checkers.obligations import MILLI, SECOND
from disque_trio.sim.checkers.records import Job
from disque_trio.sim.checkers.refusals import may_be_short_of_memory
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.sim.workload.actions import PATIENCE
from disque_trio.sim.workload.administrators import LONGEST_WAIT_MS
from disque_trio.statemachine.knobs import DEFAULTS
from disque_trio.terminal.counting import counted
from disque_trio.tracing.details import numbers
from disque_trio.tracing.rows import Row

ANSWER: Final[Micros] = SECOND // 10
"""The longest time from the last confirmation to the reply: a batch, a write and the delay to the
client."""


def on_get_unknown(case: Case, row: Row) -> None:
    """L13: a consumer has given up on a GETJOB."""
    polls = [each.poll_ms for each in case.plan.consumers if each.name == row.client]
    if polls and row.client in case.asked_for:
        _judge_silence(case, row, polls[0] * MILLI, "GETJOB")


def on_wait_unknown(case: Case, row: Row, _job: Job) -> None:
    """L13: a client has given up on a WAITJOB."""
    _judge_silence(case, row, LONGEST_WAIT_MS * MILLI, "WAITJOB")


def _judge_silence(case: Case, row: Row, wait: Micros, command: str) -> None:
    if row.cause != "timeout" or case.is_live:
        return
    case.check("L13")
    if not was_disturbed(case, row.node, row.time - wait - PATIENCE, row.time):
        detail = f"{row.client} has waited for its {command}, though the node was up"
        case.violate("L13", detail, row.job, row.node)


def on_gotjob(case: Case, row: Row) -> None:
    """A holder has confirmed its copy to the node of the ADDJOB."""
    job = case.jobs.get(row.job)
    if job is not None and row.node == job.origin and not job.is_added:
        case.confirmed.setdefault(job.id, {}).setdefault(row.peer, row.time)


def on_add_ok(case: Case, row: Row, job: Job) -> None:
    """L13: the reply was sent as soon as enough copies were confirmed."""
    add = job.add
    confirmed = sorted(case.confirmed.pop(job.id, {}).values())
    is_behind = case.behind.pop((row.client, row.ref), "") is None
    if is_behind or add is None or add.answered != row.time or _has_other_reasons(case, row, job):
        return
    needs = 1 if add.options.is_async else add.options.sync
    if needs > len(confirmed) + 1:
        return  # a trace without messages has no confirmations
    since = add.invoked if needs == 1 else max(add.invoked, confirmed[needs - 2])
    case.check("L13")
    allowed = ANSWER + 4 * case.plan.sync[1] + case.obligations.no_processor
    is_late = row.time - since > allowed and not was_disturbed(case, row.node, since, row.time)
    if is_late and row.time - since > allowed + _batches_before(case, row.node) * case.plan.sync[1]:
        late = (row.time - since) / SECOND
        copies = counted(needs, "confirmed copy", "confirmed copies")
        how = "ASYNC" if add.options.is_async else copies
        detail = f"an ADDJOB with {how} was answered {late:.3f} s later"
        case.violate("L13", detail, job.id, row.node)


def _batches_before(case: Case, node: str) -> int:
    """Return the number of batches that may precede this one, each with a write to the disk: those
    that the clients of the node fill with one request each."""
    knobs = attrs.evolve(DEFAULTS, **dict(case.plan.knobs))
    clients = {each.name for each in case.plan.consumers if f"n{each.node}" == node}
    clients.update(add.producer for add in case.plan.adds if f"n{add.node}" == node)
    return len(clients) // knobs.turn_of_all


def _has_other_reasons(case: Case, row: Row, job: Job) -> bool:
    """Could the ADDJOB wait for something else: for copies in other zones or, by default, at nodes
    that have joined; for its key, or for a job that it replaces? Or may its node keep no copy that
    would count?"""
    options = None if job.add is None else job.add.options
    wanted = numbers(job.first_record).get("replicate", 0)
    return (
        case.is_live
        or (options is not None and options.is_default and options.replicate < wanted)
        or bool(case.plan.zones)
        or job.key is not None
        or may_be_short_of_memory(case)
        or row.node in case.world.have_left
        or row.node in case.world.leaving
    )


def on_serve(case: Case, row: Row, _job: Job) -> None:
    """Count a job for a client. One reply contains all jobs served since the previous reply."""
    _, count = case.handed.get(row.client, (row.time, 0))
    case.handed[row.client] = (row.time, count + 1)


def on_reply(case: Case, row: Row) -> None:
    """S19, at the first job of a reply to GETJOB: did the node leave jobs in the requested queues
    that had been queued there before the reply?"""
    queues, count = case.asked_for.get(row.client, ((), 1))
    time, taken = case.handed.pop(row.client, (row.time, count))
    if taken >= count or case.is_live:
        return
    case.check("S19")
    for job_id, copy in case.table(row.node).items():
        if copy.queueing is None or copy.queued_at >= time:
            continue
        queue = case.jobs[job_id].queue
        if queue in case.limits:
            continue
        if queue in queues and not _may_be_paused(case, row.node, queue, time):
            asked = counted(count, "job")
            detail = f"{row.client} asked for {asked} and got {taken}, and this one stayed"
            case.violate("S19", detail, job_id, row.node)
            return


def _may_be_paused(case: Case, node: str, queue: str, now: Micros) -> bool:
    """May the queue have been paused until now? A slow node executes the order that ends the pause
    after the batch during which it arrives."""
    since = now - case.world.last_batch(node, now)
    return case.world.queue_pauses.is_possible(node, queue, since)
