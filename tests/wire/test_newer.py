"""A journal of a newer version is called newer, never damaged."""

import pytest

from disque_trio.statemachine.base import FORMAT
from disque_trio.statemachine.records import LoadJob, Record
from disque_trio.wire.journal import (
    DamagedFileError,
    Format,
    NewerFileError,
    Reader,
    Writer,
    WrittenBy,
    this,
)
from disque_trio.wire.salvage import salvage
from tests.wire.journals import read
from tests.wire.newer import KNOWN, LATER, RECORDS, WRITER, layout
from tests.wire.test_jobs import COPY

HEADER = WRITER.header
strange = pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)


def newer(data: bytes) -> NewerFileError:
    with pytest.raises(NewerFileError) as raised:
        read(data)
    return raised.value


@strange
def test_a_sound_record_that_is_not_known_is_of_a_newer_version(record: bytes) -> None:
    found = newer(HEADER + KNOWN + record + KNOWN)

    assert found.offset == len(HEADER + KNOWN)
    assert found.needs == LATER
    assert f"written by disque-trio {LATER}" in str(found)
    assert "repair" not in found.advice


def test_the_records_before_it_are_read() -> None:
    reader = Reader()

    assert reader.feed(HEADER + KNOWN + RECORDS["a job state"]) == [LoadJob(COPY)]
    with pytest.raises(NewerFileError):
        reader.finish()


@pytest.mark.parametrize("note", [b"", WRITER.encode(this("0.1.0").note())])
def test_without_a_note_of_a_later_format_it_is_later_than_this(note: bytes) -> None:
    found = newer(HEADER + note + RECORDS["a job state"])

    assert found.needs == ""
    assert f"a later version of disque-trio than this one (format {FORMAT})" in str(found)
    assert found.advice == "Start a later version with it"


def test_a_kind_that_is_not_known_is_newer_also_if_the_file_ends_within_it() -> None:
    data = HEADER + KNOWN + RECORDS["a kind of record"]
    for size in range(len(HEADER + KNOWN) + 16, len(data)):
        assert newer(data[:size]).offset == len(HEADER + KNOWN)


def test_of_another_layout_only_the_header_is_known() -> None:
    assert "layout 2" in newer(layout(b"2")).reason
    assert "layout a" in newer(layout(b"a")[:20]).reason
    assert "layout 2" in newer(layout(b"2")[:12]).reason, "cut short"
    assert read(layout(b"2")[:10]) == ([], 10)


def test_a_flipped_bit_makes_no_file_newer() -> None:
    data = HEADER + KNOWN
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamagedFileError) as raised:
            read(bytes(flipped))
        assert not isinstance(raised.value, NewerFileError)


@strange
def test_no_repair_takes_it_for_damage(record: bytes) -> None:
    data = bytearray(HEADER + KNOWN + KNOWN + record + KNOWN)
    data[len(HEADER) + 20] ^= 1

    with pytest.raises(NewerFileError):
        list(salvage(bytes(data)))


def test_no_repair_makes_a_file_of_this_layout_of_another() -> None:
    with pytest.raises(NewerFileError, match="layout 2"):
        list(salvage(layout(b"2")))


def test_files_say_which_version_has_written_what_follows() -> None:
    reader = Reader()
    found: list[Record] = reader.feed(WRITER.beginning("0.1.0") + KNOWN)

    assert found == [LoadJob(COPY)]
    assert reader.written_by == WrittenBy(FORMAT + 1, LATER)
    assert read(WRITER.beginning("0.1.0"))[0] == []
    assert Writer(Format.DISQUE).beginning("0.1.0") == b""


def test_a_long_version_is_cut() -> None:
    note = this("1.2.3.dev45678+unknown").note()
    reader = Reader()
    reader.feed(HEADER + WRITER.encode(note))

    assert len(note.id) == 40
    assert reader.written_by == this("1.2.3.dev456")
