"""Unique jobs: at most one job with a key lives (S24), and an ADDJOB returns the id of a job that
lived, or whose key was kept, while it ran (S25).

Both are judged in calm, except that the returned id must always be one of a job with this key. Jobs
with one key that were added on two sides of a cut meet after it (L11), and a job yields only if an
earlier one lives (S27).
"""

from collections.abc import Callable
from typing import Final
from zlib import crc32

from disque_trio.sim.checkers import silence, succession
from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.client_events import withdraw
from disque_trio.sim.checkers.obligations import GRAIN, MILLI, SECOND
from disque_trio.sim.checkers.records import Add, Job
from disque_trio.sim.checkers.succession import age
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine import key_ordering
from disque_trio.tracing.bodies import checksum
from disque_trio.tracing.details import fields, numbers
from disque_trio.tracing.rows import Row

MEETS: Micros = 5 * SECOND
"""In calm, two jobs with one key meet within this time."""
_KEEPING: Final = ("acked", "fastack", "expired")
"""Ends after which a key is kept."""
Steps = tuple[Callable[[Case, Row, Job], None], ...]


def after_hold(case: Case, row: Row, job: Job) -> None:
    """S24: no other job with the key lives when one is added."""
    if row.cause != "add" or not job.first_record or job.key is not None:
        return
    record = numbers(job.first_record)
    if "key" not in record:
        return
    job.key = (job.queue, record["key"])
    job.keep = record.get("keep", 0) * MILLI
    living = case.keyed.setdefault(job.key, {})
    if succession.follows(job):
        others = [case.job(id) for id in living]
        succession.begin(case, job, [other for other in others if _lives(case, other)])
        living[job.id] = None
        return
    for other in [case.jobs.get(id) for id in living]:
        if other is not None and _lives(case, other):
            _note_twins(case, row, other, job)
        elif (
            other is not None
            and other.ended is not None
            and not _is_kept(case, row, other)
            # A node may have lost the acknowledgement.
            and not _has_live_copy(case, other)
        ):
            del living[other.id]
    case.check("S24")
    living[job.id] = None


def _note_twins(case: Case, row: Row, first: Job, second: Job) -> None:
    case.mark("unique.twins")
    first.twins.append(second)
    second.twins.append(first)
    is_judged = case.world.is_calm(row.time, row.time) and not case.is_live
    if is_judged and silence.is_one_awaited(case, row.node, second.id, first.copies):
        detail = f"{first.id} has the same key, and lives"
        case.violate("S24", detail, second.id, row.node)


def _is_kept(case: Case, row: Row, job: Job) -> bool:
    """S24: a job is not added either while a job that has ended keeps the key by its KEEP."""
    if job.ended is None or not job.keep or job.ended_by not in _KEEPING:
        return False
    if _is_freed(case, row, job):
        return False
    is_kept = row.time < job.ended + case.obligations.shortest(job.keep)
    is_judged = case.world.is_calm(job.ended, row.time) and not case.is_live
    holders = [*job.copies, *job.dropped]
    if is_kept and is_judged and silence.is_one_awaited(case, row.node, row.job, holders):
        case.violate("S24", f"its key is kept by {job.id}", row.job, row.node)
    return is_kept


def _is_freed(case: Case, row: Row, job: Job) -> bool:
    """Was there a FASTACK at the node of the job's ADDJOB? Other nodes treat it like a failed
    ADDJOB. That node keeps the key if it had a copy, but may have reported before that the job
    lives."""
    at_origin = [a for a in job.acks if a.kind == "fastack" and a.node == job.origin]
    if not at_origin:
        return False
    asking = [
        add.invoked for add in case.adds.values() if add.node == row.node and add.options.unique
    ]
    had_copy = job.dropped.get(job.origin) == at_origin[0].time
    return not had_copy or any(invoked <= at_origin[0].time for invoked in asking)


