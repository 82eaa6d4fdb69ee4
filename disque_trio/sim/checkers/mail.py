"""Folding rows into what is known of each job: messages between nodes (see `history`)."""

from typing import Final

from disque_trio.sim.checkers.case import Case, Flight
from disque_trio.sim.checkers.history import ASKED, settle_fastack
from disque_trio.sim.checkers.records import Job, Notice
from disque_trio.sim.rows import Row

QUEUED: Final = "queued"
"""The job is queued elsewhere. A holder that has it queued too may keep it."""
WORKING: Final = "working"
"""Somebody has it in hand: nobody keeps it queued."""
ACK: Final = "ack"
"""Messages that tell a holder that nobody shall work on it any more."""
_TELLING: Final = ("willqueue", "gotjob")
"""Messages that show that their sender has a copy."""
SORTS: Final = {"queued": QUEUED, "working": WORKING, "setack": ACK, "deljob": ACK}


def on_send(case: Case, row: Row) -> None:
    """A message about a job leaves."""
    case.note_row("send")
    if case.world.strangers and (row.node, row.peer) in case.world.strangers:
        case.world.meet(row.node, row.peer, row.time)
    sort = SORTS.get(row.cause)
    bases = None
    if sort is not None:
        notices = case.job(row.job).notices
        key = (row.node, row.peer, sort)
        notice = notices.get(key)
        if notice is None:
            notice = notices[key] = Notice()
        notice.sent = row.time
        if row.cause == "deljob":
            _pass_on(case, row, case.job(row.job))
        elif row.cause == "setack":
            _ask_for_confirmation(case, row, case.job(row.job))
    elif row.cause in {"repljob", "yourjobs"}:
        bases = _bases(case, row)
        _learn_lists(case, row, row.node)
        if row.cause == "repljob":
            _note_copy_sent(case, row)
    elif row.cause == "gotack" and not row.detail.startswith("known"):
        case.job(row.job).disowned[row.node] = row.time
    if row.ref:
        case.flights[row.ref] = Flight(row.time, bases)


def _pass_on(case: Case, row: Row, job: Job) -> None:
    """A FASTACK of a job that is not here goes to everybody."""
    if job.may_delete.get(row.node) == ASKED and row.node not in job.copies:
        settle_fastack(case, job, row, row.node)


def _ask_for_confirmation(case: Case, row: Row, job: Job) -> None:
    """SETACK, to a holder or in answer to one."""
    key = (row.node, row.peer)
    before = job.asked_gc.get(key)
    if before is None:
        job.asked_gc[key] = 1
    else:
        case.mark("setack.repeated")
    job.gc_holders[row.node] = number_in(row.detail, "holders")
    copy = job.copies.get(row.node)
    if copy is not None and copy.acked_by == "setack":
        case.mark("setack.takeover")


def _note_copy_sent(case: Case, row: Row) -> None:
    job = case.job(row.job)
    if row.peer in job.sent_to:
        case.mark("widen.resent")
    elif job.born is not None and row.time > job.born and job.sent_to:
        case.mark("widen.added")
    job.sent_to[row.peer] = None


def jobs_in(row: Row) -> list[str]:
    """The jobs that a message is about."""
    if row.job:
        return [row.job]
    _, _, rest = row.detail.partition("jobs=")
    return rest.partition(" ")[0].split(",") if rest else []


def number_in(detail: str, name: str) -> int:
    """The number that a detail gives for a name; 0 if it gives none."""
    _, _, rest = f" {detail}".partition(f" {name}=")
    value = rest.partition(" ")[0]
    return int(value) if value.isdigit() else 0


