"""Jobs that are tied to a connection: GETJOB TIED."""

import pytest

from disque_trio.statemachine.base import ACTIVE, QUEUED
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.messages import WillQueue, Working
from tests.rig import JOB, N2, N3, Rig
from tests.statemachine.handing import RETRY, cluster, take


def test_a_tied_job_is_queued_again_when_its_connection_has_ended() -> None:
    rig = Rig()
    worker = rig.connect()
    job = rig.add("RETRY", 60)
    take(rig, "TIED", client=worker)
    assert len(worker.tied or ()) == 1

    rig.disconnect(worker)
    rig.advance(1_990)
    assert job.state == ACTIVE

    rig.advance(20)
    assert (job.state, job.deliveries, job.nacks) == (QUEUED, 1, 0)


def test_other_jobs_keep_their_leases() -> None:
    rig = Rig()
    worker = rig.connect()
    job = rig.add("RETRY", 60)
    take(rig, "WITHMETA", client=worker)

    rig.disconnect(worker)
    rig.advance(RETRY - 1000)

    assert job.state == ACTIVE


@pytest.mark.parametrize("when", ["before", "after"])
def test_work_from_another_connection_unties(when: str) -> None:
    rig = Rig()
    worker = rig.connect()
    job = rig.add("RETRY", 60)
    take(rig, "TIED", client=worker)

    if when == "before":
        rig.ask("WORKING", job.id)
    rig.disconnect(worker)
    if when == "after":
        rig.ask("WORKING", job.id)
    rig.advance(RETRY - 1000)

    assert job.state == ACTIVE


def test_work_from_the_same_connection_does_not() -> None:
    rig = Rig()
    worker = rig.connect()
    job = rig.add("RETRY", 60)
    take(rig, "TIED", client=worker)
    rig.ask("WORKING", job.id, client=worker)

    rig.disconnect(worker)
    rig.advance(2_010)

    assert job.state == QUEUED


def test_an_ack_within_the_grace_is_in_time() -> None:
    rig = Rig()
    worker = rig.connect()
    job = rig.add("RETRY", 60)
    take(rig, "TIED", client=worker)
    rig.disconnect(worker)

    assert rig.ask("ACKJOB", job.id) == 1

    assert not rig.node.tracked


def test_an_acknowledged_job_with_copies_is_not_tied_any_more() -> None:
    rig = cluster()
    worker = rig.connect()
    take(rig, "TIED", client=worker)

    rig.ask("ACKJOB", JOB)

    assert not worker.tied


def test_a_period_that_ends_earlier_than_the_grace_is_left_alone() -> None:
    rig = Rig(config=Config(tied_grace=5000))
    worker = rig.connect()
    job = rig.add("RETRY", 2)
    take(rig, "TIED", client=worker)

    rig.disconnect(worker)
    rig.advance(2_300)

    assert (job.state, job.deliveries) == (QUEUED, 1)


def test_another_holder_is_warned_and_may_object() -> None:
    rig = cluster()
    worker = rig.connect()
    take(rig, "TIED", client=worker)
    rig.sent()

    rig.disconnect(worker)
    rig.advance(1_600)
    assert rig.sent() == [(N2, WillQueue(JOB)), (N3, WillQueue(JOB))]

    rig.message(N2, Working(JOB))
    rig.advance(1_000)
    assert rig.node.jobs[JOB].state == ACTIVE


def test_a_client_that_waited_may_be_tied() -> None:
    rig = Rig()
    worker = rig.connect()
    rig.request("GETJOB", "TIED", "FROM", "q", client=worker)
    job = rig.add("RETRY", 60)

    rig.disconnect(worker)
    rig.advance(2_010)

    assert job.state == QUEUED


def test_a_job_whose_period_is_over_is_not_tied_any_more() -> None:
    rig = Rig()
    worker = rig.connect()
    job = rig.add("RETRY", 5)
    take(rig, "TIED", client=worker)
    rig.advance(5_300)
    take(rig)

    rig.disconnect(worker)
    rig.advance(3_000)

    assert (job.state, job.deliveries) == (ACTIVE, 1)
