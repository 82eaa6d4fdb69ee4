"""What an idle cluster costs: how often its nodes wake, and how many bytes go over its links."""

from typing import Final

import attrs
import pytest

from disque_trio.sim.engines.heap.links import SimLinkPort
from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.wire.frames import HEADER_LENGTH

NODES: Final = 5
SECONDS: Final = 120
IDLE: Final = Plan(
    scenario="idle",
    seed=1,
    nodes=NODES,
    chaos=SECONDS * 1_000_000,
    drain=1_000_000,
    codec_every=1,
)
TIMEOUT_S: Final = 15
"""The default of cluster-node-timeout."""
PINGS: Final = 1 + (NODES - 1) * 2 / TIMEOUT_S
"""A second: to one node by chance, and to each whenever half the node timeout is over."""
GOSSIP: Final = HEADER_LENGTH + NODES * 144
"""Bytes of a PING at most: it tells less of each node than its header does of the sender."""


def test_an_idle_node_wakes_a_few_times_a_second() -> None:
    longer = attrs.evolve(IDLE, chaos=2 * IDLE.chaos)
    steps = simulate(longer).steps - simulate(IDLE).steps

    # Twice itself (`heartbeat`), and for each PING and PONG that arrives.
    assert steps / SECONDS / NODES < 2 + 2 * PINGS


def test_an_idle_link_carries_gossip_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    send = SimLinkPort.send

    def counted(port: SimLinkPort, frames: list[bytes]) -> int:
        sent.extend(map(len, frames))
        return send(port, frames)

    monkeypatch.setattr(SimLinkPort, "send", counted)
    simulate(IDLE)

    assert 0 < len(sent) / SECONDS < NODES * 2 * PINGS
    assert max(sent) < GOSSIP
