"""The journal's records: the state of this node's jobs that a restart restores (original 7.1).

Without a journal nothing is recorded. The last record of each job counts; state that changes
without a record (its place in the queue, counters, further holders) is reset by a restart. Two
things are recorded here that the original does not record (docs/differences.md):

* an acknowledgement, as a job without its body, until every copy is collected;
* the delivery of an at-most-once job: it is deleted before it leaves the node.

Before a controlled stop a node records its queues, too: from then on each record has whether its
job is queued. After the file has been rewritten and there are no more changes, STOPPED is written
last: a node that finds it at the end may immediately enqueue the jobs that were queued. It has the
form of the deletion of a job that never existed, so readers of either format ignore it.

With `aof-queues` the journal also records, before a job leaves the node, that it has left its
queue: as the deletion of a job whose id is that of the job with other letters in place of
hexadecimal digits. The same record is written when a start that asks other holders learns that one
of them has the job. If the process has died, but not the system, the file is complete, so jobs
recorded as queued may be enqueued immediately. A note of the running system (`known_since`)
distinguishes the two cases.

Owns `Outbox.records`, `NodeState.is_recording`, `is_recording_queues` and `is_stopping`.
"""

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    BCAST_QUEUED,
    DEAD,
    DELIVERED,
    MAX_SECONDS,
    POSTPONED,
    QUEUED,
    RECORDED,
    RETURNING,
    STORED_FLAGS,
    WAIT_REPL,
    JobId,
    Millis,
    NodeId,
)
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.extensions import Extensions
from disque_trio.statemachine.job import Job, needs
from disque_trio.statemachine.key_facts import KEPT
from disque_trio.statemachine.keys import Kept
from disque_trio.statemachine.messages import JobCopy
from disque_trio.statemachine.records import DeleteJob, LoadJob, Record, StoredResult
from disque_trio.statemachine.state import KeptResult, NodeState

STOPPED: Final = DeleteJob(b"D-00000000-the+node+was+stopped++++-0000")
"""The last record of a controlled stop: jobs recorded as queued are enqueued."""
STARTED: Final = DeleteJob(b"D-00000000-the+node+has+started++++-0000")
"""The node runs again, so STOPPED no longer applies."""
QUEUES: Final = b"D-00000000-queues+"
"""The beginning of notes about queues."""
UNKNOWN: Final = DeleteJob(QUEUES + b"unknown++++++++++-0000")
"""Jobs recorded as queued before this note may have been delivered since."""
_NOTES: Final = {STOPPED.id: "stopped", STARTED.id: "started", UNKNOWN.id: "queues-unknown"}
_LEFT: Final = bytes.maketrans(b"0123456789abcdef", b"ghijklmnopqrstuv")
_BACK: Final = bytes.maketrans(b"ghijklmnopqrstuv", b"0123456789abcdef")
_LAST_DIGIT: Final = b"f"[0]


def known_since(boot: str) -> DeleteJob:
    """The note that from here on each job that leaves a queue has a record, until the system
    restarts. `boot` identifies its current boot."""
    digest = hashlib.sha256(boot.encode()).hexdigest()
    return DeleteJob(QUEUES + digest[:17].encode() + b"-0000")


def first_notes(config: Config, boot: str) -> list[Record]:
    """The note about queues in a new file. `boot` is empty if the system does not provide it."""
    return [known_since(boot)] if config.records_queues and boot else []


def left(job_id: JobId) -> DeleteJob:
    """The record that a job has left its queue."""
    return DeleteJob(job_id[:2] + job_id[2:10].translate(_LEFT) + job_id[10:])


def has_left(job_id: JobId) -> JobId | None:
    """The job of such a record; None if it is the deletion of a job."""
    if job_id[2] <= _LAST_DIGIT:
        return None
    return job_id[:2] + job_id[2:10].translate(_BACK) + job_id[10:]


def are_dequeuings(records: Sequence[Record]) -> bool:
    """Do all of these record that jobs have left their queues? No reader relies on that after a
    power failure."""
    return all(type(record) is DeleteJob and record.id[2] > _LAST_DIGIT for record in records)


