"""Followers: jobs added while others with their key lived (IFEXISTS again, replace).

A follower is queued when the earlier jobs have ended, not before (S28) and not long after (L12). A
replaced job ends only when the follower has its copies, and is not served after the reply to the
producer (S29). All but the copies are judged in calm.
"""

from typing import Final

from disque_trio.sim.checkers import silence
from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.obligations import DESYNC, SECOND, Options
from disque_trio.sim.checkers.records import FOREVER, NEVER, Add, Copy, Job
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.bodies import checksum
from disque_trio.tracing.details import numbers
from disque_trio.tracing.rows import Row

_QUEUED_WITHIN: Final[Micros] = 2 * SECOND
"""The node of the follower asks all other nodes each second, and then receives what it missed."""


def follows(job: Job) -> bool:
    """Was the job added although another job with its key lived?"""
    return "follows=" in job.first_record


def begin(case: Case, job: Job, living: list[Job]) -> None:
    """The job was added while these jobs with its key lived."""
    case.mark("unique.followed")
    job.earlier = living
    options = _options(case, job)
    for other in living:
        other.followers.append(job)
        is_waiting = (
            follows(other) and other.first_queueing is None and other.created_at is not None
        )
        if is_waiting and options is not None and options.if_exists == "again":
            _note_second(case, job, other)


def _note_second(case: Case, job: Job, other: Job) -> None:
    """S24: of several ADDJOBs with IFEXISTS again, only one adds a follower."""
    if case.world.is_calm(other.created_at or case.now, case.now) and not case.is_live:
        case.violate("S24", f"{other.id} waits for the end of the same job", job.id, job.origin)


def before_queue(case: Case, row: Row, job: Job) -> None:
    """S28, L12: is the job queued for the first time at the right time?"""
    if not job.earlier or job.first_queueing is not None or row.cause == "enqueue" or case.is_live:
        return
    case.check("S28")
    living = [
        other
        for other in job.earlier
        if _lives(case, other) and silence.is_one_awaited(case, row.node, job.id, other.copies)
    ]
    if living and case.world.is_calm(job.created_at or row.time, row.time):
        case.violate("S28", f"{living[0].id} has its key, and lives", job.id, row.node)
    _judge_wait(case, job)


def finish(case: Case) -> None:
    """L12: at the end of the run, no follower is overdue."""
    for job in case.jobs.values():
        if job.earlier and job.first_queueing is None and job.ended is None and job.copies:
            _judge_wait(case, job)


def _judge_wait(case: Case, job: Job) -> None:
    """L12: the job was not overdue after the earlier jobs ended, in calm."""
    since = waits_until(job)
    if since is None or job.options is None or not job.is_added or case.is_live:
        return
    since = max(since, job.add.answered if job.add is not None else since)
    if job.created_at is not None:
        since = max(since, job.created_at + case.obligations.longest(job.options.delay))
    since = max(since, _asked_by(case, job, job.options))
    if not case.world.is_calm(since, case.now) or case.obligations.has_tail:
        return
    case.check("L12")
    if case.now - since > case.obligations.longest(_QUEUED_WITHIN) + 8 * case.obligations.latency:
        waited = (case.now - since) / SECOND
        case.violate("L12", f"not queued for {waited:.3f} s after the earlier job ended", job.id)


def _asked_by(case: Case, job: Job, options: Options) -> Micros:
    """Return when a node asks about the earlier jobs at the latest, if the node of the ADDJOB has
    crashed, or the holder to which it left the job: the others ask when the job becomes due
    there."""
    crashes = case.world.crashes
    if job.created_at is None:
        return NEVER
    holders = {job.origin: None, **job.copies, **job.lost_on}
    asking = holders if job.origin in job.dropped else [job.origin]
    if not any(node in crashes and crashes[node].time >= job.created_at for node in asking):
        return NEVER
    crashed = max(crashes[node].time for node in holders if node in crashes)
    due = job.created_at + case.obligations.longest(options.delay)
    return max(crashed, due) + case.obligations.longest(options.retry + DESYNC)


def waits_until(job: Job) -> Micros | None:
    """Return when the last of the earlier jobs ended; None if that is unknown, or one lives."""
    last = NEVER
    for other in job.earlier:
        if other.ended is None or other.ended_by != "acked" or other.is_dead:
            return None
        last = max(last, other.ended)
    return last


def held_until(case: Case, job: Job) -> Micros:
    """Return until when the earlier jobs have held the job back."""
    return max([min(_gone_at(other), case.now) for other in job.earlier], default=NEVER)


