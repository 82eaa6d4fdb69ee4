"""LIMIT, NACK DEAD, REDRIVE and PURGE DEAD: bad input has one clear error, and changes nothing."""

import pytest

from disque_trio.statemachine.base import DEAD, QUEUED, Failure
from disque_trio.statemachine.extensions import MAX_REASON, Extensions
from tests.rig import JOB, Rig

WHOLE = "LIMIT must be a whole number from 1 to 10000"


@pytest.mark.parametrize("limit", [1, 10_000])
def test_a_limit_is_from_1_to_10000(limit: int) -> None:
    assert Rig().add("limit", limit).extensions == Extensions(limit=limit)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("LIMIT",), "ERR syntax error: LIMIT has no value behind it"),
        (("LIMIT", ""), f"ERR {WHOLE}: '' is no whole number"),
        (("LIMIT", "x"), f"ERR {WHOLE}: 'x' is no whole number"),
        (("LIMIT", "1.5"), f"ERR {WHOLE}: '1.5' is no whole number"),
        (("LIMIT", 0), f"ERR {WHOLE}: '0' is less than 1"),
        (("LIMIT", -1), f"ERR {WHOLE}: '-1' is less than 1"),
        (("LIMIT", 10_001), f"ERR {WHOLE}: '10001' is beyond 10000"),
        (("LIMIT", "9" * 90), f"ERR {WHOLE}: '{'9' * 48}"),
        (("LIMIT", 1, "LIMIT", 1), "ERR syntax error: LIMIT is given twice"),
        (
            ("LIMIT", 1, "RETRY", 0, "REPLICATE", 1),
            "ERR syntax error: LIMIT needs a RETRY above 0: with RETRY 0 a job is delivered once",
        ),
    ],
)
def test_a_bad_limit_adds_no_job(options: tuple[str | int, ...], error: str) -> None:
    rig = Rig()

    reply = rig.ask("ADDJOB", "q", "body", 0, *options)

    assert isinstance(reply, Failure)
    assert reply.text.decode().startswith(error)
    assert not rig.node.jobs


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("DEAD", "why"), "ERR syntax error: DEAD has no job ids before it: NACK id ["),
        (
            (JOB, "DEAD", "two", "words"),
            "ERR syntax error: the reason behind DEAD is one word, quoted if it has spaces",
        ),
        (
            (JOB, "DEAD", "x" * (MAX_REASON + 1)),
            "ERR The reason behind DEAD has at most 1024 bytes: this one has 1025",
        ),
        ((JOB, "DAED"), "BADID"),
        ((b"D-x", "DEAD"), "BADID"),
        ((JOB + b"@x", "DEAD"), "BADTOKEN"),
    ],
)
def test_a_bad_burial_buries_nothing(words: tuple[str | bytes, ...], error: str) -> None:
    rig = Rig()
    job = rig.add()

    reply = rig.ask("NACK", *[job.id if word == JOB else word for word in words])

    assert isinstance(reply, Failure)
    assert reply.text.decode().startswith(error)
    assert (job.state, job.nacks) == (QUEUED, 0)


def test_the_longest_reason_is_kept() -> None:
    rig = Rig()
    job = rig.add()

    assert rig.ask("NACK", job.id, job.id, "DEAD", "\xff" * (MAX_REASON // 2)) == 1

    assert len(job.dead_state.reason) == MAX_REASON
    assert job.nacks == 1


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("q", "COUNT"), "ERR syntax error: COUNT has no value behind it"),
        (("q", "COUNT", 0), "ERR COUNT must be a number greater than zero: '0' is less than 1"),
        (("q", "COUNT", -5), "ERR COUNT must be a number greater than zero: '-5' is less than 1"),
        (("q", "COUNT", "x"), "ERR COUNT must be a number greater than zero: 'x' is no whole"),
        (("q", "COUNT", 1, "COUNT", 1), "ERR syntax error: COUNT is given twice"),
        (("q", "CUONT", 1), "ERR syntax error: 'CUONT' is not an option of REDRIVE"),
        (("q", JOB), "ERR syntax error:"),
        ((JOB, "q"), "BADID"),
        ((JOB, "COUNT", 1), "BADID"),
        ((), "ERR wrong number of arguments for 'redrive' command"),
    ],
)
def test_a_bad_redrive_redrives_nothing(words: tuple[str | bytes | int, ...], error: str) -> None:
    rig = Rig()
    job = rig.add()
    rig.ask("NACK", job.id, "DEAD")

    reply = rig.ask("REDRIVE", *[job.id if word == JOB else word for word in words])

    assert isinstance(reply, Failure)
    assert reply.text.decode().startswith(error)
    assert job.state == DEAD


def test_ids_that_are_not_here_and_repeated_ones_are_not_counted() -> None:
    rig = Rig()
    job = rig.add()
    rig.ask("NACK", job.id, "DEAD")

    assert rig.ask("REDRIVE", job.id, JOB, job.id) == 1


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("DAED",), "'DAED' is not an option of PURGE (did you mean 'DEAD'?)"),
        (("DEAD", "bcast", "dead"), "DEAD is given twice"),
    ],
)
def test_a_bad_purge_changes_nothing(words: tuple[str, ...], error: str) -> None:
    rig = Rig(peers=1, ours=True)
    job = rig.add("REPLICATE", 1)
    rig.ask("NACK", job.id, "DEAD")

    assert rig.ask("PURGE", "q", *words) == Failure(f"ERR syntax error: {error}".encode())

    assert (job.state, rig.sent()) == (DEAD, [])
