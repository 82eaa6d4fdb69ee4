import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.statemachine.records import DeleteJob, LoadJob, Record
from disque_trio.wire.jobs import DamagedError
from disque_trio.wire.journal import Format, Writer
from disque_trio.wire.salvage import Gap, salvage
from tests.strategies import u32
from tests.wire.journals import SALT, file_of, records
from tests.wire.test_jobs import COPY
from tests.wire.test_journal import ID

LOAD, DELETE = LoadJob(COPY), DeleteJob(ID)
SIZES = [len(Writer(Format.FRAMED, SALT).encode(record)) for record in (LOAD, DELETE)]


def saved(data: bytes) -> tuple[list[Record], list[Gap]]:
    found = list(salvage(data))
    gaps = [gap for gap in found if isinstance(gap, Gap)]
    return [record for record in found if not isinstance(record, Gap)], gaps


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@given(records())
def test_of_a_sound_file_everything_is_saved(records: list[Record]) -> None:
    assert saved(file_of(records, Format.FRAMED)) == (records, [])


def test_around_each_flipped_bit_every_other_record_is_saved() -> None:
    data = file_of([LOAD, DELETE, LOAD], Format.FRAMED)
    start = 20 + SIZES[0]

    for at in range(start, start + SIZES[1]):
        found, gaps = saved(flipped(data, at))

        assert found == [LOAD, LOAD]
        assert [(gap.start, gap.end) for gap in gaps] == [(start, start + SIZES[1])]


def test_a_header_with_a_flipped_bit_is_guessed() -> None:
    data = file_of([LOAD, DELETE], Format.FRAMED)

    for at in range(20):
        assert saved(flipped(data, at)) == ([LOAD, DELETE], [Gap(0, 20, "header damaged")])


@pytest.mark.parametrize("data", [b"", b"*2\r\n", b"some text of an unfortunate kind", bytes(900)])
def test_what_is_no_file_of_ours_is_not_guessed_at(data: bytes) -> None:
    with pytest.raises(DamagedError, match="header damaged"):
        saved(data)


def test_a_torn_tail_is_a_gap() -> None:
    data = file_of([LOAD, DELETE], Format.FRAMED)

    assert saved(data[:-1]) == ([LOAD], [Gap(20 + SIZES[0], len(data) - 1, "cut short")])
    assert saved(data + b"\0\0") == ([LOAD, DELETE], [Gap(len(data), len(data) + 2, _START)])


_START = "record without a proper beginning"


@given(u32)
def test_what_a_client_put_into_a_body_is_not_taken_for_a_record(salt: int) -> None:
    """It knows everything but the salt, and hopes for damage to the record around it."""
    forged = Writer(Format.FRAMED, salt).encode(DELETE)
    body = forged * 3
    around = LoadJob(attrs.evolve(COPY, body=body))
    data = file_of([around, LOAD], Format.FRAMED, salt ^ 0x1000)

    assert saved(flipped(data, 25))[0] == [LOAD]


def test_a_record_longer_than_a_window_is_saved() -> None:
    long = LoadJob(attrs.evolve(COPY, body=bytes(3 << 20)))

    assert saved(file_of([LOAD, long, DELETE], Format.FRAMED)) == ([LOAD, long, DELETE], [])


@given(records(min_size=1), st.data())
def test_damage_never_makes_a_record(records: list[Record], draw: st.DataObject) -> None:
    data = bytearray(file_of(records, Format.FRAMED))
    at = draw.draw(st.integers(20, len(data) - 1))
    data[at : draw.draw(st.integers(at, len(data)))] = draw.draw(st.binary(max_size=40))

    found, gaps = saved(bytes(data))

    left = iter(records)
    assert all(record in left for record in found)
    assert sum(gap.end - gap.start for gap in gaps) <= len(data)
