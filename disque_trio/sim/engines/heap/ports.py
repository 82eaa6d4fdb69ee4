"""The ports of a simulated node other than connections (`disque_trio.ports`)."""

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
        """Return the time on both clocks."""
        return self._clock.now(self._engine.read())

    def seconds_until(self, mono: Millis) -> float:
        """Return this duration on a true clock, as Trio's is."""
        if mono >= FOREVER:
            return math.inf
        return max(0, self._clock.when(mono) - self._engine.read()) / 1_000_000


class TableStore:
    """nodes.conf on a disk that never fails and takes no time."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.thread = SimulatedThread()

    def save(self, text: bytes) -> None:
        """Write nodes.conf."""
        self._host.nodes_conf = text


class HostProcess:
    """A process on which every request succeeds."""

    def rewrite_config(self, config: Config) -> str | None:  # noqa: ARG002
        """Do nothing: there is no file."""
        return None

    def change_directory(self, path: str) -> str | None:  # noqa: ARG002
        """Do nothing: there are no directories."""
        return None

    def raise_file_limit(self, clients: int) -> int:
        """Return `clients`: there is no limit of files."""
        return clients

    def reload_tls(self, config: Config) -> str | None:  # noqa: ARG002
        """Do nothing: there are no certificates."""
        return None

    def vitals(self) -> Vitals:
        """Return no figures."""
        return Vitals()

    def has_room(self, size: int) -> bool:  # noqa: ARG002
        """Return True: there is always room."""
        return True

    def refuse_shutdown(self, shutdown: Shutdown) -> str | None:  # noqa: ARG002
        """Return None: nothing prevents the shutdown."""
        return None


class BodyInMemory(Spilled):
    """A body that the machine must not read."""

    __slots__ = ("_body",)

    def __init__(self, body: bytes) -> None:
        super().__init__(len(body))
        self._body = body

    def __bytes__(self) -> bytes:
        return self._body


class SpillInMemory:
    """A spill directory in memory."""

    def write(self, bodies: Sequence[bytes]) -> list[Spilled]:
        """Store the bodies."""
        return [BodyInMemory(body) for body in bodies]


class NoLog:
    """Discards the operator log."""

    def debug(self, event: str, **facts: object) -> None:
        """Discard the event."""

    def verbose(self, event: str, **facts: object) -> None:
        """Discard the event."""

    def notice(self, event: str, **facts: object) -> None:
        """Discard the event."""

    def warning(self, event: str, **facts: object) -> None:
        """Discard the event."""

    def set_level(self, level: str) -> None:
        """Do nothing: no level is logged."""
