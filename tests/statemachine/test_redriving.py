"""Dead jobs on one node: how they live again, alone or as a queue, and after a restart."""

import attrs
import pytest

from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    DEAD,
    QUEUED,
    Failure,
)
from disque_trio.statemachine.job import STAMPS
from disque_trio.statemachine.knobs import DEFAULTS
from disque_trio.statemachine.messages import ReplJob
from disque_trio.statemachine.records import DeleteJob
from tests.rig import CALM, JOB, ME, N2, WALL, Rig, copy_of
from tests.statemachine.burying import (
    DAY,
    WEEK,
    dead_of,
    got,
    loads,
    several,
    shown,
    with_dead,
)
from tests.statemachine.test_recovery import CONFIG, started

LOOKS = DEFAULTS.purging_looks

# Living again.


def test_a_job_that_is_redriven_starts_anew() -> None:
    rig, job = with_dead("LIMIT", 1, "TTL", 600)
    rig.advance(DAY)

    assert rig.ask("REDRIVE", job.id) == 1

    assert (job.state, job.nacks, job.deliveries) == (QUEUED, 0, 0)
    fields = shown(rig, job)
    assert (fields[b"ttl"], fields[b"redriven"]) == (600, 1)
    assert b"reason" not in fields
    assert got(rig) == job.id
    assert rig.ask("REDRIVE", job.id) == 0
    rig.ask("NACK", job.id)
    assert job.state == DEAD
    rig.ask("REDRIVE", job.id)
    assert shown(rig, job)[b"ttl"] == 600


@pytest.mark.parametrize("ahead", [-3_600_000, -60_000, 0, 60_000, 3_600_000])
def test_a_redriven_job_lives_as_long_as_its_id_says_if_clocks_differ(ahead: int) -> None:
    rig = Rig(peers=2, ours=True, config=CALM)
    made = (rig.now.wall + ahead) * STAMPS
    job = rig.hold(copy_of(JOB, ctime=made, ttl=86_400))
    rig.advance(5000)
    rig.ask("NACK", JOB, "DEAD")

    rig.ask("REDRIVE", JOB)

    assert 1440 * 60_000 <= job.expires - rig.now.mono <= 1442 * 60_000


def test_the_longest_lives_are_not_cut_by_what_an_id_can_say() -> None:
    year = 365 * 86_400
    rig, job = with_dead("TTL", year)

    rig.ask("REDRIVE", job.id)

    assert job.expires - rig.now.mono == year * 1000


def test_its_worker_may_prolong_its_work_during_the_first_half_of_the_new_life() -> None:
    """everything, seed 6628: the age counted from the ADDJOB, so that it was refused at once if the
    job had been dead for longer than its TTL."""
    rig = Rig()
    job = rig.add("TTL", 100, "RETRY", 60)
    rig.ask("NACK", job.id, "DEAD")
    rig.advance(200_000)
    rig.ask("REDRIVE", job.id)
    assert got(rig) == job.id

    rig.advance(50_000)
    assert rig.ask("WORKING", job.id) == 60
    rig.advance(1)
    assert isinstance(rig.ask("WORKING", job.id), Failure)


def test_it_is_served_to_who_waits() -> None:
    rig, job = with_dead()
    worker = rig.connect()
    rig.request("GETJOB", "FROM", "q", client=worker)

    rig.ask("REDRIVE", job.id)

    assert rig.reply(worker) == [[b"q", job.id, b"body"]]


def test_a_queue_is_redriven_from_the_one_that_died_first() -> None:
    rig, jobs = several(3)

    assert rig.ask("REDRIVE", "q", "COUNT", 2) == 2

    assert dead_of(rig) == jobs[2:]
    assert rig.ask("REDRIVE", "q") == 1
    assert rig.ask("REDRIVE", "q") == rig.ask("REDRIVE", "unknown") == 0
    assert rig.ask("QLEN", "q") == 3


def test_many_are_redriven_in_slices() -> None:
    rig, jobs = several(LOOKS + 1)

    assert rig.ask("REDRIVE", "q") == LOOKS + 1

    assert dead_of(rig) == jobs[-1:]
    rig.ask("ACKJOB", jobs[-1])
    rig.advance(1000)
    assert rig.ask("QLEN", "q") == LOOKS


