"""The folder of a lake: what counts in it, and what is not believed."""

import errno
import itertools
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from disque_trio.pipeline.lake import files, shape, store
from disque_trio.pipeline.lake.delta import DeltaFiles, Version
from disque_trio.pipeline.lake.store import Lake, LakeError, Part, Source
from disque_trio.tracing.rows import Row
from tests.pipeline.lake.folder import strays

TABLE = shape.rows_table([Row(1, "hold", job="J"), Row(2, "drop", job="J")], "r", 7)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(str(tmp_path / "lake"), create=True)


def test_what_no_commit_names_is_not_there(lake: Lake) -> None:
    part = lake.write("rows", "calm", "a", TABLE)
    assert part == Part("rows", "rows/scenario=calm/a.parquet", 2)
    assert lake.parts("rows") == []

    lake.commit([part])

    assert lake.parts("rows") == [part]
    assert lake.parts("results") == []


def test_a_part_that_is_not_finished_has_no_name(lake: Lake) -> None:
    with pytest.raises(InterruptedError):
        _write_half(lake)

    assert list(Path(lake.path, "rows").rglob("*.parquet")) == []
    assert strays(lake) == []


def _write_half(lake: Lake) -> None:
    with lake.part("rows", "s", "a", shape.ROWS) as writer:
        writer.write_table(TABLE)
        raise InterruptedError


def test_a_part_that_was_committed_twice_counts_once(lake: Lake) -> None:
    part = lake.write("rows", "s", "a", TABLE)
    lake.commit([part])
    lake.commit([part])

    assert lake.parts("rows") == [part]


def test_drafts_of_the_dead_are_removed_when_they_are_old(lake: Lake) -> None:
    for name in (".writing-1", "recent/.writing-2", "sources/.writing-3"):
        Path(lake.path, name).touch()

    assert lake.remove_drafts(60) == 0
    assert lake.remove_drafts(0) == 3
    assert strays(lake) == []


def test_who_makes_the_lake_at_the_same_moment_locks_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "lake")
    exists, others = Path.exists, [path]

    def meanwhile(head: Path) -> bool:
        """Another one looks, too, and is quicker."""
        was_there = exists(head)
        if others:
            lake = Lake.open(others.pop(), create=True)
            lake.commit([lake.write("rows", "s", "a", TABLE)])
            made.append(os.stat(head).st_ino)
        return was_there

    made: list[int] = []
    monkeypatch.setattr(Path, "exists", meanwhile)
    lake = Lake.open(path, create=True)

    assert os.stat(Path(path, "lake.json")).st_ino == made[0]
    assert len(lake.parts("rows")) == 1


def test_a_lake_is_made_where_a_link_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", no_links)

    assert Lake.open(str(tmp_path), create=True).parts("rows") == []
    assert not list(tmp_path.rglob(".writing-*"))


def no_links(_from: Path, _to: Path) -> None:
    raise PermissionError(errno.EPERM, "Operation not permitted")


def test_names_of_scenarios_may_be_anything(lake: Lake) -> None:
    part = lake.write("rows", "a/b=ö [1]", "p", TABLE)
    lake.commit([part])

    assert part.path == "rows/scenario=a%2Fb%3D%C3%B6 %5B1%5D/p.parquet"
    assert lake.parts("rows") == [part]


def test_a_lake_of_another_schema_is_refused(lake: Lake) -> None:
    Path(lake.path, "lake.json").write_text('{"schema": 3}')

    with pytest.raises(LakeError, match="is a lake of schema 3, this program knows 2"):
        Lake.open(lake.path)


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_a_lake_whose_head_is_damaged_is_refused(lake: Lake, text: str) -> None:
    Path(lake.path, "lake.json").write_text(text)

    with pytest.raises(LakeError, match="lake"):
        Lake.open(lake.path)


def test_a_folder_that_is_no_lake_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match=r"is no lake: it has no lake\.json"):
        Lake.open(str(tmp_path))

    Path(tmp_path, "notes.txt").touch()
    with pytest.raises(LakeError, match=r"not empty either: there is notes\.txt in it"):
        Lake.open(str(tmp_path), create=True)


