"""Custody (S2): nodes hold, queue and drop copies, and send DELJOB, only for valid reasons.

This check finds the cause of a loss when it happens, long before the job is missed.
"""

from collections.abc import Callable
from typing import Final

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.obligations import MILLI, SECOND, dummy_life
from disque_trio.sim.checkers.records import NEVER, Copy, Job
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.terminal.counting import counted
from disque_trio.tracing.rows import Row

HOLDS: Final = ("add", "repljob", "yourjobs", "dummy", "loaded")


def before_hold(case: Case, row: Row, job: Job) -> None:
    """A node makes a copy only if it has none, and for a known reason."""
    case.check("S2")
    copy = job.copies.get(row.node)
    if row.cause not in HOLDS:
        _report(case, row, f"holds it for an unknown reason ({row.cause})")
    elif copy is not None and not copy.is_offline:
        _report(case, row, f"takes it ({row.cause}) though it has it ({copy.cause})")


def before_queue(case: Case, row: Row, job: Job) -> None:
    """A node queues only jobs that it holds, and only once."""
    copy = job.copies.get(row.node)
    if copy is None:
        _report(case, row, f"queues it ({row.cause}) though it does not hold it")
    elif copy.queueing is not None:
        _report(case, row, f"queues it ({row.cause}) though it has it queued")


def before_drop(case: Case, row: Row, job: Job) -> None:
    """A node drops a copy only for a known and valid reason."""
    case.check("S2")
    copy = job.copies.get(row.node)
    rule = _RULES.get(row.cause)
    if copy is None:
        _report(case, row, f"drops it ({row.cause}) though it does not hold it")
    elif rule is None:
        _report(case, row, f"drops it for an unknown reason ({row.cause})")
    elif problem := rule(case, row, job, copy):
        _report(case, row, f"drops it ({row.cause}) though {problem}")


def _report(case: Case, row: Row, what: str) -> None:
    """Report a violation, unless the node is live and has been killed: its trace may lack rows."""
    if not (case.is_live and case.world.outages.get(row.node)):
        case.violate("S2", f"{row.node} {what}", row.job, row.node)


WAIT_FOR_UNMET: Final = 10 * SECOND
"""The collection waits at least this long for a holder that may have a new name."""

Rule = Callable[[Case, Row, Job, Copy], str]
"""Returns why the reason is not valid; empty if it is."""


def _collected(case: Case, row: Row, job: Job, copy: Copy) -> str:
    """All holders have confirmed the ack."""
    if not copy.is_acked:
        return "it is not acknowledged here"
    if not case.has_messages:
        return ""
    asked = {peer: state for (node, peer), state in job.asked_gc.items() if node == row.node}
    confirmed = sum(state == 2 for state in asked.values())
    listed = job.listed.get(row.node, {})
    excused = case.world.names_forgotten
    created_at = NEVER if job.created_at is None else job.created_at
    # A node that was wiped may be listed under both names: two holders, one node.
    agreed = (row.node, *[peer for peer, state in asked.items() if state == 2])
    excused += sum(case.world.has_new_name(peer, created_at) for peer in agreed)
    if row.time - copy.acked_at >= WAIT_FOR_UNMET:
        excused += sum(_may_be_missing(case, row.node, job, peer, created_at) for peer in listed)
    if copy.is_dummy:
        waiting = len(asked) - confirmed
        if waiting <= excused:
            return ""
        return f"{counted(waiting, 'node has', 'nodes have')} not confirmed"
    holders = job.gc_holders.get(row.node, 0)
    if confirmed + 1 + excused < holders:
        who = counted(holders - 1, "other holder")
        return f"only {confirmed} of {who} confirmed"
    if case.world.is_changing:
        return ""
    # If the node learned of a holder in the same batch, that may have been after the record was
    # dropped.
    known = [peer for peer, since in listed.items() if since < row.time]
    return _unasked_holders(known, {row.node, *(peer for peer in asked if asked[peer] == 2)})


def _may_be_missing(case: Case, node: str, job: Job, peer: str, created_at: Micros) -> bool:
    """May the node wait in vain for a name that it has not met, or that no node has any more?"""
    may_be_unmet = case.world.may_not_have_met(node, peer, created_at)
    return may_be_unmet or case.may_be_named_twice(job, peer)


def _unasked_holders(listed: list[str], confirmed: set[str]) -> str:
    """Return the known holders that have not confirmed.

    A live node writes "?" for a holder that has left its node table, such as the former id of a
    node that lost its data: it cannot be asked, and its confirmation could not be identified.
    """
    missing = [peer for peer in sorted(listed) if peer not in confirmed and peer != "?"]
    return f"{' '.join(missing)} have not confirmed" if missing else ""


def _deleted(case: Case, row: Row, job: Job, _copy: Copy) -> str:
    """DELJOB has arrived."""
    if not case.has_messages or case.is_live:
        return ""
    came = any(
        receiver == row.node and announcement.got_at == row.time
        for (_, receiver, _), announcement in job.announcements.items()
    )
    return "" if came else "no DELJOB has come"


