"""Records of jobs: messages between nodes (see `history`)."""

from collections.abc import Callable, Iterator
from typing import Final

from disque_trio.sim.checkers import meetings
from disque_trio.sim.checkers.case import Bases, Case, Flight
from disque_trio.sim.checkers.history import ASKED, record_fastack
from disque_trio.sim.checkers.records import Announcement, Give, Incoming, Job
from disque_trio.sim.checkers.refusals import was_short_of_memory
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.details import fields, jobs_in, number
from disque_trio.tracing.rows import Row

QUEUED: Final = "queued"
"""Another node has the job queued. A holder that has it queued too may keep it."""
WORKING: Final = "working"
"""A worker has the job: no node keeps it in a queue."""
POSTPONED: Final = "postponed"
"""The job waits after a NACK."""
ACK: Final = "ack"
"""The job is acknowledged or deleted."""
STATE: Final = "state"
"""The job is dead, or has been redriven."""
_OF_ANOTHER_STAY: Final = {QUEUED, WORKING, POSTPONED}
"""Messages of a holder that has the job queued, leased, or delayed. The receiver begins a new
period."""
SORTS: Final = {
    "queued": QUEUED,
    "working": WORKING,
    "postponed": POSTPONED,
    "setack": ACK,
    "result": ACK,
    "deljob": ACK,
    "jobstate": STATE,
}


def on_send(case: Case, row: Row) -> None:
    """A node sends a message about a job."""
    case.sends += 1
    unknown_nodes = case.world.unknown_nodes
    if unknown_nodes and (row.node, row.peer) in unknown_nodes:
        case.world.meet(row.node, row.peer, row.time)
    follow = _SENDING.get(row.cause)
    bases = None if follow is None else follow(case, row)
    if row.ref:
        case.flights[row.ref] = (row.time, bases)


def _send_announcement(case: Case, row: Row) -> None:
    """An announcement of a lease or an ack is sent."""
    announcements = (case.jobs.get(row.job) or case.job(row.job)).announcements
    key = (row.node, row.peer, SORTS[row.cause])
    announcement = announcements.get(key)
    if announcement is None:
        announcement = announcements[key] = Announcement()
    announcement.sent = row.time


def _send_deljob(case: Case, row: Row) -> None:
    """A node sends DELJOB. A node without the job sends it to all nodes for a FASTACK."""
    _send_announcement(case, row)
    job = case.job(row.job)
    if job.may_delete.get(row.node) == ASKED and row.node not in job.copies:
        record_fastack(case, job, row, row.node)


def _send_setack(case: Case, row: Row) -> None:
    """A node sends SETACK, to a holder or as an answer to one."""
    _send_announcement(case, row)
    job = case.job(row.job)
    key = (row.node, row.peer)
    before = job.asked_gc.get(key)
    if before is None:
        job.asked_gc[key] = 1
    else:
        case.mark("setack.repeated")
    job.gc_holders[row.node] = number(row.detail, "holders")
    copy = job.copies.get(row.node)
    if copy is not None and copy.acked_by == "setack":
        case.mark("setack.takeover")


def _send_copies(case: Case, row: Row) -> Bases:
    """A node sends REPLJOB or YOURJOBS."""
    bases = _bases(case, row)
    for job_id, holders in _lists_in(row):
        job = case.job(job_id)
        _learn_list(row, job, holders)
        if row.cause == "yourjobs":
            job.transfers[row.node, row.peer] = row.time
            _note_departure(case, row, job)
    if row.cause == "repljob":
        _note_copy_sent(case, row)
    return bases


def _note_departure(case: Case, row: Row, job: Job) -> None:
    """The job leaves the core: record the nodes whose periods restarted when it was queued at its
    sender."""
    if case.world.healed is None or case.world.in_core(row.peer):
        return
    copy = job.copies.get(row.node)
    stay = None if copy is None else copy.last_queueing
    if stay is None:
        return
    for node in [each.node for each in stay.chain()]:
        job.put_off[node] = row.time
    for holder in job.copies:
        if job.announcement(row.node, holder, QUEUED).sent >= stay.time:
            job.put_off[holder] = row.time


