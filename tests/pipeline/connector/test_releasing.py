"""Rows with keys, from ADDJOB to ENQUEUE, without Spark."""

import pyarrow as pa
import pytest

from disque_trio.pipeline.connector import options
from disque_trio.pipeline.connector.adding import Added
from disque_trio.pipeline.connector.releasing import release_keyed
from disque_trio.pipeline.connector.rows import Keys, Row, Rows
from disque_trio.pipeline.errors import PipelineError
from tests.cluster.processes import Cluster, Fleet
from tests.pipeline.connector.desk import Desk, drain, lengths, name_of

TERMS = {"retry": "60", "replicate": "2", "keep": "60"}


def rows(queue: str, *bodies: str, **terms: str) -> list[Row]:
    """Of task 0 of batch 7 of a query."""
    sink = options.sink({"queue": queue, **TERMS, **terms})
    batch = pa.RecordBatch.from_pylist([{"body": body} for body in bodies])
    return list(Rows(sink, Keys("query/7", 0, is_content=False)).of(batch))


def commit(desk: Desk, cluster: Cluster, *windows: Added) -> None:
    for added in windows:
        release_keyed(desk.nodes(cluster), added)


def test_what_was_added_and_is_hidden_is_found(desk: Desk, cluster: Cluster) -> None:
    killed = desk.adder(cluster, 1).add(rows("keyed", "a", "b"))
    again = desk.adder(cluster, 2).add(rows("keyed", "a", "b", "c"))

    assert sum(map(len, killed.held.values())) == 2
    assert sum(map(len, again.held.values())) == 1
    assert len(again.found) == 2
    assert lengths(cluster, "keyed") == 0
    commit(desk, cluster, again)
    assert sorted(job.body for job in drain(cluster, "keyed", 3)) == [b"a", b"b", b"c"]


def test_what_was_committed_is_not_queued_again(desk: Desk, cluster: Cluster) -> None:
    first = desk.adder(cluster, 0).add(rows("before", "acked", "with a worker", "queued"))
    late = desk.adder(cluster, 1).add(rows("before", "acked", "with a worker", "queued"))
    commit(desk, cluster, first)
    queued = next(server for server in cluster.servers if server.client.number("QLEN", "before"))
    (acked,) = queued.client.get("before")
    queued.client.call("ACKJOB", acked.id)
    assert queued.client.get("before")

    commit(desk, cluster, late)
    third = desk.adder(cluster, 2).add(rows("before", "acked", "with a worker", "queued"))

    assert len(late.found) == 3
    assert third == Added(recognized=3)
    assert lengths(cluster, "before") == 1


def test_other_rows_at_the_same_place_are_other_jobs(desk: Desk, cluster: Cluster) -> None:
    commit(desk, cluster, desk.adder(cluster).add(rows("place", "a", "b")))
    commit(desk, cluster, desk.adder(cluster).add(rows("place", "b", "a")))

    assert len(drain(cluster, "place", 4)) == 4


def test_the_content_may_be_the_key() -> None:
    one, other = Keys("w", 0, is_content=True), Keys("w", 5, is_content=True)

    assert one.of(1, b"a") == other.of(9, b"a") != one.of(1, b"b")


def test_a_commit_that_is_not_certain_fails(desk: Desk, fleet: Fleet) -> None:
    server = fleet.server()
    task = desk.alone(server)
    lost = task.add(rows("gone", "a", replicate="1"))
    server.kill()
    server.start().wait()

    with pytest.raises(
        PipelineError, match=r"no node that answers has 1 job of this batch: run the batch"
    ):
        release_keyed(task.nodes, lost)


def test_a_node_that_stands_still_gets_each_row_once(desk: Desk, fleet: Fleet) -> None:
    cluster = fleet.cluster(2)
    task = desk.adder(cluster, timeout=2)
    first = task.add(rows("still", "a"))
    stalled = next(server for server in cluster.servers if name_of(server) == task.node)

    stalled.freeze()
    try:
        with pytest.raises(PipelineError, match="no node accepts the job"):
            desk.adder(cluster, timeout=2).add(rows("still", "a", "b"))
    finally:
        stalled.thaw()
    again = desk.adder(cluster, timeout=20).add(rows("still", "a", "b"))

    commit(desk, cluster, first, again)
    assert sorted(job.body for job in drain(cluster, "still", 2)) == [b"a", b"b"]
    assert lengths(cluster, "still") == 0


def test_nodes_without_keys_say_what_to_do(desk: Desk, fleet: Fleet) -> None:
    old = desk.alone(fleet.server("--appendonly", "yes", "--aof-format", "disque"))

    with pytest.raises(PipelineError, match=r"has no feature unique\): option\(\"recognize\""):
        old.add(rows("old", "a"))
