"""What Spark is given to ask a lake."""

from pathlib import Path
from typing import Any

import pytest

from disque_trio.pipeline.lake import asking
from disque_trio.pipeline.lake.shape import TABLES
from disque_trio.pipeline.lake.store import Lake


@pytest.mark.parametrize("table", TABLES)
def test_a_table_without_rows_needs_no_task(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str
) -> None:
    asking.attach(spark, Lake.open(str(tmp_path / "lake"), create=True), table)

    spark.sql(f"SELECT count(*) FROM {table} GROUP BY scenario").explain()

    assert "LocalTableScan <empty>" in capsys.readouterr().out
    assert spark.table(table).collect() == []
