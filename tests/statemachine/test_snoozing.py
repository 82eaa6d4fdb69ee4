"""RELEASE with a delay, between holders (docs/bus.md, "NACK with a delay")."""

import attrs
import pytest

from disque_trio.statemachine.base import ACTIVE, CAPABILITIES, EXTENDS, QUEUED, SNOOZES, NodeId
from disque_trio.statemachine.events import Cause, Kind
from disque_trio.statemachine.extensions import MAX_SNOOZES, Extensions
from disque_trio.statemachine.messages import (
    JobCopy,
    NeedJobs,
    Postponed,
    Queued,
    WillQueue,
    Working,
    YourJobs,
)
from disque_trio.statemachine.postponing import MARGIN, rest
from tests.rig import JOB, ME, N2, N3, Rig, copy_of
from tests.statemachine.giving import GRAIN, MOST, cluster, counts, delivered, held

SNOOZED = Postponed(JOB, 5000, 0, snoozes=1, is_snooze=True)


def given(snoozes: int) -> JobCopy:
    found = Extensions(snoozes=snoozes) if snoozes else None
    return attrs.evolve(copy_of(JOB, holders=(N2, N3, ME)), extensions=found, state=QUEUED)


def lacks(rig: Rig, id: NodeId, capability: int) -> None:
    rig.node.cluster.nodes[id].capabilities = CAPABILITIES & ~capability


# The node of the RELEASE.


def test_the_holders_hear_how_long_it_waits_and_how_often_it_has() -> None:
    rig = cluster()
    job = delivered(rig)

    rig.ask("RELEASE", job.id, "DELAY", 5)

    assert rig.sent() == [(N2, SNOOZED), (N3, SNOOZED)]
    assert counts(rig) == (1, 0)


def test_it_is_queued_when_the_wait_is_over_and_counted_nowhere() -> None:
    rig = cluster()
    job = delivered(rig)
    before = job.nacks, job.deliveries
    rig.ask("RELEASE", job.id, "DELAY", 5)

    rig.advance(5000 - GRAIN)
    assert job.state == ACTIVE
    rig.sent()
    rig.advance(2 * GRAIN)

    assert job.state == QUEUED
    assert (job.nacks, job.deliveries) == before
    assert rig.sent() == [(N2, Queued(JOB)), (N3, Queued(JOB))]
    assert counts(rig) == (0, 0)


def test_it_is_traced_by_its_own_name() -> None:
    rig = cluster()
    rig.node.trace = []
    job = delivered(rig)
    rig.ask("RELEASE", job.id, "DELAY", 5)

    found = [event for event in rig.node.trace if event.kind is Kind.POSTPONE]

    told = [(event.cause, event.detail) for event in found]
    assert told == [(Cause.RELEASE, "wait=5000 snoozes=1")]


def test_the_greatest_count_stays() -> None:
    rig = cluster()
    job = delivered(rig)
    rig.message(N2, Postponed(JOB, 1, 0, snoozes=MAX_SNOOZES, is_snooze=True))
    rig.ask("ENQUEUE", job.id)
    rig.ask("GETJOB", "FROM", "q")

    assert rig.ask("RELEASE", job.id, "DELAY", 5) == 1
    assert job.snoozes == MAX_SNOOZES


# The other holders.


@pytest.mark.parametrize("make", [held, delivered])
def test_another_holder_counts_and_waits_a_moment_longer(make: object) -> None:
    rig = cluster()
    job = delivered(rig) if make is delivered else held(rig)
    before = job.nacks, job.deliveries

    rig.message(N2, SNOOZED)
    assert (job.snoozes, rest(rig.node, job)) == (1, 5000)
    rig.advance(5000 + MARGIN - GRAIN)
    assert job.state == ACTIVE

    rig.advance(MOST - MARGIN + 2 * GRAIN)
    assert job.state == QUEUED
    assert (job.nacks, job.deliveries, job.snoozes) == (*before, 1)


