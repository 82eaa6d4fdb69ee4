"""Nodes behind a router that translates addresses and ports, and who talks to them from outside.

Each node is in a network of its own, all at the same address, which leads nowhere from elsewhere. A
router (`nat.py`) makes each known at an address and ports of the outside, which the node announces.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.cluster import nat
from tests.cluster.pods import Pod, World, is_possible, world
from tests.cluster.processes import SOON_S, Cluster, eventually
from tests.cluster.talk import Client

pytestmark = pytest.mark.skipif(not is_possible(), reason="needs namespaces, unshare and ip")

OUTSIDE: Final = "internet"
BOUND: Final = "192.168.0.2"
ROUTER: Final = "192.168.0.1"
PUBLIC: Final = "203.0.113"
PORT: Final = 30711
NUMBERS: Final = (1, 2, 3)
PLACES: Final = tuple(f"{PUBLIC}.{number}:{PORT}" for number in NUMBERS)
URL: Final = f"disque://{PLACES[0]}"
CLI: Final = (sys.executable, "-m", "disque_trio")


def prepare(net: World) -> None:
    """The networks: one for each node, and the outside. In all of them the public addresses are
    this machine's, so that the router can listen there."""
    for name in (OUTSIDE, *(f"home-{number}" for number in NUMBERS)):
        net.run("ip", "netns", "add", name)
        net.run("ip", "-n", name, "link", "set", "lo", "up")
        net.run("ip", "-n", name, "route", "add", "local", f"{PUBLIC}.0/24", "dev", "lo")
        if name != OUTSIDE:
            for address in (BOUND, ROUTER):
                net.run("ip", "-n", name, "addr", "add", f"{address}/32", "dev", "lo")


def rules(bus: int) -> list[list[str | int]]:
    """Of the router. A node reaches all by their public addresses, itself too."""
    found: list[list[str | int]] = []
    for number in NUMBERS:
        here, public = f"home-{number}", f"{PUBLIC}.{number}"
        for outer, inner in ((PORT, 7711), (bus, 17711)):
            found.append([OUTSIDE, public, outer, here, ROUTER, BOUND, inner])
            found += [
                [here, f"{PUBLIC}.{other}", outer, OUTSIDE, public, f"{PUBLIC}.{other}", outer]
                for other in NUMBERS
            ]
    return found


@contextmanager
def router(net: World, bus: int) -> Iterator[None]:
    """The router, as long as it is needed."""
    words = [*net.inside(), sys.executable, nat.__file__, json.dumps(rules(bus))]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            yield
        finally:
            process.communicate("")


def options(number: int, bus: int) -> tuple[str, ...]:
    return (
        "--port", "7711", "--bind", BOUND, "--protected-mode", "no", "--cluster-node-timeout",
        "2000", "--cluster-announce-ip", f"{PUBLIC}.{number}", "--cluster-announce-port", str(PORT),
        *(("--cluster-announce-bus-port", str(bus)) if bus != PORT + 10_000 else ()),
    )  # fmt: skip


@contextmanager
def nodes(directory: Path, bus: int) -> Iterator[list[Pod]]:
    """Three nodes that have met each other at their public addresses."""
    directory.mkdir(exist_ok=True)
    with world(directory) as (net, pods):
        prepare(net)
        with router(net, bus):
            for number in NUMBERS:
                place = directory / f"n{number}"
                pods.append(Pod(place, options(number, bus), world=net, name=f"home-{number}"))
                pods[-1].start()
            for pod in pods:
                pod.wait()
            for number in NUMBERS[1:]:
                pods[0].client.call("CLUSTER", "MEET", f"{PUBLIC}.{number}", PORT, bus)
            Cluster(list(pods)).wait()
            try:
                yield pods
            finally:
                for pod in pods:
                    pod.hang_up()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Pod]]:
    """The nodes, with a port for nodes that is not 10,000 above that of clients."""
    with nodes(tmp_path_factory.mktemp("nat"), 31999) as pods:
        yield pods


def outside(pods: list[Pod], *words: str) -> str:
    """What a program prints that runs outside."""
    return pods[0].world.run(*words, pod=OUTSIDE)


def told(client: Client) -> str:
    """All that a node tells of addresses."""
    hello = client.call("HELLO")
    assert isinstance(hello, list)
    return str(hello) + client.text("CLUSTER", "NODES").decode()


def test_nodes_know_each_other_by_what_they_announce(cluster: list[Pod]) -> None:
    for pod in cluster:
        text = told(pod.client)
        assert all(f"{PUBLIC}.{number}:{PORT}@31999" in text for number in NUMBERS), text
        assert BOUND not in text
        assert ROUTER not in text


def test_copies_and_jobs_cross_the_router(cluster: list[Pod]) -> None:
    job = cluster[0].client.add("crossing", "body", "REPLICATE", 3)

    assert [each.id for each in cluster[2].client.get("crossing", timeout=60_000)] == [job]
    cluster[2].client.call("ACKJOB", job)
    eventually(lambda: cluster[1].client.call("SHOW", job) is None, SOON_S, "the ack has crossed")


