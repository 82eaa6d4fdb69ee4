"""The network model: latency, order, loss and cuts of links. All engines use it.

The engine opens a `Connection`, gives each `Packet` to `submit`, which returns arrival times, and
at each of these asks `admit` whether the packet is delivered. Times are true microseconds.

Links are directed. The state of a pair (source, target) is a `Path`; a connection has one `Channel`
in each direction.

*Stream* links behave like TCP. The packets of a channel stay in order, and each arrives once. While
a path is cut nothing arrives: packets in flight are kept, and delivered in one burst after the
heal, as by retransmission. A connection that has waited for `STALL` breaks, and the kept packets,
always the last that were sent, are lost. An idle connection survives any cut. A cut in one
direction lets data through in the other, but not its acknowledgements, so the connection breaks
after `STALL`, too.

*Hostile* links lose, repeat and reorder single packets, and lose packets that arrive during a cut.
A connection needs only the path to the acceptor, and never breaks.

A clog keeps packets back on both kinds of links, and breaks nothing.
"""

import random
from collections import deque
from typing import Final

import attrs

from disque_trio.sim.scenarios.plan import LinkPlan, Micros
from disque_trio.statemachine.messages import MESSAGES

STALL: Final[Micros] = 8_000_000
"""How long a connection waits for a cut to end."""
DIAL_WAITS: Final[tuple[Micros, ...]] = (1_000_000, 2_000_000, 4_000_000)
"""The waits of a dial after each attempt without an answer; after the last one it fails."""
MAX_BACKOFF: Final[Micros] = 1_000_000
"""The longest time from a heal to the start of retransmission."""
DETOUR: Final = 10
"""The additional delay of a reordered or repeated packet is up to this many times the longest fast
latency."""


@attrs.define(eq=False)
class Rule:
    """Messages that a fault loses: a share of those named `only`, up to `count`."""

    share: float = 1.0
    only: str = ""
    """The name of a message, as in rows; empty for any. An unknown name raises ValueError."""
    count: int = 0
    """0 is unlimited."""
    swallowed: int = 0

    def __attrs_post_init__(self) -> None:
        # This is no validator: the compiled form has none.
        if self.only and self.only not in MESSAGES:
            raise ValueError(f"only: there is no message {self.only!r}")


@attrs.define(eq=False)
class Path:
    """One direction between two nodes. Only `Network` changes it."""

    source: int
    target: int
    cuts: int = 0
    clogs: int = 0
    is_blocked: bool = False
    """Is the path cut or clogged?"""
    is_troubled: bool = False
    """Is the path blocked, or cannot acknowledgements return? Then `Network.admit` must be
    called."""
    delay: Micros = 0
    """An addition to every latency."""
    free_at: Micros = -(1 << 62)
    """When the last packet has been sent, if bandwidth is limited."""
    rules: list[Rule] = attrs.Factory(list)
    waiting: "dict[Channel, None]" = attrs.Factory(dict)
    """Channels with delayed packets, or with sent data that is not acknowledged."""


@attrs.define(eq=False)
class Channel:
    """One direction of one connection."""

    connection: "Connection"
    path: Path
    last: Micros = attrs.field(default=-(1 << 62), init=False)
    """When the last packet arrives; no later one overtakes it."""
    sent_at: Micros = attrs.field(default=-(1 << 62), init=False)
    """When the last packet was sent."""
    held: "deque[Packet]" = attrs.field(factory=deque, init=False)
    stalled_since: Micros | None = attrs.field(default=None, init=False)
    is_flushing: bool = attrs.field(default=False, init=False)
    """Delayed packets are about to arrive, with those that arrive until then."""


@attrs.define(eq=False)
class Connection:
    """One connection, from the dial to its end. `epoch` numbers them."""

    epoch: int
    dialler: int
    acceptor: int
    forth: Channel = attrs.field(init=False)
    """From the dialler to the acceptor."""
    back: Channel = attrs.field(init=False)
    is_watched: bool = attrs.field(default=False, init=False)
    """The engine will check `stall_due` in time."""


@attrs.define(eq=False)
class Packet:
    """A packet in flight; engines add its content.

    `is_control` marks packets that open or end a connection.
    """

    channel: Channel
    is_control: bool


