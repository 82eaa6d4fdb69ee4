"""Dead jobs that several nodes hold: what they tell each other, and what they make of it."""

import attrs
import pytest
from hypothesis import given

from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    DEAD,
    QUEUED,
    Status,
)
from disque_trio.statemachine.extensions import (
    ALIVE,
    MAX_REDRIVES,
    DeadState,
    Extensions,
    merged,
)
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.knobs import DEFAULTS
from disque_trio.statemachine.messages import (
    GotJob,
    Holders,
    JobState,
    Queued,
    SetAck,
    WillQueue,
    Working,
)
from tests.rig import CALM, JOB, ME, N2, N3, Rig, copy_of
from tests.statemachine.burying import DAY, WEEK, among_three, dead_of, limited, told
from tests.strategies import dead_states

WIDEN_EVERY = DEFAULTS.widen_every

BURIED = DeadState(0, True, b"why", DAY)
REDRIVEN = DeadState(1, life=DAY)
AGAIN = DeadState(1, True, b"again", DAY)


# What two nodes know is joined.


@given(dead_states(), dead_states(), dead_states())
def test_it_does_not_matter_who_tells_whom_first_or_twice(
    one: DeadState, two: DeadState, three: DeadState
) -> None:
    assert merged(one, two) == merged(two, one)
    assert merged(one, merged(two, three)) == merged(merged(one, two), three)
    assert merged(one, one) == one
    assert merged(one, two) in (one, two)


def test_a_redrive_outweighs_a_death_before_it_and_dead_outweighs_alive() -> None:
    assert merged(ALIVE, BURIED) == BURIED
    assert merged(BURIED, REDRIVEN) == REDRIVEN
    assert merged(REDRIVEN, AGAIN) == AGAIN
    assert merged(AGAIN, BURIED) == AGAIN


# A job dies here.


def test_the_other_holders_are_told() -> None:
    rig, job = among_three()

    rig.ask("NACK", JOB, "DEAD", "why")

    state = job.dead_state
    assert (state.epoch, state.is_dead, state.reason) == (0, True, b"why")
    assert rig.sent() == [(to, JobState(JOB, WEEK, state)) for to in (N2, N3)]


def test_a_limit_is_kept_by_whoever_is_to_queue_the_job() -> None:
    rig, job = among_three(limit=2)
    rig.message(N2, Queued(JOB, nack=True))
    rig.sent()

    rig.advance(61_000)

    assert job.state == DEAD
    assert [type(message) for _, message in rig.sent()] == [WillQueue] * 2 + [JobState] * 2


def test_a_holder_that_knows_better_prevents_its_death() -> None:
    rig, job = among_three(limit=1)
    rig.advance(59_800)
    assert WillQueue(JOB) in [message for _, message in rig.sent()]

    rig.message(N2, Working(JOB))
    rig.advance(5000)

    assert job.state == ACTIVE


def test_holders_that_nobody_has_introduced_are_introduced_before() -> None:
    rig = Rig(peers=2, ours=True, config=CALM)
    rig.hold(copy_of(holders=(N2, ME)))
    rig.message(N3, Working(JOB))
    rig.sent()

    rig.ask("NACK", JOB, "DEAD")

    assert (N2, Holders(JOB, (N2, ME, N3))) in rig.sent()


# A job is dead elsewhere.


@pytest.mark.parametrize("state", [ACTIVE, QUEUED])
def test_a_job_that_is_dead_elsewhere_is_dead_here(state: int) -> None:
    rig, job = among_three()
    if state == QUEUED:
        rig.ask("ENQUEUE", JOB)
    waiting = rig.connect()
    rig.request("WAITJOB", JOB, client=waiting)

    rig.message(N2, JobState(JOB, 5000, BURIED))

    assert (job.state, dead_of(rig)) == (DEAD, [JOB])
    assert job.expires == rig.now.mono + 5000
    assert rig.reply(waiting) == b"dead"


