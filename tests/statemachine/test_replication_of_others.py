"""Copies of other nodes' jobs."""

import pytest

from disque_trio.statemachine.base import ACKED, ACTIVE, BCAST_QUEUED
from disque_trio.statemachine.messages import GotAck, GotJob, ReplJob, SetAck
from tests.rig import CALM, JOB, ME, N2, N3, UNKNOWN, Rig, copy_of
from tests.statemachine.replicating import leaving_rig


def test_a_copy_is_kept_and_confirmed() -> None:
    rig = Rig(peers=2)

    rig.message(N2, ReplJob((copy_of(holders=(N2, ME, N3)),)))

    job = rig.node.jobs[JOB]
    assert job.state == ACTIVE
    assert job.flags & BCAST_QUEUED
    assert rig.sent() == [(N2, GotJob(JOB))]


def test_a_copy_that_wants_no_answer_has_none() -> None:
    rig = Rig(peers=1)

    rig.message(N2, ReplJob((copy_of(),), no_reply=True))

    assert JOB in rig.node.jobs
    assert rig.sent() == []


def test_of_a_copy_that_is_here_already_only_the_holders_are_taken() -> None:
    rig = Rig(peers=3)
    job = rig.hold(copy_of(holders=(N2, ME)))
    before = job.requeue_at

    rig.message(N2, ReplJob((copy_of(holders=(N2, N3, UNKNOWN, ME), retry=5),)))

    assert job.holders == (N2, ME, N3, UNKNOWN)
    assert (job.retry, job.requeue_at) == (60_000, before)
    assert rig.sent() == [(N2, GotJob(JOB))]


def test_a_copy_of_a_job_whose_acknowledgement_is_known_does_not_bring_it_back() -> None:
    rig = Rig(peers=1, config=CALM)
    rig.ask("ACKJOB", JOB)
    rig.sent()

    rig.message(N2, ReplJob((copy_of(),)))

    job = rig.node.jobs[JOB]
    assert (job.state, job.is_dummy, job.holders) == (ACKED, True, ())
    assert rig.sent() == [(N2, SetAck(JOB, 0))]


@pytest.mark.parametrize("no_reply", [False, True])
def test_who_sends_a_copy_of_an_acknowledged_job_learns_of_the_ack_and_so_does_who_is_named(
    no_reply: bool,
) -> None:
    rig = Rig(peers=2, config=CALM)
    rig.hold(copy_of(holders=(N2, ME)))
    rig.ask("ACKJOB", JOB)
    rig.sent()

    rig.message(N2, ReplJob((copy_of(holders=(N2, ME, N3)),), no_reply=no_reply))

    assert rig.node.jobs[JOB].holders == (N2, ME, N3)
    assert rig.sent() == [(N2, SetAck(JOB, 3)), (N3, SetAck(JOB, 3))]


@pytest.mark.parametrize("count", [0, 2])
def test_a_message_that_carries_not_exactly_one_job_is_ignored(count: int) -> None:
    rig = Rig(peers=1)

    rig.message(N2, ReplJob((copy_of(),) * count))

    assert rig.node.jobs == {}
    assert rig.sent() == []


def test_a_leaving_node_takes_no_copies() -> None:
    rig = leaving_rig(peers=1)

    rig.message(N2, ReplJob((copy_of(),)))

    assert rig.node.jobs == {}
    assert rig.sent() == []


def test_a_queue_paused_in_input_takes_no_copies() -> None:
    rig = Rig(peers=1)
    rig.ask("PAUSE", "q", "in")

    rig.message(N2, ReplJob((copy_of(),)))

    assert rig.node.jobs == {}
    assert rig.sent() == []


def test_a_node_that_takes_no_copies_still_learns_the_holders_of_a_job_that_is_here() -> None:
    for order in (("CLUSTER", "LEAVING", "yes"), ("PAUSE", "q", "in")):
        rig = Rig(peers=2)
        job = rig.hold(copy_of(holders=(N2, ME)))
        rig.ask(*order)
        rig.sent()

        rig.message(N2, ReplJob((copy_of(holders=(N2, ME, N3)),)))

        assert job.holders == (N2, ME, N3)
        assert rig.sent() == [], "a confirmation would count the copy"


def test_a_leaving_node_asks_a_holder_that_was_named_late_before_it_lets_go_of_an_ack() -> None:
    rig = Rig(peers=2)
    rig.hold(copy_of(holders=(N2, ME)))
    rig.ask("CLUSTER", "LEAVING", "yes")
    rig.ask("ACKJOB", JOB)
    rig.message(N2, ReplJob((copy_of(holders=(N2, ME, N3)),), no_reply=True))
    rig.sent()

    rig.message(N2, GotAck(JOB, known=True))

    assert JOB in rig.node.jobs
    rig.message(N3, GotAck(JOB, known=True))
    assert JOB not in rig.node.jobs


def test_a_copy_for_a_queue_paused_in_output_is_welcome() -> None:
    rig = Rig(peers=1)
    rig.ask("PAUSE", "q", "out")

    rig.message(N2, ReplJob((copy_of(),)))

    assert rig.sent() == [(N2, GotJob(JOB))]
