"""Trace files of live nodes that are full, or of another sample."""

import os
from pathlib import Path

import attrs
import pytest

from disque_trio.tracing import live_file
from disque_trio.tracing.jsonlines import line_of
from disque_trio.tracing.live_file import TraceFile, TraceFileError
from disque_trio.tracing.rows import Row
from disque_trio.tracing.sampling import heading
from tests.tracing.test_live import Complaints, rows_in

ROWS = [Row(number, "queue", "n1") for number in range(10, 70)]
SIZE = len(line_of(ROWS[0]))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace.jsonl"


def names(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.iterdir())


def all_rows(path: Path) -> list[Row]:
    files = sorted(path.parent.iterdir(), key=lambda each: int(each.suffix[1:] or 0)
                   if each.suffix != ".jsonl" else 1_000)  # fmt: skip
    return [row for each in files for row in rows_in(each)]


def test_a_full_file_is_rotated_and_no_row_is_lost(path: Path) -> None:
    complaints = Complaints()
    file = TraceFile(str(path), complaints, max_bytes=10 * SIZE, keep=9)

    for begin in range(0, 60, 4):
        file.write(ROWS[begin : begin + 4])

    assert all_rows(path) == ROWS
    assert names(path) == ["trace.jsonl", *(f"trace.jsonl.{n}" for n in range(1, 8))]
    assert max(each.stat().st_size for each in path.parent.iterdir()) <= 10 * SIZE
    assert {each.stat().st_mode & 0o777 for each in path.parent.iterdir()} == {0o600}
    assert complaints == []


def test_rotated_files_keep_their_names_and_the_oldest_are_removed(path: Path) -> None:
    dated = path.with_name("trace.jsonl.20261124")
    dated.write_text("not ours")
    for _ in range(2):  # the second process goes on behind the first
        file = TraceFile(str(path), Complaints(), max_bytes=SIZE, keep=2)
        for row in ROWS[:4]:
            file.write([row])
        file.close()

    assert names(path) == ["trace.jsonl", dated.name, "trace.jsonl.6", "trace.jsonl.7"]


def test_a_batch_that_is_larger_than_a_file_stays_whole(path: Path) -> None:
    file = TraceFile(str(path), Complaints(), max_bytes=SIZE)

    file.write(ROWS)

    assert names(path) == ["trace.jsonl"]
    assert rows_in(path) == ROWS


def test_without_a_bound_nothing_is_rotated(path: Path) -> None:
    file = TraceFile(str(path), Complaints(), max_bytes=0)

    for row in ROWS:
        file.write([row])

    assert names(path) == ["trace.jsonl"]


def test_rotation_goes_on_where_the_file_was_opened(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    file = TraceFile("trace.jsonl", Complaints(), max_bytes=SIZE)
    monkeypatch.chdir("/")

    file.write(ROWS[:1])
    file.write(ROWS[1:2])

    assert all_rows(path) == ROWS[:2]


def test_a_file_that_cannot_be_rotated_grows_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    complaints = Complaints()
    file = TraceFile(str(path), complaints, max_bytes=SIZE)

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refused)
        for row in ROWS[:5]:
            file.write([row])
    assert rows_in(path) == ROWS[:5]
    assert [each.split(" [")[0] for each in complaints] == [
        "the trace file cannot be rotated and grows on"
    ]

    file.write(ROWS[5:6])
    assert rows_in(path) == ROWS[5:6]
    assert names(path) == ["trace.jsonl", "trace.jsonl.1"]


def test_if_there_is_no_new_file_the_old_one_gets_its_name_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = TraceFile(str(path), Complaints(), max_bytes=SIZE)
    file.write(ROWS[:1])

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(live_file, "_open", full)
    file.write(ROWS[1:2])

    assert names(path) == ["trace.jsonl"]
    assert rows_in(path) == ROWS[:2]


def test_each_file_of_a_sample_says_so_in_its_first_line(path: Path) -> None:
    file = TraceFile(str(path), Complaints(), sample=100, max_bytes=3 * SIZE, keep=9)

    for row in ROWS[:9]:
        file.write([row])

    assert len(names(path)) > 2
    for name in names(path):
        head, first, *_ = rows_in(path.with_name(name))
        assert head == heading(first, 100)
        assert (head.kind, head.detail) == ("sample", "one-in=100")


@pytest.mark.parametrize(("before", "after"), [(1, 100), (100, 1), (100, 10)])
def test_rows_of_another_sample_go_into_another_file(path: Path, before: int, after: int) -> None:
    TraceFile(str(path), Complaints(), sample=before).write(ROWS[:1])
    again = TraceFile(str(path), Complaints(), sample=after)
    again.write(ROWS[1:2])

    assert names(path) == ["trace.jsonl", "trace.jsonl.1"]
    assert rows_in(path)[-1] == ROWS[1]
    assert rows_in(path.with_name("trace.jsonl.1"))[-1] == ROWS[0]


def test_the_next_process_with_the_same_sample_goes_on_in_the_same_file(path: Path) -> None:
    for row in ROWS[:2]:
        TraceFile(str(path), Complaints(), sample=100).write([row])

    assert names(path) == ["trace.jsonl"]
    assert [row.kind for row in rows_in(path)] == ["sample", "queue", "queue"]


def test_a_file_with_a_damaged_heading_is_refused(path: Path) -> None:
    path.write_bytes(line_of(Row(1, "sample", detail="one-in=0")))

    with pytest.raises(TraceFileError, match="a sample says one-in=N"):
        TraceFile(str(path), Complaints())


def test_of_a_trace_that_grows_fast_there_is_one_warning_an_hour(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_file, "MUCH", 2 * SIZE)
    complaints = Complaints()
    file = TraceFile(str(path), complaints)
    minute = 60_000

    for at in (*range(0, 50 * minute, minute), *range(70 * minute, 80 * minute, minute)):
        file.write([attrs.evolve(ROWS[0], mono=at + 5_000_000)])

    assert complaints == ["the trace has grown fast: see 'trace-file-sample'"] * 2
