"""What the journal is told, and when."""

import attrs
import pytest

from disque_trio.statemachine import journaling
from disque_trio.statemachine.base import ACKED, ACTIVE, QUEUED, RECORDED, JobId
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.job import Job, check_id
from disque_trio.statemachine.journaling import STARTED, STOPPED
from disque_trio.statemachine.messages import (
    DelJob,
    Enqueue,
    GotAck,
    GotJob,
    NeedJobs,
    ReplJob,
    SetAck,
    YourJobs,
)
from disque_trio.statemachine.records import DeleteJob, LoadJob, Record
from tests.rig import JOB, ME, N2, N3, ONCE, WALL, Rig, copy_of

KEEPING = Config(appendonly=True, aof_queues=False, cluster_node_timeout=1_000_000_000)


def keeper(peers: int = 0) -> Rig:
    rig = Rig(peers=peers, config=KEEPING)
    rig.outboxes.clear()
    return rig


def records(rig: Rig) -> list[Record]:
    """Everything that was recorded since this was last asked."""
    found = [record for out in rig.outboxes for record in out.records]
    rig.outboxes.clear()
    return found


def only_load(rig: Rig) -> LoadJob:
    (record,) = records(rig)
    assert isinstance(record, LoadJob)
    return record


def deletions(rig: Rig) -> list[JobId]:
    found = records(rig)
    assert all(isinstance(record, DeleteJob) for record in found), found
    return [record.id for record in found if isinstance(record, DeleteJob)]


def test_without_a_journal_nothing_is_recorded() -> None:
    rig = Rig(peers=1)
    job = rig.add("REPLICATE", 1, "RETRY", 1)
    rig.hold(copy_of())
    rig.ask("GETJOB", "FROM", "q")
    rig.ask("ACKJOB", job.id, JOB)
    rig.add("REPLICATE", 1, "RETRY", 0, "TTL", 5)
    rig.advance(10_000)

    assert records(rig) == []


# Jobs that come.


def test_a_new_job_is_recorded_as_queued_with_its_expiry_on_the_wall_clock() -> None:
    rig = keeper()
    job = rig.add("TTL", 100, "RETRY", 7)

    copy = only_load(rig).copy

    assert (copy.id, copy.queue, copy.body, copy.holders) == (job.id, b"q", b"body", (ME,))
    assert (copy.state, copy.flags) == (QUEUED, 3)
    assert (copy.etime, copy.retry) == (WALL // 1000 + 100, 7)


def test_a_delayed_job_is_recorded_as_active() -> None:
    rig = keeper()
    rig.add("DELAY", 5)

    copy = only_load(rig).copy

    assert (copy.state, copy.flags, copy.delay) == (ACTIVE, 0, 5)


def test_a_job_is_recorded_once_it_has_its_copies_and_not_before() -> None:
    rig = keeper(peers=1)
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2)
    (job_id,) = rig.node.jobs
    assert records(rig) == []

    rig.message(N2, GotJob(job_id))

    assert only_load(rig).copy.holders == (ME, N2)


def test_a_job_that_never_got_its_copies_leaves_no_record() -> None:
    rig = keeper(peers=1)
    rig.request("ADDJOB", "q", "body", 100, "REPLICATE", 2)
    rig.advance(200)

    assert not rig.node.jobs
    assert records(rig) == []


def test_a_copy_is_recorded_with_the_message_that_confirms_it() -> None:
    rig = keeper(peers=1)
    rig.message(N2, ReplJob((copy_of(),)))

    (out,) = rig.outboxes

    assert [type(message) for _, message in out.messages] == [GotJob]
    (record,) = out.records
    assert isinstance(record, LoadJob)
    assert (record.copy.id, record.copy.state) == (JOB, ACTIVE)


def test_an_import_is_recorded() -> None:
    rig = keeper(peers=1)
    rig.message(N2, YourJobs((copy_of(),)))

    copy = only_load(rig).copy

    assert (copy.id, copy.state, copy.holders) == (JOB, QUEUED, (N2, ME))