def _bases(case: Case, row: Row) -> dict[str, int | None]:
    """What the receiver will reckon from: the life that is left, in seconds plus one.

    Given as how much of its life the copy has behind it, in milliseconds.
    """
    ages: dict[str, int | None] = {}
    for job_id in jobs_in(row):
        base = _base_of(case.job(job_id), row)
        ages[job_id] = None if base is None else ((base - row.mono) // 1000 + 1) * 1000
    return ages


def _base_of(job: Job, row: Row) -> int | None:
    copy = job.copies.get(row.node)
    if copy is not None:
        return copy.base
    for give in reversed(job.gives):
        if (give.node, give.receiver) == (row.node, row.peer):
            return give.base
    return None


def on_recv(case: Case, row: Row) -> None:
    """A message about a job has come."""
    flight = case.flights.pop(row.ref, None)
    sort = SORTS.get(row.cause)
    if row.cause in {"repljob", "yourjobs"}:
        _take_copies(case, row, flight)
    elif case.world.may_be_strangers(row.node, row.peer, row.time):
        if sort is not None:
            # Whether it is heard nobody knows.
            key = (row.peer, row.node, sort)
            case.job(row.job).notices.setdefault(key, Notice(sent=row.time)).got_at = row.time
        elif row.cause == "gotack":
            _take_confirmation(row, case.job(row.job))
    elif sort is not None:
        _take_notice(case, row, sort, flight)
    elif row.cause in _TELLING:
        _hear_of_copy(case, row, case.job(row.job))
    elif row.cause == "gotack":
        _take_confirmation(row, case.job(row.job))


def _take_copies(case: Case, row: Row, flight: Flight | None) -> None:
    """REPLJOB or YOURJOBS: the node may make a record of it. Of several in a batch it takes the
    first, and with it begins a new list of holders."""
    bases = {} if flight is None or flight.bases is None else flight.bases
    for job_id in jobs_in(row):
        base = bases.get(job_id)
        job = case.job(job_id)
        last = job.incoming.get(row.node)
        if last is None or last[0] != row.time:
            job.incoming[row.node] = (row.time, None if base is None else row.mono + base)
            if row.node not in job.copies:
                job.listed.pop(row.node, None)
    if row.node not in case.job(row.job).copies or not case.world.was_disk_unwell(
        row.node, row.time
    ):
        # A node in trouble with its disk learns nothing new.
        _learn_lists(case, row, row.node)


def _take_confirmation(row: Row, job: Job) -> None:
    """GOTACK."""
    is_known = row.detail.startswith("known")
    if is_known:
        _list(job, row.node, row.peer)
    if is_known or (row.node, row.peer) in job.asked_gc:
        job.asked_gc[row.node, row.peer] = 2


def _take_notice(case: Case, row: Row, sort: str, flight: Flight | None) -> None:
    job = case.job(row.job)
    key = (row.peer, row.node, sort)
    notice = job.notices.get(key)
    if notice is None:
        notice = job.notices[key] = Notice(sent=row.time)
    sent = notice.sent if flight is None else flight.time
    notice.got = max(notice.got, sent)
    notice.got_at = row.time
    copy = job.copies.get(row.node)
    if sort is not ACK:
        _hear_of_copy(case, row, job)
    elif copy is not None:
        copy.told_at = row.time
    elif row.cause == "deljob":
        job.disowned[row.node] = row.time


def _hear_of_copy(case: Case, row: Row, job: Job) -> None:
    """A node shows that it has a copy."""
    copy = job.copies.get(row.node)
    if copy is not None and copy.is_acked:
        case.mark("setack.answers")
    elif copy is not None:
        _list(job, row.node, row.peer)


def _list(job: Job, node: str, holder: str) -> None:
    listed = job.listed.get(node)
    if listed is None:
        listed = job.listed[node] = {}
    listed[holder] = None


def _learn_lists(case: Case, row: Row, node: str) -> None:
    """REPLJOB and YOURJOBS tell who has copies. Who gets one has one, and who gives a job to be
    delivered at least once keeps one."""
    _, _, rest = row.detail.partition("holders=")
    lists = rest.partition(" ")[0].split(";")
    for job_id, holders in zip(jobs_in(row), lists, strict=False):
        job = case.job(job_id)
        for holder in holders.split(","):
            _list(job, node, holder)
        if row.kind == "send" or (row.cause == "yourjobs" and job.is_at_least_once):
            _list(job, node, row.peer)


def on_lost(case: Case, row: Row) -> None:
    """A message will never come."""
    flight = case.flights.pop(row.ref, None)
    sort = SORTS.get(row.cause)
    for job_id in jobs_in(row):
        job = case.job(job_id)
        case.mark("message.lost")
        if sort is not None:
            key = (row.node, row.peer, sort)
            notice = job.notices.setdefault(key, Notice(sent=row.time))
            notice.lost = max(notice.lost, row.time if flight is None else flight.time)
        else:
            job.losses[row.cause] = None
    if flight is not None and flight.bases:
        for job_id in flight.bases:
            case.job(job_id).losses[row.cause] = None
