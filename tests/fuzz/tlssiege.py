"""A node that speaks TLS under siege.

It must not end, accept a hostile client, or hold more memory than it should, and it must serve
others.
"""

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import attrs

from tests.certificates import Authority
from tests.cluster.processes import BUS_OFFSET, Fleet, free_port, node_lines
from tests.fuzz.hostile_tls_clients import harass_tls

MOST_MIB: Final = 150.0
WATCH_S: Final = 0.1


@attrs.define
class Outcome:
    """What came of it."""

    attacks: int = 0
    let_in: int = 0
    most_mib: float = 0.0
    pings_ms: list[float] = attrs.Factory(list)


def besiege_tls(seconds: float, seed: int, clients: int = 3) -> Outcome:
    """Hold out so long. Raises AssertionError for whatever must not happen."""
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(clients) as pool:
        place, outcome, port = Path(name), Outcome(), free_port()
        ours = Authority(place, "ours")
        own = ours.sign()
        files = ("--tls-cert-file", own.cert, "--tls-key-file", own.key)
        fleet = Fleet(place)
        try:
            server = fleet.server(
                *("--tls-port", str(port), "--tls-cluster", "yes"),
                *(*files, "--tls-ca-cert-file", ours.file),
            )
            ports = [port, server.port + BUS_OFFSET]
            harassing = [
                pool.submit(harass_tls, ports, ours.file, place, seconds, seed + number)
                for number in range(clients)
            ]
            while not all(each.done() for each in harassing):
                began = time.monotonic()
                assert server.client.text("PING") == b"PONG"
                outcome.pings_ms.append(1000 * (time.monotonic() - began))
                outcome.most_mib = max(outcome.most_mib, server.rss_mib())
                time.sleep(WATCH_S)
            done = [each.result() for each in harassing]
            outcome.attacks = sum(client.attacks.total() for client in done)
            outcome.let_in = sum(client.let_in for client in done)
            assert outcome.let_in == 0, "a hostile client was let in"
            assert outcome.most_mib < MOST_MIB, f"the node has {outcome.most_mib:.0f} MiB"
            assert len(node_lines(server)) == 1, "a hostile client has become a member"
        finally:
            fleet.close()
    return outcome


def told(outcome: Outcome) -> str:
    """In words."""
    pings = sorted(outcome.pings_ms)
    slow = pings[len(pings) * 99 // 100]
    return (
        f"TLS: {outcome.attacks:,} attacks, {outcome.let_in} let in; "
        f"PING: median {pings[len(pings) // 2]:.1f} ms, 99 % {slow:.1f} ms, "
        f"at most {pings[-1]:.1f} ms; resident memory: {outcome.most_mib:.0f} MiB at most"
    )
