"""ADDJOB UNIQUE: its options, and the errors."""

import hashlib

import pytest

from disque_trio.statemachine.base import LONGEST_PERIOD_S, Failure, Status
from disque_trio.statemachine.key_facts import MAX_KEY
from tests.rig import Rig


def key_of(rig: Rig, *options: bytes | str | int, body: str = "body") -> bytes | None:
    extensions = rig.add(*options, body=body).extensions
    assert extensions is not None
    return extensions.key


@pytest.mark.parametrize("key", [b"k", b"\0\r\n", b"x" * MAX_KEY])
def test_a_key_may_be_any_bytes(key: bytes) -> None:
    assert key_of(Rig(), "UNIQUE", key) == key


def test_the_empty_key_is_the_hash_of_the_body() -> None:
    rig = Rig()

    assert key_of(rig, "unique", "", body="one") == hashlib.sha256(b"one").hexdigest().encode()
    assert rig.ask("ADDJOB", "q", "one", 0, "UNIQUE", "") == Status(next(iter(rig.node.jobs)))
    assert key_of(rig, "UNIQUE", "", body="two") != key_of(rig, "UNIQUE", "", body="three")


@pytest.mark.parametrize(("word", "millis"), [("1", 1000), ("0.001", 1), ("2.5", 2500)])
def test_keep_has_up_to_three_decimals(word: str, millis: int) -> None:
    extensions = Rig().add("UNIQUE", "k", "KEEP", word).extensions

    assert extensions is not None
    assert extensions.keep == millis


def test_show_tells_the_key() -> None:
    rig = Rig()
    job = rig.add("UNIQUE", "k", "KEEP", "1.5")

    shown = rig.ask("SHOW", job.id)

    assert isinstance(shown, list)
    assert shown[-4:] == [b"key", b"k", b"keep", 1500]


@pytest.mark.parametrize("way", ["return", "RETURN", "Reject"])
def test_ifexists_may_be_written_in_any_case(way: str) -> None:
    assert isinstance(Rig().ask("ADDJOB", "q", "b", 0, "UNIQUE", "k", "IFEXISTS", way), Status)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["UNIQUE"], b"ERR syntax error: UNIQUE has no value behind it"),
        (
            ["UNIQUE", "x" * (MAX_KEY + 1)],
            b"ERR A key has at most 256 bytes: '%b...' has 257" % (b"x" * 64),
        ),
        (["UNIQUE", "a", "unique", "b"], b"ERR syntax error: UNIQUE is given twice"),
        (["UNIQUE", "a", "KEEP", 1, "KEEP", 1], b"ERR syntax error: KEEP is given twice"),
        (
            ["UNIQUE", "a", "IFEXISTS", "return", "IFEXISTS", "reject"],
            b"ERR syntax error: IFEXISTS is given twice",
        ),
        (["KEEP", 1], b"ERR syntax error: KEEP needs UNIQUE key"),
        (["IFEXISTS", "return"], b"ERR syntax error: IFEXISTS needs UNIQUE key"),
        (["UNIQUE", "a", "KEEP"], b"ERR syntax error: KEEP has no value behind it"),
        *[
            (
                ["UNIQUE", "a", "KEEP", word],
                b"ERR KEEP must be seconds from 0.001 to %d, with up to three decimals: '%b'"
                % (LONGEST_PERIOD_S, word.encode()),
            )
            for word in ("", "0", "0.000", "-1", "x", "1.2345", "1e9", "9" * 13, str(1 << 40))
        ],
    ],
)
def test_a_mistake_is_told_and_changes_nothing(options: list[str | int], error: bytes) -> None:
    rig = Rig()

    assert rig.ask("ADDJOB", "q", "b", 0, *options) == Failure(error)
    assert not rig.node.jobs
    assert not rig.node.keys.claims


def test_of_another_way_those_that_there_are_are_told() -> None:
    reply = Rig().ask("ADDJOB", "q", "b", 0, "UNIQUE", "k", "IFEXISTS", "rejekt")

    assert isinstance(reply, Failure)
    assert reply.text.startswith(b"ERR syntax error: IFEXISTS: 'rejekt' is none of return, reject")


def test_keys_are_not_remembered_with_the_options_of_other_jobs() -> None:
    from disque_trio.statemachine.commands.addjob import _RESOLVED  # noqa: PLC0415

    rig = Rig()
    rig.add("RETRY", 7)
    before = len(_RESOLVED)

    rig.add("UNIQUE", "k", "RETRY", 7)

    assert len(_RESOLVED) == before
