"""The bytes of POSTPONED."""

import pytest

from disque_trio.statemachine.messages import Postponed
from disque_trio.wire.frames import HEADER_LENGTH, FrameParser, encode
from tests.rig import JOB, ME


@pytest.mark.parametrize(
    ("message", "marks", "payload"),
    [
        (Postponed(JOB, 5000, 3, is_new=True), 2, "00001388 0003"),
        (Postponed(JOB, 1, 0), 0, "00000001 0000"),
        (Postponed(JOB, 5000, 3, snoozes=70_000), 0, "00001388 0003 00011170"),
        (Postponed(JOB, 1, 0, snoozes=1, is_snooze=True), 128, "00000001 0000 00000001"),
    ],
)
def test_its_numbers_stand_behind_the_id(message: Postponed, marks: int, payload: str) -> None:
    frame = encode(ME, 7711, 0, message)

    assert frame[12:14] == bytes([0, 25])
    assert frame[HEADER_LENGTH - 3] == marks
    assert frame[HEADER_LENGTH:] == JOB + bytes.fromhex(payload)
    [parsed] = FrameParser().feed(frame)
    assert parsed.message == message
    assert FrameParser().feed(frame[:4] + b"\0\0\0\x9a" + frame[8:-36]) == []
