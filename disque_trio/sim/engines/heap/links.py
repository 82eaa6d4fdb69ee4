"""Links between whole nodes: their ports, and the rows of the frames on them."""

import random
from collections.abc import Callable, Sequence
from itertools import groupby

import attrs

from disque_trio.driver.sessions import LinkSession
from disque_trio.node import Node
from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.node_hosts import NodeHost, SimEventLoop
from disque_trio.sim.engines.heap.nodes import PORT
from disque_trio.sim.engines.links import End, FramePacket, Links
from disque_trio.sim.model.network import Network
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.model.vector_clocks import Stamp
from disque_trio.statemachine.address import BUS_OFFSET
from disque_trio.statemachine.base import LinkId, NodeId, Now, Spilled
from disque_trio.statemachine.messages import Frame, ReplJob, YourJobs
from disque_trio.statemachine.wording import wording
from disque_trio.wire.batches import part_of
from disque_trio.wire.frames import FrameParser, encode, encode_frame, encode_parts


class CodecError(Exception):
    """A message has changed in the codec."""


def whole_bodies(message: ReplJob | YourJobs) -> ReplJob | YourJobs:
    """Return the message as it arrives: spilled bodies are read when it is sent."""
    if not any(isinstance(copy.body, Spilled) for copy in message.copies):
        return message
    copies = tuple([attrs.evolve(copy, body=bytes(copy.body)) for copy in message.copies])
    return attrs.evolve(message, copies=copies)


def _check_codec(frame: Frame) -> None:
    """Encode and decode the frame; raise `CodecError` if it changes."""
    seen = FrameParser().feed(encode_frame(frame))
    if seen != [frame]:
        raise CodecError(f"sent {frame}, received {seen}")


def joined(frames: Sequence[Frame]) -> bytes:
    """Return frames of one sender as its node writes them: in batches, where the messages allow
    it."""
    written: list[bytes] = []
    for is_batch, run in groupby(frames, _may_join):
        some = list(run)
        if is_batch and len(some) > 1:
            parts = [part for frame in some if (part := part_of(frame.message)) is not None]
            written += encode_parts(some[0].sender, some[0].port, some[0].flags, parts)
        else:
            written += [encode(*attrs.astuple(frame, recurse=False)) for frame in some]
    return b"".join(written)


def _may_join(frame: Frame) -> bool:
    return part_of(frame.message) is not None


class NodeLinks:
    """All links of a run; also the `FrameObserver` of their frames."""

    def __init__(
        self,
        engine: Engine,
        recorder: Recorder,
        network: Network,
        names: dict[NodeId, str],
        rng: random.Random,
        checks_every: int,
    ) -> None:
        """One frame in `checks_every` that is passed as an object must survive the codec."""
        self._engine = engine
        self._recorder = recorder
        self.network = network
        self._names = names
        self.links = Links(engine, network, self)
        self.rng = rng
        """Draws the places where streams are split."""
        self._sent = self._passed = 0
        self._checks_every = checks_every
        self._hosts: dict[int, NodeHost] = {}
        self._numbers: dict[str, int] = {}
        self._ports: dict[int, dict[LinkId, SimLinkPort]] = {}

    def add(self, host: NodeHost) -> None:
        """Add a host that other nodes can dial."""
        self._hosts[host.number] = host
        self._numbers[host.ip] = host.number
        self._ports[host.number] = {}
        self.links.listen(host.number, self._welcome)

    def open(self, host: NodeHost, session: LinkSession, ip: str, port: int) -> "SimLinkPort":
        """A node dials."""
        assert host.event_loop is not None, "only a process dials"
        target = self._numbers.get(ip, 0) if port == PORT + BUS_OFFSET else 0
        link = SimLinkPort(self, host, host.event_loop, self._ip_of(target))
        self.take(link, session)
        link.end = self.links.dial(host.number, 0 if target == host.number else target, link)
        return link

    def _welcome(self, end: End) -> "SimLinkPort | None":
        host = self._hosts[end.node]
        if host.event_loop is None:
            return None
        link = SimLinkPort(self, host, host.event_loop, self._ip_of(end.far.node))
        link.end = end
        host.event_loop.put(link.accept, None)
        return link

    def take(self, link: "SimLinkPort", session: LinkSession) -> None:
        """Record the node's session for the link."""
        link.session = session
        self._ports[link.host.number][session.link] = link

    def _ip_of(self, number: int) -> str:
        return self._hosts[number].ip if number else ""

    # For the node.

    def pass_on(self, host: NodeHost, targets: Sequence[LinkId], frame: Frame) -> None:
        """Send a frame on these links as an object."""
        event_loop = host.event_loop
        if event_loop is None:
            return
        host.write_rows()
        message = frame.message
        if isinstance(message, ReplJob | YourJobs):
            frame.message = whole_bodies(message)
        self._passed += 1
        if not self._passed % self._checks_every:
            _check_codec(frame)
        part = wording(message, self._names)
        ports, pass_on = self._ports[host.number], self.links.pass_on
        for target in targets:
            port = ports.get(target)
            if port is not None:
                pass_on(port.end, frame, part)

    def soon(self, act: Callable[[object], None]) -> None:
        """Call `act` after all other events of this moment."""
        self._engine.later(0, act, None)

    def forget(self, link: "SimLinkPort") -> None:
        """Forget a link that has ended."""
        if self._hosts[link.host.number].event_loop is link.event_loop:
            self._ports[link.host.number].pop(link.session.link, None)

    def crashed(self, host: NodeHost) -> None:
        """End the links of a process that has ended, as the kernel does."""
        self._ports[host.number] = {}
        self.links.crashed(host.number)

    # FrameObserver.

    def sent(self, packet: FramePacket) -> None:
        """A frame leaves its node."""
        host = self._hosts[packet.source.node]
        self._sent = packet.ref = self._sent + 1
        if isinstance(packet.frame, bytes):
            [frame] = FrameParser().feed(packet.frame)
            if encode_frame(frame) != packet.frame:
                raise CodecError(f"{frame} is not what was sent")
            packet.wording = wording(frame.message, self._names)
        packet.stamp = host.vector.tick()
        self._note("send", host, packet, packet.wording.detail, packet.stamp, host.now)

    def received(self, packet: FramePacket) -> None:
        """A frame has arrived at its node."""
        host = self._hosts[packet.source.far.node]
        stamp = host.vector.learn(packet.stamp)
        self._note("recv", host, packet, packet.wording.detail, stamp, host.now)

    def lost(self, packet: FramePacket, why: str) -> None:
        """A frame will never arrive."""
        host = self._hosts[packet.source.node]
        now = host.clock.now(self._engine.now)
        self._note("lost", host, packet, why, host.vector.stamp(), now)

    def _note(
        self,
        kind: str,
        host: NodeHost,
        packet: FramePacket,
        detail: str,
        stamp: Stamp,
        now: Now,
    ) -> None:
        source, part = packet.source, packet.wording
        far = source if kind == "recv" else source.far
        self._recorder.add(
            (
                self._engine.now, kind, host.name, part.job, part.queue, "", f"n{far.node}",
                part.name, detail, packet.ref, now.mono, now.wall, stamp,
            )
        )  # fmt: skip


