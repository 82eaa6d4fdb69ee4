"""NACK and RELEASE with a delay: no node enqueues the job before the delay ends (S6,
docs/guarantees.md).

A node knows a delay if it received the NACK, or a message about it. Other nodes may enqueue the job
early if a message was lost, was late, or could not be sent. But a node that knows the delay must
answer the WILLQUEUE of another node. A client that enqueues the job, or continues to work on it,
ends the delay.
"""

from typing import Final

from disque_trio.sim.checkers import durability, silence, timers
from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.messages import POSTPONED, QUEUED, WORKING
from disque_trio.sim.checkers.obligations import MILLI, SECOND
from disque_trio.sim.checkers.records import FOREVER, NEVER, Copy, Job
from disque_trio.sim.checkers.waits import Wait
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.postponing import MARGIN
from disque_trio.tracing.details import number
from disque_trio.tracing.rows import Row

_BY_ITSELF: Final = (
    "first", "delay-over", "retry", "backed-off", "untied", "unbegun", "loaded", "followed",
)  # fmt: skip
"""Causes of an enqueuing that no client requested."""
_GIVEN_BACK: Final = ("nack", "release")
_ENDS: Final = ("enqueue", "release", "nack", "enqueue-message")
_UNANSWERED: Final = "working.unknown"
LATEST: Final[Micros] = (MARGIN + 500) * MILLI
"""The longest time after the node of the NACK at which another node enqueues the job."""


def on_postpone(case: Case, row: Row, job: Job) -> None:
    """A NACK or RELEASE delays the job: at its node, or at one that receives POSTPONED."""
    is_here = row.cause in _GIVEN_BACK
    wait = number(row.detail, "wait") * MILLI
    copy = job.copies.get(row.node)
    job.expected_since = max(job.expected_since, row.time + case.obligations.longest(wait))
    if is_here:
        case.mark(f"{row.cause}.postponed")
        job.nacked += row.cause == "nack"
        unlinked = [node for node in job.copies if _may_be_unlinked(case, row.node, node)]
        until = row.time + case.obligations.shortest(wait)
        job.wait = Wait(row.time, row.node, until, dict.fromkeys(unlinked))
        asked = job.done.get((row.node, _UNANSWERED), FOREVER)
        if case.world.is_stopped(row.node, asked, row.time):
            # It handles messages that arrived while it was stopped afterwards, in any order.
            job.wait.ended[row.node] = FOREVER
    else:
        case.mark("nack.told")
    if copy is None:
        return
    copy.begin_period(row.time)
    if job.wait is not None and row.time + case.obligations.longest(wait) >= job.wait.until:
        # Otherwise, the message was about an earlier NACK.
        copy.postponed_at = row.time
    if row.cause == "nack":
        copy.counted = (copy.counted[0] + 1, copy.counted[1])
    timers.after_postpone(case, job, copy, wait + (0 if is_here else LATEST))


def before_queue(case: Case, row: Row, job: Job) -> None:
    """S6: the node enqueues the job."""
    wait = job.wait
    if wait is None:
        return
    copy = job.copies.get(row.node)
    if row.cause in _ENDS:
        _judge_second(case, row, job, copy, wait)
        job.wait = None
        return
    if row.cause not in _BY_ITSELF or copy is None or not case.has_node_rows or case.is_live:
        return
    case.check("S6")
    if row.cause == "backed-off":
        case.mark("nack.waited")
    if row.time >= wait.until or _has_forgotten(case, row.node, wait):
        return
    case.mark("nack.early")
    early = wait.until - row.time
    why = _why(case, job, copy, wait)
    if why and not (early <= MARGIN * MILLI and _has_waited(copy, wait)):
        detail = (
            f"queued {early / SECOND:.3f} s before the wait is over that began at {wait.node}: "
            f"{why}"
        )
        case.violate("S6", detail, job.id, row.node)


