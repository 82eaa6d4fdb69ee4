"""Links between whole nodes: bytes in pieces, over the shared network model."""

import random
from collections.abc import Callable

from disque_trio.driver.sessions import LinkSession
from disque_trio.node import Node
from disque_trio.sim.engines.batching import joined
from disque_trio.sim.engines.byte_links import ByteLinks, End, FramePacket
from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.links import Links
from disque_trio.sim.engines.heap.nodes import PORT, Host
from disque_trio.sim.engines.trio.hosts import NodeHost
from disque_trio.sim.engines.trio.hub import SimHub
from disque_trio.sim.model.network import Network
from disque_trio.sim.model.recorder import Recorder
from disque_trio.statemachine.base import NodeId
from disque_trio.statemachine.wording import Wording, wording
from disque_trio.wire.frames import FrameParser

BUS_PORT = PORT + 10_000


class SimLinks(Links):
    """All links of a run, in place of the heap engine's; also the `FrameObserver` of their frames.

    Messages of machines come here through their nodes, not through `dial` and `send`.
    """

    def __init__(
        self,
        engine: Engine,
        recorder: Recorder,
        network: Network,
        names: dict[NodeId, str],
        rng: random.Random,
    ) -> None:
        super().__init__(engine, recorder, network, names, 1)
        self.byte_links = ByteLinks(engine, network, self)
        self.rng = rng
        """Draws where streams are cut into pieces."""
        self._node_hosts: dict[int, NodeHost] = {}
        self._numbers: dict[str, int] = {}

    def add(self, host: Host) -> None:
        """Add a host that can be dialled."""
        assert isinstance(host, NodeHost)
        self._node_hosts[host.number] = host
        self._numbers[host.ip] = host.number
        self.byte_links.listen(host.number, self._welcome)

    def open(self, host: NodeHost, session: LinkSession, ip: str, port: int) -> "SimLinkPort":
        """A node dials."""
        assert host.hub is not None
        target = self._numbers.get(ip, 0) if port == BUS_PORT else 0
        link = SimLinkPort(self, host, host.hub, self.ip_of(target))
        link.session = session
        link.end = self.byte_links.dial(host.number, 0 if target == host.number else target, link)
        return link

    def _welcome(self, end: End) -> "SimLinkPort | None":
        host = self._node_hosts[end.node]
        if host.hub is None:
            return None
        link = SimLinkPort(self, host, host.hub, self.ip_of(end.far.node))
        link.end = end
        host.hub.put(link.accept)
        return link

    def ip_of(self, number: int) -> str:
        """The address of the node."""
        return self._node_hosts[number].ip if number else ""

    def crashed(self, host: Host) -> None:
        """The kernel ends the links of a process that is gone."""
        self.byte_links.crashed(host.number)

    def soon(self, act: Callable[[object], None]) -> None:
        """Call it when everything else of this moment has happened."""
        self._engine.later(0, act, None)

    def mended(self, source: int, target: int) -> None:
        """A cut or clog has ended."""
        self.byte_links.mended(source, target)

    def half_open(self, source: int, target: int, over: Callable[[], None]) -> bool:
        """As `Links.half_open`."""
        return self.byte_links.half_open(source, target, over)

    # FrameObserver.

    def sent(self, packet: FramePacket) -> None:
        """A frame leaves its node."""
        host = self._node_hosts[packet.source.node]
        self._sent = packet.ref = self._sent + 1
        packet.said = self._wording(packet.frame)
        packet.stamp = host.vector.tick()
        self._note("send", host, packet, packet.said.detail, packet.stamp)

    def received(self, packet: FramePacket) -> None:
        """A frame has arrived at its node."""
        host = self._node_hosts[packet.source.far.node]
        host.vector.join(packet.stamp)
        self._note("recv", host, packet, packet.said.detail, host.vector.tick())

    def lost(self, packet: FramePacket, why: str) -> None:
        """A frame will never arrive."""
        host = self._node_hosts[packet.source.node]
        self._note("lost", host, packet, why, host.vector.stamp())

    def _wording(self, frame: bytes) -> Wording:
        [message] = FrameParser().feed(frame)
        return wording(message.message, self._names)

    def _note(
        self, kind: str, host: NodeHost, packet: FramePacket, detail: str, stamp: tuple[int, ...]
    ) -> None:
        far = packet.source if packet.source.node != host.number else packet.source.far
        now, said = host.clock.now(self._engine.now), packet.said
        self._recorder.add(
            (
                self._engine.now, kind, host.name, said.job, said.queue, "", f"n{far.node}",
                said.name, detail, packet.ref, now.mono, now.wall, stamp,
            )
        )  # fmt: skip


class SimLinkPort:
    """One end of a link: the node's `LinkPort`, and the `LinkHandler` of the byte link."""

    session: LinkSession
    end: End

    def __init__(self, links: SimLinks, host: NodeHost, hub: SimHub, far_ip: str) -> None:
        self._links = links
        self._host = host
        self._hub = hub
        self._far_ip = far_ip
        self._is_over = False
        self._batch: list[FramePacket] = []
        """Frames that have arrived at this moment, if messages travel in batches."""

    def accept(self, node: Node) -> None:
        """Tell the node that another one has dialled it."""
        self.session = node.accept_link(self, self._host.ip, self._far_ip)

    # LinkPort.

    def send(self, frames: list[bytes]) -> int:
        """Send whole frames."""
        if not self._hub.is_dead:
            self._host.write_rows()
            self.end.send(frames)
        return 0

    def hang_up(self) -> None:
        """Close at once."""
        self._is_over = True
        self.end.hang_up()

    # LinkHandler.

    def linked(self) -> None:
        """The dial has succeeded."""
        self._hub.put(self._link_up)

    def _link_up(self, node: Node) -> None:
        if not self._is_over:
            node.link_up(self.session, self._host.ip, self._far_ip)

    def receive(self, packet: FramePacket) -> None:
        """A frame has arrived."""
        if not self._links.network.gathers:
            self._put([packet], packet.frame)
            return
        if not self._batch:
            self._links.soon(self._put_batch)
        self._batch.append(packet)

    def _put_batch(self, _subject: object = None) -> None:
        batch, self._batch = self._batch, []
        if batch:
            frames = FrameParser().feed(b"".join([packet.frame for packet in batch]))
            self._put(batch, joined(frames))

    def _put(self, packets: list[FramePacket], data: bytes) -> None:
        """Give it to the node, sometimes in two pieces; the first is an input of its own."""
        rng = self._links.rng
        cut = rng.randrange(len(data)) if rng.random() < 0.5 else 0
        if cut:
            self._hub.put(lambda node: self._receive(node, data[:cut]))
        self._hub.put(lambda node: self._receive_end(node, packets, data[cut:]))

    def _receive(self, node: Node, data: bytes) -> None:
        if not self._is_over:
            node.link_received(self.session, data)

    def _receive_end(self, node: Node, packets: list[FramePacket], data: bytes) -> None:
        for packet in packets:
            if self._is_over:
                self._links.lost(packet, "closed")
            else:
                self._links.received(packet)
        self._receive(node, data)

    def ended(self) -> None:
        """The connection has ended, on either side."""
        self._put_batch()
        self._hub.put(self._link_lost)

    def _link_lost(self, node: Node) -> None:
        if not self._is_over:
            self._is_over = True
            node.link_lost(self.session)
