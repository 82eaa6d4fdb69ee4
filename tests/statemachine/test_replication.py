import pytest

from disque_trio.statemachine import replication
from disque_trio.statemachine.base import ACTIVE, QUEUED, WAIT_REPL, Failure, NodeId, Status
from disque_trio.statemachine.job import STAMPS
from disque_trio.statemachine.messages import DelJob, GotJob, ReplJob
from tests.rig import CALM, JOB, ME, N2, N3, N4, Rig
from tests.statemachine.replicating import GRAIN, REMOVED, repljobs, waiting_job

# Creation stamps.


def test_creation_stamps_are_wall_milliseconds_with_room_for_a_million_jobs_each() -> None:
    rig = Rig()
    first, second = rig.add(), rig.add()

    assert first.ctime == rig.now.wall * 1_000_000
    assert second.ctime == first.ctime + 1


def test_a_wall_clock_that_jumps_back_does_not_turn_the_order_around() -> None:
    rig = Rig()
    first = rig.add()
    rig.now.wall -= 3_600_000

    assert rig.add().ctime == first.ctime + 1


def test_after_a_million_jobs_the_next_millisecond_begins() -> None:
    rig = Rig()
    first = rig.add()
    rig.node.last_number = STAMPS - 1

    assert rig.add().ctime == first.ctime + 1_000_000


# The fan-out.


def test_a_new_job_goes_to_as_many_nodes_as_are_wanted_and_names_them_all() -> None:
    rig = Rig(peers=2)

    job = waiting_job(rig, "REPLICATE", 3)

    sent = rig.sent()
    assert repljobs(sent) == [(N2, False), (N3, False)]
    message = sent[0][1]
    assert isinstance(message, ReplJob)
    assert message.copies[0].holders == job.holders == (ME, N2, N3)
    assert job.confirmed == (ME,)
    assert rig.node.adding[job.id] is rig.client.pending_adds[0]
    assert job.state == WAIT_REPL


def test_every_node_has_its_share_of_the_copies() -> None:
    rig = Rig(peers=3)
    chosen = []
    for _ in range(60):
        chosen.append(waiting_job_of_another_client(rig))
        rig.advance(1)

    assert {len(holders) for holders in chosen} == {2}
    assert min(sum(peer in holders for holders in chosen) for peer in (N2, N3, N4)) > 8


def test_jobs_of_the_same_moment_go_to_the_same_nodes() -> None:
    rig = Rig(peers=3)

    chosen = [waiting_job_of_another_client(rig) for _ in range(60)]

    assert len(set(chosen)) == 1


def waiting_job_of_another_client(rig: Rig) -> tuple[NodeId, ...]:
    rig.client = rig.connect()
    return waiting_job(rig, "REPLICATE", 2).holders


def test_only_nodes_with_a_link_are_chosen() -> None:
    rig = Rig(peers=2)
    rig.lose_link(N2)

    job = waiting_job(rig, "REPLICATE", 2)

    assert job.holders == (ME, N3)


def test_a_job_for_one_node_is_not_sent_anywhere() -> None:
    rig = Rig(peers=2)

    job = rig.add("REPLICATE", 1)

    assert job.state == QUEUED
    assert rig.sent() == []


# Success.


def test_the_client_has_its_id_when_enough_nodes_have_a_copy() -> None:
    rig = Rig(peers=2)
    job = waiting_job(rig, "REPLICATE", 3)

    rig.message(N2, GotJob(job.id))
    rig.message(N2, GotJob(job.id))
    assert rig.replies() == []

    rig.message(N3, GotJob(job.id))
    assert rig.reply() == Status(job.id)
    assert (job.state, job.confirmed, rig.node.adding) == (QUEUED, None, {})
    assert rig.machine.accepts(rig.client)


def test_a_delayed_job_is_active_once_it_has_its_copies() -> None:
    rig = Rig(peers=1)
    job = waiting_job(rig, "REPLICATE", 2, "DELAY", 10)

    rig.message(N2, GotJob(job.id))

    assert rig.reply() == Status(job.id)
    assert (job.state, job.requeue_at) == (ACTIVE, rig.now.mono + 10_000)
    rig.advance(10_000 + GRAIN)
    assert job.state == QUEUED


def test_a_waiting_consumer_gets_the_job_as_soon_as_it_is_safe() -> None:
    rig = Rig(peers=1)
    worker = rig.connect()
    rig.request("GETJOB", "FROM", "q", client=worker)
    job = waiting_job(rig, "REPLICATE", 2)
    assert rig.replies(worker) == []

    rig.message(N2, GotJob(job.id))

    assert rig.reply(worker) == [[b"q", job.id, b"body"]]


def test_a_confirmation_that_comes_late_or_unasked_changes_nothing() -> None:
    rig = Rig(peers=2)
    job = waiting_job(rig, "REPLICATE", 2)
    holder, other = (N2, N3) if N2 in job.holders else (N3, N2)
    rig.message(holder, GotJob(job.id))

    rig.message(other, GotJob(job.id))
    rig.message(other, GotJob(JOB))

    assert job.holders == (ME, holder)
    assert len(rig.replies()) == 1


