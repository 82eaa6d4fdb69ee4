"""Links between nodes, from the dial to the end, for all engines (docs/simulation.md).

A link carries frames: bytes, as real nodes write them, or objects, which cost less. The engines of
whole nodes connect simulated ports to links, the tcp engine the sockets of its proxies. The network
model decides when a frame arrives and how a cut affects it; the event heap holds frames in transit,
in virtual or in real time.
"""

from collections.abc import Callable, Iterable
from typing import Final, Protocol

import attrs

from disque_trio.sim.engines.events import Countdown, Engine
from disque_trio.sim.model.network import DIAL_WAITS, Channel, Connection, Network, Packet
from disque_trio.sim.model.vector_clocks import Stamp
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.messages import Frame
from disque_trio.statemachine.wording import Wording
from disque_trio.wire.frames import encode_frame, one_by_one

REFUSED_AFTER: Final[Micros] = 500
"""The time until a dial to an unknown address fails."""
_SILENCE: Final = Wording("")


class LinkHandler(Protocol):
    """Handles the events at one end of a connection."""

    def linked(self) -> None:
        """The dial has succeeded."""

    def receive(self, packet: "FramePacket") -> None:
        """A frame has arrived."""

    def ended(self) -> None:
        """The connection has ended, or the dial has failed; no call follows."""


class FrameObserver(Protocol):
    """Records sent and lost frames; handlers record received ones."""

    def sent(self, packet: "FramePacket") -> None:
        """The frame is sent: set its number, its stamp and its wording."""

    def lost(self, packet: "FramePacket", why: str) -> None:
        """The frame will never arrive."""


@attrs.define(eq=False)
class FramePacket(Packet):
    """A frame, as bytes or as an object; without one, the packet reports that the connection is up
    or has ended."""

    source: "End"
    frame: bytes | Frame | None = None
    is_last: bool = False
    # The observer sets the following three.
    ref: int = 0
    stamp: Stamp = ()
    wording: Wording = _SILENCE


@attrs.define(eq=False)
class End:
    """One end of a connection, at the node with this number."""

    links: "Links"
    node: int
    out: Channel
    far: "End" = attrs.field(init=False)
    handler: LinkHandler | None = None
    is_open: bool = False
    """Frames are sent; before that, `early` collects them."""
    is_closed: bool = False
    early: list[FramePacket] = attrs.Factory(list)
    over: Callable[[], None] | None = None
    """Called when this end closes, after its far end was half-opened."""

    def send(self, frames: Iterable[bytes]) -> None:
        """Send whole frames, in order."""
        self.links.send(self, frames)

    def hang_up(self) -> None:
        """End the connection; frames sent before still arrive."""
        self.links.hang_up(self)


