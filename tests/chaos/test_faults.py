"""Faults begin, and leave nothing behind when they end."""

import random
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path

import attrs
import pytest

from disque_trio.client import Recorder
from disque_trio.sim.engines.tcp import addresses
from disque_trio.sim.histories.reading import Reader
from disque_trio.sim.histories.records import Limits
from tests.chaos.faults import ProxyFaults
from tests.chaos.ways import Ways
from tests.cluster.processes import Cluster, Server

NODES = 5
LINKS = list(permutations(range(1, NODES + 1), 2))


@attrs.define(eq=False)
class Puppet(Server):
    """A server without a process."""

    state: str = "up"

    def start(self) -> Server:
        assert self.state == "down"
        self.state = "up"
        return self

    def kill(self) -> None:
        assert self.state == "up"
        self.state = "down"

    def terminate(self) -> int:
        self.kill()
        return 0

    def freeze(self) -> None:
        assert self.state == "up"
        self.state = "frozen"

    def thaw(self) -> None:
        assert self.state == "frozen"
        self.state = "up"


@pytest.fixture
def ways() -> Iterator[Ways]:
    with Ways(addresses.find(NODES), NODES) as found:
        yield found


def faults(ways: Ways, path: Path, seed: int) -> ProxyFaults:
    servers: list[Server] = [Puppet(path, port=1) for _ in range(NODES)]
    recorder = Recorder(path / "h", has_all_faults=True)
    return ProxyFaults(Cluster(servers), ways, recorder, random.Random(seed))


def trouble(found: ProxyFaults) -> list[object]:
    """What is not as it should be."""
    links = [each for each in map(found.links.state, LINKS) if each]
    servers = found.cluster.servers
    return links + [each for each in servers if isinstance(each, Puppet) and each.state != "up"]


@pytest.mark.parametrize(
    "kind", [each for each in ProxyFaults.kinds if each not in ("half-open", "rate")]
)
def test_a_fault_is_there_until_it_ends(kind: str, ways: Ways, tmp_path: Path) -> None:
    for seed in range(5):
        found = faults(ways, tmp_path, seed)
        fault = ProxyFaults.kinds[kind](found)
        assert fault is not None
        assert trouble(found) == []
        with fault:
            assert trouble(found)
        assert trouble(found) == []


def test_faults_may_overlap_and_all_are_recorded(ways: Ways, tmp_path: Path) -> None:
    found = faults(ways, tmp_path, 1)
    begun: list[str] = []
    for _ in range(40):
        with ExitStack() as stack:
            begun += [kind for _ in range(4) if (kind := found.begin(stack))]

    assert trouble(found) == []
    assert set(begun) == set(ProxyFaults.kinds)
    reader = Reader()
    reader.read(str(found.recorder.path))
    assert sorted(each.kind for each in reader.history(Limits()).faults) == sorted(begun)
