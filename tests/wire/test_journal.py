import contextlib
import itertools

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.statemachine.base import ACKED, ORIGINAL_PERIOD_S
from disque_trio.statemachine.messages import JobCopy
from disque_trio.statemachine.records import DeleteJob, LoadJob, Record
from disque_trio.wire.journal import DamagedFileError, Format, Reader, Writer
from tests.conformance import JOURNALS
from tests.strategies import cuts, pieces
from tests.wire.journals import SALT, file_of, read, records
from tests.wire.test_jobs import COPY, STORED

ID = b"D-aeecadd2-dNZ9vS2xMWHExBW39zgS0gOV-05a1"
LOADJOB = b"*2\r\n$7\r\nLOADJOB\r\n$131\r\n" + STORED + b"\r\n"
DELJOB = b"*2\r\n$6\r\nDELJOB\r\n$40\r\n" + ID + b"\r\n"
RECORDS: list[Record] = [LoadJob(COPY), DeleteJob(ID), LoadJob(COPY), LoadJob(COPY), DeleteJob(ID)]
FRAMED = file_of(RECORDS, Format.FRAMED)
formats = st.sampled_from(Format)
each_format = pytest.mark.parametrize("format_", Format)


def damage(data: bytes) -> DamagedFileError:
    with pytest.raises(DamagedFileError) as raised:
        read(data)
    return raised.value


# Whole files.


def test_records_of_the_original_are_commands() -> None:
    writer = Writer(Format.DISQUE)

    assert writer.header == b""
    assert [writer.encode(record) for record in RECORDS[:2]] == [LOADJOB, DELJOB]
    assert read(LOADJOB + DELJOB) == (RECORDS[:2], 0)


def test_a_node_writes_no_acknowledged_job_that_would_crash_an_original_node() -> None:
    acked = LoadJob(attrs.evolve(COPY, state=ACKED))

    assert read(Writer(Format.DISQUE).encode_live(acked)) == ([DeleteJob(COPY.id)], 0)
    assert read(Writer(Format.DISQUE).encode_live(LoadJob(COPY))) == ([LoadJob(COPY)], 0)


def test_records_of_ours_have_length_and_checksum() -> None:
    writer = Writer(Format.FRAMED, SALT)

    assert writer.header == b"disqueaof 1\n\x1e\x0d\xa5\x5esc\xa8\xe1"
    assert writer.encode(DeleteJob(ID)) == (
        b"\xd1\xa5DJ\x28\0\0\0\xd7\xff\xff\xff" + ID + b"\x08\xd8\xed\xda"
    )
    assert writer.encode(LoadJob(COPY))[:12] == b"\xd1\xa5LJ\x83\0\0\0\x7c\xff\xff\xff"


@pytest.mark.parametrize("format_", list(Format))
def test_what_is_drafted_once_can_be_sealed_for_any_file_of_the_format(format_: Format) -> None:
    drafts = [Writer(format_, 1).draft(record) for record in RECORDS]

    for salt in (2, 3):
        writer = Writer(format_, salt)
        data = writer.header + b"".join(map(writer.seal, drafts))
        assert read(data) == (RECORDS, 0)


def test_an_empty_file_has_no_records_and_no_format() -> None:
    reader = Reader()

    assert reader.feed(b"") == []
    assert reader.finish() == 0
    assert reader.format is None


def test_a_reader_makes_the_writer_that_goes_on_with_the_file() -> None:
    reader = Reader()
    reader.feed(FRAMED)

    assert read(FRAMED + reader.writer().encode(DeleteJob(ID))) == ([*RECORDS, DeleteJob(ID)], 0)


def test_the_files_of_original_nodes_are_written_back_byte_for_byte() -> None:
    for path in JOURNALS:
        data = path.read_bytes()

        records, torn = read(data)

        assert records
        assert not torn
        assert file_of(records, Format.DISQUE) == data
        assert read(file_of(records, Format.FRAMED)) == (records, 0)


def plain(records: list[Record]) -> list[Record]:
    """The original's format has no place for extensions, for the end of a delay, and for times that
    an original server cannot count."""
    return [
        LoadJob(plain_copy(each.copy)) if isinstance(each, LoadJob) else each for each in records
    ]


