"""WAITJOB, and CLIENT UNBLOCK of those who wait."""

import pytest

from disque_trio.statemachine.base import MAX_INTEGER, NULL_ARRAY, Failure, Reply
from disque_trio.statemachine.client import Blocked
from disque_trio.statemachine.messages import DelJob, NeedJobs, SetAck
from tests.rig import JOB, ME, N2, ONCE, Rig, copy_of

NO_JOB = b"NOJOB Job not known in the context of this node."


def waiting(*options: str) -> tuple[Rig, bytes]:
    """A client that waits for the end of a job."""
    rig = Rig()
    job = rig.add("RETRY", 2, "TTL", 10)
    rig.request("WAITJOB", job.id, *options)
    assert rig.replies() == []
    return rig, job.id


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        ("ACKJOB", b"acked"),
        ("FASTACK", b"acked"),
        ("DELJOB", Failure(NO_JOB)),
    ],
)
def test_a_client_is_told_what_became_of_the_job(command: str, reply: Reply) -> None:
    rig, job_id = waiting()

    rig.request(command, job_id, client=rig.connect())

    assert rig.replies() == [reply]
    assert rig.machine.accepts(rig.client)


def test_a_client_is_told_when_the_job_has_expired() -> None:
    rig, _ = waiting()

    rig.advance(9_900)
    assert rig.replies() == []

    rig.advance(200)
    assert rig.replies() == [b"expired"]


def test_a_purge_is_an_end_and_flushing_is_none() -> None:
    for words, reply in ((("PURGE", "q"), b"acked"), (("DEBUG", "FLUSHALL"), Failure(NO_JOB))):
        rig, _ = waiting()
        rig.request(*words, client=rig.connect())
        assert rig.replies() == [reply]


def test_with_nohang_the_answer_comes_at_once() -> None:
    rig = Rig()
    job = rig.add()

    assert rig.ask("WAITJOB", job.id, "NOHANG") is None
    rig.ask("NACK", job.id, "DEAD", "a reason")
    assert rig.ask("WAITJOB", job.id, "NOHANG", "TIMEOUT", 5) == b"dead"
    assert isinstance(rig.ask("WAITJOB", job.id, "nohang", "NOHANG"), Failure)


def test_the_wait_ends_in_time_without_a_result() -> None:
    rig, job_id = waiting("TIMEOUT", "500")

    rig.advance(510)
    assert rig.replies() == [None]

    rig.request("ACKJOB", job_id)
    assert rig.replies() == [1]


def test_all_who_wait_are_told() -> None:
    rig, job_id = waiting()
    other = rig.connect()
    rig.request("WAITJOB", job_id, client=other)
    gone = rig.connect()
    rig.request("WAITJOB", job_id, client=gone)
    rig.disconnect(gone)

    rig.request("ACKJOB", job_id, client=rig.connect())

    assert rig.replies() == rig.replies(other) == [b"acked"]


@pytest.mark.parametrize("message", [SetAck(JOB, 2), DelJob(JOB)])
def test_a_client_is_told_of_an_end_at_another_node(message: SetAck | DelJob) -> None:
    rig = Rig(peers=1)
    rig.hold(copy_of(holders=(N2, ME)))
    rig.request("WAITJOB", JOB)

    rig.message(N2, message)

    assert rig.replies() == [b"acked"]


def test_a_job_that_is_acknowledged_already_is_told_at_once() -> None:
    rig = Rig(peers=1)
    rig.hold(copy_of(holders=(N2, ME)))
    rig.ask("ACKJOB", JOB)

    assert rig.ask("WAITJOB", JOB) == b"acked"


def test_a_job_that_moves_away_ends_the_wait() -> None:
    rig = Rig(peers=1)
    job = rig.add("RETRY", 0, "REPLICATE", 1)
    rig.request("WAITJOB", job.id)

    rig.message(N2, NeedJobs(b"q", 1))

    assert rig.replies() == [Failure(NO_JOB)]


def test_an_unknown_job_is_refused_and_its_origin_is_named() -> None:
    origin = b" It was added at the node whose ID begins with bbbbbbbb"

    assert Rig().ask("WAITJOB", ONCE) == Failure(NO_JOB + origin)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("TIMEOUT",), b"ERR syntax error: TIMEOUT has no value behind it"),
        (("TIMEOUT", "-1"), b"ERR timeout is negative: '-1' for TIMEOUT"),
        (
            ("TIMEOUT", "soon"),
            b"ERR timeout is not an integer or out of range: 'soon' is no whole number for TIMEOUT",
        ),
        (
            ("TIMEOUT", "9" * 20),
            b"ERR timeout is not an integer or out of range: '%b' is beyond %d for TIMEOUT"
            % (b"9" * 20, MAX_INTEGER),
        ),
        (("TIMEOUT", "1", "timeout", "2"), b"ERR syntax error: TIMEOUT is given twice"),
        (
            ("TIMOUT", "1"),
            b"ERR syntax error: 'TIMOUT' is not an option of WAITJOB (did you mean 'TIMEOUT'?)",
        ),
    ],
)
def test_a_bad_wait_is_refused(words: tuple[str, ...], error: bytes) -> None:
    rig = Rig()
    job = rig.add()

    assert rig.ask("WAITJOB", job.id, *words) == Failure(error)

    assert rig.client.blocked is Blocked.NO


def test_an_id_that_is_none_is_refused() -> None:
    reply = Rig().ask("WAITJOB", "D-1")

    assert isinstance(reply, Failure)
    assert reply.text.startswith(b"BADID")


# CLIENT UNBLOCK.


def test_a_waiting_client_may_be_unblocked() -> None:
    rig = Rig()
    operator = rig.connect()
    rig.request("GETJOB", "FROM", "q")

    assert rig.ask("CLIENT", "UNBLOCK", rig.client.id, client=operator) == 1

    assert rig.replies() == [NULL_ARRAY]
    job = rig.add()
    assert rig.ask("GETJOB", "FROM", "q") == [[b"q", job.id, b"body"]]


def test_a_client_that_waits_for_an_end_may_be_unblocked() -> None:
    rig, job_id = waiting()
    operator = rig.connect()

    assert rig.ask("CLIENT", "UNBLOCK", rig.client.id, client=operator) == 1
    assert rig.ask("ACKJOB", job_id, client=operator) == 1

    assert rig.replies() == [None]


def test_an_addjob_that_waits_for_copies_is_not_unblocked() -> None:
    rig = Rig(peers=1)
    operator = rig.connect()
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2)

    assert rig.ask("CLIENT", "UNBLOCK", rig.client.id, client=operator) == 0

    assert rig.client.blocked is Blocked.COPIES


@pytest.mark.parametrize(("id", "reply"), [("99", 0), ("1", 0)])
def test_nobody_else_is_unblocked(id: str, reply: int) -> None:
    assert Rig().ask("CLIENT", "UNBLOCK", id) == reply


@pytest.mark.parametrize("words", [(), ("x",), ("-1",), ("1", "2"), ("9" * 30,)])
def test_a_bad_unblock_is_refused(words: tuple[str, ...]) -> None:
    assert isinstance(Rig().ask("CLIENT", "UNBLOCK", *words), Failure)
