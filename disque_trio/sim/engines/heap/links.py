"""Links between simulated nodes, from the dial to the end (docs/simulation.md).

Both ends of a connection are `End`s. What one end sends travels as a `MessagePacket`, which is a
row when it is sent (``send``), received (``recv``) or found lost (``lost``).
"""

from collections.abc import Callable, Sequence
from typing import Final

import attrs

from disque_trio.sim.engines.batching import joined
from disque_trio.sim.engines.events import Countdown, Engine
from disque_trio.sim.engines.heap.nodes import PORT, Host
from disque_trio.sim.model.network import DIAL_WAITS, Channel, Network, Packet
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.address import BUS_OFFSET
from disque_trio.statemachine.base import LinkId, NodeId
from disque_trio.statemachine.messages import Frame, Many, Message, singles
from disque_trio.statemachine.wording import Wording, wording
from disque_trio.wire.frames import FrameParser, encode

REFUSED_AFTER: Final[Micros] = 500
"""How long a dial to an unknown address takes to fail."""


class CodecError(Exception):
    """A message has changed on its way through the codec."""


@attrs.define(eq=False)
class End:
    """A node's end of a connection. `link` is 0 until the node has accepted it."""

    host: Host
    out: Channel
    link: LinkId = 0
    far: "End" = attrs.field(init=False)
    is_open: bool = False
    """Messages may be sent; before, they are kept in `early`."""
    is_closed: bool = False
    early: "list[MessagePacket]" = attrs.Factory(list)
    batch: "list[MessagePacket]" = attrs.Factory(list)
    """Packets that have arrived at this moment, if messages travel in batches."""
    over: Callable[[], None] | None = None
    """Called when this end closes, after its far end has vanished."""


@attrs.define(eq=False)
class MessagePacket(Packet):
    """A message, or the fact that the connection is up (`frame` None) or has ended (`is_last`)."""

    to: End
    said: Wording
    frame: Frame | None
    ref: int
    stamp: tuple[int, ...]
    is_last: bool = False


_LINKED: Final = Wording("linked")
_ENDED: Final = Wording("ended")