def test_the_import_of_a_copy_that_is_here_already_needs_no_record() -> None:
    rig = keeper(peers=1)
    rig.hold(copy_of())
    records(rig)

    rig.message(N2, YourJobs((copy_of(),)))

    assert records(rig) == []


# Jobs that go.


def test_a_lone_job_that_is_acknowledged_is_deleted_at_once() -> None:
    rig = keeper()
    job = rig.add()
    records(rig)

    rig.ask("ACKJOB", job.id)

    assert deletions(rig) == [job.id]


def test_an_acknowledgement_is_kept_without_its_body_until_all_copies_are_gone() -> None:
    rig = keeper(peers=1)
    rig.hold(copy_of())
    records(rig)

    rig.ask("ACKJOB", JOB)
    copy = only_load(rig).copy
    assert (copy.state, copy.body, copy.holders) == (ACKED, b"", (N2, ME))

    rig.message(N2, GotAck(JOB, known=True))
    assert deletions(rig) == [JOB]


def test_an_acknowledgement_that_others_bring_is_kept_too() -> None:
    rig = keeper(peers=1)
    rig.hold(copy_of())
    records(rig)

    rig.message(N2, SetAck(JOB, 2))
    assert only_load(rig).copy.state == ACKED

    rig.message(N2, SetAck(JOB, 2))
    assert records(rig) == []

    rig.message(N2, DelJob(JOB))
    assert deletions(rig) == [JOB]


def test_an_acknowledgement_that_this_node_collects_itself_is_kept() -> None:
    rig = keeper(peers=2)
    rig.hold(copy_of(holders=(N2, N3, ME)))
    records(rig)

    rig.message(N2, SetAck(JOB, 2))

    assert only_load(rig).copy.state == ACKED


def test_a_dummy_ack_is_kept() -> None:
    rig = keeper(peers=1)
    rig.ask("ACKJOB", JOB)

    copy = only_load(rig).copy
    assert (copy.state, copy.queue, copy.holders) == (ACKED, b"", ())

    rig.message(N2, GotAck(JOB, known=True))
    assert deletions(rig) == [JOB]


@pytest.mark.parametrize("words", [("FASTACK",), ("DELJOB",)])
def test_a_job_that_is_dropped_is_deleted(words: tuple[str]) -> None:
    rig = keeper()
    job = rig.add()
    records(rig)

    rig.ask(*words, job.id)

    assert deletions(rig) == [job.id]


def test_a_job_that_expires_is_deleted() -> None:
    rig = keeper()
    job = rig.add("TTL", 5)
    records(rig)

    rig.advance(6000)

    assert deletions(rig) == [job.id]


def test_a_delivery_needs_no_record() -> None:
    rig = keeper()
    rig.add("RETRY", 1)
    records(rig)

    rig.ask("GETJOB", "FROM", "q")
    rig.advance(5000)

    assert rig.node.queues[b"q"].jobs_in > 1
    assert records(rig) == []


# At-most-once jobs.


def test_a_delivery_of_an_at_most_once_job_is_recorded_with_it() -> None:
    rig = keeper()
    job = rig.add("RETRY", 0)
    assert only_load(rig).copy.flags & RECORDED

    rig.request("GETJOB", "FROM", "q")

    (out,) = rig.outboxes
    assert out.replies
    assert out.records == [DeleteJob(job.id)]


def test_it_is_recorded_when_a_client_waits_for_it() -> None:
    rig = keeper()
    waiting = rig.connect()
    rig.request("GETJOB", "FROM", "q", client=waiting)
    rig.outboxes.clear()

    job = rig.add("RETRY", 0)

    load, delete = records(rig)
    assert isinstance(load, LoadJob)
    assert delete == DeleteJob(job.id)


def test_the_end_of_a_delivered_at_most_once_job_is_not_recorded_again() -> None:
    rig = keeper()
    rig.add("RETRY", 0, "TTL", 5)
    rig.ask("GETJOB", "FROM", "q")
    records(rig)

    rig.advance(6000)

    assert not rig.node.jobs
    assert records(rig) == []


