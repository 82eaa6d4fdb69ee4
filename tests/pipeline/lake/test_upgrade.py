"""A lake of an earlier release gets its Delta tables, and nothing is different for who asks."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from disque_trio.cli.pipeline import main
from disque_trio.pipeline.lake import files, shape, upgrade
from disque_trio.pipeline.lake.files import LakeFiles, Part, Source
from disque_trio.pipeline.lake.store import Lake, LakeError
from disque_trio.tracing.rows import Row

TABLE = shape.rows_table([Row(1, "hold", job="J"), Row(2, "drop", job="J")], "r", 7)


def source(name: str) -> Source:
    return Source(name=name, head="h", sha256="s", size=1, run="r", rows=2)


class OldLake:
    """A lake of schema 1, as it was written."""

    def __init__(self, path: Path) -> None:
        Path(path, "commits").mkdir(parents=True)
        Path(path, "lake.json").write_text('{"schema":1}')
        self.path, self.files, self._count = path, LakeFiles(str(path)), 0

    def part(self, name: str) -> Part:
        return self.files.write("rows", "calm", name, TABLE)

    def commit(self, parts: Sequence[Part], sources: Sequence[Source], replaces: object) -> str:
        self._count += 1
        id = f"{self._count:020d}-00000000"
        facts: dict[str, Any] = {"id": id, "at": self._count, "replaces": replaces}
        facts["parts"] = [attrs.asdict(part) for part in parts]
        facts["sources"] = [attrs.asdict(each) for each in sources]
        Path(self.path, "commits", f"{id}.json").write_text(json.dumps(facts))
        return id


@pytest.fixture
def old(tmp_path: Path) -> OldLake:
    lake = OldLake(tmp_path / "lake")
    first = [lake.commit([lake.part(name)], [source(name)], []) for name in "ab"]
    lake.commit([lake.part("ab")], [source("a"), source("b")], first)
    lake.commit([lake.part("c")], [source("c")], [])
    lake.part("never-committed")
    return lake


def names(lake: Lake) -> list[str]:
    return [Path(part.path).stem for part in lake.parts("rows")]


def test_a_lake_without_tables_is_refused_with_the_command_that_makes_them(old: OldLake) -> None:
    with pytest.raises(LakeError, match="schema 1, without Delta tables: 'disque-trio pipeline up"):
        Lake.open(str(old.path))


def test_what_counted_counts_and_what_was_known_is_known(
    old: OldLake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["upgrade", str(old.path)]) == 0
    assert capsys.readouterr().out == "3 files of 3 sources are in Delta tables now\n"

    lake = Lake.open(str(old.path))
    assert sorted(names(lake)) == ["ab", "c"]
    assert lake.sources() == [source("a"), source("b"), source("c")]
    assert [part.rows for part in lake.parts("rows")] == [2, 2]
    assert not Path(old.path, "commits").exists()

    assert main(["upgrade", str(old.path)]) == 0
    assert capsys.readouterr().out == "nothing to do\n"


def test_an_upgrade_that_was_killed_is_repeated(
    old: OldLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(files, "write_whole", dies)
        with pytest.raises(InterruptedError):
            upgrade.upgrade(str(old.path))
    # The earlier release goes on meanwhile.
    commits = [path.stem for path in Path(old.path, "commits").iterdir()]
    old.commit([old.part("all")], [source("all")], commits)

    upgrade.upgrade(str(old.path))

    lake = Lake.open(str(old.path))
    assert names(lake) == ["all"]
    assert lake.sources() == [source("all")]


def dies(*_: object, **__: object) -> None:
    raise InterruptedError


def test_a_folder_that_is_no_lake_and_a_damaged_one_are_named(
    old: OldLake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["upgrade", str(tmp_path / "none")]) == 2
    assert "cannot open the lake" in capsys.readouterr().err

    next(Path(old.path, "commits").iterdir()).write_text("{")
    assert main(["upgrade", str(old.path)]) == 2
    assert f"the lake {old.path} is damaged" in capsys.readouterr().err


def test_a_file_that_is_missing_is_named_and_the_lake_is_left_as_it_was(old: OldLake) -> None:
    Path(old.path, "rows", "scenario=calm", "c.parquet").unlink()

    with pytest.raises(LakeError, match=r"rows/scenario=calm/c\.parquet: No such file"):
        upgrade.upgrade(str(old.path))

    assert json.loads(Path(old.path, "lake.json").read_text()) == {"schema": 1}


def test_what_an_upgrade_left_that_was_killed_at_its_end_is_removed(
    old: OldLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", dies)
        with pytest.raises(InterruptedError):
            upgrade.upgrade(str(old.path))

    assert upgrade.upgrade(str(old.path)).parts == 0

    assert not Path(old.path, "commits").exists()
    assert sorted(names(Lake.open(str(old.path)))) == ["ab", "c"]
