"""What is left of DELAY, RETRY and TTL after a restart, by clocks that differ and that jump."""

import attrs
import pytest

from disque_trio.statemachine.base import ACTIVE, QUEUED, Millis, Now
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.job import STAMPS, Job
from disque_trio.statemachine.journaling import stored
from disque_trio.statemachine.records import LoadJob
from tests.rig import JOB, WALL, Rig, copy_of

CONFIG = Config(appendonly=True, cluster_node_timeout=1_000_000_000)
ORIGINAL = attrs.evolve(CONFIG, aof_format="disque")
FAR = (-3_600_000, -10_000, 0, 10_000, 3_600_000)
"""How far the creator's clock may be ahead of this node's, in milliseconds."""


def made_by(ahead: Millis) -> int:
    """A creation stamp by such a clock."""
    return (WALL + ahead) * STAMPS


def at_noon(config: Config, peers: int = 0) -> Rig:
    """A node whose wall clock shows WALL."""
    rig = Rig(peers=peers, config=config)
    rig.now = Now(rig.now.mono, WALL)
    return rig


def last(rig: Rig) -> LoadJob:
    """The last record of a job."""
    loads = [each for out in rig.outboxes for each in out.records if isinstance(each, LoadJob)]
    return loads[-1]


def copied(ahead: Millis) -> LoadJob:
    """What a node writes of a copy that comes with DELAY 10."""
    rig = at_noon(CONFIG, peers=1)
    rig.hold(copy_of(delay=10, retry=60, ctime=made_by(ahead)))
    return last(rig)


def test_a_delay_with_decimals_goes_on_to_the_millisecond() -> None:
    rig = at_noon(CONFIG)
    job = rig.add("DELAY", "10.25", "RETRY", 60, "PRIORITY", 0)

    again = restarted(last(rig), 4000)

    assert again.node.jobs[job.id].requeue_at - again.now.mono == 6250


def test_the_file_of_the_original_rounds_a_delay_with_decimals_up() -> None:
    rig = at_noon(ORIGINAL)
    job = rig.add("DELAY", "10.25", "RETRY", 60, "PRIORITY", 0)
    assert last(rig).copy.delay == 11

    again = restarted(last(rig), 4000, config=ORIGINAL)

    assert again.node.jobs[job.id].requeue_at - again.now.mono == 7000


def restarted(record: LoadJob, down: Millis, *, jump: Millis = 0, config: Config = CONFIG) -> Rig:
    """The node again, `down` later; meanwhile its wall clock has jumped."""
    rig = Rig(peers=1, config=config)
    rig.now = Now(rig.now.mono + down, WALL + down + jump)
    rig.machine.load([record], rig.now)
    assert rig.machine.loaded(rig.now)
    rig.take()
    rig.outboxes.clear()
    return rig


def queued_in(rig: Rig, job_id: bytes = JOB) -> Millis:
    """How long until it is queued, to about 100 ms."""
    job = rig.node.jobs[job_id]
    for passed in range(0, 200_000, 100):
        if job.state == QUEUED:
            return passed
        rig.advance(100)
    raise AssertionError("never queued")


def delayed(config: Config = CONFIG, *, retry: int = 60) -> tuple[Rig, Job]:
    """A job of this node that waits for DELAY 10."""
    rig = at_noon(config)
    return rig, rig.add("DELAY", 10, "RETRY", retry, "TTL", 600)


# DELAY.


def test_a_record_says_when_the_delay_is_over_by_the_clock_of_its_node() -> None:
    rig, _ = delayed()

    assert last(rig).copy.due == WALL + 10_000


@pytest.mark.parametrize("ahead", FAR)
def test_a_copy_counts_its_delay_from_when_it_came(ahead: Millis) -> None:
    assert copied(ahead).copy.due == pytest.approx(WALL + 10_000, abs=250)


