"""Dead letters into a table: each dead job of a cluster becomes one row of a Delta table, once.

    python dead_letters.py 10.0.0.1:7711 dead-letters

It may run as often as wanted, also twice at the same time: jobs that are in the table are left out.
The jobs stay in the cluster until `REDRIVE`, `DELJOB` or their TTL removes them.
"""

import sys
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from disque_trio.pipeline import session

COLUMNS = pa.schema(
    [
        ("job_id", pa.string()),
        ("queue", pa.string()),
        ("body", pa.binary()),
        ("reason", pa.string()),
        ("nacks", pa.int64()),
        ("additional_deliveries", pa.int64()),
        ("created", pa.timestamp("us", "UTC")),
        ("found", pa.timestamp("us", "UTC")),
    ]
)


def store(spark: Any, nodes: str, table: str) -> int:
    """Add the dead jobs that the table has not. Returns their number."""
    dead = spark.read.format("disque").options(nodes=nodes, state="dead").load()
    names = [name for name in COLUMNS.names if name != "found"]
    rows = dead.dropDuplicates(["job_id"]).select(names).toArrow()  # each replica is a row
    found = pa.array([datetime.now(UTC)] * rows.num_rows, COLUMNS.field("found").type)
    rows = rows.append_column("found", found).cast(COLUMNS)
    made = DeltaTable.create(table, COLUMNS, mode="ignore")
    merge = made.merge(rows, "old.job_id = new.job_id", source_alias="new", target_alias="old")
    return int(merge.when_not_matched_insert_all().execute()["num_target_rows_inserted"])


def main(nodes: str, table: str) -> None:
    """Store them once."""
    with session.running("local[*]") as spark:
        sys.stdout.write(f"{store(spark, nodes, table)} new dead letters\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