def test_a_lease_that_runs_does_not_keep_it_alive_and_its_worker_may_still_acknowledge() -> None:
    rig, job = among_three()
    rig.ask("ENQUEUE", JOB)
    rig.ask("GETJOB", "TIED", "FROM", "q")

    rig.message(N2, JobState(JOB, 5000, BURIED))

    assert job.state == DEAD
    assert rig.ask("ACKJOB", JOB) == 1
    assert job.state == ACKED


@pytest.mark.parametrize("message", [WillQueue(JOB), Queued(JOB), Working(JOB)])
def test_who_does_not_know_that_it_is_dead_is_told(message: WillQueue | Queued | Working) -> None:
    rig, job = among_three()
    rig.ask("NACK", JOB, "DEAD")
    rig.sent()

    rig.message(N2, message)

    assert told(rig) == [(N2, True, 0)]
    assert job.state == DEAD


def test_a_holder_that_it_learns_of_is_told() -> None:
    rig = Rig(peers=3, ours=True, config=CALM)
    rig.hold(copy_of(holders=(N2, ME)))
    rig.ask("NACK", JOB, "DEAD")
    rig.sent()

    rig.message(N2, Holders(JOB, (N2, N3, ME)))

    assert told(rig) == [(N3, True, 0)]


def test_of_two_reasons_all_keep_the_same() -> None:
    rig, job = among_three()
    rig.ask("NACK", JOB, "DEAD", "mine")
    rig.sent()

    rig.message(N2, JobState(JOB, 5000, DeadState(0, True, b"yours", DAY)))
    assert job.dead_state.reason == b"yours"
    assert told(rig) == []
    rig.message(N3, JobState(JOB, 7000, DeadState(0, True, b"an older one", DAY)))

    assert job.dead_state.reason == b"yours"
    assert job.expires == rig.now.mono + 5000
    assert told(rig) == [(N3, True, 0)]


def test_a_job_that_is_unknown_or_over_is_not_dead() -> None:
    rig, _ = among_three()
    rig.ask("FASTACK", JOB)
    rig.sent()

    rig.message(N2, JobState(JOB, 5000, BURIED))

    assert rig.sent() == [(N2, SetAck(JOB, 0))]
    assert not rig.node.jobs


def added(*options: str | int) -> tuple[Rig, Job]:
    """An ADDJOB waits for two copies, of which N3 has confirmed one."""
    rig = Rig(peers=2, ours=True, config=CALM)
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 3, *options)
    [job] = rig.node.jobs.values()
    rig.message(N3, GotJob(job.id))
    return rig, job


def test_a_job_that_dies_while_its_addjob_waits_is_still_owed_its_copies() -> None:
    rig, job = added()

    rig.message(N2, JobState(job.id, 5000, BURIED))
    assert rig.replies() == []
    rig.message(N2, GotJob(job.id))

    assert rig.reply() == Status(job.id)
    assert (job.state, dead_of(rig)) == (DEAD, [job.id])
    assert job.expires == rig.now.mono + 5000


def test_a_holder_whose_copy_came_after_word_of_the_death_is_told_when_it_confirms() -> None:
    rig = Rig(peers=2, ours=True, config=CALM)
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2)
    rig.advance(WIDEN_EVERY + 10)
    [job] = rig.node.jobs.values()
    rig.message(N2, GotJob(job.id))
    rig.message(N2, JobState(job.id, 5000, BURIED))
    rig.sent()

    rig.message(N3, GotJob(job.id))

    assert told(rig) == [(N3, True, 0)]
    rig.message(N3, GotJob(job.id))
    assert told(rig) == []


def test_a_job_that_is_redriven_while_its_addjob_waits_is_not_queued_as_new() -> None:
    rig, job = added("RETRY", 10)

    rig.message(N2, JobState(job.id, 80_000, REDRIVEN))
    rig.message(N2, GotJob(job.id))

    assert job.state == ACTIVE
    rig.advance(11_000)
    assert job.state == QUEUED