class SimLinkPort:
    """One end of a link: the node's `LinkPort`, and the `LinkHandler` of the connection."""

    session: LinkSession
    end: End

    def __init__(
        self, links: NodeLinks, host: NodeHost, event_loop: SimEventLoop, far_ip: str
    ) -> None:
        self._links = links
        self.host = host
        self.event_loop = event_loop
        self._far_ip = far_ip
        self._is_over = False
        self._batch: list[FramePacket] = []
        """Frames that have arrived at this moment, if messages travel in batches."""

    def accept(self, node: Node, _subject: object) -> None:
        """Report to the node that another one has dialled it."""
        self._links.take(self, node.accept_link(self, self.host.ip, self._far_ip))

    # LinkPort.

    def send(self, frames: list[bytes]) -> int:
        """Send whole frames."""
        if not self.event_loop.is_dead:
            self.host.write_rows()
            self.end.send(frames)
        return 0

    def hang_up(self) -> None:
        """Close at once."""
        self._is_over = True
        self._links.forget(self)
        self.end.hang_up()

    # LinkHandler.

    def linked(self) -> None:
        """The dial has succeeded."""
        self.event_loop.put(self._link_up, None)

    def _link_up(self, node: Node, _subject: object) -> None:
        if not self._is_over:
            node.link_up(self.session, self.host.ip, self._far_ip)

    def receive(self, packet: FramePacket) -> None:
        """A frame has arrived."""
        if self._links.network.gathers:
            if not self._batch:
                self._links.soon(self._put_batch)
            self._batch.append(packet)
        elif isinstance(packet.frame, bytes):
            self._put_bytes([packet], packet.frame)
        else:
            self.event_loop.put(self._receive_frame, packet)

    def _put_batch(self, _subject: object = None) -> None:
        """Give the node all frames of this moment, as their sender writes them."""
        batch, self._batch = self._batch, []
        if batch:
            self._put_bytes(batch, joined([_frame_of(packet) for packet in batch]))

    def _put_bytes(self, packets: list[FramePacket], data: bytes) -> None:
        """Give the node bytes, sometimes in two pieces. Both pieces of a single frame are inputs of
        their own."""
        rng = self._links.rng
        cut = rng.randrange(len(data)) if rng.random() < 0.5 else 0
        pieces = [data[:cut], data[cut:]] if cut else [data]
        if len(packets) == 1 and cut:
            self.event_loop.put(self._receive, pieces.pop(0))
        # Some of several frames may be complete in the first piece.
        self.event_loop.put(self._receive_frames, (packets, pieces))

    def _receive_frame(self, node: Node, packet: FramePacket) -> None:
        if self._is_over:
            self._links.lost(packet, "closed")
        else:
            self._links.received(packet)
            assert isinstance(packet.frame, Frame), "bytes are received by `_receive`"
            node.link_passed(self.session, packet.frame)

    def _receive(self, node: Node, data: bytes) -> None:
        if not self._is_over:
            node.link_received(self.session, data)

    def _receive_frames(self, node: Node, came: tuple[list[FramePacket], list[bytes]]) -> None:
        packets, pieces = came
        for packet in packets:
            if self._is_over:
                self._links.lost(packet, "closed")
            else:
                self._links.received(packet)
        for data in pieces:
            self._receive(node, data)

    def ended(self) -> None:
        """The connection has ended, on either side."""
        self._put_batch()
        self.event_loop.put(self._link_lost, None)

    def _link_lost(self, node: Node, _subject: object) -> None:
        if not self._is_over:
            self._is_over = True
            self._links.forget(self)
            node.link_lost(self.session)


def _frame_of(packet: FramePacket) -> Frame:
    if isinstance(packet.frame, bytes):
        [frame] = FrameParser().feed(packet.frame)
        return frame
    assert packet.frame is not None, "control packets are no input"
    return packet.frame
