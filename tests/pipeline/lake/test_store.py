"""A lake: what counts in it, and what is not believed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from disque_trio.pipeline.lake import shape
from disque_trio.pipeline.lake.files import PartWriter, day_of
from disque_trio.pipeline.lake.store import INGESTING, SWEEPING, Lake, LakeError, Part, Source
from disque_trio.tracing.rows import Row
from tests.pipeline.lake.folder import strays

TABLE = shape.rows_table([Row(1, "hold", job="J"), Row(2, "drop", job="J")], "r", 7)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(str(tmp_path / "lake"), create=True)


def test_what_no_commit_names_is_not_there(lake: Lake) -> None:
    part = lake.write("rows", "calm", "a", TABLE)
    assert (part.table, part.rows) == ("rows", 2)
    assert part.path.startswith("relation=rows/scenario=calm/")
    assert lake.parts("rows") == []

    lake.commit([part])

    assert lake.parts("rows") == [part]
    assert lake.parts("results") == []


def test_a_commit_has_all_of_its_tables_or_nothing(lake: Lake) -> None:
    before = lake.now()

    lake.commit([lake.write("rows", "s", "a", TABLE)], [source("f")])

    after = lake.now()
    assert after.table.version() == before.table.version() + 1
    assert {name: len(parts) for name, parts in after.parts.items()} == {
        "rows": 1, "traces": 0, "results": 0, "verdicts": 0, "sources": 1,
    }  # fmt: skip


def test_a_part_that_is_not_finished_is_removed(lake: Lake) -> None:
    with pytest.raises(InterruptedError):
        _write_half(lake)

    assert strays(lake) == []


def _write_half(lake: Lake) -> None:
    with PartWriter(lake, lake.new_path("rows", "s", "a")) as writer:
        writer.write_table(TABLE)
        raise InterruptedError


def test_who_makes_the_lake_at_the_same_moment_makes_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, looks = str(tmp_path / "lake"), [None]
    is_there = DeltaTable.is_deltatable

    def meanwhile(path: str) -> bool:
        """Another one looks, too, and is quicker."""
        was_there = bool(is_there(path))
        if looks:
            looks.pop()
            lake = Lake.open(path, create=True)
            lake.commit([lake.write("rows", "s", "a", TABLE)])
        return was_there

    monkeypatch.setattr(DeltaTable, "is_deltatable", meanwhile)

    assert len(Lake.open(path, create=True).parts("rows")) == 1


def test_names_of_scenarios_may_be_anything(lake: Lake) -> None:
    part = lake.write("rows", "a/b=ö [1]", "p", TABLE)
    lake.commit([part])

    assert part.path.startswith("relation=rows/scenario=a%2Fb%3D%C3%B6 %5B1%5D/")
    assert lake.parts("rows") == [part]
    assert lake.read(part)["scenario"].to_pylist() == ["a/b=ö [1]"] * 2


def test_a_lake_of_another_schema_is_refused(tmp_path: Path) -> None:
    DeltaTable.create(str(tmp_path), shape.whole(), name="disque-trio", description="schema 9")

    with pytest.raises(
        LakeError, match=r"not a lake of schema 3, .* but 'disque-trio', 'schema 9'"
    ):
        Lake.open(str(tmp_path))


def test_a_folder_that_is_no_lake_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match=r"is not a lake: it has no _delta_log"):
        Lake.open(str(tmp_path))

    Path(tmp_path, "notes.txt").touch()
    with pytest.raises(LakeError, match=r"and not empty: it has notes\.txt"):
        Lake.open(str(tmp_path), create=True)
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_a_missing_part_is_named(lake: Lake) -> None:
    part = lake.write("rows", "s", "a", TABLE)
    lake.commit([part])
    Path(lake.where(part)).unlink()

    with pytest.raises(LakeError, match=rf"damaged: .*{re.escape(part.path)} is missing"):
        lake.parts("rows")


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_a_damaged_log_is_named(lake: Lake, text: str) -> None:
    Path(lake.path, "_delta_log", f"{0:020d}.json").write_text(text)

    with pytest.raises(LakeError, match="cannot use the lake"):
        lake.parts("rows")


def test_what_cannot_be_written_is_said(lake: Lake) -> None:
    Path(lake.path, "relation=rows").write_text("in the way")

    with pytest.raises(LakeError, match="cannot write to the lake"):
        lake.write("rows", "s", "a", TABLE)


FILL = """
import resource, signal, sys
from pathlib import Path
from disque_trio.pipeline.lake import shape
from disque_trio.pipeline.lake.store import Lake, LakeError
from disque_trio.tracing.rows import Row