def plain_copy(copy: JobCopy) -> JobCopy:
    delay, retry = min(copy.delay, ORIGINAL_PERIOD_S), min(copy.retry, ORIGINAL_PERIOD_S)
    return attrs.evolve(copy, extensions=None, due=0, delay=delay, retry=retry)


@given(records(), formats, st.integers(0, (1 << 32) - 1), cuts())
def test_records_are_read_as_written_however_the_file_is_cut(
    records: list[Record], format_: Format, salt: int, shares: list[float]
) -> None:
    if format_ is Format.DISQUE:
        records = plain(records)
    data = file_of(records, format_, salt)
    reader = Reader()

    found = [record for piece in pieces(data, shares) for record in reader.feed(piece)]

    assert found == records
    assert reader.finish() == 0
    assert reader.offset == len(data)
    assert reader.format is (format_ if data else None)


# Torn tails.


@each_format
@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_every_prefix_loads_to_an_earlier_moment(format_: Format, chunk: int) -> None:
    data = file_of(RECORDS, format_)
    ends = list(
        itertools.accumulate(
            map(len, map(Writer(format_, SALT).encode, RECORDS)),
            initial=len(Writer(format_).header),
        )
    )

    for size in range(len(data)):
        whole = sum(end <= size for end in ends[1:])
        end = ends[whole] if size >= ends[0] else 0
        assert read(data[:size], chunk) == (RECORDS[:whole], size - end)


@each_format
def test_zeros_at_the_end_are_a_torn_tail(format_: Format) -> None:
    for zeros in (1, 3, 20, 5000):
        assert read(file_of(RECORDS, format_) + bytes(zeros), 64) == (RECORDS, zeros)


def test_a_file_of_zeros_is_a_torn_tail() -> None:
    assert read(bytes(5000), 64) == ([], 5000)


@each_format
def test_zeros_with_something_behind_them_are_damage(format_: Format) -> None:
    data = file_of(RECORDS, format_)

    for zeros in (1, 20, 5000):
        found = damage(data + bytes(zeros) + data[-4:])
        assert found.offset == len(data)


@each_format
def test_every_prefix_of_an_original_node_s_file_loads_to_an_earlier_moment(
    format_: Format,
) -> None:
    for path in JOURNALS:
        records, _torn = read(path.read_bytes())
        data = file_of(records, format_)
        whole: list[int] = []

        for size in range(len(data) + 1):
            found, torn = read(data[:size])
            assert found == records[: len(found)]
            whole.append(len(found))
            assert read(data[: size - torn]) == (found, 0)

        assert sorted(whole) == whole
        assert sorted(set(whole)) == list(range(len(records) + 1))


# Damage.


