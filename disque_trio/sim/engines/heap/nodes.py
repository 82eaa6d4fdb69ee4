"""Hosts of simulated nodes, with the parts common to all engines: identity, clocks, disk, rows."""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final

import attrs

from disque_trio.sim.engines.events import Engine
from disque_trio.sim.model.clock import NodeClock
from disque_trio.sim.model.disk import Disk
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.model.vector_clocks import VectorClock
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.base import NodeId, Now
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.knobs import Knobs
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.stats import Facts

PORT: Final = 7711


MachineFactory = Callable[[Config, Peer, random.Random, Now, Facts, Sequence[Peer]], Machine]
"""`Machine`, or its replacement in a test."""


class MachineError(Exception):
    """A machine has raised an exception (S12)."""


@attrs.define(eq=False, kw_only=True)
class Site:
    """The parts of a host."""

    number: int
    seed: int
    config: Config
    clock: NodeClock
    vector: VectorClock
    names: dict[NodeId, str]
    """The run's names for nodes, by id."""
    disk: Disk
    knobs: Knobs
    capabilities: tuple[int, ...] = ()
    """The capabilities of the versions that its lives run, the last one also for all further lives;
    empty for the current version."""


class Host(ABC):
    """A place where a node's processes run, one life after the other."""

    def __init__(self, engine: Engine, recorder: Recorder, site: Site) -> None:
        self._engine = engine
        self._recorder = recorder
        self._site = site
        self.number = number = site.number
        self.name = f"n{number}"
        self.ip = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        self.clock = site.clock
        self.vector = site.vector
        self.disk = site.disk
        self.machine: Machine | None = None
        """The machine of the present life, if it runs in this process."""
        self.lives = 0
        self.nodes_conf = b""
        """The content of nodes.conf, which survives a crash like the disk."""
        self.is_stopping = False
        """An orderly stop is in progress."""
        self.starts_again = False
        """The node is to start after the stop."""
        self.is_paused = False
        self.slowness: Micros = 0
        """How long each batch takes."""
        self.now = Now(0, 0)
        """The time of its last batch."""
        self.new_identity()

    # Its state.

    @property
    @abstractmethod
    def is_up(self) -> bool:
        """Is there a process?"""

    @property
    def is_settled(self) -> bool:
        """Is there a machine whose state must be consistent?"""
        return self.machine is not None

    @abstractmethod
    def has_jobs(self) -> bool:
        """Does its node have a record of any job?"""

    @abstractmethod
    def knows(self, other: NodeId) -> bool:
        """Is the other node in its table?"""

    @abstractmethod
    def is_linked_to(self, other: NodeId) -> bool:
        """Is its own link to the other node up?"""

    # Its life.

    def new_identity(self) -> None:
        """Give the node an id that is new in the run, and an empty nodes.conf and disk."""
        rng = stream(self._site.seed, "id", self.number, self.lives)
        self.id: NodeId = b"%040x" % rng.getrandbits(160)
        self._site.names[self.id] = self.name
        self.nodes_conf = b""
        self.disk.clear()

    @abstractmethod
    def start(self, cause: str, others: Sequence[Peer] = ()) -> None:
        """Start the process, with the nodes in nodes.conf, or with `others` if there is none."""

    @abstractmethod
    def crash(self, cause: str, detail: str = "") -> None:
        """End the process at once, with a row. Memory and unsent output are lost."""

    def kill(self, cause: str) -> bool:
        """Crash the process. Return False if there is none."""
        if not self.is_up:
            return False
        self.crash(cause)
        return True

    @abstractmethod
    def stop(self) -> bool:
        """Start an orderly stop, during which the process keeps serving. Return False if there is
        no process, or a stop is in progress."""

    def end(self, *, has_queues: bool = False) -> None:
        """End the process after an orderly stop; `has_queues` if its journal has the mark for
        that."""
        starts_again = self.starts_again
        self.crash("stop", "queues" if has_queues else "")
        if starts_again:
            self.start("empty")

    def pause(self) -> None:
        """Stop the process (SIGSTOP). The kernel still accepts connections and data."""
        self.is_paused = True

    def resume(self) -> None:
        """Resume the process: all inputs that have arrived meanwhile form one batch."""
        self.is_paused = False
        self.rewind()

    def rewind(self) -> None:  # noqa: B027 - only some engines compute that
        """Compute the next wake-up again: the clock has changed, or the process has resumed."""

    # Rows.

    def note(self, kind: str, *, peer: str = "", cause: str = "", detail: str = "") -> None:
        """Write a row about the node."""
        now = self.clock.now(self._engine.now)
        stamp = self.vector.tick()
        self._recorder.add(
            (
                self._engine.now, kind, self.name, "", "", "", peer, cause, detail, 0,
                now.mono, now.wall, stamp,
            )
        )  # fmt: skip
