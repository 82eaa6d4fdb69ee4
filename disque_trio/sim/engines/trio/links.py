"""Links between real shells: bytes in pieces, over the shared network model."""

import random
from collections.abc import Callable

from disque_trio.driver.sessions import LinkSession
from disque_trio.node import Node
from disque_trio.sim.engines.byte_links import Cables, End, Parcel
from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.links import Wires
from disque_trio.sim.engines.heap.nodes import PORT, Host
from disque_trio.sim.engines.trio.hosts import NodeHost
from disque_trio.sim.engines.trio.hub import SimHub
from disque_trio.sim.model.network import Network
from disque_trio.sim.model.recorder import Recorder
from disque_trio.statemachine.base import NodeId
from disque_trio.tracing.wording import Wording, wording
from disque_trio.wire.frames import FrameParser

BUS_PORT = PORT + 10_000


class ShellLinks(Wires):
    """All links of a run; also the `Witness` of what goes over them.

    It stands where `Wires` do in the heap engine. What machines say comes here through their
    shells, not through `dial` and `send`.
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
        self.cables = Cables(engine, network, self)
        self.rng = rng
        """Decides where streams are cut into pieces."""
        self._shells: dict[int, NodeHost] = {}
        self._numbers: dict[str, int] = {}

    def add(self, host: Host) -> None:
        """One more place that can be dialled."""
        assert isinstance(host, NodeHost)
        self._shells[host.number] = host
        self._numbers[host.ip] = host.number
        self.cables.open_door(host.number, self._welcome)

    def open(self, host: NodeHost, session: LinkSession, ip: str, port: int) -> "ShellLink":
        """A node dials."""
        assert host.hub is not None
        target = self._numbers.get(ip, 0) if port == BUS_PORT else 0
        link = ShellLink(self, host, host.hub, self.ip_of(target))
        link.session = session
        link.end = self.cables.dial(host.number, 0 if target == host.number else target, link)
        return link

    def _welcome(self, end: End) -> "ShellLink | None":
        host = self._shells[end.node]
        if host.hub is None:
            return None
        link = ShellLink(self, host, host.hub, self.ip_of(end.far.node))
        link.end = end
        host.hub.put(link.accept)
        return link

    def ip_of(self, number: int) -> str:
        """Where the node is."""
        return self._shells[number].ip if number else ""

    def crashed(self, host: Host) -> None:
        """The kernel ends the links of a process that is gone."""
        self.cables.crashed(host.number)

    def mended(self, source: int, target: int) -> None:
        """A cut or clog has ended."""
        self.cables.mended(source, target)

    def half_open(self, source: int, target: int, over: Callable[[], None]) -> bool:
        """End the target's ends of all connections between the two without a word to the source."""
        return self.cables.half_open(source, target, over)

    # Witness.

    def sent(self, parcel: Parcel) -> None:
        """A frame leaves its node."""
        host = self._shells[parcel.source.node]
        self._sent = parcel.ref = self._sent + 1
        parcel.said = self._wording(parcel.frame)
        parcel.stamp = host.vector.tick()
        self._note("send", host, parcel, parcel.said.detail, parcel.stamp)

    def received(self, parcel: Parcel) -> None:
        """A frame has come to its node."""
        host = self._shells[parcel.source.far.node]
        host.vector.join(parcel.stamp)
        self._note("recv", host, parcel, parcel.said.detail, host.vector.tick())

    def lost(self, parcel: Parcel, why: str) -> None:
        """A frame will never arrive."""
        host = self._shells[parcel.source.node]
        self._note("lost", host, parcel, why, host.vector.stamp())

    def _wording(self, frame: bytes) -> Wording:
        [message] = FrameParser().feed(frame)
        return wording(message.message, self._names)

    def _note(
        self, kind: str, host: NodeHost, parcel: Parcel, detail: str, stamp: tuple[int, ...]
    ) -> None:
        far = parcel.source if parcel.source.node != host.number else parcel.source.far
        now, said = host.clock.now(self._engine.now), parcel.said
        self._recorder.add(
            (
                self._engine.now, kind, host.name, said.job, said.queue, "", f"n{far.node}",
                said.name, detail, parcel.ref, now.mono, now.wall, stamp,
            )
        )  # fmt: skip


class ShellLink:
    """One end: the `LinkPort` of a node, and the `Plug` of a cable."""

    session: LinkSession
    end: End

    def __init__(self, links: ShellLinks, host: NodeHost, hub: SimHub, far_ip: str) -> None:
        self._links = links
        self._host = host
        self._hub = hub
        self._far_ip = far_ip
        self._is_over = False

    def accept(self, node: Node) -> None:
        """The node learns that somebody has dialled it."""
        self.session = node.accept_link(self, self._host.ip, self._far_ip)

    # LinkPort.

    def send(self, frames: list[bytes]) -> int:
        """Send whole frames."""
        if not self._hub.is_dead:
            self._host.tell()
            self.end.send(frames)
        return 0

    def hang_up(self) -> None:
        """Close at once."""
        self._is_over = True
        self.end.hang_up()

    # Plug.

    def linked(self) -> None:
        """The dial has succeeded."""
        self._hub.put(self._link_up)

    def _link_up(self, node: Node) -> None:
        if not self._is_over:
            node.link_up(self.session, self._host.ip, self._far_ip)

    def receive(self, parcel: Parcel) -> None:
        """A frame has arrived: now and then in two pieces, of which the first comes alone."""
        rng = self._links.rng
        cut = rng.randrange(len(parcel.frame)) if rng.random() < 0.5 else 0
        if cut:
            self._hub.put(lambda node: self._hear(node, parcel.frame[:cut]))
        self._hub.put(lambda node: self._hear_end(node, parcel, cut))

    def _hear(self, node: Node, data: bytes) -> None:
        if not self._is_over:
            node.link_received(self.session, data)

    def _hear_end(self, node: Node, parcel: Parcel, cut: int) -> None:
        if self._is_over:
            self._links.lost(parcel, "closed")
        else:
            self._links.received(parcel)
            self._hear(node, parcel.frame[cut:])

    def ended(self) -> None:
        """The connection is over, whoever ended it."""
        self._hub.put(self._link_lost)

    def _link_lost(self, node: Node) -> None:
        if not self._is_over:
            self._is_over = True
            node.link_lost(self.session)
