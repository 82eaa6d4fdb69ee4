"""The ports of a simulated node that are no connections (`disque_trio.ports`)."""

import math
from collections.abc import Sequence

from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.nodes import Host
from disque_trio.sim.engines.simulated_thread import SimulatedThread
from disque_trio.sim.model.clock import NodeClock
from disque_trio.statemachine.base import FOREVER, Millis, Now, Spilled
from disque_trio.statemachine.chores import Shutdown, Vitals
from disque_trio.statemachine.config import Config


class HostClock:
    """The clocks of a simulated host, as its node reads them."""

    def __init__(self, clock: NodeClock, engine: Engine) -> None:
        self._clock = clock
        self._engine = engine

    def now(self) -> Now:
        """Both clocks."""
        return self._clock.now(self._engine.read())

    def seconds_until(self, mono: Millis) -> float:
        """The same duration on a true clock, as Trio's is."""
        if mono >= FOREVER:
            return math.inf
        return max(0, self._clock.when(mono) - self._engine.read()) / 1_000_000


class TableStore:
    """nodes.conf on a disk that never fails, and takes no time."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.thread = SimulatedThread()

    def save(self, text: bytes) -> None:
        """Write nodes.conf."""
        self._host.nodes_conf = text


class HostProcess:
    """A process on which every request succeeds."""

    def rewrite_config(self, config: Config) -> str | None:  # noqa: ARG002
        """There is no file."""
        return None

    def change_directory(self, path: str) -> str | None:  # noqa: ARG002
        """There are no directories."""
        return None

    def raise_file_limit(self, clients: int) -> int:
        """There are no files."""
        return clients

    def reload_tls(self, config: Config) -> str | None:  # noqa: ARG002
        """There are no certificates."""
        return None

    def vitals(self) -> Vitals:
        """No figures."""
        return Vitals()

    def has_room(self, size: int) -> bool:  # noqa: ARG002
        """There is."""
        return True

    def refuse_shutdown(self, shutdown: Shutdown) -> str | None:  # noqa: ARG002
        """Nothing speaks against it."""
        return None


class BodyInMemory(Spilled):
    """A body that the machine must not look into."""

    __slots__ = ("_body",)

    def __init__(self, body: bytes) -> None:
        super().__init__(len(body))
        self._body = body

    def __bytes__(self) -> bytes:
        return self._body


class SpillInMemory:
    """A spill-directory: bodies are put aside in memory."""

    def write(self, bodies: Sequence[bytes]) -> list[Spilled]:
        """Put them aside."""
        return [BodyInMemory(body) for body in bodies]


class NoLog:
    """Discards the operator log."""

    def debug(self, event: str, **facts: object) -> None:
        """For developers."""

    def verbose(self, event: str, **facts: object) -> None:
        """Rarely useful."""

    def notice(self, event: str, **facts: object) -> None:
        """For operators in production."""

    def warning(self, event: str, **facts: object) -> None:
        """For an operator to look at."""

    def set_level(self, level: str) -> None:
        """Log this level and those above from now on."""
