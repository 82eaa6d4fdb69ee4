"""A real cluster under siege: hostile clients at its ports, and an honest one that goes on working.

It must not end, accept a hostile client, hold more memory than it should, or stop serving the
honest client.
"""

import random
import secrets
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import attrs

from tests.cluster.processes import Cluster, Fleet, Server, node_lines
from tests.cluster.talk import Client, as_items
from tests.fuzz.hostile_clients import ATTACKS, HARMFUL, AttackCounts, HostileClient, harass, record

PASSWORD: Final = "hush, friend"
SECRET: Final = "what only nodes know"
HOSTILE_CLIENTS: Final = 4
"""At each node."""
MOST_MIB: Final = 250.0
"""A node at rest has about 60; what clients may make it hold is far less than the rest."""
WATCH_S: Final = 0.25


@attrs.define
class Watch:
    """What the honest client and the operator see."""

    pings_ms: list[float] = attrs.Factory(list)
    jobs: int = 0
    rss_mib: dict[int, float] = attrs.Factory(dict)
    """The most of each node, by port."""
    first_mib: dict[int, float] = attrs.Factory(dict)


def besiege(seconds: float, seed: int, *, is_open: bool = False) -> tuple[AttackCounts, Watch]:
    """Hold out so long. Raises AssertionError for whatever must not happen.

    Where the cluster is open there is neither password nor secret, and clients may do what they
    like; but the nodes must not end, and not be full.
    """
    with tempfile.TemporaryDirectory() as name:
        fleet = Fleet(Path(name))
        try:
            secret = () if is_open else ("--cluster-secret", SECRET)
            # A machine that hostile clients keep busy may make a node wait longer than tests do.
            cluster = fleet.cluster(2, "--cluster-node-timeout", "15000", *secret)
            return (
                _besieged_open(cluster, seconds, seed)
                if is_open
                else _besieged(cluster, seconds, seed)
            )
        finally:
            fleet.close()


def _besieged_open(cluster: Cluster, seconds: float, seed: int) -> tuple[AttackCounts, Watch]:
    honest = [Client(server.port) for server in cluster.servers]
    watch = Watch()

    def look() -> None:
        for server, client in zip(cluster.servers, honest, strict=True):
            _look(server, client, watch)

    return _harassed(cluster, seconds, seed, look, is_open=True), watch


def _besieged(cluster: Cluster, seconds: float, seed: int) -> tuple[AttackCounts, Watch]:
    for server in cluster.servers:
        server.client.call("CONFIG", "SET", "requirepass", PASSWORD)
    honest = [_friend(server) for server in cluster.servers]
    before = [_settings(client) for client in honest]
    watch = Watch()

    def look() -> None:
        for server, client in zip(cluster.servers, honest, strict=True):
            _look(server, client, watch)
            _work(server, client, watch)

    counts = _harassed(cluster, seconds, seed, look, is_open=False)
    for server, client in zip(cluster.servers, honest, strict=True):
        server.client.call("AUTH", PASSWORD)
        assert client.registered_jobs() == 0, "a hostile client has added a job"
    assert [_settings(client) for client in honest] == before, (
        "a hostile client has changed settings"
    )
    assert cluster.is_whole(), "nodes have come or gone"
    return counts, watch


def _harassed(
    cluster: Cluster, seconds: float, seed: int, look: Callable[[], None], *, is_open: bool
) -> AttackCounts:
    """Look again and again until the clients have had enough."""
    members = [server.id.encode() for server in cluster.servers]
    ports = [server.port for server in cluster.servers]
    # In another process, so that only the nodes are slowed down by what they do.
    began = time.monotonic()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        harassing = pool.submit(harass_all, ports, members, seconds, seed, is_open=is_open)
        while not harassing.done():
            try:
                look()
            except Exception as error:
                logs = "\n".join(server.log()[-4000:] for server in cluster.servers)
                raise AssertionError(
                    f"after {time.monotonic() - began:.0f} s: {error!r}; the logs end with:\n{logs}"
                ) from error
            time.sleep(WATCH_S)
        return harassing.result()


def _friend(server: Server) -> Client:
    """Knows the password."""
    client = Client(server.port)
    client.call("AUTH", PASSWORD)
    server.client.call("AUTH", PASSWORD)
    return client


def _settings(client: Client) -> list[object]:
    return list(as_items(client.call("CONFIG", "GET", "*")))


def _look(server: Server, client: Client, watch: Watch) -> None:
    """The operator's gauges."""
    assert server.is_running(), f"the node has ended: {server.log()[-4000:]}"
    began = time.monotonic()
    assert client.text("PING") == b"PONG"
    watch.pings_ms.append(1000 * (time.monotonic() - began))
    rss = server.rss_mib()
    watch.first_mib.setdefault(server.port, rss)
    watch.rss_mib[server.port] = max(watch.rss_mib.get(server.port, 0), rss)
    assert rss < MOST_MIB, f"the node has {rss:.0f} MiB"


def _work(server: Server, client: Client, watch: Watch) -> None:
    """The honest client's day."""
    body = secrets.token_bytes(50)
    queue = f"honest-{server.port}"
    job = client.add(queue, body, "REPLICATE", 2, "RETRY", 60)
    (delivery,) = client.get(queue, timeout=10_000)
    assert (delivery.id, delivery.body) == (job, body)
    assert client.number("FASTACK", job) == 1
    watch.jobs += 1
    assert len(node_lines(server)) == 2, "a hostile client has become a member"


def harass_all(
    ports: list[int], members: list[bytes], seconds: float, seed: int, *, is_open: bool
) -> AttackCounts:
    """Hostile clients at all these nodes, for so long."""
    counts = AttackCounts()
    attacks = [attack for attack in ATTACKS if not (is_open and attack in HARMFUL)]
    until = time.monotonic() + seconds
    threads = []
    for number, port in enumerate(ports * HOSTILE_CLIENTS):
        recorded = b"" if is_open else record(port, SECRET.encode())
        rng = random.Random(f"{seed}/{number}")
        client = HostileClient(rng, port, members, recorded, counts, attacks=attacks)
        threads.append(threading.Thread(target=harass, args=(client, until)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return counts


def told(counts: AttackCounts, watch: Watch) -> str:
    """In words."""
    attacks = sum(counts.attacks.values())
    pings = sorted(watch.pings_ms)
    latencies = {
        "median": statistics.median(pings),
        "99 %": pings[len(pings) * 99 // 100],
        "at most": pings[-1],
    }
    sent_mib = counts.sent_bytes / (1 << 20)
    lines = [
        f"{attacks:,} attacks, {counts.refused:,} of them cut off; {sent_mib:,.0f} MiB sent",
        "  " + ", ".join(f"{name} {count:,}" for name, count in sorted(counts.attacks.items())),
        f"the honest client: {watch.jobs:,} jobs" if watch.jobs else "the operator",
        "  PING: " + ", ".join(f"{what} {value:.1f} ms" for what, value in latencies.items()),
        "resident memory: "
        + ", ".join(
            f"{watch.first_mib[port]:.0f} MiB at first, {most:.0f} at most"
            for port, most in watch.rss_mib.items()
        ),
    ]
    return "\n".join(lines)