def _send_confirmation(case: Case, row: Row) -> None:
    """A node sends GOTACK."""
    if not row.detail.startswith("known"):
        case.job(row.job).not_held[row.node] = row.time


_SENDING: Final[dict[str, Callable[[Case, Row], Bases | None]]] = {
    "queued": _send_announcement,
    "working": _send_announcement,
    "postponed": _send_announcement,
    "setack": _send_setack,
    "result": _send_setack,
    "deljob": _send_deljob,
    "repljob": _send_copies,
    "yourjobs": _send_copies,
    "gotack": _send_confirmation,
}


def _note_copy_sent(case: Case, row: Row) -> None:
    job = case.job(row.job)
    if row.peer in job.sent_to:
        case.mark("widen.resent")
    elif job.created_at is not None and row.time > job.created_at and job.sent_to:
        case.mark("widen.added")
    job.sent_to[row.peer] = None


def _bases(case: Case, row: Row) -> Bases:
    """Return, by job, the age in milliseconds that the receiver computes from the remaining life in
    the message, which is in seconds plus one."""
    ages: Bases = {}
    for job_id in jobs_in(row):
        base = _base_of(case.job(job_id), row)
        ages[job_id] = None if base is None else ((base - row.mono) // 1000 + 1) * 1000
    return ages


def _base_of(job: Job, row: Row) -> int | None:
    copy = job.copies.get(row.node)
    if copy is not None:
        # If the job died or was redriven in this batch, the message may have been made before that.
        return None if copy.left_since >= _made_at(job, row) else copy.base
    give = _last_give(job, row.node, row.peer)
    return None if give is None else give.base


def _last_give(job: Job, giver: str, receiver: str) -> Give | None:
    """Return the last transfer that is in transit."""
    ways = (give for give in reversed(job.gives) if (give.node, give.receiver) == (giver, receiver))
    return next(ways, None)


def _made_at(job: Job, row: Row) -> Micros:
    """Return when a copy was made that is now sent: for YOURJOBS, when the job left the queue."""
    give = _last_give(job, row.node, row.peer) if row.cause == "yourjobs" else None
    return row.time if give is None else give.time


def on_recv(case: Case, row: Row) -> None:
    """A node receives a message about a job. A hostile link may deliver it twice."""
    flights = case.flights
    flight = flights.pop(row.ref, None) if case.obligations.is_stream else flights.get(row.ref)
    follow = _RECEIVING.get(row.cause)
    if follow is None:
        return
    if _is_sender_new(case, row):
        follow = _RECEIVING_FROM_UNKNOWN.get(row.cause, _ignore)
    follow(case, row, flight)


def _ignore(_case: Case, _row: Row, _flight: Flight | None) -> None:
    """Ignore the message, as the receiver does: it does not know the sender."""


def _note_arrival(case: Case, row: Row, _flight: Flight | None) -> None:
    """Record only the arrival: it is unknown whether the receiver knows the sender."""
    key = (row.peer, row.node, SORTS[row.cause])
    case.job(row.job).announcements.setdefault(key, Announcement(sent=row.time)).got_at = row.time


def _take_state(case: Case, row: Row, flight: Flight | None) -> None:
    """JOBSTATE: a holder reports that the job is dead, or was redriven."""
    _note_arrival(case, row, flight)
    _learn_of_copy(case, row, flight)


def _take_copies(case: Case, row: Row, flight: Flight | None) -> None:
    """REPLJOB or YOURJOBS: the node may make a record. Of several copies of one kind in a batch it
    keeps the first one that it does not refuse. The first of all starts a new list of holders."""
    bases = {} if flight is None or flight[1] is None else flight[1]
    is_disk_faulty = case.world.was_disk_faulty(row.node, row.time)
    for job_id, holders in _lists_in(row):
        age = bases.get(job_id)
        job = case.job(job_id)
        is_first = not _is_coming(job, row)
        sent = row.time if flight is None else flight[0]
        give = _last_give(job, row.peer, row.node) if row.cause == "yourjobs" else None
        made = sent if give is None else min(sent, give.time)
        _note_incoming(case, row, job, (made, sent), None if age is None else row.mono + age)
        if is_first and row.node not in job.copies:
            job.listed.pop(row.node, None)
        is_known = not case.world.has_new_name(row.peer, sent)
        if row.node not in job.copies or (is_known and not is_disk_faulty):
            _learn_list(row, job, holders)
        else:
            # A node learns nothing new while its disk is faulty, or from the former identity of one
            # that has lost its name since.
            job.perhaps_listed.setdefault(row.node, []).extend(holders)


def _note_incoming(
    case: Case, row: Row, job: Job, sent: tuple[Micros, Micros], base: int | None
) -> None:
    """Record a copy in transit. `sent` has the times when it was made and sent."""
    last = job.incoming.get((row.node, row.cause))
    if last is None or last.time != row.time:
        job.incoming[row.node, row.cause] = Incoming(row.time, row.peer, *sent, base, base)
        return
    last.first_sent, last.sent = min(last.first_sent, sent[0]), max(last.sent, sent[1])
    if last.base is None or base is None or last.lowest_base is None:
        return
    if _may_take_later_one(case, row, job, last.first_sent):
        last.base, last.lowest_base = max(last.base, base), min(last.lowest_base, base)


def _may_take_later_one(case: Case, row: Row, job: Job, since: Micros) -> bool:
    """May the node have kept a later copy of the batch, whose first one was sent at `since`? It may
    have refused copies, ignored the sender, or had a copy, until that changed within the batch."""
    world = case.world
    return (
        row.node in job.copies
        or world.queue_pauses.is_possible(row.node, job.queue)
        or row.node in world.have_left
        or was_short_of_memory(case, row.node, since, row.time)
        or _is_sender_new(case, row)
    )


def _is_sender_new(case: Case, row: Row) -> bool:
    """May the receiver not know the sender yet?"""
    world = case.world
    is_possible = bool(world.unknown_nodes or world.renamed)
    return is_possible and world.may_be_unknown(row.node, row.peer, row.time)


def _take_list(case: Case, row: Row, flight: Flight | None) -> None:
    """HOLDERS: a node with a copy receives names of other holders."""
    _learn_of_copy(case, row, flight)
    for job_id, holders in _lists_in(row):
        job = case.job(job_id)
        copy = job.copies.get(row.node)
        if _is_coming(job, row) if copy is None else not copy.is_dummy:
            _learn_list(row, job, holders)


def _take_confirmation(case: Case, row: Row, _flight: Flight | None) -> None:
    """A node receives GOTACK."""
    job = case.job(row.job)
    is_known, key = row.detail.startswith("known"), (row.node, row.peer)
    if is_known:
        _list(row, job, row.peer)
    if is_known or key in job.asked_gc or key in job.asked_before:
        job.asked_gc[key] = 2


def _take_confirming_list(case: Case, row: Row, _flight: Flight | None) -> None:
    """ACKHOLDERS: a confirmation, with the holders that its sender has listed."""
    job = case.job(row.job)
    copy = job.copies.get(row.node)
    if copy is not None and copy.is_acked and not copy.is_dummy:
        for _, holders in _lists_in(row):
            _learn_list(row, job, holders)
    _list(row, job, row.peer)
    job.asked_gc[row.node, row.peer] = 2


def _take_announcement(case: Case, row: Row, flight: Flight | None) -> None:
    """An announcement of a lease or an ack has arrived."""
    job = case.jobs.get(row.job) or case.job(row.job)
    sort = SORTS[row.cause]
    key = (row.peer, row.node, sort)
    announcement = job.announcements.get(key)
    if announcement is None:
        announcement = job.announcements[key] = Announcement(sent=row.time)
    sent = announcement.sent if flight is None else flight[0]
    announcement.got = max(announcement.got, sent)
    announcement.got_at = row.time
    copy = job.copies.get(row.node)
    if copy is not None and sort in _OF_ANOTHER_STAY:
        copy.begin_period(row.time)
    if sort is not ACK:
        _learn_of_copy(case, row, flight)
    elif copy is not None:
        copy.ack_received_at = row.time
    elif row.cause == "deljob" and not _is_coming(job, row):
        job.not_held[row.node] = row.time


def _learn_of_copy(case: Case, row: Row, _flight: Flight | None) -> None:
    """The sender has a copy, as its message shows."""
    job = case.jobs.get(row.job) or case.job(row.job)
    copy = job.copies.get(row.node)
    if copy is not None and copy.is_acked:
        case.mark("setack.answers")
        if not copy.is_dummy and row.cause != "gotjob":
            # From now on the collection waits for this holder.
            _list(row, job, row.peer)
    elif copy is not None or _is_coming(job, row):
        _list(row, job, row.peer)


def _is_coming(job: Job, row: Row) -> bool:
    """Has a copy arrived earlier in this batch? Its record follows after the whole batch."""
    kinds = [job.incoming.get((row.node, kind)) for kind in ("repljob", "yourjobs")]
    return any(last is not None and last.time == row.time for last in kinds)


_RECEIVING: Final[dict[str, Callable[[Case, Row, Flight | None], None]]] = {
    "repljob": _take_copies,
    "yourjobs": _take_copies,
    "queued": _take_announcement,
    "working": _take_announcement,
    "postponed": _take_announcement,
    "jobstate": _take_state,
    "setack": _take_announcement,
    "result": _take_announcement,
    "deljob": _take_announcement,
    "joberror": _learn_of_copy,
    "willqueue": _learn_of_copy,
    "gotjob": _learn_of_copy,
    "holders": _take_list,
    "gotack": _take_confirmation,
    "ackholders": _take_confirming_list,
    "waiting": meetings.note_demand,
    "needjobs": meetings.note_demand,
}
_RECEIVING_FROM_UNKNOWN: Final[dict[str, Callable[[Case, Row, Flight | None], None]]] = {
    "repljob": _take_copies,
    "yourjobs": _take_copies,
    **dict.fromkeys(SORTS, _note_arrival),
    "gotack": _take_confirmation,
    "ackholders": _take_confirming_list,
    "waiting": meetings.note_possible_demand,
    "needjobs": meetings.note_possible_demand,
}


def _list(row: Row, job: Job, holder: str) -> None:
    listed = job.listed.get(row.node)
    if listed is None:
        listed = job.listed[row.node] = {}
    listed.setdefault(holder, row.time)


def _lists_in(row: Row) -> Iterator[tuple[str, list[str]]]:
    """Yield, by job, the holders that REPLJOB or YOURJOBS names."""
    lists = fields(row.detail).get("holders", "").split(";")
    for at, job_id in enumerate(jobs_in(row)):
        holders = lists[at] if at < len(lists) else ""
        yield job_id, [holder for holder in holders.split(",") if holder]


def _learn_list(row: Row, job: Job, holders: list[str]) -> None:
    """The node of the row lists holders: those named, the receiver of a copy, and the sender of a
    job with at-least-once delivery, which keeps its copy."""
    for holder in holders:
        _list(row, job, holder)
    if row.kind == "send" or (row.cause == "yourjobs" and job.is_at_least_once):
        _list(row, job, row.peer)


def on_lost(case: Case, row: Row) -> None:
    """A message is lost."""
    flight = case.flights.pop(row.ref, None)
    sort = SORTS.get(row.cause)
    for job_id in jobs_in(row):
        job = case.job(job_id)
        case.mark("message.lost")
        if sort is not None:
            key = (row.node, row.peer, sort)
            announcement = job.announcements.setdefault(key, Announcement(sent=row.time))
            sent = row.time if flight is None else flight[0]
            announcement.lost = max(announcement.lost, sent)
            if row.detail == "dropped":
                announcement.swallowed = max(announcement.swallowed, sent)
        else:
            job.losses[row.cause] = None
    if flight is not None and flight[1]:
        for job_id in flight[1]:
            case.job(job_id).losses[row.cause] = None