def test_a_missing_part_is_named(lake: Lake) -> None:
    part = lake.write("rows", "s", "a", TABLE)
    lake.commit([part])
    Path(lake.where(part)).unlink()

    with pytest.raises(LakeError, match=r"damaged: rows/scenario=s/a\.parquet is missing"):
        lake.parts("rows")


@pytest.mark.parametrize("text", ["{", "1", '[{"id": "x"}]'])
def test_a_damaged_commit_is_named(lake: Lake, text: str) -> None:
    Path(lake.path, "recent", "x.json").write_text(text)

    with pytest.raises(LakeError, match=r"the lake is damaged: .*x\.json"):
        lake.parts("rows")


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_a_damaged_log_is_named(lake: Lake, text: str) -> None:
    Path(lake.path, "rows", "_delta_log", f"{0:020d}.json").write_text(text)

    with pytest.raises(LakeError, match="cannot use the table rows of the lake"):
        lake.parts("rows")


def test_what_cannot_be_written_is_said(lake: Lake) -> None:
    Path(lake.path, "rows", "scenario=s").write_text("in the way")

    with pytest.raises(LakeError, match="cannot write to the lake"):
        lake.write("rows", "s", "a", TABLE)


FILL = """
import resource, signal, sys
from pathlib import Path
from disque_trio.pipeline.lake import files, shape, store
from disque_trio.pipeline.lake.delta import DeltaFiles, Version
from disque_trio.pipeline.lake.store import Lake, LakeError
from disque_trio.tracing.rows import Row

table = shape.rows_table([Row(n, "hold", job=f"J{n * n}") for n in range(20_000)], "r", 7)
lake = Lake.open(sys.argv[1], create=True)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    lake.write("rows", "s", "a", table)
except LakeError as error:
    print(error)
assert not list(Path(lake.path).rglob(".writing-*")) + list(Path(lake.path).rglob("*.parquet"))
"""


