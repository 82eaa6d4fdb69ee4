"""What the other holders make of it (docs/bus.md, "NACK with a delay")."""

import attrs
import pytest

from disque_trio.statemachine.base import ACTIVE, QUEUED, WAIT_REPL, JobId
from disque_trio.statemachine.job import digest_of
from disque_trio.statemachine.messages import (
    GotJob,
    Holders,
    JobCopy,
    Many,
    Message,
    Postponed,
    Queued,
    SetAck,
    WillQueue,
    Working,
    YourJobs,
)
from disque_trio.statemachine.postponing import MARGIN, rest
from tests.rig import JOB, ME, N2, N3, N4, ONCE, copy_of
from tests.statemachine.giving import (
    GRAIN,
    MOST,
    cluster,
    counts,
    counts_of,
    delivered,
    held,
)

# The other holders.


@pytest.mark.parametrize("retry", [1, 60])
def test_another_holder_queues_it_a_moment_later_if_that_node_does_not(retry: int) -> None:
    rig = cluster()
    job = held(rig, retry)

    rig.message(N2, Postponed(JOB, 5000, 1, is_new=True))
    assert counts_of(job) == (1, 0)
    assert rest(rig.node, job) == 5000
    rig.advance(5000 + MARGIN - GRAIN)
    assert job.state == ACTIVE

    rig.advance(MOST - MARGIN + 2 * GRAIN)
    assert job.state == QUEUED
    assert counts_of(job) == (1, 0)
    assert (N2, WillQueue(JOB)) in rig.sent()


def test_it_leaves_the_queue_and_the_worker_of_another_holder() -> None:
    for make in (held, delivered):
        rig = cluster()
        job = make(rig)
        if make is held:
            rig.ask("ENQUEUE", job.id)

        rig.message(N2, Postponed(JOB, 5000, 1, is_new=True))

        assert job.state == ACTIVE
        assert counts_of(job)[0] == 1
        assert rest(rig.node, job) == 5000


def test_when_it_is_queued_there_the_usual_period_begins() -> None:
    rig = cluster()
    job = held(rig)
    rig.message(N2, Postponed(JOB, 5000, 1, is_new=True))
    rig.advance(4_900)

    rig.message(N2, Queued(JOB))

    assert rest(rig.node, job) == 0
    assert abs(job.requeue_at - rig.now.mono - 60_000) <= 250


@pytest.mark.parametrize("said", [Queued(JOB, told=True), Queued(JOB, nack=True)])
def test_a_client_may_end_the_wait_elsewhere(said: Queued) -> None:
    rig = cluster()
    job = held(rig)
    rig.message(N2, Postponed(JOB, 50_000, 1, is_new=True))

    rig.message(N3, said)

    assert rest(rig.node, job) == 0


def test_an_at_most_once_job_has_no_time_to_be_postponed() -> None:
    rig = cluster()
    job = rig.hold(copy_of(ONCE, retry=0))

    rig.message(N2, Postponed(ONCE, 5000, 1, is_new=True))

    assert (job.requeue_at, job.nacks) == (0, 0)


def test_an_acknowledged_job_is_not_postponed() -> None:
    rig = cluster()
    held(rig)
    rig.ask("ACKJOB", JOB)
    rig.sent()

    rig.message(N2, Postponed(JOB, 5000, 1, is_new=True))

    assert rig.sent() == [(N2, SetAck(JOB, 3, digest_of((N2, N3, ME))))]


def test_a_job_that_waits_for_copies_waits_here_too() -> None:
    rig = cluster()
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 3)
    [job] = rig.node.jobs.values()
    rig.message(N2, Postponed(job.id, 5000, 1, is_new=True))
    assert job.state == WAIT_REPL

    rig.message(N2, GotJob(job.id))
    rig.message(N3, GotJob(job.id))

    assert (job.state, rest(rig.node, job)) == (ACTIVE, 5000)


# Who has not heard.


def test_a_holder_that_has_not_heard_is_told_when_it_warns() -> None:
    rig = cluster()
    delivered(rig)
    rig.ask("NACK", JOB, "DELAY", 5)
    rig.advance(1000)
    rig.sent()

    rig.message(N3, WillQueue(JOB))

    assert rig.sent() == [(N3, Postponed(JOB, 4000, 1))]


def test_any_holder_that_knows_tells_it() -> None:
    rig = cluster()
    held(rig)
    rig.message(N2, Postponed(JOB, 5000, 1, is_new=True))
    rig.advance(1000)

    rig.message(N3, WillQueue(JOB))

    assert rig.sent() == [(N3, Postponed(JOB, 4000, 1))]


def test_nobody_is_told_when_the_wait_is_over() -> None:
    rig = cluster()
    held(rig)
    rig.message(N2, Postponed(JOB, 5000, 1, is_new=True))
    rig.advance(5000 + GRAIN)
    rig.sent()

    rig.message(N3, WillQueue(JOB))

    assert rig.sent() == []


def test_a_node_that_has_queued_it_without_having_heard_is_told() -> None:
    rig = cluster()
    job = delivered(rig)
    rig.ask("NACK", JOB, "DELAY", 5)
    rig.sent()

    rig.message(N3, Queued(JOB, redelivery=True))

    assert rig.sent() == [(N3, Postponed(JOB, 5000, 1))]
    assert rest(rig.node, job) == 5000


