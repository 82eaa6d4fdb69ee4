"""A cluster for the connector's tests, and a session that knows it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from disque_trio.pipeline.connector.source import PUSHES
from tests.cluster.processes import CALM, Cluster, Fleet
from tests.pipeline.connector.desk import Desk


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Servers for one test."""
    ships = Fleet(tmp_path / "servers")
    try:
        yield ships
    finally:
        ships.close()


@pytest.fixture
def desk() -> Iterator[Desk]:
    """Clients for one test."""
    clients = Desk()
    try:
        yield clients
    finally:
        clients.close()


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes for all tests that do no harm: each has queues of its own."""
    ships = Fleet(tmp_path_factory.mktemp("servers"))
    try:
        yield ships.cluster(3, *CALM)
    finally:
        ships.close()


@pytest.fixture(scope="package")
def session(spark: Any) -> Any:
    """The session, which finds `format("disque")` by itself, and pushes filters down."""
    spark.conf.set(PUSHES, "true")
    return spark
