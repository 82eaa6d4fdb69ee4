"""Held jobs (S23): only a job that has not begun is queued again as unbegun, by the node that
delivered it. In calm no other node queues it.

If the node has received a message about the job since, it may have ended the delivery.
"""

from typing import Final

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.records import Job, Lease
from disque_trio.sim.checkers.waits import Held
from disque_trio.tracing.details import fields
from disque_trio.tracing.rows import Row

_COUNTED: Final = ("retry", "untied")
"""Causes for which the node of a delivery queues the job again and counts that."""


def on_serve(case: Case, row: Row, job: Job) -> None:
    """Record a delivery: the worker may hold the job."""
    if not case.obligations.has_held:
        return
    held = case.held[job.id, row.node] = Held(row.time, row.client)
    # All messages of a batch have their rows before the node applies the first one.
    held.is_doubtful = job.last_news.get(row.node) == row.time


def on_deliver(case: Case, row: Row, serve: Lease) -> None:
    """Record whether the worker requested the job as held."""
    held = case.held.get((row.job, serve.node))
    if held is not None and (held.time, held.client) == (serve.time, serve.client):
        held.is_held = "held" in fields(row.detail, "body")


def on_begin(case: Case, row: Row, job: Job) -> None:
    """Record a BEGIN, which may name several jobs."""
    key = (row.client, row.ref)
    case.begins[key] = case.begins.get(key, 0) + 1
    held = case.held.get((job.id, row.node))
    if held is not None and held.client == row.client:
        held.asked[row.ref] = None


def on_begin_ok(case: Case, row: Row, job: Job) -> None:
    """S23: a held job can begin. The reply has the number of jobs that have begun."""
    asked = case.begins.get((row.client, row.ref), 0)
    held = case.held.get((job.id, row.node))
    if held is None or row.ref not in held.asked:
        return
    if row.detail == str(asked):
        held.has_begun = True
    elif asked == 1 and _is_still_held(case, row, job, held):
        case.violate("S23", "is held, and cannot begin", job.id, row.node)


def _is_still_held(case: Case, row: Row, job: Job, held: Held) -> bool:
    """Does the node certainly have the job as held by this worker, in its first BEGIN? Jobs with
    RETRY 0 are never held."""
    copy = job.copies.get(row.node)
    if (
        copy is None
        or not job.is_at_least_once
        or copy.since > held.time
        or copy.is_acked
        or copy.state[1]
        or copy.queueing
    ):
        return False
    is_first = len(held.asked) == 1 and not held.has_begun and not held.is_doubtful
    case.check("S23")
    return bool(held.is_held) and is_first and not case.is_live


def on_news(case: Case, row: Row) -> None:
    """The node received QUEUED, WORKING or POSTPONED about the job."""
    if not case.obligations.has_held or row.job not in case.jobs:
        return
    case.job(row.job).last_news[row.node] = row.time
    held = case.held.get((row.job, row.node))
    if held is not None:
        held.is_doubtful = True


def on_postpone(case: Case, row: Row, job: Job) -> None:
    """A client has returned the job here, which may end the deliveries to others."""
    held = case.held.get((job.id, row.node))
    if held is not None:
        held.is_doubtful = True


def after_hold(case: Case, row: Row, job: Job) -> None:
    """The record is new: the node has no delivery of the job."""
    case.held.pop((job.id, row.node), None)


def before_queue(case: Case, row: Row, job: Job) -> None:
    """S23: check the cause of the enqueueing."""
    held = case.held.pop((job.id, row.node), None)
    if not case.obligations.has_held or case.is_live:
        return
    if row.cause == "unbegun":
        case.mark("held.requeued")
        case.check("S23")
        if held is None or held.is_held is False or held.has_begun:
            case.violate("S23", "queued as unbegun, and was not held", job.id, row.node)
    elif row.cause in _COUNTED and held is not None and _is_unbegun(case, held):
        detail = f"held and not begun by {held.client}, and queued as {row.cause}"
        case.violate("S23", detail, job.id, row.node)
    elif row.cause == "retry" and not case.obligations.has_tail:
        _judge_elsewhere(case, row, job)


def _is_unbegun(case: Case, held: Held) -> bool:
    """Was the job certainly held, without any BEGIN for it?"""
    if held.is_held:
        case.check("S23")
    return bool(held.is_held) and not held.asked and not held.is_doubtful


def _judge_elsewhere(case: Case, row: Row, job: Job) -> None:
    """S23: in calm no other holder that can know of the delivery queues a job that is held and has
    not begun."""
    known_before = row.time - case.obligations.spread_delay
    for node in job.copies:
        held = case.held.get((job.id, node))
        if held is None or held.time > known_before:
            continue
        if not case.world.is_calm(held.time, row.time):
            continue
        if _is_unbegun(case, held):
            detail = f"held by {held.client} of {node} and not begun, and queued as retry"
            case.violate("S23", detail, job.id, row.node)