def test_the_port_for_nodes_is_ten_thousand_above_the_announced_one(tmp_path: Path) -> None:
    with nodes(tmp_path, PORT + 10_000) as pods:
        job = pods[0].client.add("q", "body", "REPLICATE", 3)

        assert [each.id for each in pods[1].client.get("q", timeout=60_000)] == [job]


# From outside. A program that asked for a bound address would get no answer there.

CLIENT: Final = """
import sys
from disque_trio.client import BlockingClient, commands
from disque_trio.client.url import parse_url
with BlockingClient(parse_url(sys.argv[1])) as client:
    job = client.addjob("clients", "body", replicate=3)
    for address in client.nodes.order(0):
        [told] = client.ask(address, [commands.show(job)])
        print(address, told.id == job)
"""
CONSOLE: Final = """
import sys, trio
from disque_trio.client.url import parse_url
from disque_trio.observe.observer import Observer
from disque_trio.observe.client import DeadlineClient

async def main():
    async with DeadlineClient(parse_url(sys.argv[1])) as client:
        observer = Observer(client)
        while len(await observer.look()) < 3:
            await trio.sleep(0.05)
        data, unreached = await observer.answer("cluster", {})
        for node in data["nodes"]:
            print(node["node"], not unreached and node["state"] == "up")

trio.run(main)
"""
CONNECTOR: Final = """
import sys
from disque_trio.client.url import parse_url
from disque_trio.pipeline.connector.nodes import Nodes
from disque_trio.pipeline.connector.options import Link
seeds = tuple((each.host, each.port) for each in parse_url(sys.argv[1]).seeds)
link = Link(
    seeds=seeds, discovers=True, password=None, password_file=None, tls=None, timeout_s=9
)
with Nodes(link) as nodes:
    for name in nodes.live():
        print(name, True)
"""


@pytest.mark.parametrize("script", [CLIENT, CONSOLE, CONNECTOR], ids=["client", "console", "spark"])
def test_programs_follow_announced_addresses(cluster: list[Pod], script: str) -> None:
    printed = outside(cluster, sys.executable, "-c", script, URL).splitlines()

    assert sorted(printed) == [f"{place} True" for place in PLACES]


def test_the_doctor_finds_every_node_and_its_port_for_nodes(cluster: list[Pod]) -> None:
    host, _, port = PLACES[0].partition(":")
    words = [*cluster[0].world.inside(OUTSIDE), *CLI, "doctor", "--host", host, "--port", port]
    done = subprocess.run([*words, "--json"], capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)

    assert {node["address"]: node["error"] for node in found["nodes"]} == dict.fromkeys(PLACES, "")
    assert "bus port" not in done.stdout, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["top", "explain"])
def test_commands_follow_announced_addresses(cluster: list[Pod], name: str) -> None:
    host, _, port = PLACES[1].partition(":")
    words = {
        "top": ("--once", "--url", URL),
        "explain": ("-h", host, "-p", port, "ADDJOB", "mail", "body", "0"),
    }
    printed = outside(cluster, *CLI, name, *words[name])

    assert "3 nodes" in printed
    assert "silent" not in printed


TASKS: Final = """
import os
from pathlib import Path
from disque_trio.worker import App

app = App(os.environ["DISQUE_URL"])

@app.task(name="note", queue="tasks", replicate=3, sync=2)
def note(text):
    with open(Path(__file__).parent / "done", "a") as file:
        file.write(text + " ")
"""
ENQUEUE: Final = "import sys; from nat_tasks import note; note.blocking.enqueue(sys.argv[1])"


@contextmanager
def worker(pods: list[Pod], directory: Path) -> Iterator[None]:
    """`disque-trio worker` outside, which knows the first node."""
    words = [*pods[0].world.inside(OUTSIDE), *at(directory, 1), *CLI, "worker", "nat_tasks"]
    with (
        open(directory / "worker.log", "wb") as log,
        subprocess.Popen(words, stdout=log, stderr=log) as process,
    ):
        try:
            yield
        finally:
            process.terminate()


def at(directory: Path, number: int) -> list[str]:
    """Before a command that runs tasks: where they are, and the node that it is given."""
    url = f"disque://{PLACES[number - 1]}"
    return ["env", f"PYTHONPATH={directory}", f"DISQUE_URL={url}"]


@pytest.mark.slow
def test_a_worker_goes_on_at_an_announced_address(tmp_path: Path) -> None:
    """The only node that it was given ends."""
    (tmp_path / "nat_tasks.py").write_text(TASKS)
    done = tmp_path / "done"
    done.touch()
    with nodes(tmp_path / "nodes", 31999) as pods, worker(pods, tmp_path):
        outside(pods, *at(tmp_path, 1), sys.executable, "-c", ENQUEUE, "first")
        eventually(lambda: done.read_text() == "first ", SOON_S, "it works")
        pods[0].terminate()

        outside(pods, *at(tmp_path, 2), sys.executable, "-c", ENQUEUE, "second")

        eventually(lambda: done.read_text() == "first second ", SOON_S, "it works elsewhere")
