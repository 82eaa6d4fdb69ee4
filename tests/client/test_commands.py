import math
from typing import Any

import pytest

from disque_trio.client import commands
from disque_trio.client.commands import Job
from disque_trio.client.refusals import (
    BadReplyError,
    NotReplicatedError,
    RefusedError,
    UnavailableError,
)
from disque_trio.statemachine.base import NULL_ARRAY, Failure, Reply, Status

ID = "D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
ROW: list[Reply] = [b"q", ID.encode(), b"body", b"nacks", 1, b"additional-deliveries", 2]


def words(command: commands.Command[Any]) -> str:
    return b" ".join(command.words).decode()


def test_options_that_are_not_given_are_not_sent() -> None:
    assert words(commands.addjob("q", b"body")) == "ADDJOB q body 5000"


def test_all_options_of_addjob_are_sent() -> None:
    command = commands.addjob(
        "q", "b", timeout=1.5, replicate=3, delay=4, retry=0, ttl=60, maxlen=7, is_async=True
    )

    assert words(command) == "ADDJOB q b 1500 REPLICATE 3 DELAY 4 RETRY 0 TTL 60 MAXLEN 7 ASYNC"


def test_getjob_waits_not_at_all_for_a_while_or_for_ever() -> None:
    assert "NOHANG" in words(commands.getjob("q", timeout=0))
    assert "TIMEOUT 1 FROM q" in words(commands.getjob("q", timeout=0.0001))
    assert "TIMEOUT 0 FROM a b" in words(commands.getjob("a", "b", timeout=None))
    assert commands.getjob("q", timeout=None).wait_s == math.inf


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_a_timeout_that_is_no_time_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="0 or more seconds"):
        commands.getjob("q", timeout=seconds)


def test_nothing_to_take_from_and_nothing_to_acknowledge_are_refused() -> None:
    with pytest.raises(ValueError, match="name of a queue"):
        commands.getjob()
    with pytest.raises(ValueError, match="ackjob needs the id"):
        commands.ackjob()


def test_jobs_come_with_their_counters() -> None:
    assert commands.getjob("q").result([ROW]) == [Job(ID, "q", b"body", 1, 2)]
    assert commands.qpeek("q", 1).result([ROW[:3]]) == [Job(ID, "q", b"body")]
    assert commands.getjob("q").result(NULL_ARRAY) == []


def test_a_name_that_is_not_utf8_comes_and_goes() -> None:
    (job,) = commands.getjob("q").result([[b"\xff", *ROW[1:]]])

    assert commands.qlen(job.queue).words == (b"QLEN", b"\xff")


def test_facts_are_told_by_name() -> None:
    assert commands.show(ID).result([b"id", ID.encode(), b"ttl", 5]) == {
        "id": ID.encode(),
        "ttl": 5,
    }
    assert commands.show(ID).result(None) is None
    assert commands.qstat("q").result(NULL_ARRAY) is None


def test_info_is_told_by_field() -> None:
    told = commands.info("server").result(b"# Server\r\ndisque_version:1\r\na:b:c\r\n\r\n")

    assert told == {"disque_version": "1", "a": "b:c"}


def test_an_error_is_raised_by_its_code() -> None:
    with pytest.raises(NotReplicatedError, match="ADDJOB: NOREPL Not enough"):
        commands.addjob("q", "b").result(Failure(b"NOREPL Not enough"))
    with pytest.raises(UnavailableError):
        commands.ackjob(ID).result(Failure(b"LOADING wait"))
    with pytest.raises(RefusedError) as error:
        commands.call("NONSENSE").result(Failure(b"ERR \xff"))
    assert (error.value.code, error.value.command) == ("ERR", "NONSENSE")


@pytest.mark.parametrize(
    "reply", [7, b"text", [b"row"], [[b"q", b"id"]], [[b"q", b"id", 7]], [[1, 2, b"b"]]]
)
def test_a_reply_that_cannot_be_is_an_error_of_its_own(reply: object) -> None:
    with pytest.raises(BadReplyError, match="to GETJOB"):
        commands.getjob("q").result(reply)  # type: ignore[arg-type]


def test_what_must_not_be_sent_twice_says_so() -> None:
    assert not commands.addjob("q", "b").is_repeatable
    assert not commands.nack(ID).is_repeatable
    assert not commands.call("PING").is_repeatable
    assert commands.ackjob(ID).is_repeatable
    assert commands.pause("q", "in").result(Status(b"in")) == "in"


def test_a_key_is_sent_with_its_options_and_allows_the_command_to_be_sent_again() -> None:
    command = commands.addjob("q", "b", unique="k", keep=1.5)

    assert words(command) == "ADDJOB q b 5000 UNIQUE k KEEP 1.500"
    assert command.is_repeatable
    assert commands.addjob("q", "b", unique="k", if_exists="return").is_repeatable
    assert not commands.addjob("q", "b", unique="k", if_exists="reject").is_repeatable
    assert not commands.addjob("q", "b").is_repeatable


def test_priorities_and_waits_after_a_nack_are_sent_with_their_options() -> None:
    command = commands.addjob("q", "b", priority=-3, backoff=0.5, max_backoff=60)

    assert words(command) == "ADDJOB q b 5000 PRIORITY -3 BACKOFF 0.500 MAXBACKOFF 60.000"
    assert words(commands.nack(ID, delay=2.5)) == f"NACK {ID} DELAY 2.500"
    assert words(commands.nack(ID, delay=0)) == f"NACK {ID} DELAY 0.000"
    assert words(commands.release(ID, ID)) == f"RELEASE {ID} {ID}"
    assert commands.release(ID).result(1) == 1


def test_a_job_is_shown_and_cancelled_by_its_key() -> None:
    assert words(commands.show_key("q", "k")) == "SHOW KEY q k"
    assert commands.show_key("q", "k").result([b"id", ID.encode()]) == {"id": ID.encode()}
    assert commands.show_key("q", "k").result(None) is None
    assert commands.cancel_key("q", b"\xff").words == (b"CANCEL", b"KEY", b"q", b"\xff")
    assert commands.cancel_key("q", "k").result(1) == 1


def test_dead_jobs_are_made_and_redriven() -> None:
    assert commands.addjob("q", "b", limit=3).words[-2:] == (b"LIMIT", b"3")
    buried = commands.nack(ID, dead="no such user")
    assert buried.words == (b"NACK", ID.encode(), b"DEAD", b"no such user")
    assert not buried.is_repeatable
    assert commands.redrive(ID).words == (b"REDRIVE", ID.encode())
    assert commands.redrive_queue("q").words == (b"REDRIVE", b"q")
    assert not commands.redrive(ID).is_repeatable
    some = commands.redrive_queue("q", 5)
    assert some.words == (b"REDRIVE", b"q", b"COUNT", b"5")
    assert (some.result(4), some.is_repeatable) == (4, False)