def test_one_that_gives_it_without_having_heard_is_told() -> None:
    rig = cluster()
    job = delivered(rig)
    rig.ask("NACK", JOB, "DELAY", 5)
    rig.sent()

    rig.message(N3, YourJobs((given(0),)))

    assert job.state == ACTIVE
    assert rig.sent() == [(N3, Postponed(JOB, 5000, 1))]


def test_one_that_gives_it_when_the_wait_is_over_there_is_believed() -> None:
    rig = cluster()
    job = delivered(rig)
    rig.ask("NACK", JOB, "DELAY", 5)

    rig.message(N3, YourJobs((given(1),)))

    assert job.state == QUEUED


def given(nacks: int) -> JobCopy:
    return attrs.evolve(copy_of(JOB, holders=(N2, N3, ME)), nacks=nacks, state=QUEUED)


@pytest.mark.parametrize("has_it_queued", [False, True])
def test_a_node_that_is_told_so_waits(has_it_queued: bool) -> None:
    rig = cluster()
    job = held(rig)
    if has_it_queued:
        rig.ask("ENQUEUE", JOB)

    rig.message(N2, Postponed(JOB, 4000, 3))

    assert (job.state, job.nacks, rest(rig.node, job)) == (ACTIVE, 0, 4000)


def test_a_node_that_knows_of_an_earlier_wait_hears_of_a_later_one() -> None:
    rig = cluster()
    job = held(rig)
    rig.message(N2, Postponed(JOB, 2000, 1, is_new=True))

    rig.message(N3, Postponed(JOB, 2500, 1))
    assert rest(rig.node, job) == 2000

    rig.message(N3, Postponed(JOB, 2500, 2))
    assert rest(rig.node, job) == 2500

    rig.message(N3, Postponed(JOB, 9000, 1))
    assert rest(rig.node, job) == 9000


def test_a_node_that_knows_more_does_not() -> None:
    waits, queued, works = cluster(), cluster(), cluster()
    for rig in (waits, queued, works):
        delivered(rig)
        rig.message(N2, Postponed(JOB, 1000, 1, is_new=True))
    queued.ask("ENQUEUE", JOB)
    works.ask("ENQUEUE", JOB)
    works.ask("GETJOB", "FROM", "q")

    for rig in (waits, queued, works):
        rig.message(N3, Postponed(JOB, 700, 1))

    assert rest(waits.node, waits.node.jobs[JOB]) == 1000
    assert queued.node.jobs[JOB].state == QUEUED
    assert counts(works) == (0, 1)


@pytest.mark.parametrize(("wait", "is_longer"), [(5000, False), (15_000, True)])
def test_of_a_worker_elsewhere_and_a_wait_the_longer_one_holds(
    wait: int, *, is_longer: bool
) -> None:
    rig = cluster()
    job = held(rig, 10)
    rig.message(N2, Working(JOB))
    due = job.requeue_at

    rig.message(N2, Postponed(JOB, wait, 0))

    assert rest(rig.node, job) == (wait if is_longer else 0)
    assert (job.requeue_at > due) == is_longer


@pytest.mark.parametrize("ids", [(JOB,), (JOB, ONCE)])
def test_news_of_a_worker_may_be_older_than_the_nack(ids: tuple[JobId, ...]) -> None:
    rig = cluster()
    job = delivered(rig, retry=10)
    rig.ask("NACK", JOB, "DELAY", 60)
    said: Message = Working(JOB) if len(ids) == 1 else Many(Working(JOB), ids)

    rig.message(N2, said)
    assert rest(rig.node, job) == 60_000

    rig.advance(59_600)
    rig.message(N2, said)
    assert rest(rig.node, job) == 0


def test_a_holder_that_is_introduced_is_told() -> None:
    rig = cluster(3)
    delivered(rig)
    rig.ask("NACK", JOB, "DELAY", 5)
    rig.sent()

    rig.message(N2, Holders(JOB, (N2, N3, ME, N4)))

    assert rig.sent() == [(N4, Postponed(JOB, 5000, 1))]


# Nodes that do not know the message.


def test_a_node_without_the_capability_is_told_what_it_knows() -> None:
    rig = cluster(ours=False)
    delivered(rig)

    rig.ask("NACK", JOB, "DELAY", 5)
    assert rig.sent() == [
        (N2, Queued(JOB, nack=True)),
        (N3, Queued(JOB, nack=True)),
        (N2, Working(JOB)),
        (N3, Working(JOB)),
    ]

    rig.message(N2, WillQueue(JOB))
    assert rig.sent() == [(N2, Working(JOB))]


@pytest.mark.parametrize(("first", "second"), [(5000, 9000), (9000, 5000)])
def test_of_two_waits_the_longer_one_holds(first: int, second: int) -> None:
    rig = cluster()
    job = delivered(rig)
    rig.ask("NACK", JOB, "DELAY", first // 1000)

    rig.message(N2, Postponed(JOB, second, 1, is_new=True))

    assert (rest(rig.node, job), job.nacks) == (9000, 2)
