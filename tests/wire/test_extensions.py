import attrs
import pytest
from hypothesis import given

from disque_trio.statemachine.extensions import Extensions
from disque_trio.statemachine.records import LoadJob
from disque_trio.wire import commandlog, framed
from disque_trio.wire.extensions import decode, encode
from disque_trio.wire.jobs import DamagedError, decode_whole
from disque_trio.wire.jobs import encode as encode_job
from disque_trio.wire.journal import Reader
from tests.rig import copy_of
from tests.strategies import extensions

URGENT = Extensions(priority=7)


DUE = 1_800_000_010_000
OLD = bytes.fromhex(
    "646973717565616f6620310a1e0da55e7363a8e1d1a54c4aa900000056ffffffa5000000442d62626262626262622d"
    "4141414141414141414141414141414141414141414141412d303561310102020080234b6b0000b49376e2fa180a00"
    "00003c00000000000000010000007104000000626f6479020000006262626262626262626262626262626262626262"
    "6262626262626262626262626262626262626262616161616161616161616161616161616161616161616161616161"
    "61616161616161616161616161d4929906"
)
"""A file with a job that has a delay, as versions before DUE have written it."""


def stored(found: Extensions | None, due: int = 0) -> LoadJob:
    return LoadJob(attrs.evolve(copy_of(delay=10), extensions=found, due=due))


@given(extensions())
def test_extensions_are_read_as_written(found: Extensions) -> None:
    assert decode(encode(found)) == found


def test_the_priority_is_field_1() -> None:
    assert encode(URGENT) == bytes.fromhex("0100 04000000 07000000")
    assert decode(bytes.fromhex("0100 04000000 f9ffffff")) == Extensions(priority=-7)


def test_the_count_of_snoozes_is_field_26() -> None:
    assert encode(Extensions(snoozes=3)) == bytes.fromhex("1a00 04000000 03000000")


def test_fields_of_a_later_version_are_kept_and_passed_on() -> None:
    data = bytes.fromhex("0100 04000000 07000000 ff00 03000000 616263 ffff 00000000")

    found = decode(data)

    assert found == Extensions(priority=7, unknown=((255, b"abc"), (65535, b"")))
    assert encode(found) == data


@pytest.mark.parametrize(
    "data",
    [
        "",
        "0100",
        "0100 04000000 070000",
        "0100 03000000 070000",
        "0100 04000000 00000000",
        "ff00 01000000 61 0100 04000000 07000000",
        "ff00 01000000 61 ff00 01000000 61",
        "ff00 ffffffff 61",
    ],
)
def test_other_bytes_are_damage(data: str) -> None:
    assert decode(bytes.fromhex(data)) is None


def test_a_job_without_extensions_has_the_bytes_of_the_original() -> None:
    plain, extended = encode_job(stored(None).copy), encode_job(stored(URGENT).copy)

    assert extended[4 : len(plain)] == plain[4:]
    assert extended[len(plain) :] == encode(URGENT)


def test_damaged_extensions_are_a_damaged_job() -> None:
    data = bytearray(encode_job(stored(URGENT).copy))
    data[-5] = 9

    with pytest.raises(DamagedError, match="job extensions cannot be read"):
        decode_whole(bytes(data), 0, len(data))


# In journals.


@pytest.mark.parametrize("due", [0, DUE])
@pytest.mark.parametrize("found", [None, URGENT])
def test_the_framed_journal_keeps_them(found: Extensions | None, due: int) -> None:
    records: list[object] = []
    data = framed.encode(5, stored(found, due))

    framed.decode(5, data, 0, records)  # type: ignore[arg-type]

    assert records == [stored(found, due)]
    assert data[2:4] == (b"LX" if found or due else b"LJ")


@pytest.mark.parametrize("found", [None, URGENT])
def test_the_end_of_the_delay_is_field_0(found: Extensions | None) -> None:
    plain, data = encode_job(stored(None).copy), encode_job(stored(found, DUE).copy)

    field = bytes.fromhex("0000 08000000 10775c18a3010000")
    assert data[len(plain) :] == field + (encode(found) if found else b"")


@pytest.mark.parametrize(
    "data",
    ["0000 08000000 0000000000000000", "0000 04000000 10270000", "0000 08000000 10270000"],
    ids=["0 means that it is not there", "of another length", "cut short"],
)
def test_any_other_field_0_is_a_damaged_job(data: str) -> None:
    damaged = bytearray(encode_job(stored(None).copy) + bytes.fromhex(data))
    damaged[:4] = (len(damaged) - 4).to_bytes(4, "little")

    with pytest.raises(DamagedError, match="job extensions cannot be read"):
        decode_whole(bytes(damaged), 0, len(damaged))


def test_files_of_earlier_versions_do_not_have_it() -> None:
    reader = Reader()

    (record,) = reader.feed(OLD)

    assert reader.finish() == 0
    assert isinstance(record, LoadJob)
    assert (record.copy.delay, record.copy.due, record.copy.extensions) == (10, 0, None)


def test_in_the_original_s_format_it_is_left_out() -> None:
    assert commandlog.encode(stored(None, DUE)) == commandlog.encode(stored(None))

    payload = encode_job(stored(None, DUE).copy)
    data = b"*2\r\n$7\r\nLOADJOB\r\n$%d\r\n%b\r\n" % (len(payload), payload)
    assert commandlog.decode(data, 0, []).damage == "job lengths do not add up"


def test_a_record_of_another_kind_than_its_job_is_damage() -> None:
    drafted = framed.draft(stored(URGENT)).replace(b"LX", b"LJ", 1)

    stop = framed.decode(5, framed.seal(5, drafted), 0, [])

    assert stop.damage == "record of another kind than its job"


def test_the_original_s_journal_has_jobs_without_their_count_of_snoozes() -> None:
    snoozed = stored(Extensions(snoozes=3), DUE)

    assert commandlog.encode(snoozed) == commandlog.encode(stored(None))


def test_the_original_s_journal_has_no_place_for_them() -> None:
    with pytest.raises(commandlog.NoPlaceError):
        commandlog.encode(stored(URGENT))

    payload = encode_job(stored(URGENT).copy)
    data = b"*2\r\n$7\r\nLOADJOB\r\n$%d\r\n%b\r\n" % (len(payload), payload)
    assert commandlog.decode(data, 0, []).damage == "job lengths do not add up"
