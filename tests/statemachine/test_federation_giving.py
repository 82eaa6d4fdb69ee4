import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.statemachine.base import ACKED, ACTIVE, BCAST_QUEUED, QUEUED, WAIT_REPL, NodeId
from disque_trio.statemachine.messages import (
    DelJob,
    GotAck,
    JobCopy,
    Message,
    NeedJobs,
    Queued,
    SetAck,
    Working,
    YourJobs,
)
from tests.rig import CALM, JOB, ME, N2, N3, ONCE, Rig, copy_of
from tests.statemachine.federating import give, ids

SPREAD = range(-250, 250)


def given_jobs(sent: list[tuple[NodeId, Message]]) -> list[tuple[NodeId, list[JobCopy]]]:
    found = []
    for to, message in sent:
        assert isinstance(message, YourJobs), message
        found.append((to, list(message.copies)))
    return found


# Giving.


def rig_with_jobs(count: int, *, retry: int = 60) -> Rig:
    rig = Rig(peers=2, config=CALM)
    for _ in range(count):
        rig.add("REPLICATE", 1, "RETRY", retry)
    rig.sent()
    return rig


def test_a_node_with_plenty_gives_what_is_asked_and_one_with_little_a_half() -> None:
    rig = rig_with_jobs(30)
    numbers = []
    for wanted in (5, 5, 5, 100, 100, 100, 100, 100, 100):
        rig.message(N2, NeedJobs(b"q", wanted))
        numbers.append(sum(len(copies) for _, copies in given_jobs(rig.sent())))

    assert numbers == [5, 5, 5, 7, 4, 2, 1, 1, 0]


def test_the_oldest_jobs_are_given() -> None:
    rig = rig_with_jobs(4)
    oldest = [job.id for job in rig.queue().peek(2)]

    rig.message(N2, NeedJobs(b"q", 2))

    assert [copy.id for _, copies in given_jobs(rig.sent()) for copy in copies] == oldest
    assert rig.queue().jobs_out == 2


def test_a_given_job_waits_here_with_the_receiver_as_a_holder() -> None:
    rig = rig_with_jobs(1)
    job = next(iter(rig.node.jobs.values()))
    rig.advance(30_000)
    rig.sent()

    rig.message(N2, NeedJobs(b"q", 1))

    assert job.state == ACTIVE
    assert job.holders == (ME, N2)
    assert job.requeue_at - rig.now.mono - 60_000 in SPREAD
    [(to, [copy])] = given_jobs(rig.sent())
    assert (to, copy.id, copy.holders) == (N2, job.id, (ME, N2))


def test_a_node_that_was_given_a_job_learns_from_the_giver_that_it_was_deleted() -> None:
    rig = Rig(peers=2, config=CALM)
    rig.hold(copy_of(holders=(N2, ME)))
    rig.ask("ENQUEUE", JOB)
    rig.message(N3, NeedJobs(b"q", 1))
    rig.sent()

    # FASTACK at N2, who does not know that N3 will have it.
    rig.message(N2, DelJob(JOB))

    assert rig.node.jobs == {}
    assert rig.sent() == [(N3, SetAck(JOB, 0))]


def test_an_acknowledged_job_that_is_deleted_has_asked_all_holders() -> None:
    rig = Rig(peers=2, config=CALM)
    rig.hold(copy_of(holders=(N2, ME)))
    rig.ask("ENQUEUE", JOB)
    rig.message(N3, NeedJobs(b"q", 1))
    rig.message(N2, SetAck(JOB, 3))
    rig.sent()

    rig.message(N2, DelJob(JOB))

    assert rig.sent() == []


def test_a_given_at_most_once_job_is_not_here_any_more() -> None:
    rig = rig_with_jobs(3, retry=0)

    rig.message(N2, NeedJobs(b"q", 1))

    [(_, [copy])] = given_jobs(rig.sent())
    assert copy.id not in rig.node.jobs
    assert len(rig.node.jobs) == len(rig.queue()) == 2


@pytest.mark.parametrize("count", [0, 1])
def test_at_least_one_job_is_given(count: int) -> None:
    rig = rig_with_jobs(2)

    rig.message(N2, NeedJobs(b"q", count))

    assert [len(copies) for _, copies in given_jobs(rig.sent())] == [1]


def test_never_more_than_a_hundred_jobs_are_given() -> None:
    rig = rig_with_jobs(300)

    rig.message(N2, NeedJobs(b"q", 0xFFFF_FFFF))

    assert [len(copies) for _, copies in given_jobs(rig.sent())] == [100]