@pytest.mark.parametrize("chunk", [50, 1 << 20])
def test_each_flipped_bit_of_ours_is_found(chunk: int) -> None:
    last = len(FRAMED) - len(Writer(Format.FRAMED).encode(RECORDS[-1]))
    for bit in range(8 * len(FRAMED)):
        data = bytearray(FRAMED)
        data[bit // 8] ^= 1 << bit % 8

        with pytest.raises(DamagedFileError) as raised:
            read(bytes(data), chunk)

        assert raised.value.offset <= min(bit // 8, last)


@given(records(min_size=1), st.data())
def test_damage_to_ours_is_found_or_only_its_end_is_missing(
    records: list[Record], draw: st.DataObject
) -> None:
    data = bytearray(file_of(records, Format.FRAMED))
    at = draw.draw(st.integers(0, len(data) - 1))
    data[at : draw.draw(st.integers(at, len(data)))] = draw.draw(st.binary(max_size=40))
    if data == file_of(records, Format.FRAMED):
        return

    try:
        found, _torn = read(bytes(data))
    except DamagedFileError:
        return
    # Whole records may be cut out.
    left = iter(records)
    assert all(each in left for each in found)
    assert len(found) < len(records)


@given(records(min_size=1), st.data())
def test_damage_to_the_original_is_found_or_gives_records(
    records: list[Record], draw: st.DataObject
) -> None:
    data = bytearray(file_of(plain(records), Format.DISQUE))
    data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    del data[draw.draw(st.integers(0, len(data))) :]
    reader = Reader()

    found: list[Record] = []
    with contextlib.suppress(DamagedFileError):
        found = reader.feed(bytes(data))

    # Damage may also make times that an original cannot count: they are read, not written.
    fit = list(itertools.takewhile(lambda each: plain([each]) == [each], found))
    written = file_of(fit, Format.DISQUE)
    assert data[: reader.offset].startswith(written)
    assert len(fit) < len(found) or len(written) == reader.offset


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (b"*1\r\nx\r\n", "neither LOADJOB nor DELJOB"),
        (b"*1\r\n$4\r\nPING\r\n", "neither LOADJOB nor DELJOB"),
        (b"*2\r\n$6\r\nDELJOB\r\n$1\r\nD\r\n", "neither LOADJOB nor DELJOB"),
        (DELJOB[:-2] + b"\n\n", "no line end behind an id"),
        (LOADJOB[:-2] + b"\n\n", "no line end behind a job"),
        (LOADJOB.replace(b"$131", b"$132") + b"\r\n", "length of a LOADJOB wrong"),
        (LOADJOB.replace(b"$131", b"$931"), "length of a LOADJOB wrong"),
        (LOADJOB.replace(b"$131", b"$0131"), "length of a LOADJOB wrong"),
        (LOADJOB.replace(b"$131", b"$x"), "length of a LOADJOB wrong"),
        (LOADJOB.replace(b"$131", b"$" + b"1" * 99), "length of a LOADJOB wrong"),
        (b"*2\r\n$7\r\nLOADJOB\r\n$9\r\n\5\0\0\0abcde\r\n", "job cut short"),
        (b"*2\r\n$7\r\nLOADJOB\r\n$\r\n", "length of a LOADJOB wrong"),
    ],
)
def test_anything_else_among_commands_is_damage(tail: bytes, reason: str) -> None:
    found = damage(LOADJOB + tail)

    assert found.reason == reason
    assert found.offset == len(LOADJOB)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"save 900 1\n", "not an append-only file"),
        (b"disque", ""),
        (FRAMED[:10] + b"0" + FRAMED[11:], "header damaged"),
        (FRAMED[:10] + b"3" + FRAMED[11:], "header damaged"),
        (FRAMED[:10] + b"-" + FRAMED[11:], "not an append-only file"),
        (FRAMED[:12] + b"x" + FRAMED[13:], "header damaged"),
    ],
)
def test_a_file_of_another_kind_is_refused(data: bytes, reason: str) -> None:
    if reason:
        assert damage(data).offset == 0
        assert reason in damage(data).reason
    else:
        assert read(data) == ([], len(data))


def test_records_before_damage_are_read_and_then_damage_is_final() -> None:
    reader = Reader()

    assert reader.feed(FRAMED + b"noise") == RECORDS
    for _ in range(2):
        with pytest.raises(DamagedFileError, match=rf"proper beginning at byte {len(FRAMED)}"):
            reader.feed(b"more")
        with pytest.raises(DamagedFileError, match="proper beginning"):
            reader.finish()


def test_damage_comes_with_advice() -> None:
    assert "aof repair --skip-damaged FILE" in damage(FRAMED[:40] + FRAMED[50:]).advice
    assert "--skip-damaged" not in damage(LOADJOB[:-1] + LOADJOB).advice
    assert "aof repair --cut-damaged FILE" in damage(LOADJOB[:-1] + LOADJOB).advice
    assert "backup" in damage(b"nothing of ours").advice


def test_a_record_of_another_file_is_damage() -> None:
    other = Writer(Format.FRAMED, SALT ^ 1).encode(DeleteJob(ID))

    assert damage(FRAMED + other).reason == "checksum wrong"


def test_a_long_record_waits_for_its_bytes_without_being_looked_at_again() -> None:
    reader = Reader()
    data = file_of([LoadJob(COPY), LoadJob(COPY)], Format.FRAMED)
    reader.feed(data[:200])

    assert [reader.feed(data[at : at + 1]) for at in range(200, len(data) - 1)] == [[]] * (
        len(data) - 201
    )
    assert reader.feed(data[-1:]) == [LoadJob(COPY)]
