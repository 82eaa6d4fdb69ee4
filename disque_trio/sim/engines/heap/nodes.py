"""Hosts of simulated nodes, and what is the same in all engines: identity, clocks, disk, rows."""

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
    """A machine has raised, which it never must (S12)."""


@attrs.define(eq=False, kw_only=True)
class Site:
    """What a host is made of."""

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
    """Of the versions that its lives are of, the last one for ever; empty: ours."""


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
        """Of the present life, if it is a machine of this process."""
        self.lives = 0
        self.nodes_conf = b""
        """Survives a crash, as the disk does."""
        self.is_stopping = False
        """An orderly stop is under way."""
        self.starts_again = False
        """After that the node is to start."""
        self.is_paused = False
        self.slowness: Micros = 0
        """How long a batch keeps it busy."""
        self.now = Now(0, 0)
        """When its last batch began."""
        self.new_identity()

    # Its state.

    @property
    @abstractmethod
    def is_up(self) -> bool:
        """Is there a process?"""

    @property
    def is_settled(self) -> bool:
        """Is there a machine whose state must fit together?"""
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
        """A node id that the run has not seen, and an empty nodes.conf."""
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
        """End at once, with a row. Memory and unsent output are lost."""

    def kill(self, cause: str) -> bool:
        """`crash`. False if there is no process."""
        if not self.is_up:
            return False
        self.crash(cause)
        return True

    @abstractmethod
    def stop(self) -> bool:
        """Begin an orderly stop; the process serves on meanwhile. False if there is no process, or
        one is under way."""

    def end(self, *, has_queues: bool = False) -> None:
        """End after an orderly stop; `has_queues` if the mark is in its journal."""
        starts_again = self.starts_again
        self.crash("stop", "queues" if has_queues else "")
        if starts_again:
            self.start("empty")

    def pause(self) -> None:
        """Stop the process (SIGSTOP). The kernel still accepts connections and data."""
        self.is_paused = True

    def resume(self) -> None:
        """Let it run again: all inputs that have come meanwhile are one batch."""
        self.is_paused = False
        self.rewind()

    def rewind(self) -> None:  # noqa: B027 - only some engines compute that
        """The clock has changed, or the process runs again: compute anew when to wake."""

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