@pytest.mark.parametrize("ahead", FAR)
def test_a_restart_waits_for_the_rest_of_it_whatever_the_creator_s_clock_shows(
    ahead: Millis,
) -> None:
    rig = restarted(copied(ahead), 4000)

    assert queued_in(rig) == pytest.approx(66_000, abs=700)


@pytest.mark.parametrize("ahead", FAR)
def test_a_delay_that_is_over_is_over_whatever_the_creator_s_clock_shows(ahead: Millis) -> None:
    rig = restarted(copied(ahead), 15_000)

    assert queued_in(rig) == pytest.approx(60_000, abs=500)


def test_a_job_of_this_node_is_queued_when_its_delay_is_over() -> None:
    rig, job = delayed()

    assert queued_in(restarted(last(rig), 4000), job.id) == 6000


def test_the_rest_is_the_same_after_several_restarts() -> None:
    rig, job = delayed()
    record = last(rig)
    for _ in range(3):
        rig = restarted(record, 1000)
        record = LoadJob(stored(rig.node, rig.node.jobs[job.id]))
        # The next start is at the same hour again.
        record.copy.due -= 1000

    assert queued_in(rig, job.id) == 7000


@pytest.mark.parametrize("config", [CONFIG, ORIGINAL])
@pytest.mark.parametrize("ahead", FAR)
def test_a_job_with_retry_0_that_was_queued_may_have_been_delivered(
    ahead: Millis, config: Config
) -> None:
    rig, job = delayed(config, retry=0)
    rig.advance(10_100)
    record = last(rig)
    record.copy.ctime = made_by(ahead)

    again = restarted(record, 11_000)
    again.advance(100_000)

    assert record.copy.state == QUEUED
    assert again.node.jobs[job.id].state == ACTIVE


# Files of others.


def test_the_original_s_format_has_no_place_for_it() -> None:
    rig, _ = delayed(ORIGINAL)

    assert last(rig).copy.due == 0


@pytest.mark.parametrize(("ahead", "wait"), [(-3000, 3000), (0, 6000), (3000, 9000)])
def test_a_record_without_it_counts_by_the_creator_s_clock(ahead: Millis, wait: Millis) -> None:
    rig, job = delayed(ORIGINAL)
    record = last(rig)
    record.copy.ctime = made_by(ahead)

    assert queued_in(restarted(record, 4000), job.id) == wait


def test_but_for_no_more_than_the_whole_delay() -> None:
    rig, job = delayed(ORIGINAL)
    record = last(rig)
    record.copy.ctime = made_by(3_600_000)

    assert queued_in(restarted(record, 4000), job.id) == 10_000


# A clock that jumps while the node is down.


def test_a_delay_counts_from_the_start_at_most_if_the_clock_has_gone_back() -> None:
    rig, job = delayed()

    assert queued_in(restarted(last(rig), 4000, jump=-3_600_000), job.id) == 10_000


def test_a_delay_is_over_if_the_clock_has_gone_on_too_far() -> None:
    rig, job = delayed()

    again = restarted(last(rig), 4000, jump=100_000)

    assert queued_in(again, job.id) == pytest.approx(60_000, abs=500)


def test_retry_does_not_depend_on_it() -> None:
    record = LoadJob(attrs.evolve(copied(0).copy, delay=0, due=0))

    for jump in FAR:
        assert queued_in(restarted(record, 5000, jump=jump)) == pytest.approx(60_000, abs=500)


# TTL.


@pytest.mark.parametrize("ahead", FAR)
def test_the_life_of_a_copy_does_not_depend_on_the_creator_s_clock(ahead: Millis) -> None:
    rig = restarted(copied(ahead), 4000)

    left = rig.node.jobs[JOB].expires - rig.now.mono

    assert 86_401_000 - 4000 <= left <= 86_402_000 - 4000


def test_a_job_is_lost_here_if_the_clock_has_gone_on_beyond_its_expiry() -> None:
    rig, job = delayed()

    assert job.id not in restarted(last(rig), 4000, jump=600_000).node.jobs
