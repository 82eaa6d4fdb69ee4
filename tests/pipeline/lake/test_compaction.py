"""Many small parts become one, and nothing is different for who asks."""

from pathlib import Path
from typing import Any

from disque_trio.pipeline.lake import shape
from disque_trio.pipeline.lake.compaction import compact
from disque_trio.pipeline.lake.store import Lake, Source
from disque_trio.tracing.rows import Row
from tests.pipeline.lake.test_ingestion import content

SOURCE = Source(name="f", head="h", sha256="s", size=1, run="r", rows=1)


def test_small_parts_become_one_and_old_files_go_after_a_while(spark: Any, tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path / "lake"), create=True)
    for number in range(3):
        rows = shape.rows_table([Row(9 - number, "hold", job=f"J{number}")], "r", 0)
        lake.commit([lake.write("rows", "s", f"p{number}", rows)], [SOURCE])
    before = content(lake)

    tidied = compact(spark, lake)

    assert (tidied.before, tidied.after, tidied.removed) == (3, 1, 0)
    assert content(lake) == before
    assert lake.sources() == [SOURCE] * 3
    assert len(list(lake.strays(0))) == 3

    again = compact(spark, lake, grace_s=0)

    assert (again.before, again.after, again.removed) == (1, 1, 3)
    assert content(lake) == before
    assert len(list(Path(lake.path, "commits").iterdir())) == 1