def test_whoever_warns_without_having_heard_is_told_the_count() -> None:
    rig = cluster()
    held(rig)
    rig.message(N2, SNOOZED)
    rig.advance(1000)

    rig.message(N3, WillQueue(JOB))

    assert rig.sent() == [(N3, Postponed(JOB, 4000, 0, snoozes=1))]


@pytest.mark.parametrize("has_it_queued", [False, True])
def test_whoever_is_told_later_waits_and_counts(has_it_queued: bool) -> None:
    rig = cluster()
    job = held(rig)
    if has_it_queued:
        rig.ask("ENQUEUE", JOB)

    rig.message(N2, Postponed(JOB, 100, 0, snoozes=2))

    assert (job.state, job.snoozes, rest(rig.node, job)) == (ACTIVE, 2, 100)


def test_word_of_a_wait_that_is_known_changes_nothing() -> None:
    rig = cluster()
    job = held(rig)
    rig.message(N2, SNOOZED)
    rig.ask("ENQUEUE", JOB)

    rig.message(N3, Postponed(JOB, 700, 0, snoozes=1))

    assert (job.state, job.snoozes) == (QUEUED, 1)


def test_a_worker_that_has_it_here_is_left_alone_by_late_word_which_counts() -> None:
    rig = cluster()
    job = delivered(rig)

    rig.message(N3, Postponed(JOB, 90_000, 0, snoozes=1))

    assert (counts(rig), job.snoozes) == ((0, 1), 1)


# Jobs that move.


def test_a_copy_that_is_given_brings_the_count() -> None:
    rig = cluster()
    job = held(rig)

    rig.message(N2, YourJobs((given(2),)))

    assert (job.state, job.snoozes) == (QUEUED, 2)


def test_whoever_gives_it_without_having_heard_is_told() -> None:
    rig = cluster()
    job = held(rig)
    rig.message(N2, SNOOZED)

    rig.message(N3, YourJobs((given(0),)))
    assert job.state == ACTIVE
    assert rig.sent() == [(N3, Postponed(JOB, 5000, 0, snoozes=1))]

    rig.message(N3, YourJobs((given(1),)))
    assert job.state == QUEUED


def test_a_giver_that_counts_more_snoozes_knows_more_than_word_of_a_worker() -> None:
    rig = cluster()
    job = held(rig)
    rig.message(N2, Working(JOB))

    rig.message(N3, YourJobs((given(0),)))
    assert job.state == ACTIVE

    rig.message(N3, YourJobs((given(1),)))
    assert job.state == QUEUED


# Nodes that do not know the count.


def test_an_earlier_version_of_ours_is_told_the_wait_alone() -> None:
    rig = cluster()
    lacks(rig, N3, SNOOZES)
    delivered(rig)

    rig.ask("RELEASE", JOB, "DELAY", 5)

    assert rig.sent() == [(N2, SNOOZED), (N3, Postponed(JOB, 5000, 0))]


def test_an_original_is_told_that_a_worker_has_it() -> None:
    rig = cluster(ours=False)
    delivered(rig)

    rig.ask("RELEASE", JOB, "DELAY", 5)
    assert rig.sent() == [(N2, Working(JOB)), (N3, Working(JOB))]

    rig.message(N2, WillQueue(JOB))
    assert rig.sent() == [(N2, Working(JOB))]


@pytest.mark.parametrize("has_place", [False, True])
def test_a_node_that_keeps_no_extensions_gets_the_job_without_its_count(has_place: bool) -> None:
    rig = cluster()
    job = delivered(rig)
    rig.ask("RELEASE", JOB, "DELAY", 1)
    rig.advance(1000 + GRAIN)
    assert job.state == QUEUED
    if not has_place:
        lacks(rig, N2, EXTENDS)
    rig.sent()

    rig.message(N2, NeedJobs(b"q", 1, waits=True))

    [given] = [each for _, each in rig.sent() if isinstance(each, YourJobs)]
    [copy] = given.copies
    assert copy.extensions == (Extensions(snoozes=1) if has_place else None)


def test_a_job_with_a_priority_needs_a_place_for_it() -> None:
    assert Extensions(snoozes=1).needs == 0
    assert Extensions(snoozes=1, priority=1).needs == EXTENDS
