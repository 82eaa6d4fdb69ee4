"""GETJOB HELD and BEGIN: what has not begun is counted nowhere (decision 103)."""

import pytest

from disque_trio.statemachine.base import ACTIVE, QUEUED, Failure
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.events import Cause, Kind
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import Queued, WillQueue, Working
from tests.rig import CALM, JOB, N2, N3, Rig
from tests.statemachine.handing import RETRY, cluster, take

GRACE = CALM.tied_grace
GRAIN = 20


def holds(rig: Rig, *options: str) -> tuple[Client, Job, bytes]:
    """A worker that holds a job of the queue: its connection, the job, and the token behind the
    id."""
    worker = rig.connect()
    told = take(rig, "TIED", "HELD", "WITHMETA", *options, client=worker)
    job_id, token = told[b"id"], told[b"token"]
    assert isinstance(job_id, bytes)
    assert isinstance(token, bytes)
    return worker, rig.node.jobs[job_id], job_id + b"@" + token


def counts_of(job: Job) -> tuple[int, int, int]:
    return job.state, job.nacks, job.deliveries


def causes(rig: Rig) -> list[Cause]:
    return [each.cause for each in rig.node.trace or () if each.kind is Kind.QUEUE]


def lone() -> Rig:
    rig = Rig(config=CALM)
    rig.node.trace = []
    rig.add("LIMIT", 1, "RETRY", 60)
    return rig


# Ends of deliveries.


def test_what_has_not_begun_is_queued_uncounted_when_the_connection_ends() -> None:
    rig = lone()
    worker, job, _ = holds(rig)

    rig.disconnect(worker)
    rig.advance(GRACE + GRAIN)

    assert counts_of(job) == (QUEUED, 0, 0)
    assert causes(rig)[-1] is Cause.UNBEGUN


def test_and_when_its_lease_ends() -> None:
    rig = lone()
    _, job, _ = holds(rig)

    rig.advance(RETRY + 300)

    assert counts_of(job) == (QUEUED, 0, 0)
    assert causes(rig)[-1] is Cause.UNBEGUN


def test_also_if_that_comes_before_the_end_of_the_grace() -> None:
    rig = lone()
    worker, job, _ = holds(rig)
    rig.advance(RETRY - 1000)

    rig.disconnect(worker)
    rig.advance(1300)

    assert counts_of(job) == (QUEUED, 0, 0)


@pytest.mark.parametrize("has_token", [False, True])
def test_what_has_begun_counts_as_ever(has_token: bool) -> None:
    rig = Rig(config=CALM)
    rig.node.trace = []
    rig.add("RETRY", 60)
    worker, job, named = holds(rig)

    assert rig.ask("BEGIN", named if has_token else job.id) == 1
    rig.disconnect(worker)
    rig.advance(GRACE + GRAIN)

    assert counts_of(job) == (QUEUED, 0, 1)
    assert causes(rig)[-1] is Cause.UNTIED


