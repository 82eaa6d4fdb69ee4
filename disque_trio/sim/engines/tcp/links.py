"""The links of the tcp engine, and the frames on them that the proxies forward."""

import attrs
import trio

from disque_trio.sim.engines.events import NEVER
from disque_trio.sim.engines.heap.nodes import Host
from disque_trio.sim.engines.links import FramePacket, Links
from disque_trio.sim.engines.live_events import LiveEngine
from disque_trio.sim.engines.tcp.addresses import NodeAddresses
from disque_trio.sim.engines.tcp.proxies import ProcessLink, Proxies
from disque_trio.sim.model.network import Network
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.base import NodeId
from disque_trio.statemachine.wording import Wording, wording
from disque_trio.wire.frames import FrameParser


@attrs.define(eq=False)
class Flight:
    """One frame: when it arrived at a proxy, and when it left it."""

    source: int
    target: int
    wording: Wording
    ref: int
    sent: Micros
    received: Micros = NEVER
    lost: Micros = NEVER
    why: str = ""
    link: ProcessLink | None = None
    """The connection on which it left the proxy."""

    def begin(self, now: Micros) -> None:
        """Make its times count from `now`."""
        self.sent -= now
        self.received -= now if self.received < NEVER else 0
        self.lost -= now if self.lost < NEVER else 0


class ProxyLinks:
    """All links of a run; also the `FrameObserver` of their frames."""

    def __init__(
        self,
        engine: LiveEngine,
        network: Network,
        names: dict[NodeId, str],
        addresses: NodeAddresses,
        nursery: trio.Nursery,
    ) -> None:
        self._engine = engine
        self._names = names
        self.links = Links(engine, network, self)
        self._proxies = Proxies(addresses, engine, self.links, nursery, self.received)
        self._flights: dict[int, Flight] = {}

    @property
    def flights(self) -> list[Flight]:
        """All frames so far."""
        return list(self._flights.values())

    def begin(self, now: Micros) -> None:
        """Set time 0 to now."""
        for flight in self._flights.values():
            flight.begin(now)

    def add(self, host: Host) -> None:
        """Add a node that others can dial."""
        self._proxies.add(host.number, lambda: host.lives if host.is_up else 0)

    # FrameObserver.

    def sent(self, packet: FramePacket) -> None:
        """A frame has arrived at a proxy."""
        assert isinstance(packet.frame, bytes), "processes send bytes"
        frames = FrameParser().feed(packet.frame)
        part = wording(frames[0].message, self._names) if frames else Wording("?")
        packet.wording = part
        packet.ref = len(self._flights) + 1
        self._flights[packet.ref] = Flight(
            packet.source.node, packet.source.far.node, part, packet.ref, self._engine.now
        )

    def received(self, packet: FramePacket, link: ProcessLink) -> None:
        """A proxy forwards the frame to its node."""
        flight = self._flights[packet.ref]
        flight.received, flight.link = self._engine.now, link

    def lost(self, packet: FramePacket, why: str) -> None:
        """The frame is lost."""
        flight = self._flights[packet.ref]
        flight.lost, flight.why = self._engine.now, why