def _lives(case: Case, job: Job) -> bool:
    """Does a running node have a copy that is not acknowledged, and has the job not ended? A job
    whose ADDJOB failed does not count, even where the DELJOB has not arrived."""
    return job.ended is None and not _has_failed(job) and _has_live_copy(case, job)


def _has_failed(job: Job) -> bool:
    return job.may_delete.get(job.origin) == "add-failed" and not job.is_added


def _has_live_copy(case: Case, job: Job) -> bool:
    return any(
        case.world.is_up(copy.node) and not copy.is_acked and not copy.is_dummy
        for copy in job.copies.values()
    )


def on_deliver(case: Case, job: Job) -> None:
    """A job is delivered for the first time."""
    if any(twin.deliveries for twin in job.twins):
        case.mark("unique.both_delivered")
    since = case.now - MEETS
    if job.twins:
        case.check("L11")
    for twin in job.twins:
        if not twin.deliveries and _lives(case, twin) and not case.is_live:
            _judge_meeting(case, job, twin, since)


def _judge_meeting(case: Case, job: Job, twin: Job, since: Micros) -> None:
    """L11: of two jobs that no worker has taken, and that could have met, one has been removed."""
    first, second = sorted((job, twin), key=age)
    queued = second.first_queueing
    if queued is None or second.requeued or second.nacked or not first.is_at_least_once:
        return
    begun = max(queued.time, *(each.add.answered for each in (job, twin) if each.add is not None))
    if begun < since and job.is_added and twin.is_added and case.world.is_calm(since, case.now):
        case.violate("L11", f"{twin.id} has the same key, and was not delivered", job.id)


def before_ack(case: Case, row: Row, job: Job) -> None:
    """S27: a job yields only to an earlier one that lives, as far as any node can know. A job that
    yields or is cancelled does not keep its key."""
    if row.cause in {"cancel", "yielded", "replaced"}:
        job.keep = 0
    if row.cause == "replaced":
        succession.before_ack(case, row, job)
    if row.cause != "yielded":
        return
    case.mark("unique.yielded")
    if case.is_live or job.key is None:
        return
    case.check("S27")
    if succession.follows(job):
        case.violate("S27", "yields, and was to follow that job", job.id, row.node)
    since = _asked_since(case, row, job.key)
    others = [case.job(id) for id in case.keyed[job.key]] + job.twins
    if not any(age(other) < age(job) and _lived(case, other, since) for other in others):
        case.violate("S27", "yields, and no earlier job with its key lives", job.id, row.node)


def after_keyclaim(case: Case, row: Row) -> None:
    """A node asks all others about a key, for a client or for a job that may yield."""
    if row.job:
        return
    values = fields(row.detail, "key")
    search, _, number = values["number"].partition("/")
    searches = case.rounds.setdefault((row.node, (row.queue, crc32(values["key"].encode()))), {})
    if searches.get(search, ("", 0))[0] != number:
        searches[search] = (number, row.time)


def on_keycancel(case: Case, row: Row) -> None:
    """A node frees the key of a job that is replaced, even if the job has ended in another way."""
    job = case.jobs.get(row.job)
    if job is not None:
        job.key_freed[row.node] = None


def _asked_since(case: Case, row: Row, key: tuple[str, int]) -> Micros:
    """Return when the node began to ask whether earlier jobs have ended: the start of the last
    round of any search that may still run. In a trace without messages, return the earliest
    possible time."""
    earliest = row.time - case.obligations.longest(key_ordering.RECONCILES_WITHIN * MILLI)
    searches = case.rounds.get((row.node, key), {})
    begun = [begun for _, begun in searches.values() if begun >= earliest]
    return min(begun, default=row.time - 4 * case.obligations.latency - GRAIN)


