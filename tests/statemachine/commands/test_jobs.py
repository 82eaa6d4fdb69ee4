import pytest

from disque_trio.statemachine.base import ACTIVE, QUEUED, WAIT_REPL, Failure, Reply
from disque_trio.statemachine.messages import DelJob, YourJobs
from tests.rig import CALM, JOB, ME, N2, ONCE, WALL, Rig, copy_of
from tests.statemachine.commands.refused import Refused

MALFORMED = Refused(b"BADID Invalid Job ID format.")
TOO_LATE = Refused(
    b"TOOLATE Half of job TTL already elapsed, "
    b"you are no longer allowed to postpone the next delivery."
)
OF_MANY_IDS = ["ACKJOB", "FASTACK", "DELJOB", "ENQUEUE", "NACK", "DEQUEUE"]


def shown(rig: Rig, job_id: bytes) -> dict[bytes, Reply]:
    reply = rig.ask("SHOW", job_id)
    assert isinstance(reply, list)
    assert len(reply) == 30
    pairs = {}
    for name, value in zip(reply[::2], reply[1::2], strict=True):
        assert isinstance(name, bytes)
        pairs[name] = value
    return pairs


# What all of them have in common.


@pytest.mark.parametrize("name", OF_MANY_IDS)
def test_no_ids_are_no_jobs(name: str) -> None:
    assert Rig().ask(name) == 0


@pytest.mark.parametrize("name", OF_MANY_IDS)
def test_a_malformed_id_spoils_the_whole_command(name: str) -> None:
    rig = Rig(peers=1)
    job = rig.add("REPLICATE", 1)
    delayed = rig.add("REPLICATE", 1, "DELAY", 10)
    rig.sent()

    assert rig.ask(name, job.id, delayed.id, JOB, "D-x") == MALFORMED

    assert (job.state, delayed.state, len(rig.node.jobs)) == (QUEUED, ACTIVE, 2)
    assert rig.sent() == []


@pytest.mark.parametrize("name", OF_MANY_IDS)
def test_unknown_jobs_do_not_count(name: str) -> None:
    assert Rig().ask(name, JOB, ONCE) == 0


# Counting.


def test_jobs_are_counted_once_whatever_is_asked() -> None:
    rig = Rig()
    one, two = rig.add(), rig.add()

    assert rig.ask("DEQUEUE", one.id, two.id, one.id) == 2
    assert rig.ask("ENQUEUE", one.id, one.id) == 1
    assert rig.ask("NACK", one.id, two.id) == 1
    assert (one.nacks, two.nacks) == (0, 1)
    assert rig.ask("DELJOB", one.id, one.id) == 1
    assert rig.ask("ACKJOB", two.id, two.id) == 1


def test_fastack_counts_what_was_here() -> None:
    rig = Rig()
    job = rig.add()

    assert rig.ask("FASTACK", job.id, JOB, job.id) == 1
    assert rig.node.jobs == {}


def test_deljob_sends_no_message() -> None:
    rig = Rig(peers=1)
    rig.hold(copy_of())
    rig.ask("ENQUEUE", JOB)
    rig.sent()

    assert rig.ask("DELJOB", JOB) == 1

    assert rig.sent() == []
    assert rig.node.jobs == {}
    assert rig.ask("QLEN", "q") == 0


def test_deljob_of_a_job_that_waits_for_copies_takes_them_back() -> None:
    rig = Rig(peers=1)
    rig.request("ADDJOB", "q", "b", 0, client=rig.connect())
    [job] = rig.node.jobs.values()
    rig.sent()

    assert rig.ask("DELJOB", job.id) == 1

    assert rig.sent() == [(N2, DelJob(job.id))]


def test_a_delayed_job_can_be_forced_into_its_queue() -> None:
    rig = Rig()
    later = rig.add("DELAY", 100)
    once = rig.add("DELAY", 100, "RETRY", 0, "REPLICATE", 1)

    assert rig.ask("ENQUEUE", later.id, once.id) == 2

    assert (later.deliveries, once.deliveries) == (0, 0)
    assert rig.ask("QLEN", "q") == 2


def test_a_job_goes_back_to_its_place_by_creation() -> None:
    rig = Rig()
    first, second = rig.add(), rig.add()
    rig.ask("GETJOB", "FROM", "q")

    rig.ask("NACK", first.id)

    reply = rig.ask("QPEEK", "q", 2)
    assert reply == [[b"q", first.id, b"body"], [b"q", second.id, b"body"]]


# WORKING.


def test_working_answers_the_retry_time_in_seconds() -> None:
    rig = Rig()
    job = rig.add("RETRY", 60)
    once = rig.add("RETRY", 0, "REPLICATE", 1)

    assert rig.ask("WORKING", job.id) == 60
    assert rig.ask("WORKING", once.id) == 0
    assert (job.state, once.state) == (ACTIVE, ACTIVE)


