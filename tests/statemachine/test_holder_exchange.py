"""Holders of a job that do not know each other: who tells them, when, and what they say then."""

import pytest

from disque_trio.statemachine.base import CAPABILITIES
from disque_trio.statemachine.job import Job, digest_of
from disque_trio.statemachine.messages import (
    Holders,
    Queued,
    ReplJob,
    SetAck,
    WillQueue,
    Working,
    YourJobs,
)
from tests.rig import CALM, JOB, ME, N2, N3, N4, ONCE, Rig, copy_of
from tests.statemachine.requeuing import GRAIN, advance_to

ALL = (N2, N3, ME, N4)


def holder_rig(*, ours: bool = True) -> tuple[Rig, Job]:
    """A job whose list of holders has all nodes but N4."""
    rig = Rig(peers=3, config=CALM, ours=ours)
    return rig, rig.hold(copy_of(holders=(N2, N3, ME)))


# Telling.


@pytest.mark.parametrize("word", [WillQueue(JOB), Queued(JOB, redelivery=True)])
def test_a_holder_that_was_on_no_list_is_introduced_once_the_job_is_to_be_queued_again(
    word: WillQueue | Queued,
) -> None:
    rig, _ = holder_rig()
    rig.message(N4, Queued(JOB))
    rig.message(N4, Working(JOB))
    assert rig.sent() == []

    rig.message(N4, word)

    assert rig.sent() == [(id, Holders(JOB, ALL)) for id in (N2, N3, N4)]
    rig.message(N4, word)
    assert rig.sent() == []


def test_whoever_queues_the_job_again_introduces_before_it_warns() -> None:
    rig, job = holder_rig()
    rig.message(N4, Working(JOB))
    rig.sent()

    advance_to(rig, job.requeue_at - 500 + GRAIN)

    introduced = [(id, Holders(JOB, ALL)) for id in (N2, N3, N4)]
    assert rig.sent() == [*introduced, *[(id, WillQueue(JOB)) for id in (N2, N3, N4)]]


def test_holders_that_are_on_the_list_are_not_introduced() -> None:
    rig, _ = holder_rig()

    rig.message(N2, WillQueue(JOB))

    assert rig.sent() == []


def test_a_holder_that_only_this_node_has_to_know_is_not_introduced() -> None:
    rig = Rig(peers=1, config=CALM, ours=True)
    rig.hold(copy_of(holders=(ME,)))

    rig.message(N2, WillQueue(JOB))

    assert rig.sent() == []


def test_holders_that_have_repaired_a_job_without_each_other_are_introduced() -> None:
    rig, job = holder_rig()
    rig.message(N4, ReplJob((copy_of(holders=(N2, N4, ME)),)))
    rig.sent()

    rig.message(N4, WillQueue(JOB))

    assert rig.sent() == [(id, Holders(JOB, job.holders)) for id in job.holders if id != ME]


def test_whoever_sends_a_copy_with_all_holders_needs_no_introduction() -> None:
    rig, _ = holder_rig()
    rig.message(N2, ReplJob((copy_of(holders=(N2, N3, ME, N4)),)))
    rig.sent()

    rig.message(N2, WillQueue(JOB))

    assert rig.sent() == []


def test_original_nodes_are_not_told_what_they_do_not_understand() -> None:
    rig, _ = holder_rig(ours=False)
    rig.node.cluster.nodes[N3].capabilities = CAPABILITIES
    rig.message(N4, Queued(JOB))

    rig.message(N4, WillQueue(JOB))

    assert rig.sent() == [(N3, Holders(JOB, ALL))]


def test_a_giver_that_names_further_holders_has_them_introduced() -> None:
    rig, _ = holder_rig()
    rig.message(N2, YourJobs((copy_of(holders=(N2, N4)),)))
    rig.ask("DEQUEUE", JOB)
    rig.sent()

    rig.message(N3, WillQueue(JOB))

    assert rig.sent() == [(id, Holders(JOB, ALL)) for id in (N2, N3, N4)]


def test_of_nodes_that_know_the_same_holders_one_introduces() -> None:
    rig, _ = holder_rig()
    rig.message(N4, Queued(JOB))

    rig.message(N2, Holders(JOB, ALL))
    rig.message(N4, WillQueue(JOB))

    assert rig.sent() == []


def test_whoever_knows_more_introduces_in_turn() -> None:
    rig, _ = holder_rig()

    rig.message(N2, Holders(JOB, (N2, ME, N4)))
    rig.message(N2, WillQueue(JOB))

    assert rig.sent() == [(id, Holders(JOB, ALL)) for id in (N2, N3, N4)]


# Being told.


def test_a_holder_of_which_a_node_is_told_learns_that_the_job_is_queued_there() -> None:
    rig, _ = holder_rig()
    rig.ask("ENQUEUE", JOB)
    rig.sent()

    rig.message(N2, Holders(JOB, ALL))

    assert rig.sent() == [(N4, Queued(JOB))]


def test_or_that_a_worker_has_it() -> None:
    rig, _ = holder_rig()
    rig.ask("ENQUEUE", JOB)
    rig.ask("GETJOB", "FROM", "q")
    rig.sent()

    rig.message(N2, Holders(JOB, ALL))

    assert rig.sent() == [(N4, Working(JOB))]


def test_or_that_it_is_about_to_be_queued() -> None:
    rig, job = holder_rig()
    advance_to(rig, job.requeue_at - 500 + GRAIN)
    rig.sent()

    rig.message(N2, Holders(JOB, ALL))

    assert rig.sent() == [(N4, WillQueue(JOB))]


def test_a_job_that_only_waits_for_its_period_is_nothing_to_speak_of() -> None:
    rig, job = holder_rig()

    rig.message(N2, Holders(JOB, ALL))

    assert job.holders == ALL
    assert rig.sent() == []


def test_a_node_that_names_holders_is_one() -> None:
    rig, job = holder_rig()

    rig.message(N4, Holders(JOB, (N2, N3, ME)))

    assert job.holders == ALL


def test_named_holders_are_told_that_the_job_is_acknowledged() -> None:
    rig, job = holder_rig()
    rig.ask("ACKJOB", JOB)
    rig.sent()

    rig.message(N2, Holders(JOB, ALL))

    assert job.holders == ALL
    told = SetAck(JOB, 4, digest_of(ALL))
    assert rig.sent() == [(N2, told), (N4, told)]


def test_that_a_job_is_over_is_told_to_the_sender() -> None:
    rig, _ = holder_rig()
    rig.ask("FASTACK", JOB)
    rig.sent()

    rig.message(N2, Holders(JOB, ALL))

    assert rig.sent() == [(N2, SetAck(JOB, 0))]


def test_at_most_once_jobs_are_queued_once_so_no_holder_is_told() -> None:
    rig = Rig(peers=3, config=CALM, ours=True)
    job = rig.hold(copy_of(ONCE, holders=(N2, N3, ME), retry=0))

    rig.message(N2, Holders(ONCE, ALL))
    rig.message(N2, WillQueue(ONCE))

    assert job.holders == ALL
    assert rig.sent() == []
