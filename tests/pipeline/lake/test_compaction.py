"""Many small files become one, and nothing is different for who asks."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from disque_trio.pipeline.lake import asking, compaction, shape
from disque_trio.pipeline.lake.compaction import compact
from disque_trio.pipeline.lake.files import PartWriter
from disque_trio.pipeline.lake.reading import write_rows
from disque_trio.pipeline.lake.store import SWEEPING, Lake, Part, Source
from disque_trio.tracing.rows import Row
from tests.pipeline.lake.folder import strays
from tests.pipeline.lake.test_ingestion import content

SOURCE = Source(name="f", head="h", sha256="s", size=1, run="r", rows=1)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(str(tmp_path / "lake"), create=True)


def part_of(lake: Lake, number: int) -> Part:
    rows = shape.rows_table([Row(9 - number, "hold", job=f"J{number}")], "r", 0)
    return lake.write("rows", "s", f"p{number}", rows)


def test_small_files_become_one_and_old_ones_go_after_a_while(lake: Lake) -> None:
    for number in range(3):
        lake.commit([part_of(lake, number)], [SOURCE])
    before = content(lake)

    tidied = compact(lake)

    assert (tidied.before, tidied.after, tidied.removed) == (6, 2, 0)
    assert content(lake) == before
    assert lake.sources() == [SOURCE] * 3
    assert len(strays(lake)) == 6

    again = compact(lake, grace_s=0)

    assert (again.before, again.after, again.removed) == (2, 2, 6)
    assert content(lake) == before
    assert lake.sources() == [SOURCE] * 3
    assert strays(lake) == []


def test_what_was_written_and_never_named_goes_after_a_while(lake: Lake) -> None:
    part_of(lake, 0)

    assert compact(lake).removed == 0, "a sweep under way may be about to name it"
    assert compact(lake, grace_s=0).removed == 1


def test_what_comes_during_a_compaction_is_there_after_it(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        lake.commit([part_of(lake, number)])
    seen, merge = lake.now(), compaction._merge

    def meanwhile(*args: Any) -> None:
        merge(*args)
        assert lake.commit([part_of(lake, 2)], (), seen, SWEEPING)

    monkeypatch.setattr(compaction, "_merge", meanwhile)
    compact(lake, grace_s=0)

    assert sorted(row.job for row in content(lake)) == ["J0", "J1", "J2"]


def test_days_and_clusters_of_live_nodes_stay_apart(lake: Lake) -> None:
    for number in range(2):
        for run in ("berlin", "paris"):
            rows = [Row(day * 86_400_000_000 + number, "hold") for day in range(2)]
            lake.commit(write_rows(lake, "live", "p", [shape.rows_table(rows, run, 0)]))
    assert len(lake.parts("rows")) == 8

    compact(lake)

    found = sorted((part.keys["cluster"], part.keys["date"]) for part in lake.parts("rows"))
    assert found == [
        (run, day) for run in ("berlin", "paris") for day in ("1970-01-01", "1970-01-02")
    ]


def test_few_new_rows_beside_many_are_merged_by_themselves(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [Row(number, "hold", job=f"J{number * number}") for number in range(20_000)]
    lake.commit([lake.write("rows", "s", "many", shape.rows_table(many, "r", 0))])
    for number in range(2):
        lake.commit([part_of(lake, number)])
    monkeypatch.setattr(compaction, "LARGE", 50_000)
    (large,) = (part for part in lake.parts("rows") if part.rows == 20_000)

    compact(lake)

    assert sorted(part.rows for part in lake.parts("rows")) == [2, 20_000]
    assert large in lake.parts("rows")


def test_rows_of_a_kind_lie_together_so_that_a_query_reads_no_others(lake: Lake) -> None:
    for run in ("b", "a"):
        rows = [Row(n, kind) for n in range(3) for kind in ("send", "hold", "recv")]
        lake.commit([lake.write("rows", "s", run, shape.rows_table(rows, run, 0))])

    compact(lake)

    (part,) = lake.parts("rows")
    found = lake.read(part, ["kind"])["kind"].to_pylist()
    assert found == [kind for kind in ("hold", "recv", "send") for _ in range(6)]


def test_two_compactions_at_once_lose_nothing_and_double_nothing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        lake.commit([part_of(lake, number)])
    merge = compaction._merge

    def meanwhile(*args: Any) -> None:
        monkeypatch.setattr(compaction, "_merge", merge)
        compact(lake)
        merge(*args)

    monkeypatch.setattr(compaction, "_merge", meanwhile)
    compact(lake)

    assert sorted(row.job for row in content(lake)) == ["J0", "J1"]


def test_a_query_for_many_kinds_skips_groups_of_rows_without_them(spark: Any, lake: Lake) -> None:
    with PartWriter(lake, lake.new_path("rows", "s", "p")) as writer:
        for kind in ("acked", "lost", "recv", "send"):
            rows = [Row(number, kind) for number in range(200)]
            writer.write_table(shape.rows_table(rows, "r", 0))
    lake.commit([writer.done])
    assert pq.read_metadata(lake.where(writer.done)).num_row_groups == 4
    asking.attach(spark, lake, "rows")

    kinds = ", ".join(f"'{kind}'" for kind in ["acked", *map(str, range(20))])
    wanted = spark.sql(f"SELECT kind FROM rows WHERE kind IN ({kinds})")
    assert len(wanted.collect()) == 200
    scan = wanted._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    assert scan.metrics().get("numOutputRows").get().value() == 200