def _fastacked(case: Case, _row: Row, job: Job, _copy: Copy) -> str:
    """A client has sent FASTACK."""
    asked = bool(job.may_delete) or not case.seen.get("fastack.invoke")
    return "" if asked else "no client has asked for it"


def _expired(case: Case, row: Row, job: Job, copy: Copy) -> str:
    """Its TTL is over."""
    if copy.is_dummy:
        return _forgotten_early(case, row, job, copy)
    options = job.options
    if options is None or job.created_at is None:
        return ""
    if job.lives_until is not None:
        left = 0 if copy.base is None else copy.base + options.ttl // MILLI - row.mono
        return f"{left} ms of its life are left" if left > 0 else ""
    age = row.time - job.created_at
    if age >= case.obligations.shortest(options.ttl):
        return ""
    return f"it is {age / SECOND:.3f} s old, and TTL is {options.ttl // SECOND} s"


def _forgotten_early(case: Case, row: Row, job: Job, copy: Copy) -> str:
    """A dummy ack is kept for the life in the job's id. One loaded from a disk is older than its
    `hold`."""
    age, life = row.time - copy.since, dummy_life(job.id)
    if copy.cause != "dummy" or age >= case.obligations.shortest(life):
        return ""
    return f"it is a dummy ack of {age / SECOND:.3f} s, and the id says {life // SECOND} s"


def _moved(_case: Case, _row: Row, job: Job, _copy: Copy) -> str:
    """A job with at-most-once delivery leaves the sender when it moves."""
    return "it is to be delivered at least once" if job.is_at_least_once else ""


def _handed_over(case: Case, row: Row, _job: Job, copy: Copy) -> str:
    """A node that leaves, or lacks memory, keeps no copy of a new job that other nodes hold."""
    if copy.cause != "add":
        return "it was not added here"
    may = row.node in case.world.have_left or case.obligations.has_limit
    return "" if may else "the node is not leaving"


def _failed(_case: Case, _row: Row, job: Job, copy: Copy) -> str:
    """The ADDJOB failed: no reply contained the job's id."""
    if job.is_added:
        return "its producer has been told that it exists"
    return "" if copy.cause == "add" else "it was not added here"


def _dismissed(_case: Case, _row: Row, _job: Job, copy: Copy) -> str:
    """Another node has the real job, acknowledged."""
    return "" if copy.is_dummy else "it is not a dummy ack"


def _evicted(case: Case, _row: Row, job: Job, copy: Copy) -> str:
    """Memory is short, and the copy is a dummy ack; or the policy allows eviction, and the job is
    acknowledged or must not be delivered again."""
    if not case.obligations.may_evict and not copy.is_dummy:
        return "maxmemory-policy is noeviction"
    is_over = not job.is_at_least_once and job.serves > 0
    is_over = is_over and not copy.state[1]
    return "" if copy.is_acked or copy.is_dummy or is_over else "it is not acknowledged"


def _unconditional(_case: Case, _row: Row, _job: Job, _copy: Copy) -> str:
    """A client has requested it."""
    return ""


_RULES: Final[dict[str, Rule]] = {
    "collected": _collected,
    "deljob": _deleted,
    "client-deljob": _unconditional,
    "fastack": _fastacked,
    "expired": _expired,
    "moved": _moved,
    "handed-over": _handed_over,
    "add-failed": _failed,
    "flush": _unconditional,
    "dummy-dismissed": _dismissed,
    "evicted": _evicted,
}


def before_add_ok(case: Case, row: Row, job: Job) -> None:
    """ADDJOB never succeeds for a job that its node has cleaned up."""
    if job.may_delete.get(row.node) == "add-failed":
        _report(case, row, "confirms the job to its producer, and has cleaned it up")


def after_deljob(case: Case, row: Row) -> None:
    """DELJOB is sent only to end a collection, for FASTACK, or after an ADDJOB that failed."""
    case.check("S2")
    job = case.job(row.job)
    why = job.may_delete.get(row.node)
    if why is None:
        _report(case, row, "sends DELJOB without a reason")
    elif why == "add-failed" and job.is_added:
        _report(case, row, "cleans up a job whose producer has been told that it exists")


def after_gotack(case: Case, row: Row) -> None:
    """GOTACK and ACKHOLDERS confirm a copy only if the node has one. They end a dummy ack, so their
    sender must have the job, or have had it in the batch that received the question, which may have
    waited for the disk."""
    if row.cause == "gotack" and not row.detail.startswith("known"):
        return
    job = case.job(row.job)
    case.check("S2")
    copy = job.copies.get(row.node)
    gone = job.dropped.get(row.node)
    had_it = gone == row.time or (gone is not None and case.obligations.has_disk)
    if (copy is None or copy.is_dummy) and not had_it:
        _report(case, row, "confirms an ack for a copy that it does not have")
