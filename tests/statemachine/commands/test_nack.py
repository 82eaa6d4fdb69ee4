"""NACK with DELAY, and ADDJOB BACKOFF: what is asked, and the errors."""

import pytest

from disque_trio.statemachine.base import ACTIVE, DEAD, QUEUED, Failure
from disque_trio.statemachine.commandoptions import NACK, usage
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.postponing import is_postponed
from tests.rig import CALM, Rig

MAX = b"316224000"


def delivered(rig: Rig, *options: str | int) -> Job:
    """A job that a worker has."""
    job = rig.add(*options)
    rig.ask("GETJOB", "FROM", "q")
    return job


def wait_of(rig: Rig, job: Job) -> int:
    return job.requeue_at - rig.now.mono


@pytest.mark.parametrize(
    ("word", "millis"), [("1", 1000), ("0.001", 1), ("2.5", 2500), ("86000", 86_000_000)]
)
def test_delay_has_up_to_three_decimals(word: str, millis: int) -> None:
    rig = Rig()
    job = delivered(rig)

    assert rig.ask("NACK", job.id, "DELAY", word) == 1
    assert (wait_of(rig, job), job.nacks, job.state) == (millis, 1, ACTIVE)


@pytest.mark.parametrize("word", ["0", "0.000"])
def test_delay_0_queues_at_once(word: str) -> None:
    rig = Rig()
    job = delivered(rig, "BACKOFF", 10)

    assert rig.ask("NACK", job.id, "delay", word) == 1
    assert (job.state, job.nacks, job.deliveries) == (QUEUED, 1, 0)


def test_several_jobs_wait_as_long() -> None:
    rig = Rig()
    jobs = [delivered(rig) for _ in range(3)]

    assert rig.ask("NACK", *[job.id for job in jobs], jobs[0].id, "DELAY", 5) == 3
    assert [(wait_of(rig, job), job.nacks) for job in jobs] == [(5000, 1)] * 3


def test_who_has_lost_the_job_cannot_postpone_it() -> None:
    rig = Rig(config=CALM)
    job = rig.add("RETRY", 1)
    reply = rig.ask("GETJOB", "WITHMETA", "FROM", "q")
    assert isinstance(reply, list)
    assert isinstance(reply[0], list)
    token = reply[0][-1]
    assert isinstance(token, bytes)
    rig.advance(2000)
    rig.ask("GETJOB", "WITHMETA", "FROM", "q")

    assert rig.ask("NACK", job.id + b"@" + token, "DELAY", 5) == 0
    assert job.nacks == 0


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["DELAY"], b"ERR syntax error: DELAY has no value behind it"),
        (["DELAY", 1, "DELAY", 1], b"ERR syntax error: DELAY is given twice"),
        (
            ["DELAY", 1, "RETRY", 1],
            b"ERR syntax error: 'RETRY' is not an option of NACK; there are DELAY, DEAD, ERROR",
        ),
        (["DELAY", 1, "DEAD"], b"ERR syntax error: DELAY and DEAD exclude each other"),
        *[
            (
                ["DELAY", word],
                b"ERR DELAY must be seconds from 0 to 316224000, with up to three decimals: '%b'"
                % word.encode(),
            )
            for word in ("", "-1", "x", "1.2345", "1e9", "9" * 13, "316224001", "1.", ".5", "+1")
        ],
    ],
)
def test_what_is_wrong_with_a_delay_is_told_and_changes_nothing(
    words: list[str | int], error: bytes
) -> None:
    rig = Rig()
    job = delivered(rig)

    assert rig.ask("NACK", job.id, *words) == Failure(error)
    assert (job.nacks, job.state) == (0, ACTIVE)


def test_a_delay_without_a_job_is_refused() -> None:
    error = b"ERR syntax error: DELAY has no job ids before it: NACK id " + usage(NACK).encode()
    assert Rig().ask("NACK", "DELAY", 5) == Failure(error)
    assert Rig().ask("NACK") == 0


def test_ids_behind_the_delay_are_refused() -> None:
    rig = Rig()
    one, other = delivered(rig), delivered(rig)

    reply = rig.ask("NACK", one.id, "DELAY", 5, other.id)

    assert isinstance(reply, Failure)
    assert reply.text.endswith(b"is not an option of NACK; there are DELAY, DEAD, ERROR")
    assert one.nacks == 0


def test_a_delay_beyond_the_life_of_one_job_is_refused_for_all() -> None:
    rig = Rig()
    long, short = delivered(rig), delivered(rig, "TTL", 60)

    assert rig.ask("NACK", long.id, short.id, "DELAY", 60) == Failure(
        b"ERR DELAY is longer than the life of %b, which would expire before it is queued again:"
        b" DELAY is 60000 ms, its TTL ends in 60000 ms" % short.id
    )
    assert (long.nacks, short.nacks) == (0, 0)
    assert rig.ask("NACK", short.id, "DELAY", "59.999") == 1


def test_a_queued_job_has_no_delay_to_be_refused() -> None:
    rig = Rig()
    job = rig.add("TTL", 5)

    assert rig.ask("NACK", job.id, "DELAY", 60) == 0
    assert job.nacks == 0


def test_a_job_that_waits_is_not_given_back_again() -> None:
    rig = Rig()
    job = delivered(rig)
    rig.ask("NACK", job.id, "DELAY", 5)

    assert rig.ask("NACK", job.id) == 0
    assert rig.ask("NACK", job.id, "DELAY", 50) == 0
    assert rig.ask("RELEASE", job.id) == 0
    assert (wait_of(rig, job), job.nacks, job.state) == (5000, 1, ACTIVE)