def is_held_back(case: Case, job: Job, copy: Copy) -> bool:
    """Does this copy, which its node has not queued yet, wait for an earlier job that lives?"""
    return copy.last_queueing is None and any(_lives(case, other) for other in job.earlier)


def _gone_at(job: Job) -> Micros:
    if job.is_dead:
        return job.state_since
    return FOREVER if job.ended is None else job.ended


def _lives(case: Case, job: Job) -> bool:
    has_failed = job.may_delete.get(job.origin) == "add-failed" and not job.is_added
    if job.ended is not None or job.is_dead or has_failed:
        return False
    return any(
        case.world.is_up(copy.node) and not copy.is_acked and not copy.is_dummy
        for copy in job.copies.values()
    )


def before_serve(case: Case, row: Row, job: Job) -> None:
    """S29: a replaced job is not served after its producer received the reply."""
    if job.lease is not None or case.is_live or case.obligations.has_tail:
        return
    for other in job.followers:
        add = other.add
        if add is None or add.options.if_exists != "replace" or add.answered >= row.time:
            continue
        case.check("S29")
        if case.world.is_calm(add.invoked, row.time):
            case.violate("S29", f"{other.id} has replaced it", job.id, row.node)


def on_returned(case: Case, row: Row, add: Add, job: Job) -> None:
    """S29: an ADDJOB returns the id of another job. In calm, with IFEXISTS replace this is no job
    that no worker has taken; with again it is no job that a worker has, unless a follower waits for
    it."""
    lease = job.lease
    if job.ended is not None or job.is_dead or job.followers or case.is_live:
        return
    if add.options.if_exists == "replace" and lease is None and not follows(job):
        if job.add is None or job.add.answered > add.invoked:
            return
        case.check("S29")
        if case.world.is_calm(job.created_at or add.invoked, row.time):
            case.violate("S29", "is not replaced, and nobody has taken it", job.id, row.node)
    elif add.options.if_exists == "again" and lease is not None:
        case.check("S29")
        queued = [copy.last_queueing for copy in job.copies.values() if copy.last_queueing]
        is_taken = max([NEVER, job.asked_again, *(each.time for each in queued)]) < lease.time
        if is_taken and lease.time < add.invoked and case.world.is_calm(lease.time, row.time):
            case.violate("S29", "a worker has it, and no job is to follow it", job.id, row.node)


def replaced_until(case: Case, job: Job) -> Micros | None:
    """Return when the last ADDJOB with IFEXISTS replace that followed the job got its reply, or now
    if one is pending; None if there was none."""
    times = [
        case.now if other.add is None else min(other.add.answered, case.now)
        for other in job.followers
        if other.add is None or other.add.options.if_exists == "replace"
    ]
    return max(times, default=None)


def before_ack(case: Case, row: Row, job: Job) -> None:
    """S29: a later job that replaces this one has its copies."""
    case.mark("unique.replaced")
    if case.is_live or job.key is None:
        return
    case.check("S29")
    others = [case.job(id) for id in case.keyed[job.key] if id != job.id]
    others = [other for other in others if _replaces(case, other) and age(other) > age(job)]
    if not others:
        case.violate("S29", "is replaced, and no later job has asked for that", job.id, row.node)
    elif not any(_has_copies(case, other) for other in others):
        case.violate("S29", "is replaced, and no job has its copies", job.id, row.node)
    lease = job.lease
    if (
        lease is not None
        and case.world.is_calm(lease.time, row.time)
        and not case.obligations.has_tail
    ):
        case.violate("S29", "is replaced, and a worker has it", job.id, row.node)


def age(job: Job) -> tuple[int, str]:
    """Return a sort key: of two jobs with one key, the one with the smaller value is the earlier
    one."""
    return int(numbers(job.first_record).get("made", 0)), job.id


def _replaces(case: Case, job: Job) -> bool:
    """Was the job added with IFEXISTS replace, as far as is known?"""
    options = _options(case, job)
    return follows(job) and (options is None or options.if_exists == "replace")


def _has_copies(case: Case, job: Job) -> bool:
    if job.ended is not None:
        return True
    options = _options(case, job)
    if options is not None and options.is_async:
        return True
    # Its ADDJOB waits for this number of copies. If its client has gone, SYNC is unknown.
    sync = 1 if options is None else options.sync
    wanted = min(numbers(job.first_record).get("replicate", 1), sync)
    return job.holders() + job.destroyed >= wanted


def _options(case: Case, job: Job) -> Options | None:
    if job.options is not None:
        return job.options
    body = numbers(job.first_record).get("body")
    for add in case.adds.values():
        text = add.options.body
        if add.queue == job.queue and text is not None and checksum(text) == body:
            return add.options
    return None