def test_an_at_most_once_job_that_moves_is_deleted_with_the_move() -> None:
    rig = keeper(peers=1)
    job = rig.add("RETRY", 0, "REPLICATE", 1)
    records(rig)

    rig.message(N2, NeedJobs(b"q", 1))

    assert deletions(rig) == [job.id]


def test_a_job_that_moves_is_recorded_with_its_new_holder() -> None:
    """Or a restart would forget whom to ask before it queues the job again."""
    rig = keeper(peers=1)
    rig.add("RETRY", 60, "REPLICATE", 1)
    records(rig)

    rig.message(N2, NeedJobs(b"q", 1))

    assert only_load(rig).copy.holders == (ME, N2)


def test_a_delayed_at_most_once_job_is_recorded_again_when_it_is_queued() -> None:
    rig = keeper()
    rig.add("RETRY", 0, "DELAY", 1)
    assert only_load(rig).copy.state == ACTIVE

    rig.advance(1100)

    assert only_load(rig).copy.state == QUEUED


def test_an_at_most_once_copy_is_recorded_again_when_this_node_is_to_queue_it() -> None:
    rig = keeper(peers=1)
    rig.hold(copy_of(ONCE, retry=0))
    records(rig)

    rig.message(N2, Enqueue(ONCE, 0))

    assert only_load(rig).copy.state == QUEUED


def test_an_at_most_once_job_that_a_client_has_queued_early_is_recorded_so() -> None:
    """Otherwise a restart that has lost its delivery would wait for the end of its delay, and
    deliver it again."""
    rig = keeper()
    job = rig.add("RETRY", 0, "DELAY", 60)
    records(rig)

    rig.ask("ENQUEUE", job.id)

    assert only_load(rig).copy.state == QUEUED


# With `aof-queues`, too, a job is written once for each thing that happens to it.


def queue_keeper(*options: str | int) -> tuple[Rig, Job]:
    """A node that records queues, with a job that a worker has."""
    rig = Rig(config=attrs.evolve(KEEPING, aof_queues=True))
    job = rig.add(*options)
    rig.ask("GETJOB", "FROM", "q")
    rig.outboxes.clear()
    return rig, job


def test_an_at_most_once_job_is_written_once_when_it_is_queued() -> None:
    rig = Rig(peers=1, config=attrs.evolve(KEEPING, aof_queues=True))
    rig.add("RETRY", 0, "DELAY", 1, "REPLICATE", 1)
    rig.hold(copy_of(ONCE, retry=0))
    rig.outboxes.clear()

    rig.message(N2, Enqueue(ONCE, 0))
    assert only_load(rig).copy.id == ONCE

    rig.advance(1100)
    assert only_load(rig).copy.state == QUEUED


def test_an_at_most_once_job_that_is_held_back_is_not_written_again_and_again() -> None:
    rig, _ = queue_keeper("UNIQUE", "k")
    job = rig.add("RETRY", 0, "UNIQUE", "k", "IFEXISTS", "again")
    records(rig)

    rig.advance(5000)

    assert job.state == ACTIVE
    assert records(rig) == []


def test_a_job_with_an_error_is_written_once_when_it_is_given_back() -> None:
    rig, job = queue_keeper()

    rig.ask("NACK", job.id, "ERROR", "it failed")

    copy = only_load(rig).copy
    assert copy.extensions is not None
    assert (copy.state, copy.nacks, copy.extensions.error.text) == (QUEUED, 1, b"it failed")


def test_a_job_is_written_once_when_it_need_not_wait_any_longer() -> None:
    rig, job = queue_keeper()
    rig.ask("NACK", job.id, "DELAY", 30)
    records(rig)

    rig.ask("ENQUEUE", job.id)

    assert only_load(rig).copy.state == QUEUED


def test_a_job_is_written_once_when_it_is_redriven() -> None:
    rig, job = queue_keeper()
    rig.ask("NACK", job.id, "DEAD", "why")
    records(rig)

    rig.ask("REDRIVE", job.id)

    assert only_load(rig).copy.state == QUEUED