class Links:
    """All connections among some nodes."""

    def __init__(self, engine: Engine, network: Network, observer: FrameObserver) -> None:
        self._engine = engine
        self._network = network
        self._observer = observer
        self._listeners: dict[int, Callable[[End], LinkHandler | None]] = {}
        self._ends: dict[End, None] = {}

    def listen(self, node: int, welcome: Callable[[End], LinkHandler | None]) -> None:
        """Set the node's listener: `welcome` returns the handler of its end of a new connection, or
        None if the node is down."""
        self._listeners[node] = welcome

    # Dialling.

    def dial(self, source: int, target: int, handler: LinkHandler) -> End:
        """Open a connection, which succeeds or fails after a while. Target 0 is no node."""
        connection = self._network.connect(source, target or source)
        near = End(self, source, connection.forth, handler=handler)
        near.far = End(self, target, connection.back)
        near.far.far = near
        self._ends[near] = None
        if target:
            self._engine.later(
                self._network.latency(near.out.path), self._try_to_connect, (near, 0)
            )
        else:
            self._engine.later(REFUSED_AFTER, self._refused, near)
        return near

    def _try_to_connect(self, dial: tuple[End, int]) -> None:
        near, attempts = dial
        if near.is_closed:
            return
        if not self._network.can_connect(near.out.connection):
            if attempts < len(DIAL_WAITS):
                self._engine.later(DIAL_WAITS[attempts], self._try_to_connect, (near, attempts + 1))
            else:
                self._refused(near)
            return
        far = near.far
        far.handler = self._listeners[far.node](far)
        if far.handler is None:
            self._engine.later(self._network.latency(far.out.path), self._refused, near)
            return
        self._ends[far] = None
        far.is_open = True
        self._submit(FramePacket(far.out, True, far))

    def _refused(self, near: End) -> None:
        if not near.is_closed:
            self._close(near)

    # Sending.

    def send(self, end: End, frames: Iterable[bytes]) -> None:
        """Send frames; a connection that has ended loses them without a row.

        Batches are split, because rules, rows and checkers handle single messages.
        """
        for frame in [single for each in frames for single in one_by_one(each)]:
            self.pass_on(end, frame, _SILENCE)

    def pass_on(self, end: End, frame: bytes | Frame, wording: Wording) -> None:
        """Send one frame. If its wording is unknown, the observer sets it."""
        if end.is_closed:
            return
        out, network = end.out, self._network
        packet = FramePacket(out, False, end, frame, False, 0, (), wording)
        self._observer.sent(packet)
        if not end.is_open:
            end.early.append(packet)
        elif network.is_plain and not out.path.rules:
            # A fast path of `_submit` for most packets.
            engine = self._engine
            engine.at(network.arrival(engine.now, out), self._arrive, packet)
        else:
            self._submit(packet)

    def _submit(self, packet: FramePacket) -> None:
        network, engine, frame = self._network, self._engine, packet.frame
        size = 0
        if network.needs_sizes and frame is not None:
            size = len(frame if isinstance(frame, bytes) else encode_frame(frame))
        arrivals = network.submit(engine.now, packet, packet.wording.name, size)
        for time in arrivals:
            engine.at(time, self._arrive, packet)
        if not arrivals:
            self._lose(packet, "dropped")

    def _arrive(self, packet: FramePacket) -> None:
        channel = packet.channel
        if channel.path.is_troubled or channel.held:
            verdict = self._network.admit(self._engine.now, packet)
            self._watch(channel.connection)
            if not verdict:
                if verdict is False:
                    self._lose(packet, "cut")
                return
        end = packet.source.far
        if end.is_closed or end.handler is None:
            self._arrive_too_late(end, packet)
        elif packet.frame is not None:
            end.handler.receive(packet)
        elif packet.is_last:
            self._close(end)
        else:
            self._open(end, end.handler)

    def _open(self, end: End, handler: LinkHandler) -> None:
        end.is_open = True
        handler.linked()
        early, end.early = end.early, []
        for kept in early:
            self._submit(kept)

    def _arrive_too_late(self, end: End, packet: FramePacket) -> None:
        """Handle a packet that arrives at a closed end."""
        if packet.frame is not None:
            self._lose(packet, "closed")
        elif not packet.is_last:
            self._send_end(end)

    def _lose(self, packet: FramePacket, why: str) -> None:
        if packet.frame is not None:
            self._observer.lost(packet, why)

    # Ending.

    def hang_up(self, end: End) -> None:
        """End a connection from this side, whether it is up or not."""
        if end.is_closed:
            return
        was_up = end.is_open or end.far.is_open
        self._forget(end)
        if was_up:
            self._send_end(end)

    def _send_end(self, end: End) -> None:
        self._submit(FramePacket(end.out, True, end, is_last=True))

    def _forget(self, end: End) -> None:
        end.is_closed = True
        end.is_open = False
        self._ends.pop(end, None)
        early, end.early = end.early, []
        for packet in early:
            self._lose(packet, "never linked")
        if end.over is not None:
            end.over()

    def _close(self, end: End) -> None:
        """Close this end, and report that to its handler."""
        self._forget(end)
        if end.handler is not None:
            end.handler.ended()

    def half_open(self, source: int, target: int, over: Callable[[], None]) -> bool:
        """End the target's ends of all connections between the two, without a notice to the source.
        `over` is called when the source has ended the connections that it dialled. Return False if
        there are none."""
        ends = [
            end
            for end in self._ends
            if (end.node, end.far.node) == (source, target) and end.is_open and end.far.is_open
        ]
        # Nodes send messages about jobs only on links that they have dialled.
        dialled = [end for end in ends if end.out.connection.dialler == source]
        last = Countdown(len(dialled), over)
        for end in dialled:
            end.over = last.one_less
        for end in ends:
            self._close(end.far)
        return bool(dialled)

    def crashed(self, node: int) -> None:
        """End the connections of a process that has ended, as the kernel does."""
        for end in [end for end in self._ends if end.node == node]:
            end.handler = None
            self.hang_up(end)

    # Cuts.

    def _watch(self, connection: Connection) -> None:
        due = None if connection.is_watched else self._network.stall_due(connection)
        if due is not None:
            connection.is_watched = True
            self._engine.at(due, self._look, connection)

    def _look(self, connection: Connection) -> None:
        """Break the connection if a packet has waited for too long."""
        connection.is_watched = False
        due = self._network.stall_due(connection)
        if due is not None and due > self._engine.now:
            self._watch(connection)
        elif due is not None:
            self._break(connection)

    def _break(self, connection: Connection) -> None:
        for end in [end for end in self._ends if end.out.connection is connection]:
            self._close(end)
        for channel in (connection.forth, connection.back):
            for packet in self._network.abandon(channel):
                assert isinstance(packet, FramePacket)
                self._lose(packet, "broken")

    def mended(self, source: int, target: int) -> None:
        """A cut or clog has ended: deliver the packets that it delayed."""
        for time, channel in self._network.flushes(self._engine.now, source, target):
            self._engine.at(time, self._flush, channel)

    def _flush(self, channel: Channel) -> None:
        for packet in self._network.flush(channel):
            assert isinstance(packet, FramePacket)
            self._arrive(packet)