def test_an_at_most_once_job_is_not_postponed() -> None:
    rig = Rig()
    out = delivered(rig, "RETRY", 0, "REPLICATE", 1)
    coming = rig.add("RETRY", 0, "REPLICATE", 1, "DELAY", 5)

    assert rig.ask("NACK", out.id, coming.id, "DELAY", 60) == 0
    assert (out.nacks, out.requeue_at) == (0, 0)
    assert (coming.nacks, wait_of(rig, coming)) == (0, 5000)


@pytest.mark.parametrize("options", [("BACKOFF", 10), ()])
def test_a_job_whose_limit_is_reached_dies_at_once(options: tuple[str | int, ...]) -> None:
    rig = Rig()
    job = delivered(rig, "LIMIT", 1, *options)

    delay = () if options else ("DELAY", 5)
    assert rig.ask("NACK", job.id, *delay) == 1

    assert (job.state, job.nacks) == (DEAD, 1)


def test_the_wait_of_a_job_that_dies_is_over() -> None:
    rig = Rig()
    job = delivered(rig)
    rig.ask("NACK", job.id, "DELAY", 5)

    rig.ask("NACK", job.id, "DEAD", "why")
    rig.ask("REDRIVE", job.id)

    assert job.state == QUEUED
    assert not is_postponed(job)


# BACKOFF.


@pytest.mark.parametrize(
    ("options", "backoff", "most"),
    [
        (["BACKOFF", 2], 2000, 3_600_000),
        (["backoff", "0.5", "MAXBACKOFF", "1.5"], 500, 1500),
        (["MAXBACKOFF", 5, "BACKOFF", 5], 5000, 5000),
        (["BACKOFF", 7200], 7_200_000, 7_200_000),
    ],
)
def test_backoff_is_an_extension_of_the_job(
    options: list[str | int], backoff: int, most: int
) -> None:
    rig = Rig()
    job = rig.add(*options)

    shown = rig.ask("SHOW", job.id)

    assert isinstance(shown, list)
    assert shown[-4:] == [b"backoff", backoff, b"max-backoff", most]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["BACKOFF"], b"ERR syntax error: BACKOFF has no value behind it"),
        (["MAXBACKOFF", 5], b"ERR syntax error: MAXBACKOFF needs BACKOFF sec"),
        (["BACKOFF", 1, "BACKOFF", 1], b"ERR syntax error: BACKOFF is given twice"),
        (
            ["BACKOFF", 1, "MAXBACKOFF", 1, "MAXBACKOFF", 1],
            b"ERR syntax error: MAXBACKOFF is given twice",
        ),
        (
            ["BACKOFF", 2, "MAXBACKOFF", "1.999"],
            b"ERR MAXBACKOFF must not be shorter than BACKOFF: BACKOFF is %d ms, MAXBACKOFF %d ms"
            % (2000, 1999),
        ),
        (
            ["BACKOFF", 2, "RETRY", 0, "REPLICATE", 1],
            b"ERR BACKOFF needs RETRY above 0: a job with RETRY 0 is never queued again",
        ),
        *[
            (
                [*before, name, word],
                b"ERR %b must be seconds from 0.001 to %b, with up to three decimals: '%b'"
                % (name.encode(), MAX, word.encode()),
            )
            for before, name in (([], "BACKOFF"), (["BACKOFF", 1], "MAXBACKOFF"))
            for word in ("", "0", "-1", "x", "1.2345", "316224001", "9" * 13)
        ],
    ],
)
def test_what_is_wrong_with_backoff_is_told(options: list[str | int], error: bytes) -> None:
    rig = Rig()

    assert rig.ask("ADDJOB", "q", "b", 0, *options) == Failure(error)
    assert not rig.node.jobs


def test_each_backoff_is_twice_as_long_up_to_the_most() -> None:
    rig = Rig(config=CALM)
    job = delivered(rig, "BACKOFF", 10, "MAXBACKOFF", 35)

    for expected in (10_000, 20_000, 35_000, 35_000):
        assert rig.ask("NACK", job.id) == 1
        assert expected * 0.8 <= wait_of(rig, job) <= expected * 1.2
        rig.advance(wait_of(rig, job) + 10)
        assert job.state == QUEUED
        rig.ask("GETJOB", "FROM", "q")
    assert (job.nacks, job.deliveries) == (4, 0)


def test_backoffs_are_spread() -> None:
    rig = Rig()
    jobs = [delivered(rig, "BACKOFF", 10) for _ in range(50)]
    rig.ask("NACK", *[job.id for job in jobs])

    waits = [wait_of(rig, job) for job in jobs]
    assert min(waits) < 8600
    assert max(waits) > 11_400


def test_a_delay_goes_before_the_backoff_and_doubles_the_next_one() -> None:
    rig = Rig(config=CALM)
    job = delivered(rig, "BACKOFF", 10)

    rig.ask("NACK", job.id, "DELAY", 3)

    assert wait_of(rig, job) == 3000
    rig.advance(3010)
    rig.ask("GETJOB", "FROM", "q")
    rig.ask("NACK", job.id)
    assert 16_000 <= wait_of(rig, job) <= 24_000


def test_a_backoff_ends_before_the_job_expires() -> None:
    rig = Rig()
    job = delivered(rig, "BACKOFF", 1000, "TTL", 60)

    assert rig.ask("NACK", job.id) == 1
    assert wait_of(rig, job) == 30_000