def test_confirmations_from_nodes_that_were_not_asked_count_too() -> None:
    rig = Rig(peers=2)
    job = waiting_job(rig, "REPLICATE", 2)
    unasked = N3 if N2 in job.holders else N2

    rig.message(unasked, GotJob(job.id))

    assert unasked in job.holders
    assert rig.reply() == Status(job.id)


# Widening.


def test_every_fifty_milliseconds_one_more_node_is_asked_and_all_are_told_of_it() -> None:
    rig = Rig(peers=3)
    job = waiting_job(rig, "REPLICATE", 3)
    rig.sent()
    first, second = job.holders[1:]
    rig.message(first, GotJob(job.id))

    rig.advance(50 + GRAIN)

    third = job.holders[3]
    sent = rig.sent()
    assert repljobs(sent) == [(second, False), (third, False), (first, True)]
    for _, message in sent:
        assert isinstance(message, ReplJob)
        assert message.copies[0].holders == job.holders == (ME, first, second, third)


def test_with_no_node_left_those_that_have_not_confirmed_are_asked_again() -> None:
    rig = Rig(peers=2)
    job = waiting_job(rig, "REPLICATE", 3)
    rig.message(N2, GotJob(job.id))
    rig.sent()

    rig.advance(50 + GRAIN)
    assert repljobs(rig.sent()) == [(N3, False)]
    rig.advance(90)
    assert rig.sent() == []
    rig.advance(10 + GRAIN)
    assert repljobs(rig.sent()) == [(N3, False)]


def test_a_node_that_comes_up_meanwhile_is_asked() -> None:
    rig = Rig(peers=2, config=CALM)
    rig.lose_link(N3)
    job = waiting_job(rig, "REPLICATE", 2)
    assert N3 not in job.holders

    rig.advance(400)

    assert job.holders == (ME, N2, N3)


# Failure.


def test_a_job_without_its_copies_in_time_is_taken_back() -> None:
    rig = Rig(peers=2)
    job = waiting_job(rig, "REPLICATE", 3, timeout=30)
    rig.sent()

    rig.advance(29)
    assert rig.replies() == []
    rig.advance(GRAIN)

    assert rig.reply() == Failure(
        b"NOREPL Timeout reached before replicating to the requested number of nodes"
    )
    assert rig.sent() == [(N2, DelJob(job.id)), (N3, DelJob(job.id))]
    assert rig.node.jobs == {}
    assert rig.machine.accepts(rig.client)


def test_a_timeout_counts_although_copies_are_sent_meanwhile() -> None:
    rig = Rig(peers=2)
    waiting_job(rig, "REPLICATE", 3, timeout=1000)

    rig.advance(999)
    assert rig.replies() == []
    rig.advance(GRAIN)
    assert len(rig.replies()) == 1


def test_a_job_that_expires_while_it_waits_is_taken_back() -> None:
    rig = Rig(peers=2)
    job = waiting_job(rig, "REPLICATE", 3, "TTL", 2)
    rig.advance(1999)
    rig.sent()

    rig.advance(GRAIN)

    assert rig.reply() == REMOVED
    assert rig.sent() == [(N2, DelJob(job.id)), (N3, DelJob(job.id))]


@pytest.mark.parametrize("how", ["DELJOB", "FASTACK"])
def test_a_job_that_is_deleted_while_it_waits_is_taken_back(how: str) -> None:
    rig = Rig(peers=1)
    job = waiting_job(rig, "REPLICATE", 2)
    rig.sent()

    assert rig.ask(how, job.id, client=rig.connect()) == 1

    assert rig.reply() == REMOVED
    assert set(dict(rig.sent())) == {N2}
    assert rig.node.jobs == {}


def test_another_node_may_delete_a_job_that_waits() -> None:
    rig = Rig(peers=2)
    job = waiting_job(rig, "REPLICATE", 3)
    rig.sent()

    rig.message(N2, DelJob(job.id))

    assert rig.reply() == REMOVED
    assert rig.sent() == [(N2, DelJob(job.id)), (N3, DelJob(job.id))]


def test_a_client_that_goes_takes_its_job_along() -> None:
    rig = Rig(peers=1)
    job = waiting_job(rig, "REPLICATE", 2)
    rig.sent()

    rig.disconnect(rig.client)

    assert rig.replies() == []
    assert rig.sent() == [(N2, DelJob(job.id))]
    assert rig.node.jobs == {}


# ASYNC.


def test_an_asynchronous_job_is_queued_at_once_and_its_copies_want_no_answer() -> None:
    rig = Rig(peers=2)

    job = rig.add("REPLICATE", 3, "ASYNC")

    assert (job.state, job.holders, job.confirmed) == (QUEUED, (ME, N2, N3), None)
    assert repljobs(rig.sent()) == [(N2, True), (N3, True)]


def test_no_node_is_added_when_none_is_wanted() -> None:
    rig = Rig(peers=1)
    job = rig.add("REPLICATE", 1)

    assert replication.add_nodes(rig.node, job, 0) == 0
    assert job.holders == (ME,)
