"""Copies of dead jobs, nodes that were away, and nodes that do not know of dead jobs."""

import pytest

from disque_trio.statemachine import resend
from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    BURIES,
    CAPABILITIES,
    DEAD,
    QUEUED,
    Failure,
    NodeId,
)
from disque_trio.statemachine.extensions import DeadState
from disque_trio.statemachine.job import make_id
from disque_trio.statemachine.messages import (
    GotJob,
    HaveJobs,
    NeedJobs,
    Purge,
    Queued,
    ReplJob,
    WillQueue,
    Working,
    YourJobs,
)
from tests.rig import CALM, JOB, ME, N2, N3, Rig, copy_of
from tests.statemachine.burying import DAY, among_three, dead_of, limited, told
from tests.statemachine.repairing import SOON, asked, forget
from tests.statemachine.test_resend import returns

BURIED = DeadState(0, True, b"why", DAY)
REDRIVEN = DeadState(1, life=DAY)
AGAIN = DeadState(1, True, b"again", DAY)


# Copies.


def test_a_copy_of_a_dead_job_is_dead() -> None:
    rig = Rig(peers=2, ours=True, config=CALM)

    rig.message(N2, ReplJob((limited(copy_of(), dead=BURIED),)))

    assert (rig.node.jobs[JOB].state, dead_of(rig)) == (DEAD, [JOB])
    assert rig.sent() == [(N2, GotJob(JOB))]


def test_a_copy_tells_what_its_sender_knows() -> None:
    rig, job = among_three()

    rig.message(N2, ReplJob((limited(copy_of(holders=(N2, N3, ME)), dead=BURIED),)))

    assert job.state == DEAD


def test_lost_copies_of_dead_jobs_are_repaired() -> None:
    rig = Rig(peers=3, ours=True)
    rig.hold(copy_of(holders=(N2, ME)))
    rig.ask("NACK", JOB, "DEAD")
    rig.sent()

    forget(rig, N2)
    rig.advance(SOON)

    [(_, copy)] = asked(rig)
    assert copy.extensions is not None
    assert copy.extensions.dead.is_dead


def test_a_dead_job_that_another_node_gives_is_not_queued() -> None:
    rig, job = among_three()
    rig.ask("NACK", JOB, "DEAD")
    rig.sent()

    rig.message(N2, YourJobs((copy_of(holders=(N2, N3, ME)),)))

    assert (job.state, told(rig)) == (DEAD, [(N2, True, 0)])


def test_one_that_was_redriven_is() -> None:
    rig, job = among_three()
    rig.ask("NACK", JOB, "DEAD")

    rig.message(N2, YourJobs((limited(copy_of(holders=(N2, N3, ME)), dead=REDRIVEN),)))

    assert job.state == QUEUED


def test_what_was_given_before_the_redrive_is_not_queued_twice() -> None:
    rig, job = among_three()
    rig.ask("NACK", JOB, "DEAD")
    rig.ask("REDRIVE", JOB)
    rig.ask("GETJOB", "FROM", "q")
    rig.sent()

    rig.message(N2, YourJobs((copy_of(holders=(N2, N3, ME)),)))

    assert (job.state, told(rig)) == (ACTIVE, [(N2, False, 1)])


# Nodes that were away, and nodes that do not know of dead jobs.


def test_a_node_that_returns_is_told_which_of_its_jobs_are_dead() -> None:
    rig, _ = among_three()
    rig.ask("NACK", JOB, "DEAD")
    rig.sent()

    returns(rig, N2, CAPABILITIES)

    assert told(rig) == [(N2, True, 0)]


