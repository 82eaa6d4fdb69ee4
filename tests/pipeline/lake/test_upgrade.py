"""A lake of release 0.1.0 gets its one table, and nothing is different for who asks."""

import errno
import json
import os
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction

from disque_trio.cli.pipeline import main
from disque_trio.pipeline.lake import shape
from disque_trio.pipeline.lake.store import Lake, LakeError
from disque_trio.tracing.rows import Row
from tests.pipeline.lake.folder import strays

DAY = 86_400_000_000


def as_it_was(table: str) -> pa.Schema:
    """The columns of 0.1.0."""
    fields = [field for field in shape.SCHEMAS[table] if (table, field.name) != ("rows", "at")]
    types = {field.name: pa.int64() if field.name == "at" else field.type for field in fields}
    names = {"repeats": "duplicates"}
    return pa.schema([(names.get(name, name), kind) for name, kind in types.items()])


class OldLake:
    """A lake of schema 2, as it was written."""

    def __init__(self, path: Path) -> None:
        path.mkdir()
        self.path = path
        Path(path, "lake.json").write_text('{"schema":2}')
        Path(path, "recent").mkdir()
        for name in shape.SCHEMAS:
            DeltaTable.create(str(path / name), self.columns(name), partition_by=self.keys(name))

    def keys(self, table: str) -> list[str]:
        return [] if table == "sources" else ["scenario"]

    def columns(self, table: str) -> pa.Schema:
        return pa.schema(
            [*shape.plain(as_it_was(table)), *((key, pa.string()) for key in self.keys(table))]
        )

    def write(self, table: str, scenario: str, name: str, content: pa.Table) -> str:
        folder = f"{table}/scenario={scenario}" if scenario else table
        Path(self.path, folder).mkdir(parents=True, exist_ok=True)
        pq.write_table(content, self.path / folder / f"{name}.parquet")
        return f"{folder}/{name}.parquet"

    def commit(self, id: str, paths: list[str], *, by_halves: bool = False) -> None:
        """A commit that some tables may lack is in a file only."""
        facts = [{"table": path.partition("/")[0], "path": path, "rows": 1} for path in paths]
        Path(self.path, "recent", f"{id}.json").write_text(json.dumps(facts))
        for table in dict.fromkeys(str(each["table"]) for each in facts):
            if by_halves and table != "rows":
                continue
            mine = [path for path in paths if path.startswith(f"{table}/")]
            values = [{"scenario": path.split("=")[1].split("/")[0]} if self.keys(table) else {}
                      for path in mine]  # fmt: skip
            within = [path.removeprefix(f"{table}/") for path in mine]
            DeltaTable(str(self.path / table)).create_write_transaction(
                [
                    AddAction(path, 1, value, time.time_ns() // 1_000_000, True, "{}")
                    for path, value in zip(within, values, strict=True)
                ],
                "append", self.columns(table), self.keys(table),
                commit_properties=CommitProperties(app_transactions=[Transaction(id, 1)]),
            )  # fmt: skip


def rows_of(run: str, *times: int) -> pa.Table:
    return shape.rows_table([Row(each, "hold", job="J") for each in times], run, 7).drop(["at"])


@pytest.fixture
def old(tmp_path: Path) -> OldLake:
    lake = OldLake(tmp_path / "lake")
    calm = lake.write("rows", "calm", "a", rows_of("r", 1, 2))
    live = lake.write("rows", "live", "b", rows_of("berlin", 5, DAY + 5))
    plan = lake.write("traces", "calm", "a", shape.traces_table(None, "r"))
    facts = {"name": "f", "head": "h", "sha256": "s", "size": 1, "run": "r", "rows": 2}
    source = lake.write("sources", "", "a", pa.Table.from_pylist([facts], schema=shape.SOURCES))
    lake.commit("1", [calm, live, plan, source])
    seed = {"run": "r", "seed": 7, "at": 3_000_000, "ok": True, "duplicates": [("D1", 2)]}
    result = pa.Table.from_pylist([seed], schema=as_it_was("results"))
    again = {"job": "J", "number": 2, "cause": "D1", "leased": 3, "after_ack": False}
    verdict = {"run": "r", "seed": 7, "at": 4_000_000, "duplicates": [again]}
    judged = pa.Table.from_pylist([verdict], schema=as_it_was("verdicts"))
    lake.commit(
        "2",
        [
            lake.write("rows", "calm", "c", rows_of("s", 9)),
            lake.write("results", "calm", "c", result),
            lake.write("verdicts", "calm", "c", judged),
        ],
        by_halves=True,
    )
    lake.write("rows", "calm", "never-committed", rows_of("t", 1))
    return lake


def check(lake: Lake) -> None:
    """What counted counts, in the columns of today."""
    rows = [row for part in lake.parts("rows") for row in lake.read(part).to_pylist()]
    found = sorted((row["run"], row["time"], row["cluster"], str(row["date"])) for row in rows)
    assert [each[:2] for each in found] == [
        ("berlin", 5), ("berlin", DAY + 5), ("r", 1), ("r", 2), ("s", 9),
    ]  # fmt: skip
    assert [each[2:] for each in found[:2]] == [
        ("berlin", "1970-01-01"), ("berlin", "1970-01-02"),
    ]  # fmt: skip
    assert {row["at"] is None for row in rows if row["cluster"] is None} == {True}
    (result,) = (lake.read(part).to_pylist()[0] for part in lake.parts("results"))
    assert (result["at"].timestamp(), result["duplicates"]) == (3, [("D1", 2)])
    (verdict,) = (lake.read(part).to_pylist()[0] for part in lake.parts("verdicts"))
    assert (verdict["at"].timestamp(), verdict["repeats"][0]["cause"]) == (4, "D1")
    assert [source.name for source in lake.sources()] == ["f"]
    assert len(lake.parts("traces")) == 1
    assert sorted(each for each in os.listdir(lake.path) if "=" not in each) == ["_delta_log"]
    assert strays(lake) == []


def test_a_lake_is_upgraded_when_it_is_opened(old: OldLake) -> None:
    check(Lake.open(str(old.path)))
    check(Lake.open(str(old.path)))


def test_the_command_does_the_same_and_says_so(
    old: OldLake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["upgrade", str(old.path)]) == 0
    assert capsys.readouterr().out == "8 files of 1 source moved into one Delta table\n"

    check(Lake.open(str(old.path)))
    assert main(["upgrade", str(old.path)]) == 0
    assert capsys.readouterr().out == "nothing to do\n"


def test_an_upgrade_that_was_killed_is_repeated(
    old: OldLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for owner, name in ((Lake, "commit"), (shutil, "rmtree")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, dies)
            with pytest.raises(Killed):
                Lake.open(str(old.path))

    lake = Lake.open(str(old.path))
    for part in strays(lake):
        Path(lake.path, part).unlink()  # of the first attempt; a compaction does it
    check(lake)


class Killed(BaseException):
    """The process is no more."""


def dies(*_: object, **__: object) -> None:
    raise Killed


def test_files_are_copied_where_there_are_no_links(
    old: OldLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", no_links)

    check(Lake.open(str(old.path)))


def no_links(_from: Path, _to: Path) -> None:
    raise PermissionError(errno.EPERM, "Operation not permitted")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"schema": 1}', "is a lake of schema 1: use the release that wrote it"),
        ("[]", "is a lake of schema None"),
        ("{", "cannot upgrade the lake"),
    ],
)
def test_what_is_no_lake_of_that_release_is_left_as_it_was(
    old: OldLake, text: str, said: str
) -> None:
    Path(old.path, "lake.json").write_text(text)

    with pytest.raises(LakeError, match=said):
        Lake.open(str(old.path))
    assert not Path(old.path, "_delta_log").exists()


def test_a_file_that_is_missing_is_named_and_the_lake_is_left_as_it_was(old: OldLake) -> None:
    Path(old.path, "rows", "scenario=calm", "c.parquet").unlink()

    with pytest.raises(LakeError, match=r"cannot upgrade the lake .*: No such file"):
        Lake.open(str(old.path))

    assert json.loads(Path(old.path, "lake.json").read_text()) == {"schema": 2}
