"""The links between real nodes, through user-space proxies that cut, delay and slow them.

The proxies and their network are those of the simulator's tcp engine. They run in a thread of their
own, and faults are carried out there.
"""

import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import attrs
import trio

from disque_trio.sim.engines.links import FramePacket, Links
from disque_trio.sim.engines.live_events import LiveEngine
from disque_trio.sim.engines.tcp.addresses import NodeAddresses
from disque_trio.sim.engines.tcp.proxies import Proxies
from disque_trio.sim.model.network import Network
from disque_trio.sim.scenarios.plan import LinkPlan, Micros
from tests.chaos.links import Way
from tests.cluster.processes import Server

_SECOND: Final[Micros] = 1_000_000
_PLAIN: Final = LinkPlan()


class _Unnoted:
    """Observes no frame."""

    def sent(self, packet: FramePacket) -> None:
        """It came to a proxy."""

    def lost(self, packet: FramePacket, why: str) -> None:
        """Its connection broke."""


@attrs.define(eq=False)
class Ways:
    """All links among some nodes. Enter it before the nodes are started."""

    addresses: NodeAddresses
    nodes: int
    seed: int = 0
    _engine: LiveEngine = attrs.field(init=False)
    _network: Network = attrs.field(init=False)
    _links: Links = attrs.field(init=False)
    _thread: threading.Thread = attrs.field(init=False)
    _ready: threading.Event = attrs.Factory(threading.Event)
    _token: trio.lowlevel.TrioToken | None = None
    _scope: trio.CancelScope = attrs.Factory(trio.CancelScope)
    _error: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self._ready.wait()
        self._check()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread.is_alive():
            self._do(self._scope.cancel)
        self._thread.join()
        if error is None:
            self._check()

    @property
    def ends(self) -> Sequence[int]:
        """Nodes alone: clients connect to them directly."""
        return range(1, self.nodes + 1)

    def server(self, number: int, directory: Path, options: Sequence[str]) -> Server:
        """A node that has not been started."""
        host = self.addresses.own(number)
        options = (*options, "--appendfsync", "everysec")
        return Server(directory, options, port=self.addresses.port, host=host)

    def seen(self, number: int) -> tuple[str, int]:
        """Where others reach this node: its proxy."""
        return self.addresses.seen(number), self.addresses.port

    def _check(self) -> None:
        if self._error is not None:
            raise RuntimeError("the proxies have failed") from self._error

    def _run(self) -> None:
        try:
            trio.run(self._main)
        except BaseException as error:  # raised again in the main thread
            self._error = error
        finally:
            self._ready.set()

    async def _main(self) -> None:
        self._engine = LiveEngine(lambda: time.monotonic_ns() // 1000, 0)
        self._network = Network(_PLAIN, random.Random(self.seed))
        self._links = Links(self._engine, self._network, _Unnoted())
        with self._scope:
            async with trio.open_nursery() as nursery:
                proxies = Proxies(
                    self.addresses, self._engine, self._links, nursery, lambda *_: None
                )
                for node in range(1, self.nodes + 1):
                    proxies.add(node, lambda: 1)
                self._token = trio.lowlevel.current_trio_token()
                self._ready.set()
                while True:
                    await self._engine.live(self._engine.sync() + 3600 * _SECOND)

    def _do(self, act: Callable[[], object]) -> None:
        """In the thread of the proxies."""

        def now() -> None:
            self._engine.sync()
            act()

        trio.from_thread.run_sync(now, trio_token=self._token)

    # Faults.

    def cut(self, ways: Iterable[Way]) -> None:
        """Let nothing through; TCP keeps it, and gives the connection up after a while."""
        self._do(lambda: [self._network.cut(*way) for way in ways])

    def mend(self, ways: Iterable[Way]) -> None:
        """Undo `cut`."""
        self._do(lambda: self._undo(ways, self._network.mend))

    def clog(self, ways: Iterable[Way]) -> None:
        """Keep everything back, without an end of the connection."""
        self._do(lambda: [self._network.clog(*way) for way in ways])

    def release(self, ways: Iterable[Way]) -> None:
        """Undo `clog`."""
        self._do(lambda: self._undo(ways, self._network.release))

    def _undo(self, ways: Iterable[Way], undo: Callable[[int, int], bool]) -> None:
        for way in ways:
            if undo(*way):
                self._links.mended(*way)

    def delay(self, ways: Iterable[Way], more: Micros) -> None:
        """Add to the latency; a negative number undoes it."""

        def add() -> None:
            for way in ways:
                self._network.path(*way).delay += more

        self._do(add)

    def limit(self, bytes_per_second: int) -> None:
        """Of each link in each direction; 0 is no limit."""
        plan = attrs.evolve(_PLAIN, bytes_per_second=bytes_per_second)
        self._do(lambda: self._network.use(plan))

    def state(self, way: Way) -> str:
        """What is wrong with this direction of a link; nothing if nothing is."""
        path = self._network.path(*way)
        facts = {"cut": path.cuts, "clogged": path.clogs, "late": path.delay}
        return " ".join(name for name, value in facts.items() if value)

    def reset(self, ways: Iterable[Way]) -> None:
        """End connections at the second node, while the first one takes them for open."""
        self._do(lambda: [self._links.half_open(*way, lambda: None) for way in ways])