def test_large_jobs_travel_in_smaller_numbers() -> None:
    rig = Rig(peers=1)
    for _ in range(20):
        rig.add("REPLICATE", 1, body="x" * (6 << 20))
    rig.sent()

    rig.message(N2, NeedJobs(b"q", 10))

    assert [len(copies) for _, copies in given_jobs(rig.sent())] == [3]


def test_a_node_that_imports_for_the_queue_itself_gives_nothing() -> None:
    rig = Rig(peers=2, config=CALM)
    give(rig, N2, *ids(10))

    rig.message(N3, NeedJobs(b"q", 5))
    assert rig.sent() == []

    rig.advance(5_001)
    rig.message(N3, NeedJobs(b"q", 5))
    assert [to for to, _ in given_jobs(rig.sent())] == [N3]


def test_a_queue_without_jobs_or_paused_in_output_gives_nothing() -> None:
    rig = rig_with_jobs(1)
    rig.message(N2, NeedJobs(b"other", 5))
    rig.request("GETJOB", "NOHANG", "FROM", "empty")
    rig.sent()
    rig.message(N2, NeedJobs(b"empty", 5))
    rig.ask("PAUSE", "q", "out")
    rig.message(N2, NeedJobs(b"q", 5))

    assert rig.sent() == []
    assert b"other" not in rig.node.queues


@pytest.mark.parametrize("ours", [False, True])
def test_expired_jobs_are_not_given(*, ours: bool) -> None:
    rig = Rig(peers=1, ours=ours)
    rig.add("REPLICATE", 1, "TTL", 1, "RETRY", 5)
    rig.now.mono += 1000

    rig.message(N2, NeedJobs(b"q", 1))

    assert [message for _, message in rig.sent() if isinstance(message, YourJobs)] == []
    assert rig.node.jobs == {}


def test_a_node_without_a_link_is_given_nothing() -> None:
    rig = rig_with_jobs(4)
    rig.lose_link(N2)

    rig.message(N2, NeedJobs(b"q", 1))

    assert rig.ask("QLEN", "q") == 4


def test_a_leaving_node_gives_its_jobs_away() -> None:
    rig = rig_with_jobs(1)
    rig.ask("CLUSTER", "LEAVING", "yes")

    rig.message(N2, NeedJobs(b"q", 1))

    assert [to for to, _ in given_jobs(rig.sent())] == [N2]


# Receiving.


def test_an_import_is_no_delivery_and_is_shown_to_all_holders_but_the_giver() -> None:
    rig = Rig(peers=2)

    rig.message(N2, YourJobs((copy_of(holders=(N2, N3)),)))

    job = rig.node.jobs[JOB]
    assert (job.state, job.deliveries) == (QUEUED, 0)
    assert job.holders == (N2, N3, ME)
    assert rig.queue().jobs_in == 1
    assert rig.queue().responders == {N2: rig.now.mono}
    assert rig.sent() == [(N3, Queued(JOB))]


def test_an_importer_unknown_as_a_holder_is_one_now_and_so_is_the_giver() -> None:
    rig = Rig(peers=2)

    rig.message(N2, YourJobs((copy_of(holders=(N3,)),)))

    assert rig.node.jobs[JOB].holders == (N3, ME, N2)


def test_so_is_that_of_a_copy_that_is_here_already() -> None:
    rig = Rig(peers=2)
    job = rig.hold(copy_of(holders=(N2, ME)))
    assert job.flags & BCAST_QUEUED

    rig.message(N2, YourJobs((copy_of(holders=(N2, N3, ME)),)))

    assert (job.state, job.deliveries, job.holders) == (QUEUED, 0, (N2, ME, N3))
    assert rig.sent() == [(N3, Queued(JOB))]


def test_a_job_that_is_queued_here_already_counts_as_nothing() -> None:
    rig = Rig(peers=1)
    give(rig, N2, JOB)
    rig.advance(100)
    rig.sent()

    give(rig, N2, JOB)

    assert rig.queue().jobs_in == len(rig.queue()) == 1
    assert rig.queue().responders == {N2: rig.now.mono - 100}
    assert rig.queue().import_count == 1


def test_an_imported_at_most_once_job_has_its_turn_here() -> None:
    rig = Rig(peers=1)

    rig.message(N2, YourJobs((copy_of(ONCE, retry=0),)))
    assert rig.ask("GETJOB", "FROM", "q") == [[b"q", ONCE, b"body"]]

    rig.message(N2, YourJobs((copy_of(ONCE, retry=0),)))
    assert rig.ask("QLEN", "q") == 0
    assert rig.node.jobs[ONCE].requeue_at == 0


