"""A lake as other programs read it: DuckDB and Polars see what Spark sees."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable

from disque_trio.cli.sim.lakestore import LakeStore
from disque_trio.pipeline.lake import shape
from disque_trio.pipeline.lake.compaction import compact
from disque_trio.pipeline.lake.store import Lake
from disque_trio.tracing.rows import Row
from tests.pipeline.lake.conftest import Ask
from tests.pipeline.lake.runs import TracedRun
from tests.pipeline.test_lakestore import done

BY_KIND = "SELECT scenario, kind, count(*), sum(time), max(job) FROM {} GROUP BY ALL ORDER BY ALL"


def of_duckdb(lake: Lake, table: str, sql: str) -> list[tuple[Any, ...]]:
    found = [path for path in DeltaTable(lake.path).file_uris() if f"relation={table}/" in path]
    duckdb.read_parquet(found, hive_partitioning=True, union_by_name=True).create_view(
        "lake", replace=True
    )
    rows: list[tuple[Any, ...]] = duckdb.execute(sql.format("lake")).fetchall()
    return rows


def of_polars(lake: Lake, table: str) -> pl.LazyFrame:
    return pl.scan_delta(lake.path).filter(pl.col("relation") == table)


def test_duckdb_and_polars_count_what_spark_counts(ask: Ask, lake: Lake) -> None:
    wanted = [tuple(row) for row in ask(BY_KIND.format("rows"))]
    assert len(wanted) > 50

    assert of_duckdb(lake, "rows", BY_KIND) == wanted
    frame = of_polars(lake, "rows").group_by("scenario", "kind")
    sums = frame.agg(pl.len(), pl.col("time").sum(), pl.col("job").max()).sort("scenario", "kind")
    assert sums.collect().rows() == wanted


def test_duckdb_and_polars_read_the_very_rows_of_a_trace(
    lake: Lake, runs: dict[str, TracedRun]
) -> None:
    names = list(shape.OF_ROW)
    frame = of_polars(lake, "rows").collect().sort("seq")
    sql = f"SELECT {', '.join(names)} FROM {{}} WHERE run = '{{}}' ORDER BY seq"
    for run, case in runs.items():
        found = frame.filter(pl.col("run") == run).select(names).rows()
        assert as_rows(found) == list(case.rows)
        assert as_rows(of_duckdb(lake, "rows", sql.format("{}", run))) == list(case.rows)


def as_rows(values: Iterable[tuple[Any, ...]]) -> list[Row]:
    facts = (dict(zip(shape.OF_ROW, each, strict=True)) for each in values)
    return [Row(**{**each, "clock": tuple(each["clock"])}) for each in facts]


def test_scenarios_have_their_names_whatever_these_are(tmp_path: Path) -> None:
    lake, names = Lake.open(str(tmp_path), create=True), ["a/b=ö [1]", "50%", "_x", "a b#?"]
    for name in names:
        lake.commit([lake.write("traces", name, "p", shape.traces_table(None, name))])

    told = [(name, name) for name in sorted(names)]
    frame = of_polars(lake, "traces").collect()
    assert sorted(frame.select("scenario", "run").rows()) == told
    assert sorted(of_duckdb(lake, "traces", "SELECT scenario, run FROM {}")) == told


@pytest.mark.parametrize("table", ["rows", "traces", "sources"])
def test_all_columns_are_read(lake: Lake, table: str) -> None:
    rows = sum(part.rows for part in lake.parts(table))

    frame = of_polars(lake, table).collect()
    assert frame.height == rows > 0
    assert frame.columns == [field.name for field in DeltaTable(lake.path).schema().fields]
    assert of_duckdb(lake, table, "SELECT count(*) FROM {}") == [(rows,)]


def test_results_are_read_with_their_maps_before_and_after_a_compaction(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path / "lake"), create=True)
    for seed in range(3):
        keeping = LakeStore(lake.path, f"sweep-{seed}", {"calm": "v"})
        keeping.add("calm", done(seed))
        keeping.close()

    for _ in range(2):
        frame = of_polars(lake, "results").collect().sort("seed")
        assert frame["seed"].to_list() == [0, 1, 2]
        assert frame["scenario"].to_list() == ["calm"] * 3
        said = "SELECT sum(duplicates['D1']), sum(added) FROM {}"
        assert of_duckdb(lake, "results", said) == [(9, 30)]
        compact(lake)
    assert len(lake.parts("results")) == 1


def test_what_is_not_committed_others_do_not_see(lake: Lake, tmp_path: Path) -> None:
    other = Lake.open(str(tmp_path), create=True)
    other.commit([other.write("sources", "", "a", _sources(lake))])
    other.write("sources", "", "b", _sources(lake))

    assert of_polars(other, "sources").collect().height == _sources(lake).num_rows


def _sources(lake: Lake) -> Any:
    (part,) = lake.parts("sources")
    return lake.read(part)
