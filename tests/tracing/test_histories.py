"""Lines of histories: what they have of requests and replies."""

import json
from typing import Any

import pytest

from disque_trio.statemachine.base import Failure
from disque_trio.tracing.histories import begin_line, is_recorded, reply_line

ID = b"D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
LONG = b"x" * 65


def request(*words: bytes) -> list[str]:
    facts: dict[str, Any] = json.loads(begin_line("c", 1, 2.5, "n", words))
    found: list[str] = facts["request"]
    return found


@pytest.mark.parametrize(
    ("words", "at"),
    [
        ((b"ADDJOB", b"q", LONG, b"0", b"RETRY", b"5"), 2),
        ((b"ackjob", ID, b"RESULT", LONG, b"KEEP", b"5"), 3),
    ],
)
def test_of_a_long_body_and_a_long_result_a_history_has_the_digest(
    words: tuple[bytes, ...], at: int
) -> None:
    found = request(*words)

    assert found[at].startswith("sha256:")
    assert [each.encode() for each in found[:at] + found[at + 1 :]] == [
        *words[:at],
        *words[at + 1 :],
    ]


def test_short_bodies_and_ids_are_recorded_as_they_are() -> None:
    assert request(b"ADDJOB", b"q", LONG[1:], b"0")[2] == LONG[1:].decode()
    assert request(b"ACKJOB", ID, ID, ID) == ["ACKJOB", *[ID.decode()] * 3]
    assert request(b"ADDJOB", b"q", b"\xff", b"0")[2] == "\udcff"


def test_a_reply_is_a_job_or_an_error() -> None:
    job = json.loads(reply_line("c", 1, 2.5, [[b"q", ID, LONG]]))

    assert job["reply"][0][:2] == ["q", ID.decode()]
    assert job["reply"][0][2].startswith("sha256:")
    assert json.loads(reply_line("c", 1, 2.5, Failure(b"ERR x")))["error"] == "ERR x"


def test_commands_that_only_look_are_not_recorded() -> None:
    assert is_recorded([b"getjob", b"FROM", b"q"])
    assert not is_recorded([b"QLEN", b"q"])
    assert not is_recorded([])