table = shape.rows_table([Row(n, "hold", job=f"J{n * n}") for n in range(20_000)], "r", 7)
lake = Lake.open(sys.argv[1], create=True)
part = lake.write("rows", "s", "small", table.slice(0, 1))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    lake.write("rows", "s", "a", table) if int(sys.argv[2]) > 100 else lake.commit([part])
except LakeError as error:
    print(error)
assert len(list(Path(lake.path).rglob("*.parquet"))) == 1
assert Lake.open(lake.path).parts("rows") == []
"""


@pytest.mark.parametrize("size", [20_000, 10])
def test_a_disk_that_takes_no_more_is_told_and_has_no_half_of_anything(
    tmp_path: Path, size: int
) -> None:
    lake = str(tmp_path / "lake")

    done = subprocess.run(
        [sys.executable, "-c", FILL, lake, str(size)], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(
        rf"cannot (use|write to) the lake {lake}: .*File too large.*\n", done.stdout
    )


def source(name: str) -> Source:
    return Source(name=name, head="h", sha256="s", size=1, run="r", rows=2)


def test_what_was_ingested_is_known_with_the_commit(lake: Lake) -> None:
    lake.commit([lake.write("rows", "s", "a", TABLE)], [source("f")])
    lake.commit([], [attrs.evolve(source("f"), name="g")])

    assert [each.name for each in lake.sources()] == ["f", "g"]
    assert len(lake.parts("sources")) == 2


def parts_of(lake: Lake, name: str) -> list[Part]:
    return [lake.write("rows", "s", name, TABLE)]


def test_of_two_who_do_the_same_over_one_version_only_the_first_has_done_it(lake: Lake) -> None:
    seen, also_seen = lake.now(), lake.now()

    assert lake.commit(parts_of(lake, "a"), (), seen, SWEEPING)
    assert not lake.commit(parts_of(lake, "b"), (), also_seen, SWEEPING)
    assert lake.commit(parts_of(lake, "b"), (), lake.now(), SWEEPING)

    assert len(lake.parts("rows")) == 2


def test_who_does_something_else_is_in_nobodys_way(lake: Lake) -> None:
    seen = lake.now()
    for doing in ("", INGESTING, SWEEPING, ""):
        assert lake.commit(parts_of(lake, "a"), (), seen if doing else None, doing)

    assert len(lake.parts("rows")) == 4


def test_the_log_does_not_grow_with_names_of_commits(lake: Lake) -> None:
    for _ in range(3):
        assert lake.commit(parts_of(lake, "a"), (), lake.now(), SWEEPING)
    table = lake.now().table
    table.create_checkpoint()

    (checkpoint,) = Path(lake.path, "_delta_log").glob("*.checkpoint.parquet")
    found = pq.read_table(checkpoint, columns=["txn"])["txn"].to_pylist()
    assert [each["appId"] for each in found if each] == [SWEEPING]


def test_files_say_the_least_and_greatest_of_their_columns(lake: Lake) -> None:
    long = shape.rows_table([Row(n, "hold", job="J" * n, queue="q") for n in (9, 70)], "r", 7)
    lake.commit([lake.write("rows", "s", "a", long)])

    (facts,) = pa.table(lake.now().table.get_add_actions(flatten=True)).to_pylist()

    assert facts["num_records"] == 2
    assert (facts["min.time"], facts["max.time"], facts["null_count.at"]) == (9, 70, 2)
    assert (facts["min.queue"], facts["max.kind"]) == ("q", "hold")
    assert facts["min.job"] is None, "it is too long"


def test_a_day_that_no_calendar_has_is_none() -> None:
    assert (day_of(-1), day_of(20_000), day_of(10**9)) == ("1969-12-31", "2024-10-04", None)
