"""Faults of real nodes, drawn by chance. Each has a begin and an end."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import permutations
from typing import Any, ClassVar, Final, Generic, TypeVar

import attrs

from disque_trio.client import Recorder
from tests.chaos.links import Links, Way
from tests.chaos.machine import Machine
from tests.chaos.switch import Switch
from tests.chaos.ways import Ways
from tests.cluster.processes import Cluster, Server

Net = TypeVar("Net", bound=Links)


@attrs.define(eq=False)
class Faults(Generic[Net]):
    """What may happen to a cluster."""

    kinds: ClassVar[Mapping[str, "Kind"]]
    """The faults that are possible, by name."""
    cluster: Cluster
    links: Net
    recorder: Recorder
    rng: random.Random
    _busy: set[int] = attrs.Factory(set)
    """Nodes that are down or stopped."""

    def begin(self, stack: ExitStack) -> str:
        """Draw a fault, and begin it; it ends with the stack. Returns its kind; nothing if it is
        not possible now."""
        kind = self.rng.choice(list(self.kinds))
        found = self.kinds[kind](self)
        if found is None:
            return ""
        stack.enter_context(self.recorder.fault(kind))
        stack.enter_context(found)
        return kind

    # Links.

    def _all(self) -> list[Way]:
        return list(permutations(range(1, len(self.cluster.servers) + 1), 2))

    def _some(self) -> list[Way]:
        ways = self._all()
        return self.rng.sample(ways, self.rng.randint(1, len(ways) // 2))

    def partition(self) -> AbstractContextManager[None]:
        """Two sides, neither of which hears the other one."""
        count = len(self.cluster.servers)
        side = set(self.rng.sample(range(1, count + 1), self.rng.randint(1, count // 2)))
        return self._cut([way for way in self._all() if len(side.intersection(way)) == 1])

    def deaf_or_mute(self) -> AbstractContextManager[None]:
        """A node that hears nobody, or that nobody hears."""
        node, end = self._number(), self.rng.randrange(2)
        return self._cut([way for way in self._all() if way[end] == node])

    def one_way(self) -> AbstractContextManager[None]:
        """Some directions of some links."""
        return self._cut(self._some())

    @contextmanager
    def _cut(self, ways: Sequence[Way]) -> Iterator[None]:
        self.links.cut(ways)
        yield
        self.links.mend(ways)

    @contextmanager
    def clog(self) -> Iterator[None]:
        """Everything is late, and comes at once in the end."""
        ways = self._some()
        self.links.clog(ways)
        yield
        self.links.release(ways)

    def _any(self) -> list[Way]:
        """Some directions, also to and from clients if their connections are among the links."""
        ways = list(permutations(self.links.ends, 2))
        return self.rng.sample(ways, self.rng.randint(1, len(ways) // 2))

    @contextmanager
    def delay(self) -> Iterator[None]:
        """Slow links."""
        ways, more = self._any(), self.rng.randint(20_000, 800_000)
        self.links.delay(ways, more)
        yield
        self.links.delay(ways, -more)

    @contextmanager
    def rate(self) -> Iterator[None]:
        """Narrow links."""
        self.links.limit(self.rng.randint(50_000, 500_000))
        yield
        self.links.limit(0)

    # Processes.

    def _number(self) -> int:
        return self.rng.randint(1, len(self.cluster.servers))

    def _free(self) -> list[Server]:
        return [each for each in self.cluster.servers if id(each) not in self._busy]

    def kill(self) -> AbstractContextManager[None] | None:
        """kill -9 of a node."""
        free = self._free()
        return self._down([self.rng.choice(free)], lambda each: each.kill()) if free else None

    def kill_all(self) -> AbstractContextManager[None] | None:
        """kill -9 of all nodes that run."""
        free = self._free()
        return self._down(free, lambda each: each.kill()) if free else None

    def stop(self) -> AbstractContextManager[None] | None:
        """SIGTERM."""
        free = self._free()
        return self._down([self.rng.choice(free)], lambda each: each.terminate()) if free else None

    @contextmanager
    def _down(self, servers: list[Server], end: Callable[[Server], object]) -> Iterator[None]:
        self._busy.update(map(id, servers))
        for server in servers:
            end(server)
        yield
        for server in servers:
            server.start()
        self._busy.difference_update(map(id, servers))

    def freeze(self) -> AbstractContextManager[None] | None:
        """SIGSTOP of a node, then SIGCONT."""
        free = self._free()
        return self._frozen(self.rng.choice(free)) if free else None

    @contextmanager
    def _frozen(self, server: Server) -> Iterator[None]:
        self._busy.add(id(server))
        server.freeze()
        yield
        server.thaw()
        self._busy.discard(id(server))


Kind = Callable[[Any], AbstractContextManager[None] | None]
"""Begins a fault, which ends with the context; None if it is not possible now."""
_ANYWHERE: Final[Mapping[str, Kind]] = {
    "partition": Faults.partition,
    "deaf or mute": Faults.deaf_or_mute,
    "one-way cut": Faults.one_way,
    "clog": Faults.clog,
    "delay": Faults.delay,
    "rate": Faults.rate,
    "kill": Faults.kill,
    "kill all": Faults.kill_all,
    "stop": Faults.stop,
    "freeze": Faults.freeze,
}


@attrs.define(eq=False)
class ProxyFaults(Faults[Ways]):
    """What may happen to nodes behind proxies."""

    @contextmanager
    def half_open(self) -> Iterator[None]:
        """Connections that one end takes for open."""
        self.links.reset(self._some())
        yield


ProxyFaults.kinds = {**_ANYWHERE, "half-open": ProxyFaults.half_open}


@attrs.define(eq=False)
class MachineFaults(Faults[Switch]):
    """What may happen to machines on a switch."""

    @contextmanager
    def loss(self) -> Iterator[None]:
        """Packets that do not arrive."""
        ways, share = self._any(), self.rng.choice((0.01, 0.1, 0.4))
        self.links.lose(ways, share)
        yield
        self.links.lose(ways, -share)

    @contextmanager
    def duplication(self) -> Iterator[None]:
        """Packets that arrive twice."""
        ways, share = self._any(), self.rng.choice((0.01, 0.1, 0.5))
        self.links.repeat(ways, share)
        yield
        self.links.repeat(ways, -share)

    @contextmanager
    def reordering(self) -> Iterator[None]:
        """Packets that overtake others."""
        ways, more = self._any(), self.rng.randint(1_000, 100_000)
        self.links.scatter(ways, more)
        yield
        self.links.scatter(ways, -more)

    def power_cut(self) -> AbstractContextManager[None] | None:
        """The power of a machine fails."""
        free = self._free()
        return self._down([self.rng.choice(free)], self._cut_power) if free else None

    def power_cut_of_all(self) -> AbstractContextManager[None] | None:
        """The power of all machines fails."""
        free = self._free()
        return self._down(free, self._cut_power) if free else None

    def _cut_power(self, machine: Server) -> None:
        assert isinstance(machine, Machine)
        machine.cut_power(self.rng)

    @contextmanager
    def clock_jump(self) -> Iterator[None]:
        """A wall clock that jumps, and jumps back."""
        machine, seconds = self.rng.choice(self.cluster.servers), self.rng.uniform(-60, 60)
        assert isinstance(machine, Machine)
        machine.move_clock(seconds)
        yield
        machine.move_clock(-seconds)


MachineFaults.kinds = {
    **_ANYWHERE,
    "loss": MachineFaults.loss,
    "duplication": MachineFaults.duplication,
    "reordering": MachineFaults.reordering,
    "power cut": MachineFaults.power_cut,
    "power cut of all": MachineFaults.power_cut_of_all,
    "clock jump": MachineFaults.clock_jump,
}