def test_working_needs_a_job_that_is_known_and_not_acknowledged() -> None:
    rig = Rig(peers=1, config=CALM)
    assert rig.ask("WORKING", "x") == MALFORMED
    assert rig.ask("WORKING", JOB) == Refused(b"NOJOB Job not known in the context of this node.")

    rig.ask("ACKJOB", JOB)
    dummy = rig.ask("WORKING", JOB)
    rig.hold(copy_of(ONCE, retry=60))
    rig.ask("ACKJOB", ONCE)
    acked = rig.ask("WORKING", ONCE)

    assert isinstance(dummy, Failure)
    assert dummy.text.startswith(b"ACKED ")
    assert acked == dummy


def test_working_on_a_job_that_waits_for_copies_is_told_to_its_holders() -> None:
    rig = Rig(peers=1)
    rig.request("ADDJOB", "q", "b", 0, "RETRY", 7, client=rig.connect())
    [job] = rig.node.jobs.values()

    assert rig.ask("WORKING", job.id) == 7

    assert job.state == WAIT_REPL


def test_work_may_be_prolonged_during_the_first_half_of_a_job_s_life() -> None:
    rig = Rig()
    job = rig.add("TTL", 100, "RETRY", 60)

    rig.advance(50_000)
    assert rig.ask("WORKING", job.id) == 60
    rig.advance(1)
    assert rig.ask("WORKING", job.id) == TOO_LATE


def test_the_age_of_a_copy_counts_from_its_creation_elsewhere() -> None:
    rig = Rig(peers=1)
    rig.hold(copy_of(ttl=49, ctime=(WALL - 51_000) * 1_000_000))

    assert rig.ask("WORKING", JOB) == TOO_LATE


def test_a_job_created_in_the_future_is_young() -> None:
    rig = Rig(peers=1)
    rig.hold(copy_of(ttl=10, ctime=(WALL + 60_000) * 1_000_000))

    assert rig.ask("WORKING", JOB) == 60


# SHOW.


def test_show_says_everything_of_a_job() -> None:
    rig = Rig()
    job = rig.add("RETRY", 60, "TTL", 300)

    reply = rig.ask("SHOW", job.id)

    assert reply == [
        b"id", job.id,
        b"queue", b"q",
        b"state", b"queued",
        b"repl", 1,
        b"ttl", 300,
        b"ctime", job.ctime,
        b"delay", 0,
        b"retry", 60,
        b"nacks", 0,
        b"additional-deliveries", 0,
        b"nodes-delivered", [ME],
        b"nodes-confirmed", [],
        b"next-requeue-within", job.requeue_at - rig.now.mono,
        b"next-awake-within", job.requeue_at - 500 - rig.now.mono,
        b"body", b"body",
    ]  # fmt: skip


def test_show_of_nothing_is_nothing() -> None:
    rig = Rig()

    assert rig.ask("SHOW", "x") == MALFORMED
    assert rig.ask("SHOW", JOB) is None


def test_show_names_the_states() -> None:
    rig = Rig(peers=1, config=CALM)
    rig.request("ADDJOB", "q", "b", 0, client=rig.connect())
    [waiting] = rig.node.jobs.values()
    active = rig.add("REPLICATE", 1, "DELAY", 10)
    rig.hold(copy_of())
    rig.ask("ACKJOB", JOB)

    states = [shown(rig, job_id)[b"state"] for job_id in (waiting.id, active.id, JOB)]

    assert states == [b"wait-repl", b"active", b"acked"]
    assert shown(rig, waiting.id)[b"nodes-confirmed"] == [ME]
    assert shown(rig, waiting.id)[b"nodes-delivered"] == [ME, N2]


def test_show_of_a_dummy_ack_is_zeros_and_nulls() -> None:
    rig = Rig(peers=1)
    rig.ask("ACKJOB", JOB)

    pairs = shown(rig, JOB)

    assert pairs[b"state"] == b"acked"
    assert pairs[b"ttl"] == 1441 * 60
    for name in (b"repl", b"ctime", b"delay", b"retry", b"nacks", b"additional-deliveries"):
        assert pairs[name] == 0
    for name in (b"queue", b"body", b"next-requeue-within"):
        assert pairs[name] is None
    assert pairs[b"nodes-delivered"] == []


def test_a_copy_shows_a_second_more_than_its_origin() -> None:
    rig = Rig(peers=1)
    rig.hold(copy_of(ttl=300))

    assert shown(rig, JOB)[b"ttl"] == 301


def test_show_of_an_at_most_once_job_that_had_its_turn_has_no_next_time() -> None:
    rig = Rig(peers=1)
    rig.message(N2, YourJobs((copy_of(ONCE, retry=0),)))

    assert shown(rig, ONCE)[b"next-requeue-within"] is None


def test_times_that_have_passed_show_as_now() -> None:
    rig = Rig()
    job = rig.add("DELAY", 1, "TTL", 2)
    rig.now.mono += 5000

    pairs = shown(rig, job.id)

    assert (pairs[b"ttl"], pairs[b"next-requeue-within"], pairs[b"next-awake-within"]) == (0, 0, 0)