def test_a_disk_that_takes_no_more_is_told_and_has_no_half_of_a_part(tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")

    done = subprocess.run(
        [sys.executable, "-c", FILL, lake], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"cannot write to the lake {lake}: ")
    assert "File too large" in done.stdout, "the limit of this process, for want of a full disk"


COMMIT = """
import resource, signal, sys
from disque_trio.pipeline.lake import shape
from disque_trio.pipeline.lake.store import Lake, LakeError
from disque_trio.tracing.rows import Row

table = shape.rows_table([Row(1, "hold", job="J")], "r", 7)
lake = Lake.open(sys.argv[1], create=True)
part = lake.write("rows", "s", "a", table)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    lake.commit([part])
except LakeError as error:
    print(error)
"""


@pytest.mark.parametrize(("bytes", "count"), [(10, 0), (200, 1)])
def test_a_disk_that_takes_no_commit_is_told_on_a_line_and_all_of_it_counts_or_nothing(
    tmp_path: Path, bytes: int, count: int
) -> None:
    path = str(tmp_path / "lake")

    done = subprocess.run(
        [sys.executable, "-c", COMMIT, path, str(bytes)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(rf"cannot (use|write) .*{path}.*: File too large.*\n", done.stdout)
    lake = Lake.open(path)
    assert len(lake.parts("rows")) == count
    lake.finish()
    assert len(lake.table("rows").read().parts) == count


def test_who_died_while_making_a_lake_is_in_nobodys_way(tmp_path: Path) -> None:
    Path(tmp_path, "recent").mkdir()
    Path(tmp_path, ".writing-0123").touch()
    store.Lake(str(tmp_path)).table("rows").create()

    assert Lake.open(str(tmp_path), create=True).parts("rows") == []


def test_what_was_ingested_is_known_with_the_commit(lake: Lake) -> None:
    source = Source(name="f", head="h", sha256="s", size=1, run="r", rows=2)

    lake.commit([lake.write("rows", "s", "a", TABLE)], [source])
    lake.commit([], [attrs.evolve(source, name="g")])

    assert [each.name for each in lake.sources()] == ["f", "g"]
    assert len(lake.parts("sources")) == 2


# A commit of several tables, and whoever dies while it is made.


class Killed(BaseException):
    """The process is no more."""


def both(lake: Lake) -> list[Part]:
    return [
        lake.write("rows", "s", "a", TABLE),
        lake.write("traces", "s", "a", shape.traces_table(None, "r")),
    ]


@pytest.mark.parametrize("after", range(4))
def test_whoever_dies_during_a_commit_has_made_all_of_it_or_nothing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    parts, left = both(lake), [None] * after
    with monkeypatch.context() as patch:
        for owner, name in ((files, "write_whole"), (DeltaFiles, "add"), (Path, "unlink")):
            patch.setattr(owner, name, _dies(left, getattr(owner, name)))
        with pytest.raises(Killed):
            lake.commit(parts)

    wanted = [[], []] if after == 0 else [[part] for part in parts]
    assert [lake.parts(part.table) for part in parts] == wanted
    assert [other.parts(part.table) for other in [Lake.open(lake.path)] for part in parts] == wanted

    with lake.locked():
        pass
    assert [list(lake.table(part.table).read().parts) for part in parts] == wanted


def _dies(left: list[None], does: Callable[..., Any]) -> Callable[..., Any]:
    """Does so much, and then no more."""

    def step(*args: Any, **named: Any) -> Any:
        if not left:
            raise Killed
        left.pop()
        return does(*args, **named)

    return step


def test_who_reads_during_a_commit_sees_all_of_it_or_nothing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, add = both(lake), DeltaFiles.add
    seen: list[tuple[int, int]] = []

    def meanwhile(table: DeltaFiles, *args: Any) -> None:
        look()
        add(table, *args)
        look()

    def look() -> None:
        found = Lake.open(lake.path).snapshot()
        seen.append((len(found["rows"]), len(found["traces"])))

    monkeypatch.setattr(DeltaFiles, "add", meanwhile)
    lake.commit(parts)

    assert seen == [(1, 1)] * 4


def test_two_who_finish_the_same_commit_do_it_once(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, read, others = both(lake), DeltaFiles.read, [None]

    def meanwhile(table: DeltaFiles) -> Version:
        version = read(table)
        if others:
            others.pop()
            Lake.open(lake.path).finish()
        return version

    monkeypatch.setattr(DeltaFiles, "read", meanwhile)
    lake.commit(parts)

    assert [lake.parts(part.table) for part in parts] == [[part] for part in parts]
    assert lake.table("rows").read().number == 1


def test_a_commit_that_comes_between_the_tables_is_seen_whole(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, read, left = both(lake), DeltaFiles.read, ["traces"]

    def meanwhile(table: DeltaFiles) -> Version:
        if left:  # rows are read, and the other tables are not
            left.pop()
            version = read(table)
            Lake.open(lake.path).commit(parts)
            return version
        return read(table)

    monkeypatch.setattr(DeltaFiles, "read", meanwhile)

    assert {name: len(found) for name, found in lake.snapshot().items()} == {
        "rows": 1, "traces": 1, "results": 0, "verdicts": 0, "sources": 0,
    }  # fmt: skip


def test_a_reader_that_is_too_slow_to_be_sure_begins_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.commit(both(lake))
    times = iter([0.0, 31.0, 40.0, 69.9])
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    assert len(lake.parts("rows")) == 1

    monkeypatch.setattr(time, "monotonic", itertools.count(0, 31).__next__)
    with pytest.raises(LakeError, match="is too slow: its tables are not read in time"):
        lake.parts("rows")


def test_the_file_of_a_commit_goes_when_all_tables_have_had_it_for_a_while(lake: Lake) -> None:
    lake.commit(both(lake))
    (file,) = Path(lake.path, "recent").iterdir()
    lake.finish()
    assert file.exists()

    os.utime(file, (0, time.time() - 61))
    lake.finish()

    assert not file.exists()
    assert len(lake.parts("rows")) == len(lake.parts("traces")) == 1


def test_what_was_merged_since_does_not_come_back_from_a_recent_commit(lake: Lake) -> None:
    parts = both(lake)
    lake.commit(parts)
    merged = lake.write("rows", "s", "merged", TABLE)
    lake.table("rows").replace(lake.table("rows").read(), parts[:1], [merged])

    lake.finish()

    assert lake.parts("rows") == [merged]