def test_a_job_that_is_acknowledged_here_is_not_resurrected() -> None:
    rig = Rig(peers=1, config=CALM)
    rig.hold(copy_of())
    rig.ask("ACKJOB", JOB)
    rig.sent()

    give(rig, N2, JOB)

    assert rig.node.jobs[JOB].state == ACKED
    assert rig.sent() == [(N2, SetAck(JOB, 2))]


def test_nor_is_one_whose_ack_alone_is_here() -> None:
    rig = Rig(peers=1, config=CALM)
    rig.ask("ACKJOB", JOB)
    rig.sent()

    give(rig, N2, JOB)

    assert rig.node.jobs[JOB].is_dummy
    assert rig.sent() == [(N2, SetAck(JOB, 0))]


def test_the_holders_that_a_late_giver_of_an_acknowledged_job_names_are_asked_too() -> None:
    rig = Rig(peers=2, config=CALM)
    rig.hold(copy_of(holders=(N2, ME)))
    rig.ask("ACKJOB", JOB)
    rig.sent()

    rig.message(N2, YourJobs((copy_of(holders=(N2, N3, ME)),)))
    assert rig.sent() == [(N2, SetAck(JOB, 3)), (N3, SetAck(JOB, 3))]

    rig.message(N2, GotAck(JOB, known=True))
    assert JOB in rig.node.jobs
    rig.message(N3, GotAck(JOB, known=True))
    assert JOB not in rig.node.jobs


def test_a_job_that_waits_for_copies_here_goes_on_waiting() -> None:
    rig = Rig(peers=2)
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 3)
    job = next(iter(rig.node.jobs.values()))

    give(rig, N2, job.id)

    assert job.state == WAIT_REPL


def test_a_job_that_is_given_twice_is_delivered_once() -> None:
    rig = Rig(peers=1, config=CALM)
    give(rig, N2, JOB)
    rig.ask("GETJOB", "FROM", "q")
    rig.sent()

    # Both were under way before the giver could know of the delivery.
    rig.message(N2, Queued(JOB, redelivery=True))
    give(rig, N2, JOB)

    assert rig.ask("QLEN", "q") == 0
    assert rig.sent() == [(N2, Working(JOB)), (N2, Working(JOB))]


def test_it_is_taken_again_when_a_client_of_the_giver_wanted_it_queued() -> None:
    rig = Rig(peers=1, config=CALM)
    give(rig, N2, JOB)
    rig.ask("GETJOB", "FROM", "q")

    rig.message(N2, Queued(JOB, redelivery=True, told=True))
    give(rig, N2, JOB)

    assert rig.ask("QLEN", "q") == 1


def test_imports_are_welcome_in_paused_queues_and_on_leaving_nodes() -> None:
    rig = Rig(peers=1)
    rig.ask("PAUSE", "q", "all")
    rig.ask("CLUSTER", "LEAVING", "yes")

    give(rig, N2, JOB)

    assert rig.ask("QLEN", "q") == 1


def test_after_a_new_giver_all_nodes_are_asked_soon_again() -> None:
    rig = Rig(peers=2, config=CALM)
    rig.request("GETJOB", "FROM", "q")
    rig.advance(60_000)
    assert rig.queue().broadcast_attempt == 5

    rig.message(N2, YourJobs((copy_of(holders=(N2,)),)))
    assert rig.queue().broadcast_attempt == 1

    rig.advance(1_000)
    give(rig, N2, *ids(1))
    assert rig.queue().broadcast_attempt == 1
    assert rig.queue().adhoc_attempt <= 1


def test_a_delivered_import_is_told_to_its_giver() -> None:
    rig = Rig(peers=1)
    give(rig, N2, JOB)
    rig.sent()

    rig.request("GETJOB", "FROM", "q")

    assert (N2, Working(JOB)) in rig.sent()


@given(
    length=st.integers(1, 250),
    wanted=st.integers(0, 300),
)
def test_how_many_jobs_are_given(length: int, wanted: int) -> None:
    rig = Rig(peers=1)
    for _ in range(length):
        rig.request("ADDJOB", "q", "", 0, "REPLICATE", 1)
    rig.sent()

    rig.message(N2, NeedJobs(b"q", wanted))

    [(_, copies)] = given_jobs(rig.sent())
    asked = min(max(wanted, 1), 100)
    assert len(copies) == (asked if length >= 2 * asked else max(length // 2, 1))
    assert len(rig.queue()) == length - len(copies)