def test_a_second_redrive_takes_nothing_from_the_first() -> None:
    rig, jobs = several(LOOKS + 3)
    rig.ask("REDRIVE", "q")
    rig.ask("ACKJOB", jobs[LOOKS])

    assert rig.ask("REDRIVE", "q", "COUNT", 1) == 1

    rig.advance(1000)
    assert dead_of(rig) == []


def test_purge_dead_acknowledges_the_dead_and_leaves_the_rest() -> None:
    rig, _ = several(3)
    job = rig.add()

    assert rig.ask("PURGE", "q", "DEAD") == 3

    assert list(rig.node.jobs) == [job.id]
    assert rig.ask("PURGE", "q") == 1


def test_what_is_redriven_meanwhile_is_not_purged() -> None:
    rig, jobs = several(LOOKS + 1)
    rig.ask("PURGE", "q", "DEAD")

    rig.ask("REDRIVE", jobs[-1])
    rig.advance(1000)

    assert list(rig.node.jobs) == jobs[-1:]


# The journal.


def restarted(rig: Rig, late: int = 0) -> Rig:
    records = [record for out in rig.outboxes for record in out.records]
    return started(*records, config=CONFIG, peers=0, late=late)


def test_a_dead_job_is_dead_after_a_restart() -> None:
    rig, job = with_dead("RETRY", 10, config=CONFIG)
    again = restarted(rig)
    found = again.node.jobs[job.id]

    again.advance(DAY)

    assert found.state == DEAD
    assert found.dead_state == job.dead_state
    assert dead_of(again) == [job.id]
    assert again.ask("REDRIVE", job.id) == 1
    again.advance(WEEK)
    assert not again.node.jobs


def test_an_at_most_once_job_that_was_buried_is_dead_after_a_restart() -> None:
    rig = Rig(config=CONFIG)
    job = rig.add("RETRY", 0, "REPLICATE", 1)
    got(rig)
    rig.ask("NACK", job.id, "DEAD")

    again = restarted(rig)

    assert again.node.jobs[job.id].state == DEAD
    again.ask("REDRIVE", job.id)
    assert got(again) == job.id


def test_a_job_that_was_redriven_is_alive_after_a_restart() -> None:
    rig, job = with_dead("RETRY", 10, config=CONFIG)
    rig.ask("REDRIVE", job.id)
    assert loads(rig)[-1].copy.extensions == job.extensions

    again = restarted(rig)

    found = again.node.jobs[job.id]
    assert (found.state, found.dead_state.epoch, dead_of(again)) == (ACTIVE, 1, [])
    again.advance(11_000)
    assert found.state == QUEUED


def test_a_dead_job_that_is_dropped_is_not_in_the_journal() -> None:
    rig, job = with_dead(config=CONFIG)

    rig.ask("ACKJOB", job.id)

    assert rig.outboxes[-1].records == [DeleteJob(job.id)]


def test_the_original_s_journal_has_no_place_for_dead_jobs() -> None:
    rig = Rig(config=attrs.evolve(CALM, appendonly=True, aof_format="disque"))
    job = rig.add()
    error = Failure(
        b"ERR aof-format disque has no place for the extensions of a job: use aof-format framed"
    )

    assert rig.ask("NACK", job.id, "DEAD") == error
    assert rig.ask("ADDJOB", "q", "body", 0, "LIMIT", 3) == error

    assert (job.state, list(rig.node.jobs)) == (QUEUED, [job.id])


def test_a_job_that_is_acknowledged_elsewhere_is_dead_nowhere() -> None:
    rig = Rig(peers=1, config=CALM, ours=True)
    job = rig.hold(copy_of(holders=(N2, b"d" * 40, ME)))
    rig.ask("NACK", JOB, "DEAD")
    rig.ask("ACKJOB", JOB)

    rig.message(N2, ReplJob((copy_of(holders=(N2, ME)),)))

    assert (job.state, dead_of(rig)) == (ACKED, [])
    assert job.made == WALL
