import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.statemachine.base import QUEUED, WAIT_REPL
from disque_trio.statemachine.messages import JobCopy
from disque_trio.wire.jobs import DamagedError, decode, encode
from tests.strategies import job_copies

STORED = bytes.fromhex(
    "7f000000442d38663363366331612d6b5952784d58666c5a51453264694d646e5272666e3262732d3035613102030100"
    "8dda016b80f9c6f256d2e918000000003c0000000000000002000000713105000000626f647931010000003866336336"
    "6331613336303961653265383639363663663239303961633631363662316330363961"
)
COPY = JobCopy(
    id=b"D-8f3c6c1a-kYRxMXflZQE2diMdnRrfn2bs-05a1",
    state=QUEUED,
    gc_attempt=0,
    flags=3,
    replicas=1,
    etime=1795283597,
    ctime=1795197197366000000,
    delay=0,
    retry=60,
    nacks=0,
    deliveries=0,
    queue=b"q1",
    body=b"body1",
    holders=(b"8f3c6c1a3609ae2e86966cf2909ac6166b1c069a",),
)
SENT = (
    bytes.fromhex("a3000000")
    + b"D-aeecadd2-dNZ9vS2xMWHExBW39zgS0gOV-0005"
    + bytes.fromhex("00 00 0200 2d010000 40f5a89bddd2e918 03000000 07000000 0000 0000 01000000 71")
    + bytes.fromhex("02000000 6869 02000000")
    + b"a" * 40
    + b"b" * 40
)


def test_the_stored_form_is_the_original_one() -> None:
    assert decode(STORED) == (COPY, len(STORED))
    assert encode(COPY) == STORED


def test_the_sent_form_is_the_original_one() -> None:
    copy, end = decode(SENT)

    assert end == len(SENT)
    assert copy == JobCopy(
        id=b"D-aeecadd2-dNZ9vS2xMWHExBW39zgS0gOV-0005",
        state=WAIT_REPL,
        gc_attempt=0,
        flags=0,
        replicas=2,
        etime=301,
        ctime=0x18E9D2DD9BA8F540,
        delay=3,
        retry=7,
        nacks=0,
        deliveries=0,
        queue=b"q",
        body=b"hi",
        holders=(b"a" * 40, b"b" * 40),
    )
    assert encode(copy) == SENT


def test_counters_wrap_at_sixteen_bits() -> None:
    copy, _ = decode(STORED)
    copy.nacks, copy.deliveries = 65_536, 65_537

    back, _ = decode(encode(copy))

    assert (back.nacks, back.deliveries) == (0, 1)


def test_jobs_behind_each_other_are_told_apart() -> None:
    data = b"xx" + STORED + SENT + b"yy"

    first, end = decode(data, 2)
    second, last = decode(data, end)

    assert (first.queue, second.queue) == (b"q1", b"q")
    assert last == len(data) - 2


def test_a_job_does_not_reach_beyond_the_limit() -> None:
    with pytest.raises(DamagedError, match="job cut short"):
        decode(STORED + STORED, 0, len(STORED) - 1)


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (0, 0, "job lengths do not add up"),
        (0, 79, "job lengths do not add up"),
        (0, 126, "job lengths do not add up"),
        (0, 128, "job cut short"),
        (0, 0xFFFFFFFF, "job cut short"),
        (44, 0x00010305, "job state unknown"),
        (72, 1, "job lengths do not add up"),
        (72, 3, "job lengths do not add up"),
        (72, 0xFFFFFFFF, "job lengths do not add up"),
        (78, 4, "job lengths do not add up"),
        (78, 50, "job lengths do not add up"),
        (78, 0xFFFFFFFF, "job lengths do not add up"),
        (87, 0, "job extensions cannot be read"),
        (87, 2, "job lengths do not add up"),
        (87, 0xFFFFFFFF, "job lengths do not add up"),
    ],
)
def test_a_wrong_length_is_damage(at: int, value: int, reason: str) -> None:
    data = STORED[:at] + value.to_bytes(4, "little") + STORED[at + 4 :]

    with pytest.raises(DamagedError) as raised:
        decode(data)

    assert raised.value.reason == reason


def test_every_shorter_job_is_damage() -> None:
    for length in range(len(STORED)):
        with pytest.raises(DamagedError):
            decode(STORED[:length])


def test_every_flipped_byte_gives_a_job_of_the_same_bytes_or_damage() -> None:
    for at in range(len(STORED)):
        for value in (0, 1, 0x7F, 0x80, 0xFF, STORED[at] ^ 1):
            data = STORED[:at] + bytes([value]) + STORED[at + 1 :]
            try:
                copy, end = decode(data)
            except DamagedError:
                continue
            assert encode(copy) == data[:end]


@given(job_copies(), st.binary(max_size=5), st.binary(max_size=5))
def test_jobs_are_read_as_written(copy: JobCopy, before: bytes, after: bytes) -> None:
    data = encode(copy)

    assert decode(before + data + after, len(before)) == (copy, len(before) + len(data))


@given(job_copies(), st.data())
def test_damage_is_found_or_is_another_job(copy: JobCopy, draw: st.DataObject) -> None:
    data = bytearray(encode(copy))
    for _ in range(draw.draw(st.integers(1, 3))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    del data[draw.draw(st.integers(0, len(data))) :]

    try:
        other, end = decode(bytes(data))
    except DamagedError:
        return
    assert encode(other) == data[:end]