class Links:
    """All connections of a run."""

    def __init__(
        self,
        engine: Engine,
        recorder: Recorder,
        network: Network,
        names: dict[NodeId, str],
        codec_every: int,
    ) -> None:
        self._engine = engine
        self._recorder = recorder
        self.network = network
        self._names = names
        self._codec_every = codec_every
        self._sent = 0
        self._hosts: dict[str, Host] = {}
        self._links: dict[Host, dict[LinkId, End]] = {}
        self._ends: dict[Host, dict[End, None]] = {}
        """The same, with ends that the process has not accepted yet."""

    def add(self, host: Host) -> None:
        """Add a host that can be dialled."""
        self._hosts[host.ip] = host
        self._links[host] = {}
        self._ends[host] = {}

    # Dialling.

    def dial(self, host: Host, link: LinkId, ip: str, port: int) -> None:
        """Open a connection, which takes a moment, or fails after one."""
        target = self._hosts.get(ip)
        if target is None or port != PORT + BUS_OFFSET:
            target = host
        connection = self.network.connect(host.number, target.number)
        near, far = End(host, connection.forth, link), End(target, connection.back)
        near.far, far.far = far, near
        self._links[host][link] = near
        self._ends[host][near] = None
        if target is host:
            self._engine.later(REFUSED_AFTER, self._refused, near)
        else:
            self._engine.later(self.network.latency(near.out.path), self._try_to_connect, (near, 0))

    def _try_to_connect(self, dial: tuple[End, int]) -> None:
        near, attempts = dial
        far = near.far
        connection = near.out.connection
        if near.is_closed:
            return
        if not self.network.can_connect(connection):
            if attempts < len(DIAL_WAITS):
                self._engine.later(DIAL_WAITS[attempts], self._try_to_connect, (near, attempts + 1))
            else:
                self._unlink(near)
        elif far.host.machine is None:
            self._engine.later(self.network.latency(far.out.path), self._refused, near)
        else:
            far.is_open = True
            self._ends[far.host][far] = None
            far.host.give(self._accept, far)
            self._submit(MessagePacket(far.out, True, near, _LINKED, None, 0, ()))

    def _refused(self, near: End) -> None:
        if not near.is_closed:
            self._unlink(near)

    def _accept(self, far: End) -> None:
        machine = far.host.machine
        if machine is not None:
            far.link = machine.accepted(far.host.ip, far.far.host.ip, far.host.now)
            self._links[far.host][far.link] = far

    # Sending.

    def send(self, host: Host, links: Sequence[LinkId], message: Message) -> None:
        """Send a message on links. A link that has just ended loses it without a row."""
        machine = host.machine
        if machine is None:
            return
        if isinstance(message, Many):
            # Rules, rows and checkers deal with single messages.
            for single in singles(message):
                self.send(host, links, single)
            return
        state = machine.state
        myself = state.cluster.myself
        frame = Frame(myself.id, PORT, myself.flags, message, state.config.capabilities)
        said = wording(message, self._names)
        name, job, queue, detail = said.name, said.job, said.queue, said.detail
        mono, wall, time, sender = host.now.mono, host.now.wall, self._engine.now, host.name
        add, ends, tick = self._recorder.add, self._links[host], host.vector.tick
        at, arrival, arrive = self._engine.at, self.network.arrival, self._arrive
        is_plain = self.network.is_plain
        for link in links:
            end = ends.get(link)
            if end is None:
                continue
            self._sent = ref = self._sent + 1
            if not ref % self._codec_every:
                _check_codec(frame)
            stamp = tick()
            far = end.far
            add(
                (
                    time, "send", sender, job, queue, "", far.host.name, name, detail, ref,
                    mono, wall, stamp,
                )
            )  # fmt: skip
            packet = MessagePacket(end.out, False, far, said, frame, ref, stamp)
            if is_plain and end.is_open and not end.out.path.rules:
                # As `_submit` does; most packets go this way.
                at(arrival(time, end.out), arrive, packet)
            elif end.is_open:
                self._submit(packet)
            else:
                end.early.append(packet)

    def _submit(self, packet: MessagePacket) -> None:
        network, engine = self.network, self._engine
        size = 0
        if network.needs_sizes and packet.frame is not None:
            size = len(_bytes(packet.frame))
        arrivals = network.submit(engine.now, packet, packet.said.name, size)
        for time in arrivals:
            engine.at(time, self._arrive, packet)
        if not arrivals:
            self._lose(packet, "dropped")

    def _arrive(self, packet: MessagePacket) -> None:
        channel = packet.channel
        if channel.path.is_troubled or channel.held:
            verdict = self.network.admit(self._engine.now, packet)
            self._watch(packet.to)
            if not verdict:
                if verdict is False:
                    self._lose(packet, "cut")
                return
        host = packet.to.host
        if host.machine is None:
            self._lose(packet, "crash")
        elif self.network.gathers:
            self._gather(packet)
        else:
            host.give(self._receive, packet)

    def _gather(self, packet: MessagePacket) -> None:
        """Let it wait for those that arrive at the same moment."""
        end = packet.to
        if packet.frame is None:
            self._give_batch(end)
            end.host.give(self._receive, packet)
            return
        if not end.batch:
            self._engine.later(0, self._give_batch, end)
        end.batch.append(packet)

    def _give_batch(self, end: End) -> None:
        batch, end.batch = end.batch, []
        if end.host.machine is None:
            for packet in batch:
                self._lose(packet, "crash")
        elif batch:
            end.host.give(self._receive_batch, batch)

    def _receive_batch(self, batch: list[MessagePacket]) -> None:
        """Give them to the machine as its node reads them."""
        end = batch[0].to
        machine = end.host.machine
        if end.is_closed or machine is None:
            for packet in batch:
                self._lose(packet, "closed")
            return
        for packet in batch:
            self._note_received(packet)
        written = joined([packet.frame for packet in batch if packet.frame is not None])
        for frame in FrameParser().feed(written):
            machine.message(end.link, frame, end.host.now)

    def _receive(self, packet: MessagePacket) -> None:
        """Give it to the machine."""
        end, frame = packet.to, packet.frame
        host = end.host
        machine = host.machine
        if end.is_closed or machine is None:
            self._lose(packet, "closed")
        elif frame is not None:
            self._note_received(packet)
            machine.message(end.link, frame, host.now)
        elif packet.is_last:
            self._forget(end)
            machine.unlinked(end.link, host.now)
        else:
            end.is_open = True
            machine.linked(end.link, host.ip, end.far.host.ip, host.now)
            early, end.early = end.early, []
            for kept in early:
                self._submit(kept)

    def _note_received(self, packet: MessagePacket) -> None:
        said, host = packet.said, packet.to.host
        now = host.now
        self._recorder.add(
            (
                self._engine.now, "recv", host.name, said.job, said.queue, "",
                packet.to.far.host.name, said.name, said.detail, packet.ref, now.mono, now.wall,
                host.vector.learn(packet.stamp),
            )
        )  # fmt: skip

    def _lose(self, packet: MessagePacket, why: str) -> None:
        """It will never arrive: write a row if it is a message."""
        if packet.frame is None:
            return
        said, host = packet.said, packet.to.far.host
        now = host.clock.now(self._engine.now)
        self._recorder.add(
            (
                self._engine.now, "lost", host.name, said.job, said.queue, "", packet.to.host.name,
                said.name, why, packet.ref, now.mono, now.wall, host.vector.stamp(),
            )
        )  # fmt: skip

    # Ending.

    def hang_up(self, host: Host, link: LinkId) -> None:
        """The machine ends a link; messages that it has sent still arrive."""
        end = self._links[host].get(link)
        if end is not None:
            self._end(end)

    def _end(self, end: End) -> None:
        was_open = end.is_open
        self._forget(end)
        if was_open or end.far.is_open:
            self._submit(MessagePacket(end.out, True, end.far, _ENDED, None, 0, (), is_last=True))

    def _forget(self, end: End) -> None:
        end.is_closed = True
        end.is_open = False
        self._links[end.host].pop(end.link, None)
        self._ends[end.host].pop(end, None)
        for packet in end.early:
            self._lose(packet, "never linked")
        end.early.clear()
        if end.over is not None:
            end.over()

    def _unlink(self, end: End) -> None:
        """Tell the machine that a connection has ended, or has never come up."""
        self._forget(end)
        end.host.give(self._tell, end)

    def _tell(self, end: End) -> None:
        machine = end.host.machine
        if machine is not None and end.link:
            machine.unlinked(end.link, end.host.now)

    def half_open(self, source: int, target: int, over: Callable[[], None]) -> bool:
        """End the target's ends of all connections between the two, without telling the source.

        `over` is called once the source has ended those that it has dialled. False if it has none.
        """
        ends = [
            end
            for host, ends in self._ends.items()
            if host.number == source
            for end in ends
            if end.far.host.number == target and end.is_open and end.far.is_open
        ]
        # Nodes send messages about jobs on links that they have dialled only.
        dialled = [end for end in ends if end.out.connection.dialler == source]
        last = Countdown(len(dialled), over)
        for end in dialled:
            end.over = last.one_less
        for end in ends:
            self._unlink(end.far)
        return bool(dialled)

    def crashed(self, host: Host) -> None:
        """The kernel ends the connections of a process that is gone."""
        for end in list(self._ends[host]):
            self._end(end)

    # Cuts.

    def _watch(self, end: End) -> None:
        connection = end.out.connection
        due = None if connection.is_watched else self.network.stall_due(connection)
        if due is not None:
            connection.is_watched = True
            self._engine.at(due, self._look, end)

    def _look(self, end: End) -> None:
        """Break the connection if it has waited for too long."""
        connection = end.out.connection
        connection.is_watched = False
        due = self.network.stall_due(connection)
        if due is not None and due > self._engine.now:
            self._watch(end)
        elif due is not None:
            self._break(end)

    def _break(self, end: End) -> None:
        for one in (end, end.far):
            if not one.is_closed:
                self._unlink(one)
            for packet in self.network.abandon(one.out):
                assert isinstance(packet, MessagePacket)
                self._lose(packet, "broken")

    def mended(self, source: int, target: int) -> None:
        """A cut or clog has ended: deliver the packets that were kept."""
        for time, channel in self.network.flushes(self._engine.now, source, target):
            self._engine.at(time, self._flush, channel)

    def _flush(self, channel: Channel) -> None:
        for packet in self.network.flush(channel):
            assert isinstance(packet, MessagePacket)
            self._arrive(packet)


def _bytes(frame: Frame) -> bytes:
    return encode(frame.sender, frame.port, frame.flags, frame.message, frame.capabilities)


def _check_codec(frame: Frame) -> None:
    """Encode and decode the frame; raise `CodecError` if it changes."""
    parser = FrameParser()
    seen = parser.feed(_bytes(frame))
    if seen != [frame] or parser.error is not None:
        raise CodecError(f"sent {frame}, received {seen} {parser.error or ''}")