def test_dead_jobs_are_told_in_slices_a_queue_at_a_time() -> None:
    rig = Rig(peers=2, ours=True, config=CALM)
    rig.turn(resend_looks=2)
    for number in range(6):
        job_id = make_id(N2, number, 86_400, at_least_once=True)
        queue = b"q%d" % (number // 3)
        rig.hold(copy_of(job_id, holders=(N2, N3, ME), queue=queue))
        rig.ask("NACK", job_id, "DEAD")
    rig.sent()

    returns(rig, N2, CAPABILITIES)
    counts = [len(told(rig))]
    for _ in range(3):
        rig.advance(resend.RUN_EVERY + 8)
        counts.append(len(told(rig)))

    assert counts == [2, 2, 2, 0]


def test_a_node_that_does_not_hold_it_is_not() -> None:
    rig = Rig(peers=3, ours=True, config=CALM)
    rig.hold(copy_of(holders=(N2, ME)))
    rig.ask("NACK", JOB, "DEAD")
    rig.sent()

    returns(rig, N3, CAPABILITIES)

    assert told(rig) == []


def without_dead_jobs(rig: Rig, *names: NodeId) -> None:
    """These nodes are originals, or ours of an earlier version."""
    for name in names:
        rig.node.cluster.nodes[name].capabilities = CAPABILITIES & ~BURIES


def test_a_node_that_does_not_know_of_dead_jobs_is_held_off() -> None:
    rig, job = among_three()
    without_dead_jobs(rig, N2)

    rig.ask("NACK", JOB, "DEAD", "why")

    assert (N2, Working(JOB)) in rig.sent()
    for message in (WillQueue(JOB), Queued(JOB)):
        rig.message(N2, message)
        assert rig.sent() == [(N2, Working(JOB))]
    rig.ask("REDRIVE", JOB)
    assert [message for to, message in rig.sent() if to == N2] == [Queued(JOB, told=True)]
    assert job.state == QUEUED


@pytest.mark.parametrize("options", [("LIMIT", 3), ("LIMIT", 3, "PRIORITY", 1)])
def test_a_job_with_a_limit_is_copied_only_to_nodes_that_know_of_dead_jobs(
    options: tuple[str | int, ...],
) -> None:
    rig = Rig(peers=3, ours=True)
    without_dead_jobs(rig, N2)

    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 3, *options)
    for _ in range(5):
        rig.advance(60)

    assert N2 not in {to for to, message in rig.sent() if isinstance(message, ReplJob)}
    without_dead_jobs(rig, N3)
    reply = rig.ask("ADDJOB", "q", "body", 0, "REPLICATE", 3, *options, client=rig.connect())
    assert isinstance(reply, Failure)
    assert b"1 of the 3 other nodes can keep a job with extensions" in reply.text


def test_such_jobs_are_not_given_to_other_nodes() -> None:
    rig = Rig(peers=1, config=CALM, ours=True)
    without_dead_jobs(rig, N2)
    rig.add("REPLICATE", 1, "LIMIT", 2)
    rig.add("REPLICATE", 1, "PRIORITY", -1, body="plain enough")
    rig.sent()

    rig.message(N2, NeedJobs(b"q", 5, waits=True))
    [(_, given_jobs)] = [each for each in rig.sent() if isinstance(each[1], YourJobs)]
    assert isinstance(given_jobs, YourJobs)
    assert [copy.body for copy in given_jobs.copies] == [b"plain enough"]
    rig.message(N2, NeedJobs(b"q", 5, waits=True))

    assert rig.sent() == [(N2, HaveJobs(b"q", 0))]


def test_a_purge_of_the_dead_is_told_to_those_that_know_of_dead_jobs() -> None:
    rig, _ = among_three()
    without_dead_jobs(rig, N3)

    rig.ask("PURGE", "q", "DEAD", "BCAST")

    assert rig.sent() == [(N2, Purge(b"q", dead=True))]


def test_a_purge_of_the_dead_on_all_nodes_ends_them_here() -> None:
    rig, job = among_three()
    rig.ask("NACK", JOB, "DEAD")

    rig.message(N2, Purge(b"q", dead=True))

    assert job.state == ACKED
