"""Faults of real nodes, drawn by chance. Each has a begin and an end."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import permutations
from typing import Final

import attrs

from disque_trio.client import Recorder
from tests.chaos.ways import Way, Ways
from tests.cluster.processes import Cluster, Server


@attrs.define(eq=False)
class Faults:
    """What may happen to a cluster."""

    cluster: Cluster
    ways: Ways
    recorder: Recorder
    rng: random.Random
    _busy: set[int] = attrs.Factory(set)
    """Nodes that are down or stopped."""

    def begin(self, stack: ExitStack) -> str:
        """Draw a fault, and begin it; it ends with the stack. Returns its kind; nothing if it is
        not possible now."""
        kind = self.rng.choice(list(KINDS))
        found = KINDS[kind](self)
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
        self.ways.cut(ways)
        yield
        self.ways.mend(ways)

    @contextmanager
    def clog(self) -> Iterator[None]:
        """Everything is late, and comes at once in the end."""
        ways = self._some()
        self.ways.clog(ways)
        yield
        self.ways.release(ways)

    @contextmanager
    def delay(self) -> Iterator[None]:
        """Slow links."""
        ways, more = self._some(), self.rng.randint(20_000, 800_000)
        self.ways.delay(ways, more)
        yield
        self.ways.delay(ways, -more)

    @contextmanager
    def rate(self) -> Iterator[None]:
        """Narrow links."""
        self.ways.limit(self.rng.randint(50_000, 500_000))
        yield
        self.ways.limit(0)

    @contextmanager
    def half_open(self) -> Iterator[None]:
        """Connections that one end takes for open."""
        self.ways.reset(self._some())
        yield

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


KINDS: Final[dict[str, Callable[[Faults], AbstractContextManager[None] | None]]] = {
    "partition": Faults.partition,
    "deaf or mute": Faults.deaf_or_mute,
    "one-way cut": Faults.one_way,
    "clog": Faults.clog,
    "delay": Faults.delay,
    "rate": Faults.rate,
    "half-open": Faults.half_open,
    "kill": Faults.kill,
    "kill all": Faults.kill_all,
    "stop": Faults.stop,
    "freeze": Faults.freeze,
}
