"""The source of a stream as Spark calls it, without Spark."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from disque_trio.pipeline.connector import options
from disque_trio.pipeline.connector.columns import SCHEMA
from disque_trio.pipeline.connector.nodes import UnreachableError
from disque_trio.pipeline.connector.offsets import Batches, Offset
from disque_trio.pipeline.connector.stream import QueueStream
from tests.cluster.processes import SOON_S, Fleet, Server, eventually
from tests.pipeline.connector.desk import name_of

MANY = ReadMaxRows(100_000)


class Streams:
    """Sources, and what they hold when the test ends."""

    def __init__(self) -> None:
        self._closing = ExitStack()

    def read(self, server: Server, queue: str, timeout: str = "30") -> QueueStream:
        given = {"nodes": name_of(server), "queue": queue, "wait": "0", "timeout": timeout}
        given["jobsPerPartition"] = "10000"
        source = QueueStream(options.link(given), options.stream(given), SCHEMA)
        self._closing.callback(source._consumer.close)
        return source

    def close(self) -> None:
        self._closing.close()


@pytest.fixture
def streams() -> Iterator[Streams]:
    made = Streams()
    try:
        yield made
    finally:
        made.close()


def fill(server: Server, queue: str, count: int) -> None:
    for _ in range(0, count, 500):
        for _ in range(500):
            server.client.send("ADDJOB", queue, "body", 0, "REPLICATE", 1)
        for _ in range(500):
            server.client.receive()


def sizes(source: QueueStream, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    """How many rows each task reads."""
    parts = source.partitions(start, end)
    return [sum(batch.num_rows for batch in source.read(part)) for part in parts]


def test_a_batch_may_be_large_and_its_offset_is_short(fleet: Fleet, streams: Streams) -> None:
    server = fleet.server()
    fill(server, "large", 12_000)
    source = streams.read(server, "large")

    start = source.initialOffset()
    end = source.latestOffset(start, MANY)

    assert end["count"] == 12_000
    assert len(str(end)) < 500
    assert sizes(source, start, end) == [10_000, 2_000]

    # After a crash the same batch runs again, and then it is acknowledged.
    again = streams.read(server, "large")
    assert sum(sizes(again, start, end)) == 12_000
    assert again.latestOffset(end, MANY) == end
    assert not again._consumer.jobs
    assert server.client.info("jobs")["registered_jobs"] == "3", "the notes"


def test_a_query_that_ends_by_itself_waits_for_nodes(fleet: Fleet, streams: Streams) -> None:
    server = fleet.server()
    fill(server, "busy", 500)
    source = streams.read(server, "busy", timeout="1")
    source.prepareForTriggerAvailableNow()
    end = source.latestOffset(source.initialOffset(), MANY)
    server.freeze()
    thaws = threading.Timer(3, server.thaw)
    thaws.start()

    assert source.latestOffset(end, MANY) == end

    thaws.join()
    eventually(lambda: server.client.info("jobs")["registered_jobs"] == "1", SOON_S, "the note")


def test_jobs_that_could_not_be_noted_come_with_the_next_batch(
    fleet: Fleet, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held and in no batch, they would wait until the query is started again."""
    server = fleet.server()
    fill(server, "unnoted", 500)
    source = streams.read(server, "unnoted")
    start = source.initialOffset()
    source.latestOffset(start, ReadMaxRows(0))  # it has met its node

    def fails(*_: object) -> Offset:
        raise UnreachableError("no node stores a note")

    with monkeypatch.context() as patched:
        patched.setattr(Batches, "keep", fails)
        assert source.latestOffset(start, MANY) == start

    assert source.latestOffset(start, MANY)["count"] == 500


def test_a_query_that_never_met_a_node_fails(fleet: Fleet, streams: Streams) -> None:
    server = fleet.server()
    source = streams.read(server, "none", timeout="1")
    server.kill()

    with pytest.raises(UnreachableError, match="no node answers"):
        source.latestOffset(source.initialOffset(), MANY)