def _judge_second(case: Case, row: Row, job: Job, copy: Copy | None, wait: Wait) -> None:
    """S6: a NACK or RELEASE of a job that its node knows to be delayed changes nothing."""
    if row.cause not in _GIVEN_BACK or copy is None or not case.has_node_rows or case.is_live:
        return
    case.check("S6")
    known = _known_since(copy, wait)
    is_known = NEVER < known < row.time < wait.until
    if not is_known or case.world.started_at(row.node) > known:
        return
    if not _is_over(case, job, copy, wait, known):
        left = (wait.until - row.time) / SECOND
        detail = f"{row.cause.upper()} has ended a wait, of which {left:.3f} s were left"
        case.violate("S6", detail, job.id, row.node)


def _has_forgotten(case: Case, node: str, wait: Wait) -> bool:
    """Has the node restarted since the NACK? Then it measures the delay by its wall clock. Its
    journal may lack changes that it confirmed neither to a node nor to a client."""
    return case.world.started_at(node) > wait.time and not _remembers(case, node, wait)


def _remembers(case: Case, node: str, wait: Wait) -> bool:
    """Had the node confirmed the NACK to its client, so that its journal must contain the delay? A
    file in the original's format cannot."""
    obligations, world = case.obligations, case.world
    if node != wait.node or wait.answered_at is None:
        return False
    if not obligations.has_disk or obligations.has_original_file or obligations.can_step:
        return False
    outages = [each for each in world.outages.get(node, ()) if each.start >= wait.time]
    if len(outages) != 1 or node in case.flipped or world.was_disk_faulty(node, case.now):
        return False
    return durability.must_survive(case, node, wait.answered_at)


def _has_waited(copy: Copy, wait: Wait) -> bool:
    """Did another NACK make the node wait? Two delays that end at nearly the same time count as
    one."""
    return copy.node != wait.node and copy.postponed_at < wait.time <= copy.waits_until


def _why(case: Case, job: Job, copy: Copy, wait: Wait) -> str:
    """Return the violation; empty if the node could not know the delay."""
    known = _known_since(copy, wait)
    if known != NEVER and not _is_over(case, job, copy, wait, known):
        return "it was there" if copy.node == wait.node else "it had been told"
    if known != NEVER or copy.node == wait.node:
        return _unanswered(job, copy, wait)
    announcement = job.announcement(wait.node, copy.node, POSTPONED)
    if announcement.sent < wait.time and copy.node not in wait.counted:
        return "" if _is_unreachable(case, job, copy, wait) else "nobody has told it"
    has_received = announcement.got >= wait.time >= copy.since
    if has_received and not (announcement.got_at == case.now and copy.cause == "add"):
        # One batch may contain the last confirmation for which ADDJOB waits, and then POSTPONED.
        return "it has ignored what it was told"
    if 0 < case.now - _counted_at(job, copy, wait) < case.obligations.lease(case.retry_of(job)):
        return "it has not waited for RETRY, as it was told"
    return _unanswered(job, copy, wait)


def _known_since(copy: Copy, wait: Wait) -> Micros:
    """Return since when the node has known the delay, by the last message; NEVER if it has not."""
    is_loaded = copy.cause == "loaded"
    if copy.postponed_at >= wait.time and (is_loaded or copy.postponed_at >= copy.since):
        return copy.postponed_at
    was_there = copy.node == wait.node and (is_loaded or copy.since <= wait.time)
    return wait.time if was_there else NEVER


def _is_over(case: Case, job: Job, copy: Copy, wait: Wait, known: Micros) -> bool:
    """Did a worker at the node continue, or did a message about another NACK end the delay? Or did
    the node receive the NACK again in the form for original nodes, which left a full RETRY for the
    correct message?"""
    if wait.ended.get(copy.node, NEVER) >= known:
        return True
    counted_at = _counted_at(job, copy, wait)
    return counted_at >= known and case.now - counted_at >= case.obligations.lease(
        case.retry_of(job)
    )


def _counted_at(job: Job, copy: Copy, wait: Wait) -> Micros:
    """Return when the node received the NACK in the form for original nodes; NEVER if it did
    not."""
    announcement = job.announcement(wait.node, copy.node, QUEUED)
    is_counted = copy.node in wait.counted and announcement.got >= wait.time
    return announcement.got_at if is_counted and announcement.got_at >= copy.since else NEVER


