"""Tokens of deliveries, and jobs that are given back by RELEASE."""

import pytest

from disque_trio.statemachine.base import ACTIVE, QUEUED, Failure, JobId, NodeId
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.messages import Message, Postponed, Queued, Working
from tests.rig import JOB, ME, N2, N3, ONCE, Rig
from tests.statemachine.handing import RETRY, cluster, take

LOST = Failure(b"LOST The job was returned, or delivered to another worker, since: leave it alone.")


def take_with_token(rig: Rig, client: Client | None = None) -> tuple[JobId, bytes]:
    """A job, and as WORKING wants it: with its token."""
    said = take(rig, "WITHMETA", client=client)
    job_id, token = said[b"id"], said[b"token"]
    assert isinstance(job_id, bytes)
    assert isinstance(token, bytes)
    return job_id, job_id + b"@" + token


# WITHMETA.


def test_a_delivery_says_what_a_worker_needs() -> None:
    rig = Rig()
    job = rig.add("RETRY", 60, "TTL", 600)
    rig.advance(1_500)

    said = take(rig, "WITHMETA")

    token = said.pop(b"token")
    assert isinstance(token, bytes)
    assert (len(token), token[:8]) == (20, ME[:8])
    assert said == {
        b"id": job.id,
        b"attempt": 1,
        b"nacks": 0,
        b"additional-deliveries": 0,
        b"priority": 0,
        b"created-ms": rig.now.wall - 1_500,
        b"age-ms": 1_500,
        b"lease-ms": job.requeue_at - 500 - rig.now.mono,
        b"ttl-ms": 598_500,
    }


def test_the_key_of_a_job_is_told_to_its_worker() -> None:
    rig = Rig()
    rig.add("UNIQUE", "today")

    assert take(rig, "WITHMETA")[b"key"] == b"today"


def test_attempts_are_nacks_and_additional_deliveries_and_one() -> None:
    rig = Rig()
    job = rig.add("RETRY", 60)
    take(rig)
    rig.ask("NACK", job.id)
    take(rig)
    rig.advance(RETRY + 500)

    said = take(rig, "WITHMETA", "WITHCOUNTERS")

    counted = said[b"attempt"], said[b"nacks"], said[b"additional-deliveries"]
    assert counted == (3, 1, 1)


def test_a_client_that_waits_gets_the_same() -> None:
    rig = Rig()
    rig.request("GETJOB", "WITHMETA", "FROM", "q")

    rig.request("ADDJOB", "q", "body", 0, client=rig.connect())

    [[[_, _, _, *meta]]] = rig.replies()  # type: ignore[misc]
    assert meta[::2] == [
        b"attempt",
        b"nacks",
        b"additional-deliveries",
        b"priority",
        b"created-ms",
        b"age-ms",
        b"lease-ms",
        b"ttl-ms",
        b"token",
    ]


def test_an_at_most_once_job_has_no_lease() -> None:
    rig = Rig()
    rig.add("RETRY", 0)

    assert take(rig, "WITHMETA", "TIED")[b"lease-ms"] == 0
    assert not rig.client.tied


def test_a_job_without_options_leaves_no_record() -> None:
    rig = Rig()
    rig.add()

    take(rig)

    assert not rig.node.tracked


# Tokens.


def test_a_token_holds_until_somebody_else_gets_the_job() -> None:
    rig = Rig()
    rig.add("RETRY", 60)
    job_id, mine = take_with_token(rig)
    assert rig.ask("WORKING", mine) == 60

    rig.advance(RETRY + 500)
    assert rig.node.jobs[job_id].state == QUEUED
    assert rig.ask("WORKING", mine) == 60
    assert rig.node.jobs[job_id].state == ACTIVE

    rig.advance(RETRY + 500)
    take(rig)
    assert rig.ask("WORKING", mine) == LOST
    assert rig.ask("WORKING", job_id) == 60


