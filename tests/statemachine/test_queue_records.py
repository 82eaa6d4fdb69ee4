"""What is recorded of queues with `aof-queues`, and what a start makes of it."""

import attrs

from disque_trio.statemachine.base import ACTIVE, QUEUED
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.journaling import (
    STOPPED,
    UNKNOWN,
    are_dequeuings,
    first_notes,
    has_left,
    known_since,
    left,
)
from disque_trio.statemachine.records import DeleteJob, LoadJob
from tests.rig import JOB, ME, Rig, copy_of
from tests.statemachine.test_journaling import records
from tests.statemachine.test_recovery import recorded, started

KEPT = Config(appendonly=True)
MINE = b"D-aaaaaaaa-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"


def test_a_delivery_is_recorded_and_so_is_what_comes_back() -> None:
    rig = Rig(config=KEPT)
    job = rig.add()
    [added] = records(rig)

    rig.ask("GETJOB", "FROM", "q")
    assert records(rig) == [left(job.id)]
    rig.ask("ENQUEUE", job.id)
    [back] = records(rig)

    assert isinstance(added, LoadJob)
    assert isinstance(back, LoadJob)
    assert added.copy.state == back.copy.state == QUEUED


def test_nobody_relies_on_what_has_left_its_queue_alone() -> None:
    assert are_dequeuings([left(MINE), left(JOB)])
    assert not are_dequeuings([left(MINE), DeleteJob(MINE)])
    assert not are_dequeuings([LoadJob(copy_of())])


def test_of_an_at_most_once_job_that_is_delivered_its_deletion_is_enough() -> None:
    rig = Rig(config=KEPT)
    job = rig.add("RETRY", 0)
    records(rig)

    rig.ask("GETJOB", "FROM", "q")

    assert records(rig) == [DeleteJob(job.id)]


def test_without_the_setting_or_a_journal_or_in_the_original_s_format_no_delivery_is_recorded() -> (
    None
):
    original = attrs.evolve(KEPT, aof_format="disque")
    for config in (attrs.evolve(KEPT, aof_queues=False), Config(), original):
        rig = Rig(config=config)
        rig.add()
        records(rig)

        rig.ask("GETJOB", "FROM", "q")

        assert records(rig) == []


def test_recording_begins_and_ends_with_the_journal() -> None:
    rig = Rig(config=attrs.evolve(KEPT, appendonly=False))
    jobs = [rig.add() for _ in range(2)]

    rig.machine.record(on=True)
    rig.ask("GETJOB", "FROM", "q")
    assert records(rig) == [left(jobs[0].id)]
    rig.machine.record(on=False)
    rig.ask("GETJOB", "FROM", "q")

    assert records(rig) == []


def test_a_stop_that_fails_leaves_it_on() -> None:
    rig = Rig(config=KEPT)
    job = rig.add()
    rig.machine.record_queues(on=True)
    rig.machine.record_queues(on=False)
    records(rig)

    rig.ask("GETJOB", "FROM", "q")

    assert records(rig) == [left(job.id)]


def test_the_record_of_a_job_that_has_left_names_it_and_no_job() -> None:
    for digits in (b"01234567", b"89abcdef", b"00000000"):
        job = b"D-" + digits + JOB[10:]
        record = left(job)
        assert has_left(record.id) == job
        assert len(record.id) == len(job)
        assert not set(record.id[2:10]) & set(b"0123456789abcdef")
    assert has_left(JOB) is None
    assert has_left(STOPPED.id) is has_left(UNKNOWN.id) is None


def test_a_file_says_since_when_queues_are_known_if_the_system_says_who_it_is() -> None:
    assert first_notes(KEPT, "a") == [known_since("a")] != [known_since("b")]
    assert first_notes(KEPT, "") == first_notes(Config(aof_queues=False), "a") == []
    assert len(known_since("a").id) == len(UNKNOWN.id) == len(JOB)


def test_what_has_left_its_queue_is_not_queued_and_its_later_records_count() -> None:
    other = MINE.replace(b"A", b"B")
    held = recorded(copy_of(MINE, holders=(ME,)))
    rig = started(
        held, recorded(copy_of(other, holders=(ME,))), left(MINE), left(other), left(JOB), held,
        STOPPED,
    )  # fmt: skip

    assert {id: job.state for id, job in rig.node.jobs.items()} == {MINE: QUEUED, other: ACTIVE}


def test_what_was_recorded_before_queues_were_unknown_is_not_queued() -> None:
    other = MINE.replace(b"A", b"B")
    rig = started(
        recorded(copy_of(MINE, holders=(ME,))), UNKNOWN, known_since("a"),
        recorded(copy_of(other, holders=(ME,))), STOPPED,
    )  # fmt: skip

    assert {id: job.state for id, job in rig.node.jobs.items()} == {MINE: ACTIVE, other: QUEUED}


def test_the_machine_tells_the_last_note() -> None:
    rig = Rig(config=KEPT)

    rig.machine.load([UNKNOWN, known_since("a"), left(MINE)], rig.now)
    assert rig.node.queues_note == known_since("a").id
    rig.machine.loaded(rig.now)

    assert rig.node.queues_note == b""