def test_more_time_does_not_begin_it() -> None:
    rig = lone()
    worker, job, named = holds(rig)
    rig.advance(RETRY // 2)
    assert rig.ask("WORKING", named, client=worker) == 60
    rig.advance(RETRY // 2 + 1000)
    assert job.state == ACTIVE

    other = rig.connect()
    assert rig.ask("WORKING", named, client=other) == 60
    rig.disconnect(worker)
    rig.advance(RETRY + 300)

    assert counts_of(job) == (QUEUED, 0, 0)


def test_a_nack_counts_and_a_release_does_not() -> None:
    rig = Rig(config=CALM)
    rig.add("RETRY", 60)
    _, job, named = holds(rig)
    assert rig.ask("RELEASE", named) == 1
    assert counts_of(job) == (QUEUED, 0, 0)

    _, job, named = holds(rig)
    assert rig.ask("NACK", named) == 1
    assert counts_of(job) == (QUEUED, 1, 0)


def test_a_later_delivery_is_not_held_by_the_earlier_one() -> None:
    rig = Rig(config=CALM)
    rig.add("RETRY", 60)
    _, job, named = holds(rig)
    rig.ask("RELEASE", named)
    take(rig)

    assert rig.ask("BEGIN", named) == 0
    rig.advance(RETRY + 300)

    assert counts_of(job) == (QUEUED, 0, 1)


# What the next consumer is told.


def says_unbegun(rig: Rig) -> bool:
    return b"unbegun" in take(rig, "TIED", "HELD", "WITHMETA")


def test_the_next_consumers_are_told_that_one_has_ended_without_begin() -> None:
    rig = lone()
    worker, job, _ = holds(rig)
    rig.disconnect(worker)
    rig.advance(GRACE + GRAIN)

    assert take(rig, "TIED", "HELD", "WITHMETA")[b"unbegun"] == 1
    rig.ask("RELEASE", job.id)
    assert says_unbegun(rig)


def test_nobody_is_told_of_a_job_that_was_given_back_or_has_begun() -> None:
    rig = Rig(config=CALM)
    rig.add("RETRY", 60)
    worker, _, named = holds(rig)
    rig.ask("RELEASE", named)
    assert not says_unbegun(rig)

    rig.ask("RELEASE", named[:40])
    worker, _, named = holds(rig)
    rig.ask("BEGIN", named)
    rig.disconnect(worker)
    rig.advance(GRACE + GRAIN)
    assert not says_unbegun(rig)


# BEGIN.


def test_begin_tells_how_many_begin() -> None:
    rig = Rig(config=CALM)
    for _ in range(3):
        rig.add("RETRY", 60)
    _, one, first = holds(rig)
    _, two, _ = holds(rig)
    plain = take(rig, "TIED")[b"id"]
    assert isinstance(plain, bytes)
    wrong = two.id + b"@" + b"0" * 20

    assert rig.ask("BEGIN", first, one.id, wrong, plain, JOB) == 1
    assert rig.ask("BEGIN", one.id) == 0
    assert rig.ask("BEGIN", two.id) == 1


@pytest.mark.parametrize(
    ("word", "code"),
    [(b"no-id", b"BADID"), (JOB + b"@no-token", b"BADTOKEN"), (JOB + b"x", b"BADID")],
)
def test_a_malformed_word_is_an_error_for_all(word: bytes, code: bytes) -> None:
    rig = lone()
    _, job, named = holds(rig)

    reply = rig.ask("BEGIN", named, word)

    assert isinstance(reply, Failure)
    assert reply.text.startswith(code)
    assert rig.ask("BEGIN", job.id) == 1


def test_held_needs_tied() -> None:
    rig = lone()
    error = Failure(b"ERR syntax error: HELD needs TIED")

    assert rig.ask("GETJOB", "HELD", "FROM", "q") == error
    assert rig.ask("GETJOB", "FROM", "q", "HELD") == error
    assert rig.ask("GETJOB", "HELD", "HELD", "TIED", "FROM", "q") == Failure(
        b"ERR syntax error: HELD is given twice"
    )


def test_a_waiting_client_holds_what_comes() -> None:
    rig = Rig(config=CALM)
    worker = rig.connect()
    rig.request("GETJOB", "TIED", "HELD", "FROM", "q", client=worker)
    job = rig.add("RETRY", 60)

    assert rig.ask("BEGIN", job.id) == 1


def test_show_tells_it() -> None:
    rig = lone()
    _, job, named = holds(rig)
    shown = rig.ask("SHOW", job.id)
    assert isinstance(shown, list)
    assert shown[shown.index(b"held") + 1] == 1

    rig.ask("BEGIN", named)

    shown = rig.ask("SHOW", job.id)
    assert isinstance(shown, list)
    assert b"held" not in shown


def test_a_job_with_retry_0_is_not_held() -> None:
    rig = Rig(config=CALM)
    rig.add("RETRY", 0, "REPLICATE", 1)
    worker, job, named = holds(rig)

    assert rig.ask("BEGIN", named) == 0
    rig.disconnect(worker)
    rig.advance(RETRY)

    assert job.state == ACTIVE


# Other holders.


def test_the_other_holders_are_warned_and_told_nothing_to_count() -> None:
    rig = cluster()
    worker, job, _ = holds(rig)
    before = counts_of(job)[1:]
    rig.sent()

    rig.disconnect(worker)
    rig.advance(GRACE + GRAIN)

    assert counts_of(job)[1:] == before
    assert rig.sent() == [
        (N2, WillQueue(JOB)),
        (N3, WillQueue(JOB)),
        (N2, Queued(JOB)),
        (N3, Queued(JOB)),
    ]


def test_a_holder_that_would_queue_it_first_and_count_is_forestalled() -> None:
    rig = cluster()
    _, job, _ = holds(rig)
    before = counts_of(job)[1:]
    rig.sent()
    rig.message(N2, WillQueue(JOB))
    assert rig.sent() == [(N2, Working(JOB))]

    left = job.requeue_at - rig.now.mono
    rig.advance(left - 450)
    rig.sent()
    rig.message(N2, WillQueue(JOB))
    assert rig.sent() == [(N2, Working(JOB))]

    rig.advance(450 + GRAIN)
    assert counts_of(job) == (QUEUED, *before)
    assert rig.sent() == [(N2, Queued(JOB)), (N3, Queued(JOB))]


def test_but_not_if_this_node_cannot_queue_it_then() -> None:
    rig = cluster()
    _, job, _ = holds(rig)
    rig.ask("PAUSE", "q", "in")
    rig.advance(job.requeue_at - rig.now.mono - 450)
    rig.sent()

    rig.message(N2, WillQueue(JOB))

    assert rig.sent() == []


def test_a_job_that_another_node_has_queued_is_not_held_any_more() -> None:
    rig = cluster()
    _, job, named = holds(rig)

    rig.message(N2, Queued(JOB, nack=True))

    assert rig.ask("BEGIN", named) == 0
    assert job.nacks == 1


def test_who_comes_late_has_lost_it_to_a_worker_of_another_node() -> None:
    rig = cluster()
    worker, job, named = holds(rig)
    rig.disconnect(worker)
    rig.advance(GRACE + GRAIN)
    assert job.state == QUEUED

    rig.message(N2, Working(JOB))

    reply = rig.ask("WORKING", named)
    assert isinstance(reply, Failure)
    assert reply.text.startswith(b"LOST")