def described(record: DeleteJob) -> tuple[str, str]:
    """Its meaning, for reports: NOTE and the note, DEQUEUED and the job that has left its queue, or
    DELJOB and the job."""
    note = _NOTES.get(record.id)
    if note is not None or record.id.startswith(QUEUES):
        return "NOTE", note or "queues-known"
    job_id = has_left(record.id)
    return ("DELJOB", record.id.decode()) if job_id is None else ("DEQUEUED", job_id.decode())


def record(node: NodeState, *, on: bool) -> None:
    """Set whether there is a journal."""
    node.is_recording = on
    record_queues(node, on=False)


def record_queues(node: NodeState, *, on: bool) -> None:
    """Set whether queues are recorded from now on because the node is about to stop. Otherwise
    `aof-queues` decides."""
    node.is_stopping = on
    node.is_recording_queues = on or (node.is_recording and node.config.records_queues)


def moved(node: NodeState, job: Job) -> None:
    """Record that the job has entered or left a queue, if queues are recorded."""
    if not node.is_recording_queues:
        return
    if node.is_stopping or job.state == QUEUED:
        hold(node, job)
    elif has_record(node, job):
        node.out.records.append(left(job.id))


def handed_out(node: NodeState, jobs: Iterable[Job]) -> None:
    """Record that these jobs have left a queue. Excludes at-most-once jobs, which `delivered`
    deletes."""
    for job in jobs:
        if job.retry:
            moved(node, job)


def queued(node: NodeState, job: Job) -> None:
    """Record that the job has entered a queue again. An at-most-once job is recorded even if queues
    are not: after a restart, it must not count as one that still waits for its delay."""
    if node.is_recording_queues or (node.is_recording and not job.retry):
        renew(node, job)


def hold(node: NodeState, job: Job) -> None:
    """Record the job in its current state."""
    if node.is_recording and has_record(node, job):
        node.out.records.append(LoadJob(stored(node, job)))


def renew(node: NodeState, job: Job) -> None:
    """As `hold`, replacing the record of this job that was just created, if there is one."""
    _take_back(node, job)
    hold(node, job)


def _take_back(node: NodeState, job: Job) -> None:
    """The last record of each job counts: drop the one that was just created, which may be as long
    as its body."""
    records = node.out.records
    last = records[-1] if records else None
    if isinstance(last, LoadJob) and last.copy.id == job.id:
        records.pop()


def delivered(node: NodeState, job: Job) -> None:
    """Record a delivery, or that the job is sent to another node. An at-most-once job is deleted,
    because it must never be redelivered."""
    if not job.retry and node.is_recording:
        node.out.records.append(DeleteJob(job.id))


def drop(node: NodeState, job: Job) -> None:
    """Record that this node no longer holds the job."""
    if node.is_recording and has_record(node, job):
        _take_back(node, job)
        node.out.records.append(DeleteJob(job.id))


def keep(node: NodeState, kept: Kept) -> None:
    """Record that the job is gone and its key stays reserved: the record is an acknowledged job
    without holders, which expires when the key is freed."""
    if node.is_recording and node.keeps_extensions:
        node.out.records.append(LoadJob(stored_key(node, kept)))


def kept_keys(node: NodeState) -> Iterable[LoadJob]:
    """For a rewrite: the keys that stay reserved by jobs that are gone."""
    for some in list(node.keys.kept.values()):
        for kept in some:
            if kept.word == KEPT and kept.due and kept.id not in node.jobs:
                yield LoadJob(stored_key(node, kept))


def release(node: NodeState, kept: Kept) -> None:
    """Record that the key is free."""
    if node.is_recording and node.keeps_extensions:
        node.out.records.append(DeleteJob(kept.id))


def keep_result(node: NodeState, kept: KeptResult) -> None:
    """Record a kept result. Its expiry is not recorded."""
    if node.is_recording and node.keeps_extensions:
        node.out.records.append(_stored_result(node, kept))


def delete_result(node: NodeState, kept: KeptResult) -> None:
    """Record that the result is dropped before it expires."""
    if node.is_recording and node.keeps_extensions:
        node.out.records.append(StoredResult(kept.id, kept.queue, kept.at, 0, b""))


def kept_results(node: NodeState) -> Iterable[StoredResult]:
    """For a rewrite: the results that are kept."""
    for job_id in list(node.results) if node.keeps_extensions else ():
        kept = node.results.get(job_id)
        if kept is not None:
            yield _stored_result(node, kept)