def test_a_node_that_keeps_no_copy_has_no_holder_queue_a_job_that_died() -> None:
    rig = Rig(peers=2, ours=True)
    rig.ask("CLUSTER", "LEAVING", "yes")
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2)
    [job_id] = rig.node.jobs
    rig.replies()

    rig.message(N2, JobState(job_id, 5000, BURIED))
    rig.message(N2, GotJob(job_id))
    rig.sent()
    rig.message(N3, GotJob(job_id))

    assert (rig.reply(), rig.sent()) == (Status(job_id), [])
    assert not rig.node.jobs


# It is redriven.


def test_who_redrives_tells_the_others() -> None:
    rig, _ = among_three()
    rig.ask("NACK", JOB, "DEAD")
    rig.sent()

    rig.ask("REDRIVE", JOB)

    sent = rig.sent()
    assert [to for to, message in sent if isinstance(message, JobState)] == [N2, N3]
    assert sent[-2:] == [(N2, Queued(JOB, told=True)), (N3, Queued(JOB, told=True))]


def test_a_job_that_is_redriven_elsewhere_waits_for_a_whole_period() -> None:
    rig, job = among_three()
    rig.ask("NACK", JOB, "DEAD")

    rig.message(N2, JobState(JOB, 80_000, REDRIVEN))

    assert (job.state, job.nacks, dead_of(rig)) == (ACTIVE, 0, [])
    assert job.expires == rig.now.mono + 80_000
    rig.advance(59_000)
    assert job.state == ACTIVE
    rig.advance(2000)
    assert job.state == QUEUED


def test_an_at_most_once_job_that_is_redriven_elsewhere_is_queued_there_alone() -> None:
    rig = Rig(peers=1, ours=True, config=CALM)
    job = rig.hold(attrs.evolve(limited(copy_of(retry=0), dead=BURIED)))
    assert job.state == DEAD

    rig.message(N2, JobState(JOB, 80_000, REDRIVEN))
    rig.advance(70_000)

    assert job.state == ACTIVE


def test_who_has_missed_the_redrive_is_told() -> None:
    rig, _ = among_three()
    rig.ask("NACK", JOB, "DEAD")
    rig.ask("REDRIVE", JOB)
    rig.sent()

    rig.message(N2, JobState(JOB, 5000, BURIED))

    assert told(rig) == [(N2, False, 1)]
    assert rig.node.jobs[JOB].state == QUEUED


def test_two_that_redrive_at_once_keep_one_queued() -> None:
    rig, job = among_three()
    rig.ask("NACK", JOB, "DEAD")
    rig.ask("REDRIVE", JOB)
    life = job.dead_state.life

    rig.message(N2, JobState(JOB, life, DeadState(1, life=life)))
    assert job.state == QUEUED
    rig.message(N2, Queued(JOB, told=True))

    assert job.state == ACTIVE


def test_a_job_may_be_redriven_by_others_before_it_is_known_here_that_it_was_dead() -> None:
    rig, job = among_three(limit=5)
    rig.message(N2, Queued(JOB, nack=True))
    rig.ask("ENQUEUE", JOB)

    rig.message(N2, JobState(JOB, 80_000, REDRIVEN))

    assert (job.state, job.nacks, job.deliveries) == (QUEUED, 0, 0)
    assert job.extensions == Extensions(limit=5, dead=REDRIVEN)


def test_a_job_that_was_redriven_as_often_as_can_be_counted_stays_dead() -> None:
    rig, job = among_three()
    last = DeadState(MAX_REDRIVES, True, b"why", DAY)
    rig.message(N2, JobState(JOB, WEEK, last))

    assert rig.ask("REDRIVE", JOB) == 0

    assert (job.state, job.dead_state) == (DEAD, last)