@pytest.mark.parametrize("command", ["NACK", "RELEASE"])
def test_who_is_late_harms_nobody(command: str) -> None:
    rig = Rig()
    rig.add("RETRY", 60)
    job_id, mine = take_with_token(rig)
    rig.ask("NACK", mine)
    _, theirs = take_with_token(rig)

    assert rig.ask(command, mine) == 0
    assert rig.node.jobs[job_id].state == ACTIVE
    assert rig.ask(command, theirs) == 1


@pytest.mark.parametrize(
    ("command", "options"),
    [("NACK", ["DELAY", 5]), ("RELEASE", ["DELAY", 5]), ("NACK", []), ("RELEASE", [])],
)
def test_a_renewal_behind_it_does_not_take_back_what_was_given_back(
    command: str, options: list[str | int]
) -> None:
    rig = Rig()
    job = rig.add("RETRY", 60)
    _, mine = take_with_token(rig)
    assert rig.ask(command, mine, *options) == 1
    state, due = job.state, job.requeue_at

    assert rig.ask("WORKING", mine) == LOST
    assert (job.state, job.requeue_at) == (state, due)


def test_a_nack_that_is_refused_gives_nothing_back() -> None:
    rig = Rig()
    rig.add("RETRY", 60, "TTL", 600)
    _, mine = take_with_token(rig)
    assert isinstance(rig.ask("NACK", mine, "DELAY", 700), Failure)

    assert rig.ask("WORKING", mine) == 60


def test_after_that_a_worker_with_a_token_of_another_node_may_have_it() -> None:
    rig = cluster()
    _, mine = take_with_token(rig)
    rig.ask("NACK", mine)
    theirs = JOB + b"@" + N2[:8] + b"0123456789ab"

    assert rig.ask("WORKING", theirs) == 60
    assert rig.ask("WORKING", theirs) == 60


def test_many_jobs_have_an_answer_each() -> None:
    rig = Rig()
    for _ in range(3):
        rig.add("RETRY", 60)
    first, mine = take_with_token(rig)
    second, _ = take_with_token(rig)
    rig.ask("NACK", first)
    take(rig)

    replies = rig.ask("WORKING", mine, second, ONCE, second)

    no_job = Failure(b"NOJOB Job not known in the context of this node.")
    assert replies == [LOST, 60, no_job, 60]


@pytest.mark.parametrize(
    ("word", "error"),
    [
        (JOB + b"@", b"BADTOKEN '' is not a token"),
        (JOB + b"@aaaaaaaa", b"BADTOKEN 'aaaaaaaa' is not a token"),
        (JOB + b"@" + b"A" * 20, b"BADTOKEN 'AAAAAAAAAAAAAAAAAAAA' is not a token"),
        (JOB + b"@" + b"a" * 20 + b"\n", b"BADTOKEN 'aaaaaaaaaaaaaaaaaaaa ' is not a token"),
        (b"D-1@" + b"a" * 20, b"BADID Invalid Job ID format."),
    ],
)
@pytest.mark.parametrize("command", ["WORKING", "NACK", "RELEASE"])
def test_a_bad_token_is_an_error_for_all(command: str, word: bytes, error: bytes) -> None:
    rig = Rig()
    job = rig.add("RETRY", 60)
    take(rig)

    reply = rig.ask(command, job.id, word)

    assert isinstance(reply, Failure)
    assert reply.text.startswith(error)
    assert job.state == ACTIVE


def requeued(rig: Rig, node: NodeId) -> None:
    """Another node queues the job when the period is over, and gives it to a worker."""
    rig.advance(RETRY - 600)
    rig.message(node, Queued(JOB, redelivery=True, told=True))
    rig.message(node, Working(JOB))


def test_a_job_that_another_node_has_given_away_is_lost() -> None:
    rig = cluster()
    _, mine = take_with_token(rig)

    requeued(rig, N2)

    assert rig.ask("WORKING", mine) == LOST


def test_a_worker_that_renews_elsewhere_has_not_lost_its_job() -> None:
    rig = cluster()
    _, mine = take_with_token(rig)

    rig.message(N2, Working(JOB))

    assert rig.ask("WORKING", mine) == 60


