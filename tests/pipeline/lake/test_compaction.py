"""Many small parts become one, and nothing is different for who asks."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from disque_trio.pipeline.lake import asking, compaction, shape
from disque_trio.pipeline.lake.compaction import compact
from disque_trio.pipeline.lake.store import Lake, LakeError, Part, Source
from disque_trio.tracing.rows import Row
from tests.pipeline.lake.folder import strays
from tests.pipeline.lake.test_ingestion import content

SOURCE = Source(name="f", head="h", sha256="s", size=1, run="r", rows=1)


def test_small_parts_become_one_and_old_files_go_after_a_while(spark: Any, tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path / "lake"), create=True)
    for number in range(3):
        lake.commit([part_of(lake, number)], [SOURCE])
    before = content(lake)

    tidied = compact(spark, lake)

    assert (tidied.before, tidied.after, tidied.removed) == (6, 2, 0)
    assert content(lake) == before
    assert lake.sources() == [SOURCE] * 3
    assert len(strays(lake)) == 6

    again = compact(spark, lake, grace_s=0)

    assert (again.before, again.after, again.removed) == (2, 2, 6)
    assert content(lake) == before
    assert lake.sources() == [SOURCE] * 3
    assert strays(lake) == []


def test_what_comes_during_a_compaction_is_there_after_it(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake.open(str(tmp_path / "lake"), create=True)
    for number in range(2):
        lake.commit([part_of(lake, number)])
    merged = compaction._merged_all

    def meanwhile(*args: Any) -> Any:
        lake.commit([part_of(lake, 2)])
        return merged(*args)

    monkeypatch.setattr(compaction, "_merged_all", meanwhile)
    compact(spark, lake, grace_s=0)

    assert sorted(row.job for row in content(lake)) == ["J0", "J1", "J2"]


def test_of_two_compactions_at_once_one_fails(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake.open(str(tmp_path / "lake"), create=True)
    for number in range(2):
        lake.commit([part_of(lake, number)])
    merged = compaction._merged_all

    def meanwhile(*args: Any) -> Any:
        made = merged(*args)
        with monkeypatch.context() as patch:
            patch.setattr(compaction, "_merged_all", merged)
            patch.setattr(Lake, "locked", lambda _: nullcontext())  # storage without locks
            compact(spark, lake, grace_s=60)
        return made

    monkeypatch.setattr(compaction, "_merged_all", meanwhile)
    with pytest.raises(LakeError, match="is being compacted by another: rows"):
        compact(spark, lake)

    assert sorted(row.job for row in content(lake)) == ["J0", "J1"]


def part_of(lake: Lake, number: int) -> Part:
    rows = shape.rows_table([Row(9 - number, "hold", job=f"J{number}")], "r", 0)
    return lake.write("rows", "s", f"p{number}", rows)


def test_rows_of_a_kind_lie_together_so_that_a_query_reads_no_others(
    spark: Any, tmp_path: Path
) -> None:
    lake = Lake.open(str(tmp_path / "lake"), create=True)
    for run in ("b", "a"):
        for first in (50, 0):
            rows = [Row(first + n, kind) for n in range(3) for kind in ("send", "hold", "recv")]
            lake.commit([lake.write("rows", "s", f"{run}{first}", shape.rows_table(rows, run, 0))])

    compact(spark, lake)

    (part,) = lake.parts("rows")
    found = pq.read_table(lake.where(part), partitioning=None).select(["kind", "run", "time"])
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        (kind, run, time)
        for kind in ("hold", "recv", "send")
        for run in ("a", "b")
        for time in (0, 1, 2, 50, 51, 52)
    ]


def test_a_query_for_many_kinds_skips_groups_of_rows_without_them(
    spark: Any, tmp_path: Path
) -> None:
    lake = Lake.open(str(tmp_path / "lake"), create=True)
    with lake.part("rows", "s", "p", shape.ROWS) as writer:
        for kind in ("acked", "lost", "recv", "send"):
            rows = [Row(number, kind) for number in range(200)]
            writer.write_table(shape.rows_table(rows, "r", 0))
    lake.commit([writer.done])
    asking.attach(spark, lake, "rows")

    kinds = ", ".join(f"'{kind}'" for kind in ["acked", *map(str, range(20))])
    wanted = spark.sql(f"SELECT kind FROM rows WHERE kind IN ({kinds})")
    assert len(wanted.collect()) == 200
    scan = wanted._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    assert scan.metrics().get("numOutputRows").get().value() == 200
