"""What is left of the wait after a NACK, after a restart (docs/journal.md)."""

import attrs
import pytest

from disque_trio.statemachine.base import ACTIVE, QUEUED, Now
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import Postponed, Queued
from disque_trio.statemachine.postponing import MARGIN, rest
from disque_trio.statemachine.records import LoadJob
from tests.rig import JOB, ME, N2, Rig, copy_of

CONFIG = Config(appendonly=True, cluster_node_timeout=1_000_000_000)
ORIGINAL = attrs.evolve(CONFIG, aof_format="disque")


def given_back(config: Config = CONFIG, *, delay: int = 0, peers: int = 1, by: str = "NACK") -> Rig:
    """A worker has given the job back, for twenty seconds."""
    rig = Rig(peers=peers, config=config, ours=True)
    rig.hold(copy_of(holders=(N2, ME), retry=60, delay=delay))
    rig.ask("ENQUEUE", JOB)
    rig.ask("GETJOB", "FROM", "q")
    rig.ask(by, JOB, "DELAY", 20)
    return rig


def last(rig: Rig) -> LoadJob:
    """The last record of a job."""
    loads = [each for out in rig.outboxes for each in out.records if isinstance(each, LoadJob)]
    return loads[-1]


def restarted(rig: Rig, down: int, config: Config = CONFIG) -> tuple[Rig, Job]:
    """The node again, `down` milliseconds later."""
    record, new = last(rig), Rig(peers=1, config=config, ours=True)
    new.now = Now(new.now.mono, rig.now.wall + down)
    new.machine.load([record], new.now)
    assert new.machine.loaded(new.now)
    new.take()
    return new, new.node.jobs[JOB]


@pytest.mark.parametrize(("by", "nacks", "snoozes"), [("NACK", 1, 0), ("RELEASE", 0, 1)])
@pytest.mark.parametrize("delay", [0, 3, 3600])
def test_the_rest_of_the_wait_counts(delay: int, by: str, nacks: int, snoozes: int) -> None:
    rig, job = restarted(given_back(delay=delay, by=by), 5000)
    assert rest(rig.node, job) == 15_000
    assert rig.node.delayed[b"q"].number == 1

    rig.advance(14_990)
    assert job.state == ACTIVE
    rig.advance(20)
    assert (job.state, job.nacks, job.deliveries) == (QUEUED, nacks, 1)
    assert job.snoozes == snoozes


@pytest.mark.parametrize(
    "told",
    [Postponed(JOB, 20_000, 1, is_new=True), Postponed(JOB, 20_000, 0, snoozes=1, is_snooze=True)],
)
def test_so_it_does_at_another_holder(told: Postponed) -> None:
    before = Rig(peers=1, config=CONFIG, ours=True)
    before.hold(copy_of(holders=(N2, ME), retry=60))
    before.message(N2, told)

    rig, job = restarted(before, 5000)

    assert 15_000 + MARGIN <= rest(rig.node, job) < 15_500 + MARGIN


def test_a_wait_that_is_over_meanwhile_is_forgotten() -> None:
    rig, job = restarted(given_back(), 30_000)

    assert rest(rig.node, job) == 0
    assert abs(job.requeue_at - rig.now.mono - 60_000) <= 250


def test_so_is_one_that_a_client_has_ended() -> None:
    for words in (("ENQUEUE", JOB), ("WORKING", JOB)):
        before = given_back()
        before.ask(*words)

        rig, job = restarted(before, 5000)

        assert rest(rig.node, job) == 0
        assert abs(job.requeue_at - rig.now.mono - 60_000) <= 250


def test_so_is_one_that_a_client_has_ended_elsewhere() -> None:
    before = given_back()
    before.message(N2, Queued(JOB, told=True))

    rig, job = restarted(before, 5000)

    assert rest(rig.node, job) == 0


@pytest.mark.parametrize("by", ["NACK", "RELEASE"])
def test_the_delay_of_a_job_that_was_given_back_is_over(by: str) -> None:
    before = given_back(delay=3600, by=by)
    before.ask("ENQUEUE", JOB)

    rig, job = restarted(before, 5000)

    assert abs(job.requeue_at - rig.now.mono - 60_000) <= 250


@pytest.mark.parametrize("by", ["NACK", "RELEASE"])
def test_the_format_of_the_original_has_no_place_for_it(by: str) -> None:
    before = given_back(ORIGINAL, by=by)
    assert (last(before).copy.due, last(before).copy.extensions) == (0, None)

    rig, job = restarted(before, 5000, ORIGINAL)

    assert abs(job.requeue_at - rig.now.mono - 60_000) <= 250
