"""Servers for the tests of this room."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.processes import CALM, Cluster, Fleet, Server


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Servers for one test."""
    ships = Fleet(tmp_path)
    try:
        yield ships
    finally:
        ships.close()


@pytest.fixture(scope="module")
def shared_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Servers for all tests of a module."""
    ships = Fleet(tmp_path_factory.mktemp("fleet"))
    try:
        yield ships
    finally:
        ships.close()


@pytest.fixture(scope="module")
def multiplexing() -> str:
    """How the servers wait for sockets. Some modules are run over several of these."""
    return "auto"


@pytest.fixture(scope="module")
def server(shared_fleet: Fleet, multiplexing: str) -> Server:
    """A node alone, for all tests of a module: each has queues of its own."""
    return shared_fleet.server("--multiplexing-api", multiplexing)


@pytest.fixture(scope="module")
def pair(shared_fleet: Fleet, multiplexing: str) -> Cluster:
    """Two nodes that know each other, likewise."""
    return shared_fleet.cluster(2, *CALM, "--multiplexing-api", multiplexing)
