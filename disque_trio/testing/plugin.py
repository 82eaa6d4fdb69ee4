"""The pytest plugin: fixtures for tests of apps (docs/worker-testing.md).

pytest loads it in every environment in which this package is installed. It imports other modules of
this package only when a test uses a fixture.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from disque_trio.testing.inline.kit import Inline
    from disque_trio.testing.server.kit import Server
    from disque_trio.testing.simulated.kit import Sim


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of `disque_sim`, which errors of scenarios refer to."""
    group = parser.getgroup("disque_trio")
    group.addoption(
        "--disque-seed", type=int, default=None, metavar="N", help="run stories with this seed only"
    )
    group.addoption(
        "--disque-at",
        default="",
        metavar="RECIPE:STEP",
        help="let disque_sim.idempotent try this recipe before this step only",
    )


def _kit(name: str) -> Any:
    """The module of a fixture. Raises `MissingExtraError` if nodes cannot run here."""
    with import_module("disque_trio.extras").needed("this fixture", "testing"):
        return import_module(f"disque_trio.testing.{name}.kit")


@pytest.fixture
def disque_inline() -> "Iterator[Inline]":
    """Apps add their jobs to a node in memory, and the test decides when they run."""
    with _kit("inline").opened() as inline:
        yield inline


@pytest.fixture(scope="module")
def disque_nodes() -> int:
    """The number of nodes of `disque_server`: one, unless a module or conftest.py overrides this
    fixture."""
    return 1


@pytest.fixture(scope="module")
def _disque_cluster(disque_nodes: int) -> "Iterator[Server]":
    with _kit("server").running(disque_nodes) as server:
        yield server


@pytest.fixture
def disque_server(_disque_cluster: "Server") -> "Iterator[Server]":
    """Real nodes on loopback, the same for all tests of a module, and empty for each test."""
    with _disque_cluster.for_a_test() as server:
        yield server


@pytest.fixture
def disque_sim(request: pytest.FixtureRequest) -> "Sim":
    """Runs scenarios of an app, its handlers and its workers in simulated clusters."""
    recipe, _, step = request.config.getoption("--disque-at").partition(":")
    sim: Sim = _kit("simulated").Sim(
        again=request.node.nodeid,
        only=request.config.getoption("--disque-seed"),
        at=(recipe, int(step)) if step else None,
    )
    return sim