def _lived(case: Case, job: Job, since: Micros) -> bool:
    """Does the job live, or did it end or move after `since`, when its node may have answered that
    it lives? It does not count if any node has had it as acknowledged since before that."""
    copies = [copy for copy in job.copies.values() if case.world.is_up(copy.node)]
    if any(copy.is_acked and copy.acked_at < since for copy in copies):
        return False
    has_just_ended = job.ended is not None and job.ended >= since
    # A job with at-most-once delivery is on no node while it moves.
    has_just_moved = any(sent >= since for sent in job.transfers.values())
    lives = any(not copy.is_acked and not copy.is_dummy for copy in copies)
    return lives or has_just_ended or has_just_moved


def steps(case: Case, row: Row, job: Job, usual: Steps) -> Steps:
    """Return the steps for the row of a job. An ADDJOB that returns the id of another job has
    created none."""
    return (_on_same,) if row.kind == "add.ok" and _is_another(case, row, job) else usual


def _is_another(case: Case, row: Row, job: Job) -> bool:
    """Did the ADDJOB return the id of a job that another one has added?"""
    add = case.adds.get((row.client, row.ref))
    if add is None or add.options.unique is None:
        return False
    if job.add is not None or not job.first_record or add.options.body is None:
        return job.add is not add
    return numbers(job.first_record).get("body") != checksum(add.options.body)


def _on_same(case: Case, row: Row, job: Job) -> None:
    """S25: the producer received the id of another job."""
    add = case.adds.pop((row.client, row.ref))
    add.outcome, add.answered, add.job = "ok", row.time, job.id
    withdraw(case, add)
    case.mark("unique.returned")
    _judge(case, row, add, job)
    if add.options.if_exists == "reject":
        case.violate("S25", "IFEXISTS reject, and answered with its id", job.id, row.node)
    succession.on_returned(case, row, add, job)


def on_refused(case: Case, row: Row) -> None:
    """S25: an error DUPLICATE contains an id, too."""
    add = case.adds.get((row.client, row.ref))
    words = row.detail.split()
    if row.cause == "DUPLICATE" and add is not None and len(words) == 3:
        case.mark("unique.refused")
        _judge(case, row, add, case.job(words[1]))
        if add.options.if_exists != "reject":
            case.violate("S25", "refused without IFEXISTS reject", words[1], row.node)


def _judge(case: Case, row: Row, add: Add, job: Job) -> None:
    case.check("S25")
    if not case.has_node_rows or case.is_live:
        return
    if job.created_at is None:
        case.violate("S25", "an ADDJOB is answered with the id of no job", job.id, row.node)
    elif job.key != (add.queue, add.options.unique):
        case.violate("S25", "an ADDJOB is answered with a job of another key", job.id, row.node)
    elif case.world.is_calm(add.invoked, row.time):
        _judge_life(case, row, add, job)


def _judge_life(case: Case, row: Row, add: Add, job: Job) -> None:
    ends = _ended_at(case, job)
    if ends is not None and job.keep:
        ends += case.obligations.longest(job.keep) + GRAIN + 2 * case.obligations.latency
    replaced = succession.replaced_until(case, job) if "keep=" in job.first_record else None
    if ends is not None and replaced is not None:
        # A node that learns of its end before it learns that the key is free keeps the key until
        # then.
        ends = max(ends, replaced) + GRAIN + 4 * case.obligations.latency
    if ends is not None and ends < add.invoked:
        case.violate("S25", "an ADDJOB is answered with a job that had ended", job.id, row.node)
    if _has_failed(job) and job.dropped.get(job.origin, add.invoked) < add.invoked:
        case.violate("S25", "an ADDJOB is answered with a job that failed", job.id, row.node)


def _ended_at(case: Case, job: Job) -> Micros | None:
    """Return when the key became free, not counting KEEP. DELJOB of a client deletes one copy, and
    a FASTACK may not reach all: the job has its key as long as another copy lives."""
    if job.ended is None or job.ended_by not in {"deljob", "fastack"}:
        return job.ended
    if _has_live_copy(case, job):
        return None
    acked = [copy.acked_at for copy in job.copies.values()]
    return max(job.ended, job.first_ack or job.ended, *job.dropped.values(), *acked)
