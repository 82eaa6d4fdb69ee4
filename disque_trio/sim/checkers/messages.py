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
"""The job is queued elsewhere. A holder that has it queued too may keep it."""
WORKING: Final = "working"
"""A worker has the job: no node keeps it queued."""
POSTPONED: Final = "postponed"
"""The job waits after a NACK."""
ACK: Final = "ack"
"""The job is acknowledged or deleted."""
STATE: Final = "state"
"""The job is dead, or has been redriven."""
_OF_ANOTHER_STAY: Final = {QUEUED, WORKING, POSTPONED}
"""Sent by a holder that has the job queued or delivered, or knows that it waits. The receiver
begins a new period."""
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
    """A message about a job leaves."""
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
    """DELJOB. A FASTACK of a job that is unknown here is sent to all nodes."""
    _send_announcement(case, row)
    job = case.job(row.job)
    if job.may_delete.get(row.node) == ASKED and row.node not in job.copies:
        record_fastack(case, job, row, row.node)


def _send_setack(case: Case, row: Row) -> None:
    """SETACK, to a holder or in answer to one."""
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
    """REPLJOB or YOURJOBS."""
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
    """The job leaves the core: note whose periods began anew with its stay in the giver's queue."""
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
    """GOTACK."""
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
    """By job: the age in milliseconds that the receiver computes from the remaining life, which the
    message has in seconds plus one.
    """
    ages: Bases = {}
    for job_id in jobs_in(row):
        base = _base_of(case.job(job_id), row)
        ages[job_id] = None if base is None else ((base - row.mono) // 1000 + 1) * 1000
    return ages


def _base_of(job: Job, row: Row) -> int | None:
    copy = job.copies.get(row.node)
    if copy is not None:
        # A message of the batch in which it has died, or was redriven, may be older than that.
        return None if copy.left_since >= _made_at(job, row) else copy.base
    give = _last_give(job, row.node, row.peer)
    return None if give is None else give.base


def _last_give(job: Job, giver: str, receiver: str) -> Give | None:
    """The last that is under way."""
    ways = (give for give in reversed(job.gives) if (give.node, give.receiver) == (giver, receiver))
    return next(ways, None)


def _made_at(job: Job, row: Row) -> Micros:
    """When a copy was made that is sent now: one in YOURJOBS when the job left the queue."""
    give = _last_give(job, row.node, row.peer) if row.cause == "yourjobs" else None
    return row.time if give is None else give.time


def on_recv(case: Case, row: Row) -> None:
    """A message about a job has come. On a hostile link it may come once more."""
    flights = case.flights
    flight = flights.pop(row.ref, None) if case.obligations.is_stream else flights.get(row.ref)
    follow = _RECEIVING.get(row.cause)
    if follow is None:
        return
    if _is_sender_new(case, row):
        follow = _RECEIVING_FROM_UNKNOWN.get(row.cause, _ignore)
    follow(case, row, flight)


def _ignore(_case: Case, _row: Row, _flight: Flight | None) -> None:
    """The sender is unknown to the receiver, which ignores the message."""


def _note_arrival(case: Case, row: Row, _flight: Flight | None) -> None:
    """Only that it has come: it is not known whether the receiver knows the sender."""
    key = (row.peer, row.node, SORTS[row.cause])
    case.job(row.job).announcements.setdefault(key, Announcement(sent=row.time)).got_at = row.time


def _take_state(case: Case, row: Row, flight: Flight | None) -> None:
    """JOBSTATE: a holder knows that the job is dead, or has been redriven."""
    _note_arrival(case, row, flight)
    _learn_of_copy(case, row, flight)


def _take_copies(case: Case, row: Row, flight: Flight | None) -> None:
    """REPLJOB or YOURJOBS: the node may make a record. Of several of a kind in a batch it takes
    the first that it does not refuse, and with the first of all it begins a new list of holders."""
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
        if row.node not in job.copies or not is_disk_faulty:
            _learn_list(row, job, holders)
        else:
            # A node in trouble with its disk learns nothing new.
            job.perhaps_listed.setdefault(row.node, []).extend(holders)


def _note_incoming(
    case: Case, row: Row, job: Job, sent: tuple[Micros, Micros], base: int | None
) -> None:
    """`sent`: when the message was made, and when it was sent."""
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
    """May the node have refused copies, ignored the sender, or had a copy already, until that
    changed in the middle of the batch, of which the first copy was sent `since` then?"""
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
    """HOLDERS: a node with a copy learns of other holders."""
    _learn_of_copy(case, row, flight)
    for job_id, holders in _lists_in(row):
        job = case.job(job_id)
        copy = job.copies.get(row.node)
        if _is_coming(job, row) if copy is None else not copy.is_dummy:
            _learn_list(row, job, holders)


def _take_confirmation(case: Case, row: Row, _flight: Flight | None) -> None:
    """GOTACK."""
    job = case.job(row.job)
    is_known = row.detail.startswith("known")
    if is_known:
        _list(row, job, row.peer)
    if is_known or (row.node, row.peer) in job.asked_gc:
        job.asked_gc[row.node, row.peer] = 2


def _take_confirming_list(case: Case, row: Row, _flight: Flight | None) -> None:
    """ACKHOLDERS: a confirmation, and the holders that its sender knows."""
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
    """A node shows that it has a copy."""
    job = case.jobs.get(row.job) or case.job(row.job)
    copy = job.copies.get(row.node)
    if copy is not None and copy.is_acked:
        case.mark("setack.answers")
        if not copy.is_dummy and row.cause != "gotjob":
            # The collection waits for it from now on.
            _list(row, job, row.peer)
    elif copy is not None or _is_coming(job, row):
        _list(row, job, row.peer)


def _is_coming(job: Job, row: Row) -> bool:
    """Has a copy come earlier in this batch? Its record follows when the whole batch has come."""
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
    """By job: the holders that REPLJOB or YOURJOBS names."""
    lists = fields(row.detail).get("holders", "").split(";")
    for at, job_id in enumerate(jobs_in(row)):
        holders = lists[at] if at < len(lists) else ""
        yield job_id, [holder for holder in holders.split(",") if holder]


def _learn_list(row: Row, job: Job, holders: list[str]) -> None:
    """The row's node learns of holders: those named, the receiver of a copy, and the giver of a job
    with at least one delivery, which keeps its copy."""
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