def test_nor_has_it_if_another_node_only_queues_it_again() -> None:
    """workers-engine, seed 400249: this node objects, and nobody has it from there."""
    theirs = JOB + b"@" + N2[:8] + b"0" * 12
    rig = cluster()
    rig.ask("WORKING", theirs)
    rig.message(N2, Working(JOB))
    rig.ask("WORKING", theirs)

    rig.message(N3, Queued(JOB, redelivery=True))
    assert rig.ask("WORKING", theirs) == 60

    rig.message(N3, Working(JOB))
    assert rig.ask("WORKING", theirs) == LOST


@pytest.mark.parametrize(
    "late",
    [
        Queued(JOB, nack=True),
        Postponed(JOB, 100, 1, True),
        Postponed(JOB, 100, 0, snoozes=1, is_snooze=True),
    ],
)
def test_nor_if_the_node_of_its_token_had_queued_it_before_that_delivery(late: Message) -> None:
    """workers-engine, seed 401117: the link from that node is slower than the worker."""
    theirs = JOB + b"@" + N2[:8] + b"0" * 12
    rig = cluster()
    assert rig.ask("WORKING", theirs) == 60

    rig.message(N2, late)
    rig.message(N2, Working(JOB))

    assert rig.ask("WORKING", theirs) == 60


def test_whoever_is_given_more_time_is_the_one_that_has_the_job() -> None:
    """workers-engine, seed 401388: a worker from here gave it back elsewhere, and another one, from
    there, asks here for more time."""
    theirs = JOB + b"@" + N2[:8] + b"0" * 12
    rig = cluster()
    _, mine = take_with_token(rig)
    rig.message(N2, Queued(JOB, nack=True))
    rig.message(N2, Working(JOB))

    assert rig.ask("WORKING", theirs) == 60
    assert rig.ask("WORKING", theirs) == 60
    assert rig.ask("WORKING", mine) == LOST


def test_the_token_of_another_node_is_taken_unless_the_job_is_with_a_worker_from_here() -> None:
    theirs = JOB + b"@" + N2[:8] + b"0" * 12
    rig = cluster()
    take(rig)
    assert rig.ask("WORKING", theirs) == LOST

    rig.message(N2, Working(JOB))
    assert rig.ask("WORKING", theirs) == 60
    assert rig.ask("WORKING", theirs) == 60


def test_a_token_of_another_node_does_not_outlive_a_delivery_here() -> None:
    theirs = JOB + b"@" + N2[:8] + b"0" * 12
    rig = cluster()
    rig.ask("WORKING", theirs)
    rig.ask("NACK", theirs)

    take_with_token(rig)

    assert rig.ask("WORKING", theirs) == LOST


def test_a_token_from_before_a_restart_is_taken() -> None:
    rig = cluster()
    mine = JOB + b"@" + ME[:8] + b"0" * 12

    assert rig.ask("WORKING", mine) == 60


# RELEASE.


def test_a_released_job_is_queued_at_once_and_counted_nowhere() -> None:
    rig = cluster()
    rig.sent()
    before = take(rig, "WITHCOUNTERS")

    assert rig.ask("RELEASE", JOB, JOB) == 1

    assert [message for _, message in rig.sent() if isinstance(message, Queued)] == [
        Queued(JOB, told=True),
        Queued(JOB, told=True),
    ]
    assert take(rig, "WITHCOUNTERS") == before


def test_a_job_that_another_node_has_given_away_may_be_released_here() -> None:
    rig = cluster()
    rig.message(N2, Working(JOB))

    assert rig.ask("RELEASE", JOB) == 1


def test_what_no_worker_has_is_not_released() -> None:
    rig = Rig()
    delayed, queued = rig.add("DELAY", 60), rig.add()
    once = rig.add("RETRY", 0)
    take(rig, "COUNT", "1")
    rig.ask("RELEASE", queued.id)

    assert rig.ask("RELEASE", delayed.id, queued.id, once.id, JOB) == 0
