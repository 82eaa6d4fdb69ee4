"""Kept rows of views: never out of date, and never needed."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from disque_trio.pipeline.lake import asking, shape
from disque_trio.pipeline.lake.derived import FOLDER
from disque_trio.pipeline.lake.store import Lake
from disque_trio.tracing.rows import Row

NAMES = ("a", "b")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake.open(str(tmp_path / "lake"), create=True)
    add(lake, 0)
    return lake


def add(lake: Lake, number: int) -> None:
    """A run of one row."""
    rows = shape.rows_table([Row(number, "hold", NAMES[0])], f"r{number}", 0)
    lake.commit([lake.write("rows", "s", f"p{number}", rows)])


def runs(spark: Any, lake: Lake) -> list[tuple[str, int]]:
    asking.attach(spark, lake, "runs")
    return sorted((row.run, row.events) for row in spark.table("runs").collect())


def kept(lake: Lake) -> list[Path]:
    return sorted(Path(lake.path, FOLDER).glob("*"))


def test_a_second_question_reads_what_the_first_has_computed(spark: Any, lake: Lake) -> None:
    assert runs(spark, lake) == [("r0", 1)]
    (path,) = kept(lake)
    table = pq.read_table(path)
    pq.write_table(table.set_column(table.schema.get_field_index("events"), "events", [[7]]), path)

    assert runs(spark, lake) == [("r0", 7)]


def test_after_a_commit_rows_are_computed_again_and_the_old_file_goes(
    spark: Any, lake: Lake
) -> None:
    runs(spark, lake)
    (before,) = kept(lake)
    add(lake, 1)

    assert runs(spark, lake) == [("r0", 1), ("r1", 1)]
    (after,) = kept(lake)
    assert after != before


def test_rows_of_other_sql_are_not_taken(
    spark: Any, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs(spark, lake)
    changed = asking.MADE["runs"].replace("sum(events)", "sum(events) + 5")
    monkeypatch.setitem(asking.MADE, "runs", changed)

    assert runs(spark, lake) == [("r0", 6)]


def test_a_damaged_file_is_made_anew(spark: Any, lake: Lake) -> None:
    runs(spark, lake)
    (path,) = kept(lake)
    path.write_bytes(path.read_bytes()[:100])

    assert runs(spark, lake) == [("r0", 1)]
    assert pq.read_table(path).num_rows == 1


def test_a_lake_in_which_nothing_can_be_kept_is_asked_all_the_same(spark: Any, lake: Lake) -> None:
    Path(lake.path, FOLDER).write_text("no folder")

    assert runs(spark, lake) == [("r0", 1)]
