"""Dead jobs become rows of a Delta table, each once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from examples.pipeline.dead_letters import COLUMNS, store
from tests.cluster.processes import CALM, Cluster, Fleet


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    fleet = Fleet(tmp_path / "servers")
    try:
        yield fleet.cluster(2, *CALM)
    finally:
        fleet.close()


def die(cluster: Cluster, body: str) -> str:
    """A job that a worker buries."""
    client = cluster.servers[0].client
    job = client.add("mails", body, "REPLICATE", 2)
    client.get("mails")
    client.call("NACK", job, "DEAD", f"no-{body}")
    return str(job)


def test_each_dead_job_is_one_row_however_often_it_is_stored(
    spark: Any, cluster: Cluster, tmp_path: Path
) -> None:
    table = str(tmp_path / "dead")
    nodes = ",".join(f"127.0.0.1:{server.port}" for server in cluster.servers)
    cluster.servers[0].client.add("mails", "alive", "DELAY", 100)
    for body in ("a", "b"):
        die(cluster, body)

    assert store(spark, nodes, table) == 2
    assert store(spark, nodes, table) == 0
    die(cluster, "c")
    assert store(spark, nodes, table) == 1

    rows = DeltaTable(table).to_pyarrow_table()
    assert rows.schema.names == COLUMNS.names
    found = sorted(zip(*(rows[name].to_pylist() for name in ("body", "reason")), strict=True))
    assert found == [(b"a", "no-a"), (b"b", "no-b"), (b"c", "no-c")]
    assert None not in rows["found"].to_pylist() + rows["created"].to_pylist()
