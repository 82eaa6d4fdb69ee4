"""What original nodes said while they joined, failed and were forgotten, said to one of ours."""

import random
from collections.abc import Iterator
from typing import Any

import attrs

from disque_trio.statemachine.address import BUS_OFFSET
from disque_trio.statemachine.base import FAIL, MYSELF, LinkId, NodeId, Now
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.invariants import check
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.messages import Fail, Message
from disque_trio.wire.frames import FrameParser
from tests.conformance import bus_rows

OURS: NodeId = b"335fb6c2d1ad9a929f45ff54111d447acd2d51e3"
SECOND: NodeId = b"212b997ebf7e686521c716e7fa65ed9fd5ef1930"
THIRD: NodeId = b"8a69a63a2219274de8b88d3bc4063a815ea8aab1"
PORTS = {7732: SECOND, 7733: THIRD}
LOCAL = "127.0.0.1"


@attrs.define(eq=False)
class Replay:
    """Our machine in the place of the recorded node 7731."""

    machine: Machine = attrs.Factory(
        lambda: Machine(
            Config(cluster_node_timeout=2000),
            Peer(OURS, "", 7731, MYSELF),
            random.Random(1),
            Now(1, 1),
        )
    )
    now: Now = attrs.Factory(lambda: Now(1, 1))
    incoming: dict[int, LinkId] = attrs.Factory(dict)
    outgoing: dict[int, LinkId] = attrs.Factory(dict)
    sent: list[Message] = attrs.Factory(list)
    flags_seen: dict[NodeId, dict[int, None]] = attrs.Factory(dict)

    rows: Iterator[dict[str, Any]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.rows = iter(bus_rows())
        for port in PORTS:
            self.ask(b"CLUSTER", b"MEET", LOCAL.encode(), b"%d" % port)

    def ask(self, *words: bytes) -> None:
        client = self.machine.connect(b"127.0.0.1:50000", self.now)
        assert client is not None
        self.machine.request(client, list(words), self.now)
        self.take()

    def run(self, until_step: str) -> None:
        """Go on in the recording, up to a step of it."""
        for row in self.rows:
            self.pass_time(1 + int(row["t"] * 1000))
            if row.get("step") == until_step:
                return
            if "hex" in row and row["from_port"] in PORTS:
                self.receive(row["from_port"], row["to_bus_port"], bytes.fromhex(row["hex"]))

    def pass_time(self, until: int) -> None:
        while self.machine.deadline() <= until:
            self.now = Now(self.machine.deadline(), self.machine.deadline())
            self.machine.tick(self.now)
            self.take()
        self.now = Now(until, until)

    def receive(self, port: int, bus_port: int | None, data: bytes) -> None:
        """Frames to our bus port come on the other's link, answers on ours."""
        if bus_port is None:
            link = self.outgoing.get(port, 0)
        elif bus_port == 17731:
            if port not in self.incoming:
                self.incoming[port] = self.machine.accepted(LOCAL, LOCAL, self.now)
            link = self.incoming[port]
        else:
            return
        (frame,) = FrameParser().feed(data)
        self.machine.message(link, frame, self.now)
        self.take()

    def take(self) -> None:
        out = self.machine.take()
        check(self.machine.state)
        for link, ip, port in out.dials:
            self.outgoing[port - BUS_OFFSET] = link
            self.machine.linked(link, LOCAL, ip, self.now)
        self.sent += [message for _, message in out.messages]
        for peer in self.machine.state.cluster.nodes.values():
            self.flags_seen.setdefault(peer.id, {})[peer.flags] = None


def test_original_nodes_join_us() -> None:
    replay = Replay()

    replay.run("addjob replicate 3")

    cluster = replay.machine.state.cluster
    assert sorted(cluster.nodes) == [SECOND, OURS, THIRD]
    assert [(cluster.nodes[id].port, cluster.nodes[id].flags) for id in (SECOND, THIRD)] == [
        (7732, 0),
        (7733, 0),
    ]
    assert len(cluster.reachable) == 2
    assert cluster.myself.ip == LOCAL


def test_an_original_node_that_dies_is_convicted_with_its_neighbours_vote() -> None:
    replay = Replay()

    replay.run("forget")

    assert Fail(THIRD) in replay.sent
    assert Fail(SECOND) not in replay.sent
    assert replay.machine.state.cluster.nodes[THIRD].flags == FAIL
    assert list(replay.flags_seen[SECOND]) == [0]


def test_an_original_node_that_was_forgotten_is_not_brought_back_by_gossip() -> None:
    replay = Replay()
    replay.run("async")
    replay.ask(b"CLUSTER", b"FORGET", THIRD)

    replay.flags_seen.clear()
    replay.run("end")

    assert sorted(replay.flags_seen) == [SECOND, OURS]
