"""What a switch does to packets, and to the nodes of which they are."""

import random
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import pytest

from disque_trio.client import Recorder
from tests.chaos.faults import MachineFaults
from tests.chaos.machine import Machine, Shims
from tests.chaos.running import OPTIONS
from tests.chaos.switch import ENTER, PREPARE, Direction, Switch, is_possible
from tests.cluster.power import library
from tests.cluster.processes import SOON_S, Cluster, Server, eventually
from tests.trees import HOME

PACKET = bytes(1000)
NOWHERE = Shims(Path("recorder.so"), Path("clock.so"))


def direction() -> Direction:
    return Direction(random.Random(1))


def test_a_packet_arrives_once_and_at_once() -> None:
    assert direction().arrivals(PACKET, 5.0, 0) == [5.0]


def test_nothing_passes_a_cut() -> None:
    path = direction()
    path.cuts = 1
    assert path.arrivals(PACKET, 5.0, 0) == []


def test_what_is_kept_back_is_not_under_way() -> None:
    path = direction()
    path.clogs = 1
    assert path.arrivals(PACKET, 5.0, 0) == []
    assert path.kept == [PACKET]


def test_as_many_packets_are_lost_and_come_twice_as_asked_for() -> None:
    path = direction()
    path.loss, path.repeats = 0.4, 0.5
    counts = [len(path.arrivals(PACKET, 5.0, 0)) for _ in range(10_000)]
    assert counts.count(0) == pytest.approx(4000, abs=200)
    assert counts.count(2) == pytest.approx(3000, abs=200)


def test_late_packets_keep_their_order_unless_they_are_scattered() -> None:
    path = direction()
    path.delay_s = 0.2
    assert path.arrivals(PACKET, 5.0, 0) == [5.2]
    path.jitter_s = 0.1
    times = [path.arrivals(PACKET, 5.0, 0)[0] for _ in range(100)]
    assert 5.2 <= min(times) < max(times) <= 5.3
    assert times != sorted(times)


def test_a_narrow_direction_takes_its_time_and_loses_what_it_cannot_keep() -> None:
    path = direction()
    assert path.arrivals(PACKET, 5.0, 10_000) == [pytest.approx(5.1)]
    assert path.arrivals(PACKET, 5.0, 10_000) == [pytest.approx(5.2)]
    arrived = [path.arrivals(PACKET, 5.0, 10_000) for _ in range(400)]
    assert [] in arrived
    assert path.arrivals(PACKET, 100.0, 10_000) == [pytest.approx(100.1)]


def test_every_fault_of_machines_is_there_until_it_ends(tmp_path: Path) -> None:
    for kind, begin in MachineFaults.kinds.items():
        found = _faults(tmp_path)
        fault = begin(found)
        assert fault is not None, kind
        with fault:
            assert kind == "rate" or _trouble(found), kind
        assert _trouble(found) == [], kind


class Puppet(Machine):
    """A machine without a process."""

    state: str = "up"

    def start(self) -> Server:
        self.state = "up"
        return self

    def kill(self) -> None:
        self.state = "down"

    def terminate(self) -> int:
        self.kill()
        return 0

    def cut_power(self, _: random.Random) -> None:
        self.kill()

    def freeze(self) -> None:
        self.state = "frozen"

    def thaw(self) -> None:
        self.state = "up"


def _faults(path: Path) -> MachineFaults:
    machines: list[Server] = [
        Puppet(path / f"n{n}", port=1, namespace="", shims=NOWHERE) for n in (1, 2, 3)
    ]
    recorder = Recorder(path / "history.jsonl", has_all_faults=True)
    return MachineFaults(Cluster(machines), Switch(3, NOWHERE), recorder, random.Random(1))


def _trouble(found: MachineFaults) -> list[object]:
    ends = found.links.ends
    wrong: list[object] = [found.links.state(way) for way in permutations(ends, 2)]
    for machine in found.cluster.servers:
        assert isinstance(machine, Puppet)
        wrong += [machine.ahead_s, machine.state != "up"]
    return [each for each in wrong if each]


@pytest.mark.skipif(not library.is_possible(), reason="needs a C compiler")
def test_a_wall_clock_jumps_while_its_process_runs(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "n1", port=1, namespace="", shims=Shims.made(tmp_path))
    machine.directory.mkdir()
    script = "import time\nwhile input(): print(time.time(), time.monotonic(), flush=True)"
    environment = [f"{name}={value}" for name, value in machine.environment.items()]
    process = subprocess.Popen(
        ["env", *environment, sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=machine.directory,
    )

    def clocks() -> tuple[float, float]:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("now\n")
        process.stdin.flush()
        wall, monotonic = map(float, process.stdout.readline().split())
        return wall, monotonic

    with process:
        wall, monotonic = clocks()
        machine.move_clock(-3600)
        later, still_monotonic = clocks()
        process.kill()
    assert later == pytest.approx(wall - 3600, abs=60)
    assert 0 <= still_monotonic - monotonic < 60


NODES_APART = """
from pathlib import Path
from tests.chaos.test_switch import nodes_are_parted
nodes_are_parted(Path(".").resolve())
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not (is_possible() and library.is_possible()), reason="needs namespaces and a C compiler"
)
def test_a_cut_of_the_switch_parts_nodes_and_keeps_their_clients(tmp_path: Path) -> None:
    words = [*ENTER, f'{PREPARE} && exec "$0" "$@"', sys.executable, "-c", NODES_APART]
    environment = ["env", f"PYTHONPATH={HOME}"]
    done = subprocess.run(
        [*environment, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def nodes_are_parted(directory: Path) -> None:
    """The conversation, in a namespace."""
    with Switch(2, Shims.made(directory)) as links:
        one, two = (links.server(n, directory / f"n{n}", OPTIONS) for n in (1, 2))
        cluster = Cluster([one, two])
        try:
            for server in cluster.servers:
                server.start()
            for server in cluster.servers:
                server.wait()
            one.client.call("CLUSTER", "MEET", *links.seen(2))
            cluster.wait()

            links.cut([(1, 2)])
            eventually(lambda: not cluster.is_whole(), SOON_S, "one misses the other")
            job = two.client.add("q", "body", "REPLICATE", 1)
            links.mend([(1, 2)])
            cluster.wait()
            [delivered] = one.client.get("q", timeout=60_000)
            assert delivered.id == job
        finally:
            complaints = [each for server in cluster.servers for each in server.close()]
    assert complaints == []