class Network:
    """All paths among some nodes, numbered from 1."""

    def __init__(self, plan: LinkPlan, rng: random.Random) -> None:
        self._rng = rng
        self._paths: dict[tuple[int, int], Path] = {}
        self._epoch = 0
        self.use(plan)

    def use(self, plan: LinkPlan) -> None:
        """Follow this plan from now on."""
        self.plan = plan
        low, high = plan.latency.fast
        self._low, self._spread = low, high - low
        self.is_hostile = plan.model == "hostile"
        self.gathers = plan.batches
        self.needs_sizes = plan.bytes_per_second > 0
        """Does `submit` need the sizes of packets?"""
        self.is_plain = not (self.is_hostile or plan.latency.p_slow or self.needs_sizes)
        """Does every packet arrive once, after a fast latency, unless rules drop it?"""

    def become_reliable(self) -> None:
        """From now on, lose, repeat, reorder or slow down nothing without a fault."""
        latency = attrs.evolve(self.plan.latency, p_slow=0.0)
        plan = attrs.evolve(self.plan, latency=latency, drop=0.0, duplicate=0.0, reorder=0.0)
        self.use(plan)

    def path(self, source: int, target: int) -> Path:
        """Return the direction from one node to another."""
        path = self._paths.get((source, target))
        if path is None:
            path = self._paths[source, target] = Path(source, target)
        return path

    def connect(self, dialler: int, acceptor: int) -> Connection:
        """Return a new connection, not yet known to the acceptor."""
        self._epoch += 1
        connection = Connection(self._epoch, dialler, acceptor)
        connection.forth = Channel(connection, self.path(dialler, acceptor))
        connection.back = Channel(connection, self.path(acceptor, dialler))
        return connection

    def can_connect(self, connection: Connection) -> bool:
        """Can a connection attempt and its answer arrive?"""
        if connection.forth.path.is_blocked:
            return False
        return self.is_hostile or not connection.back.path.is_blocked

    # Sending.

    def latency(self, path: Path) -> Micros:
        """Return the latency of a packet that is sent now."""
        rng = self._rng
        slow = self.plan.latency
        if slow.p_slow and rng.random() < slow.p_slow:
            low, high = slow.slow
            return low + int(rng.random() * (high - low)) + path.delay
        return self._low + int(rng.random() * self._spread) + path.delay

    def submit(
        self, now: Micros, packet: Packet, name: str = "", size: int = 0
    ) -> tuple[Micros, ...]:
        """Return when the packet arrives: usually once, never if it is lost. Rules compare
        `name`."""
        channel = packet.channel
        path = channel.path
        if not self.is_plain or path.rules:
            return self._submit_with_care(now, packet, name, size)
        return (self.arrival(now, channel),)

    def arrival(self, now: Micros, channel: Channel) -> Micros:
        """Return the arrival like `submit`, if `is_plain` holds and the path has no rules."""
        if self._goes_along(now, channel):
            return channel.last
        arrival = now + self._low + int(self._rng.random() * self._spread) + channel.path.delay
        if arrival < channel.last:
            return channel.last
        channel.last = arrival
        return arrival

    def _submit_with_care(
        self, now: Micros, packet: Packet, name: str, size: int
    ) -> tuple[Micros, ...]:
        channel, path = packet.channel, packet.channel.path
        is_wild = self.is_hostile and not packet.is_control
        if not packet.is_control and self._is_swallowed(path, name):
            return ()
        if is_wild and self._happens(self.plan.drop):
            return ()
        if self._goes_along(now, channel) and not size:
            return (channel.last,)
        arrival = self._departure(now, path, size) + self.latency(path)
        if is_wild and self._happens(self.plan.reorder):
            return (arrival + self._detour(),)
        arrival = channel.last = max(arrival, channel.last)
        if is_wild and self._happens(self.plan.duplicate):
            return (arrival, arrival + self._detour())
        return (arrival,)

    def _goes_along(self, now: Micros, channel: Channel) -> bool:
        """Is the packet in one batch with the previous one?"""
        is_along = self.gathers and channel.sent_at == now
        channel.sent_at = now
        return is_along

    def _happens(self, probability: float) -> bool:
        return probability > 0 and self._rng.random() < probability

    def _is_swallowed(self, path: Path, name: str) -> bool:
        for rule in path.rules:
            is_meant = rule.only in {"", name} and not 0 < rule.count <= rule.swallowed
            if is_meant and (rule.share >= 1 or self._happens(rule.share)):
                rule.swallowed += 1
                return True
        return False

    def _departure(self, now: Micros, path: Path, size: int) -> Micros:
        """Return when the last byte is sent, after all earlier packets."""
        if not self.plan.bytes_per_second:
            return now
        path.free_at = max(path.free_at, now) + size * 1_000_000 // self.plan.bytes_per_second
        return path.free_at

    def _detour(self) -> Micros:
        return int(self._rng.random() * DETOUR * (self._low + self._spread))

    # Arriving.

    def admit(self, now: Micros, packet: Packet) -> bool | None:
        """Is the packet delivered? None: it is delayed; False: it is lost.

        No call is needed if the path is not troubled and the channel holds nothing. The caller
        checks `stall_due` afterwards.
        """
        channel = packet.channel
        path = channel.path
        if self.is_hostile and not path.clogs:
            return packet.is_control or not path.cuts
        if path.is_blocked or channel.held:
            channel.held.append(packet)
            self._stall(now, channel)
            return None
        if path.is_troubled:
            self._stall(now, channel)
        return True

    def _stall(self, now: Micros, channel: Channel) -> None:
        channel.path.waiting[channel] = None
        if channel.stalled_since is None:
            channel.stalled_since = now

    def stall_due(self, connection: Connection) -> Micros | None:
        """Return when the connection breaks unless a path is mended; None if it does not."""
        stalls = [
            channel.stalled_since + STALL
            for channel, other in (
                (connection.forth, connection.back),
                (connection.back, connection.forth),
            )
            if channel.stalled_since is not None and (channel.path.cuts or other.path.cuts)
        ]
        return min(stalls, default=None)

    # Cuts and clogs: each method returns whether it changed anything.

    def cut(self, source: int, target: int) -> bool:
        """Block everything in this direction."""
        path = self.path(source, target)
        path.cuts += 1
        self._refresh(path)
        return path.cuts == 1

    def mend(self, source: int, target: int) -> bool:
        """Undo one cut."""
        path = self.path(source, target)
        path.cuts -= 1
        self._refresh(path)
        return path.cuts == 0

    def clog(self, source: int, target: int) -> bool:
        """Delay everything in this direction."""
        path = self.path(source, target)
        path.clogs += 1
        self._refresh(path)
        return path.clogs == 1

    def release(self, source: int, target: int) -> bool:
        """Undo one clog."""
        path = self.path(source, target)
        path.clogs -= 1
        self._refresh(path)
        return path.clogs == 0

    def _refresh(self, path: Path) -> None:
        reverse = self.path(path.target, path.source)
        path.is_blocked = bool(path.cuts or path.clogs)
        path.is_troubled = path.is_blocked or reverse.cuts > 0
        reverse.is_troubled = reverse.is_blocked or path.cuts > 0
        for one in (path, reverse):
            if not one.is_troubled:
                self._acknowledge(one)

    def _acknowledge(self, path: Path) -> None:
        """Mark delivered data as acknowledged; delayed packets wait for their flush."""
        for channel in [channel for channel in path.waiting if not channel.held]:
            del path.waiting[channel]
            channel.stalled_since = None

    def flushes(self, now: Micros, source: int, target: int) -> list[tuple[Micros, Channel]]:
        """After `mend` or `release`: return when to `flush` which channels."""
        path = self.path(source, target)
        if path.is_blocked:
            return []
        found = []
        for channel in path.waiting:
            if channel.held and not channel.is_flushing:
                channel.is_flushing = True
                stalled = now if channel.stalled_since is None else channel.stalled_since
                backoff = min(now - stalled, MAX_BACKOFF)
                wait = self.latency(path) + int(self._rng.random() * backoff)
                found.append((now + wait, channel))
        return found

    def flush(self, channel: Channel) -> list[Packet]:
        """Return the packets that arrive now, in order; none if the path is blocked again."""
        channel.is_flushing = False
        return [] if channel.path.is_blocked else self.abandon(channel)

    def abandon(self, channel: Channel) -> list[Packet]:
        """Remove and return the delayed packets of this channel."""
        packets = list(channel.held)
        channel.held.clear()
        channel.stalled_since = None
        channel.path.waiting.pop(channel, None)
        return packets