def _is_unreachable(case: Case, job: Job, copy: Copy, wait: Wait) -> bool:
    """Had the node of the NACK not listed this one, or no link to it, or did it end immediately?"""
    world = case.world
    return (
        copy.node not in job.listed.get(wait.node, ())
        or copy.since >= wait.time
        or not case.has_messages
        or not world.is_up(wait.node)
        or world.started_at(wait.node) > wait.time
        or world.was_disk_faulty(wait.node, case.now)
        or copy.node in wait.unlinked
        or world.may_be_unknown(wait.node, copy.node, wait.time)
        or world.may_not_have_met(wait.node, copy.node, wait.time)
    )


def _may_be_unlinked(case: Case, node: str, peer: str) -> bool:
    """May the node have no link to the other one now, or a link on which nothing has arrived
    yet?"""
    world, now = case.world, case.now
    since = now - case.obligations.longest(case.obligations.node_timeout)
    return (
        world.is_separated(node, peer, now, now)
        or world.is_stopped(node, since, now)
        or world.is_stopped(peer, since, now)
        or silence.may_be_unlinked(case, node, peer)
    )


def _unanswered(job: Job, copy: Copy, wait: Wait) -> str:
    """Return the violation of a node that knows the delay and did not answer WILLQUEUE; empty if
    there is none."""
    for node, time in wait.asked.get(copy.node, {}).items():
        answered_at = max(
            job.announcement(node, copy.node, sort).sent for sort in (POSTPONED, QUEUED, WORKING)
        )
        if answered_at < time:
            return f"{node} knew, and has not answered its warning"
    return ""


def on_queued_elsewhere(case: Case, row: Row) -> None:
    """A node received QUEUED. If a client has returned the job without a delay, the delay ends
    here, although that return may be the earlier one: at another node, or at the same one on a link
    that reorders messages."""
    job = case.jobs.get(row.job)
    wait = None if job is None else job.wait
    if wait is None or row.detail not in {"nack", "by-client"}:
        return
    flight = None if case.obligations.is_stream else case.flights.get(row.ref)
    if row.peer != wait.node or (flight is not None and flight[0] < wait.time):
        wait.ended[row.node] = row.time


def after_queued(case: Case, row: Row) -> None:
    """The node of the NACK sent QUEUED. If it did so for this NACK, after the journal's earlier
    writes, the receiver may not support POSTPONED: it has not sent anything yet on a new link."""
    job = case.jobs.get(row.job)
    wait = None if job is None else job.wait
    if wait is None or row.node != wait.node or row.detail != "nack":
        return
    if row.peer in wait.unlinked or _may_be_unlinked(case, row.node, row.peer):
        wait.counted[row.peer] = None


def on_warning(case: Case, row: Row) -> None:
    """A node received WILLQUEUE."""
    job = case.jobs.get(row.job)
    wait = None if job is None else job.wait
    if job is None or wait is None or row.time >= wait.until:
        return
    copy = job.copies.get(row.node)
    if copy is None or copy.is_acked or copy.queueing is not None:
        return
    known = _known_since(copy, wait)
    if known == NEVER or _is_over(case, job, copy, wait, known):
        return
    if case.world.started_at(row.node) > wait.time or _may_be_unlinked(case, row.node, row.peer):
        return
    wait.asked.setdefault(row.peer, {})[row.node] = row.time


def on_given_back_ok(_case: Case, row: Row, job: Job) -> None:
    """The node of the NACK replied to its client."""
    wait = job.wait
    if wait is not None and row.node == wait.node and row.detail == "1":
        wait.answered_at = row.time


def after_state(_case: Case, _row: Row, job: Job) -> None:
    """The job died or was redriven: the delay has ended."""
    job.wait = None


def on_working_ok(_case: Case, row: Row, job: Job) -> None:
    """A worker continues: the delay ends at its node, and remains at the other nodes."""
    if job.wait is not None:
        job.wait.ended[row.node] = row.time


def on_working_unknown(case: Case, row: Row, job: Job) -> None:
    """A worker's WORKING got no reply."""
    job.done[row.node, _UNANSWERED] = case.operations.get((row.client, row.ref, row.job), row.time)