def _stored_result(node: NodeState, kept: KeptResult) -> StoredResult:
    until = node.wall + kept.until - node.mono
    return StoredResult(kept.id, kept.queue, kept.at, until, kept.value)


def unwrite(node: NodeState) -> None:
    """Drop the records since the last `take`, which are in the journal already."""
    node.out.records.clear()


def has_record(node: NodeState, job: Job) -> bool:
    """Does the job have state that a restart must restore, and that the file can contain?"""
    if job.state == WAIT_REPL:
        return False
    if _has_no_place(node.config, job):
        return False
    return bool(job.retry) or job.state in (ACKED, DEAD) or not job.flags & DELIVERED


def has_no_place(node: NodeState, config: Config) -> bool:
    """Are there jobs with extensions that the file of this configuration cannot contain?"""
    return any(_has_no_place(config, job) and job.state != ACKED for job in node.jobs.values())


def _has_no_place(config: Config, job: Job) -> bool:
    return bool(needs(job)) and not config.keeps_extensions


def stored(node: NodeState, job: Job) -> JobCopy:
    """The job in storage form (original 4.5): its expiry is in seconds of the wall clock, and the
    end of its delay in milliseconds.

    An acknowledged job has no body, and a dummy ack neither queue nor holders.
    """
    expires = -(-(node.wall + job.expires - node.mono) // 1000)
    return JobCopy(
        job.id,
        QUEUED if job.state == ACTIVE and job.flags & RETURNING else job.state,
        job.gc_attempt,
        (job.flags if job.retry else job.flags | RECORDED) & STORED_FLAGS,
        job.replicas,
        min(expires, MAX_SECONDS),
        job.ctime,
        job.delay_s,
        job.retry // 1000,
        job.nacks,
        job.deliveries,
        job.queue or b"",
        b"" if job.state == ACKED else job.body or b"",
        job.holders if job.confirmed is None else _listed(job, job.confirmed),
        None if job.extensions is None else job.extensions.kept_by(node.capabilities),
        _due(node, job) if job.delay or job.flags & POSTPONED else 0,
    )


def _listed(job: Job, confirmed: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    """The holders in the form of the record, where some holders of a live job have not confirmed
    their copies."""
    return job.holders if job.state == ACKED else _separated(job.holders, confirmed)


@lru_cache(maxsize=1 << 10)
def _separated(holders: tuple[NodeId, ...], confirmed: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    """The holders that have confirmed, the first one of them again, and the others. Every reader
    counts an id that appears twice as one holder, so earlier versions read the same holders."""
    return (*confirmed, *confirmed[:1], *[id for id in holders if id not in confirmed])


@lru_cache(maxsize=1 << 10)
def confirmed_in(listed: tuple[NodeId, ...]) -> tuple[NodeId, ...] | None:
    """The holders in a record that had confirmed their copies; None if all had, or if an earlier
    version wrote it."""
    for at, id in enumerate(listed):
        if id in listed[:at]:
            return listed[:at]
    return None


def _due(node: NodeState, job: Job) -> Millis:
    """When the delay of the job ends or ended, by this node's wall clock; the clocks of other nodes
    may differ. 0 if there is none any longer, or if the file cannot contain it.

    For a job that was returned by NACK or RELEASE DELAY it is the end of the last wait.
    """
    if job.state == ACKED or not node.keeps_extensions:
        return 0
    was_given_back = job.nacks or job.snoozes
    if job.flags & RETURNING or (was_given_back and not job.flags & POSTPONED):
        return 1
    left = job.requeue_at - node.mono
    if job.flags & BCAST_QUEUED and not was_given_back:
        # `requeue_at` is the end of the period that follows the delay.
        left -= job.retry
    return max(node.wall + left, 1)


def stored_key(node: NodeState, kept: Kept) -> JobCopy:
    """A key that stays reserved, in storage form."""
    left = kept.until - node.mono
    return JobCopy(
        id=kept.id,
        state=ACKED,
        gc_attempt=0,
        flags=0,
        replicas=0,
        etime=min(-(-(node.wall + left) // 1000), MAX_SECONDS),
        ctime=kept.stamp,
        delay=0,
        retry=0,
        nacks=0,
        deliveries=0,
        queue=kept.name[0],
        body=b"",
        holders=(),
        extensions=Extensions(key=kept.name[1], keep=max(left, 1)),
    )