def test_a_job_is_written_once_when_those_before_it_have_ended() -> None:
    rig, first = queue_keeper("UNIQUE", "k")
    job = rig.add("UNIQUE", "k", "IFEXISTS", "again")
    rig.ask("ACKJOB", first.id)
    rig.advance(2000)

    written = [each for each in records(rig) if isinstance(each, LoadJob)]
    assert [(each.copy.id, each.copy.state) for each in written] == [
        (job.id, ACTIVE), (job.id, QUEUED),
    ]  # fmt: skip


def test_an_import_is_written_once() -> None:
    rig = Rig(peers=1, config=attrs.evolve(KEEPING, aof_queues=True))
    rig.outboxes.clear()

    rig.message(N2, YourJobs((copy_of(),)))

    assert only_load(rig).copy.state == QUEUED


def test_nothing_is_recorded_while_the_driver_keeps_no_journal() -> None:
    rig = keeper()
    rig.machine.record(on=False)
    rig.add()
    assert records(rig) == []

    rig.machine.record(on=True)
    rig.add()

    assert only_load(rig).copy.state == QUEUED


# Before a stop.


def test_before_a_stop_it_is_recorded_what_comes_into_a_queue_and_what_leaves_it() -> None:
    rig = keeper()
    rig.machine.record_queues(on=True)
    job = rig.add("RETRY", 1)
    assert {record_state(record) for record in records(rig)} == {QUEUED}

    rig.ask("GETJOB", "FROM", "q")
    assert only_load(rig).copy.state == ACTIVE
    rig.ask("NACK", job.id)
    assert only_load(rig).copy.state == QUEUED
    rig.ask("DEQUEUE", job.id)
    assert only_load(rig).copy.state == ACTIVE
    rig.ask("ENQUEUE", job.id)
    assert only_load(rig).copy.state == QUEUED
    rig.ask("DELJOB", job.id)
    assert records(rig) == [DeleteJob(job.id)]

    rig.machine.record_queues(on=False)
    rig.add("RETRY", 1)
    rig.ask("GETJOB", "FROM", "q")
    assert only_load(rig).copy.state == QUEUED


def test_before_a_stop_jobs_that_are_fetched_together_are_recorded_as_well() -> None:
    rig = keeper()
    rig.machine.record_queues(on=True)
    jobs = [rig.add("RETRY", 1), rig.add("RETRY", 1)]
    once = rig.add("RETRY", 0)
    records(rig)

    rig.ask("GETJOB", "COUNT", 3, "FROM", "q")

    deleted, *loads = records(rig)
    assert deleted == DeleteJob(once.id)
    assert [
        (record.copy.id, record.copy.state) for record in loads if isinstance(record, LoadJob)
    ] == [(job.id, ACTIVE) for job in jobs]


def record_state(record: Record) -> int:
    assert isinstance(record, LoadJob)
    return record.copy.state


def test_the_marks_of_a_stop_and_a_start_are_deletions_of_no_job() -> None:
    for mark in (STOPPED, STARTED):
        assert check_id(mark.id) == mark.id


def test_what_a_node_gives_away_while_it_stops_has_left_its_queue_for_good() -> None:
    rig = keeper(peers=1)
    job = rig.add("REPLICATE", 1)
    records(rig)
    rig.machine.record_queues(on=True)

    rig.message(N2, NeedJobs(b"q", 1))

    found = records(rig)
    assert [type(record) for record in found] == [LoadJob] * len(found)
    assert found
    assert job.state == ACTIVE


@pytest.mark.parametrize(
    ("record", "kind", "what"),
    [
        (DeleteJob(JOB), "DELJOB", JOB.decode()),
        (journaling.left(JOB), "DEQUEUED", JOB.decode()),
        (journaling.STOPPED, "NOTE", "stopped"),
        (journaling.UNKNOWN, "NOTE", "queues-unknown"),
        (journaling.known_since("boot"), "NOTE", "queues-known"),
    ],
)
def test_deletions_of_jobs_that_never_existed_are_told_from_others(
    record: DeleteJob, kind: str, what: str
) -> None:
    assert journaling.described(record) == (kind, what)
