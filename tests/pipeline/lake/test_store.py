"""The folder of a lake: what counts in it, and what is not believed."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from disque_trio.pipeline.lake import shape
from disque_trio.pipeline.lake.store import Lake, LakeError, Part
from disque_trio.tracing.rows import Row

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
    assert list(lake.strays(0)) == []


def _write_half(lake: Lake) -> None:
    with lake.part("rows", "s", "a", shape.ROWS) as writer:
        writer.write_table(TABLE)
        raise InterruptedError


def test_a_commit_takes_over_from_others(lake: Lake) -> None:
    small = [lake.commit([lake.write("rows", "s", name, TABLE)]) for name in "ab"]
    large = lake.write("rows", "s", "ab", TABLE)

    lake.commit([large], replaces=[commit.id for commit in small])

    assert lake.parts("rows") == [large]
    assert [path.name for path in lake.strays(0)] == ["a.parquet", "b.parquet"]
    assert list(lake.strays(60)) == []


def test_what_was_just_taken_over_stays_for_a_while_however_old_it_is(lake: Lake) -> None:
    old = lake.write("rows", "s", "a", TABLE)
    commit = lake.commit([old])
    note = Path(lake.path, "commits", f"{commit.id}.json")
    note.write_text(note.read_text().replace(f'"at":{commit.at}', '"at":0'))
    os.utime(lake.where(old), (0, 0))
    lake.commit([lake.write("rows", "s", "b", TABLE)], replaces=[commit.id])

    lake.forget(60)
    assert note.exists()
    assert list(lake.strays(60)) == []

    lake.forget(0)
    assert not note.exists()
    assert [path.name for path in lake.strays(0)] == ["a.parquet"]


def test_a_part_that_was_committed_twice_counts_once(lake: Lake) -> None:
    part = lake.write("rows", "s", "a", TABLE)
    lake.commit([part])
    lake.commit([part])

    assert lake.parts("rows") == [part]


def test_drafts_of_the_dead_are_strays(lake: Lake) -> None:
    lake.commit([lake.write("rows", "s", "a", TABLE)])
    drafts = [".writing-1", "commits/.writing-2", "rows/scenario=s/.writing-3"]
    for name in drafts:
        Path(lake.path, name).touch()

    assert [str(path.relative_to(lake.path)) for path in lake.strays(0)] == drafts
    assert list(lake.strays(60)) == []


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


def test_a_file_system_without_links_has_lakes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", no_links)

    assert Lake.open(str(tmp_path), create=True).commits() == []
    assert not list(tmp_path.rglob(".writing-*"))


def no_links(_from: Path, _to: Path) -> None:
    raise PermissionError(errno.EPERM, "Operation not permitted")


def test_who_looks_at_some_commits_sees_no_later_ones(lake: Lake) -> None:
    part = lake.write("rows", "s", "a", TABLE)
    lake.commit([part])
    seen = lake.commits()
    lake.commit([lake.write("rows", "s", "b", TABLE)])

    assert lake.parts("rows", seen) == [part]


def test_a_commit_that_is_forgotten_while_it_is_read_is_not_missed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = lake.commit([lake.write("rows", "s", "a", TABLE)])
    new = lake.commit([lake.write("rows", "s", "b", TABLE)], replaces=[old.id])
    listed = sorted(Path(lake.path, "commits").glob("*.json"))
    lake.forget(0)
    listings = iter([listed, listed[1:]])
    monkeypatch.setattr(Path, "glob", lambda *_: next(listings))

    assert lake.commits() == [new]


def test_names_of_scenarios_may_be_anything(lake: Lake) -> None:
    part = lake.write("rows", "a/b=ö [1]", "p", TABLE)
    lake.commit([part])

    assert part.path == "rows/scenario=a%2Fb%3D%C3%B6 %5B1%5D/p.parquet"
    assert lake.parts("rows") == [part]


def test_a_lake_of_another_schema_is_refused(lake: Lake) -> None:
    Path(lake.path, "lake.json").write_text('{"schema": 2}')

    with pytest.raises(LakeError, match="is a lake of schema 2, this program knows 1"):
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


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"id": "x", "at": 1, "parts": [{}]})])
def test_a_damaged_commit_is_named(lake: Lake, text: str) -> None:
    Path(lake.path, "commits", "x.json").write_text(text)

    with pytest.raises(LakeError, match=r"the lake is damaged: .*x\.json"):
        lake.commits()


def test_what_cannot_be_written_is_said(lake: Lake) -> None:
    Path(lake.path, "rows").write_text("in the way")

    with pytest.raises(LakeError, match="cannot write to the lake"):
        lake.write("rows", "s", "a", TABLE)


FILL = """
import resource, signal, sys
from disque_trio.pipeline.lake import shape
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
assert not list(lake.strays(0)), list(lake.strays(0))
"""


def test_a_disk_that_takes_no_more_is_told_and_has_no_half_of_a_part(tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")

    done = subprocess.run(
        [sys.executable, "-c", FILL, lake], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"cannot write to the lake {lake}: ")
    assert "File too large" in done.stdout, "the limit of this process, for want of a full disk"


def test_who_died_while_making_a_lake_is_in_nobodys_way(tmp_path: Path) -> None:
    Path(tmp_path, "commits").mkdir()
    Path(tmp_path, ".writing-0123").touch()

    assert Lake.open(str(tmp_path), create=True).commits() == []
