"""Queues in SQL: temporary views, and what tables of the catalog can do."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.processes import Cluster
from tests.pipeline.connector.desk import drain, given


class Sql:
    """Runs statements in a session of its own."""

    def __init__(self, spark: Any, options: str) -> None:
        self.spark = spark.newSession()
        self.options = options

    def __call__(self, statement: str) -> list[tuple[Any, ...]]:
        found = self.spark.sql(statement.replace("...", self.options))
        return [tuple(row) for row in found.collect()]


@pytest.fixture
def sql(session: Any, cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Sql]:
    """`...` in its statements are those of a queue of the test."""
    options = given(cluster, queue=request.node.name)
    made = Sql(session, ", ".join(f"'{name}' = '{value}'" for name, value in options.items()))
    try:
        yield made
    finally:
        made("DROP TABLE IF EXISTS listed")


def bodies(cluster: Cluster, queue: str, count: int) -> list[str]:
    return sorted(job.body.decode() for job in drain(cluster, queue, count))


READ = "SELECT CAST(body AS STRING) FROM {} WHERE state = 'queued' ORDER BY 1"


def test_views_read_and_fill_a_queue(
    sql: Sql, cluster: Cluster, request: pytest.FixtureRequest
) -> None:
    sql("CREATE TEMPORARY VIEW inbox USING disque OPTIONS (...)")
    sql("CREATE TEMPORARY VIEW outbox (body STRING, priority INT) USING disque OPTIONS (...)")
    sql("INSERT INTO outbox VALUES ('b', 7)")
    sql("INSERT INTO outbox (body) SELECT to_json(struct(id)) FROM range(2)")

    assert sql(READ.format("inbox")) == [("b",), ('{"id":0}',), ('{"id":1}',)]
    assert sql("SELECT DISTINCT body FROM inbox WHERE priority = 7") == [(b"b",)]
    assert bodies(cluster, request.node.name, 3) == ["b", '{"id":0}', '{"id":1}']


def test_an_insert_with_a_write_id_adds_nothing_twice(
    sql: Sql, cluster: Cluster, request: pytest.FixtureRequest
) -> None:
    sql("CREATE TEMPORARY VIEW outbox (body STRING) USING disque OPTIONS (..., writeId 'night-7')")
    for _ in range(2):  # as a scheduler does that runs a task again
        sql("INSERT INTO outbox VALUES ('a'), ('b')")

    assert bodies(cluster, request.node.name, 2) == ["a", "b"]


def test_a_table_of_the_catalog_takes_its_options_from_each_statement(
    sql: Sql, cluster: Cluster, request: pytest.FixtureRequest
) -> None:
    sql("CREATE TABLE listed (body BINARY, state STRING) USING disque")
    sql("CREATE TEMPORARY VIEW outbox (body STRING) USING disque OPTIONS (...)")
    sql("INSERT INTO outbox VALUES ('a')")

    assert sql(READ.format("listed WITH (...)")) == [("a",)]
    sql("DROP TABLE listed")
    sql("CREATE TABLE listed (body STRING) USING disque")
    sql("INSERT INTO listed WITH (...) VALUES ('b')")
    assert bodies(cluster, request.node.name, 2) == ["a", "b"]


def test_the_statements_of_the_documentation_work(session: Any, cluster: Cluster) -> None:
    text = Path("docs/pipeline-connector.md").read_text("utf-8").partition("\n## SQL\n")[2]
    found = re.findall(r"(?:^    .*\n)+", text.partition("\n## ")[0], re.MULTILINE)
    nodes = given(cluster)["nodes"]
    spark = session.newSession()
    spark.sql("SELECT 1 AS number").createOrReplaceTempView("new_orders")
    statements = [each for block in found for each in block.split(";") if each.strip()]
    assert len(statements) >= 6
    try:
        for each in statements:
            spark.sql(each.replace("10.0.0.1:7711", nodes)).collect()
    finally:
        spark.sql("DROP TABLE IF EXISTS orders")

    assert bodies(cluster, "orders", 2) == ['{"number":1}'] * 2
