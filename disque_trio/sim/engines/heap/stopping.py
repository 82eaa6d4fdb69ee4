"""A stop in order, as SIGTERM and SHUTDOWN begin it: the journal is written anew while the node
serves, its queues are recorded, and a mark ends it. As `stopping` and `rewriting` do it in a
process (docs/durability.md, "Stopping and starting").
"""

from collections.abc import Callable
from itertools import islice
from typing import Any, Final, Protocol

from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.journal import Journal
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine import journaling
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.records import LoadJob

PORTIONS: Final = 25
"""In about so many all jobs are written."""
PAUSE: Final[Micros] = 20_000
"""From one portion to the next."""
_ROUNDS: Final = 10
"""So often at most what waits for the disk is let go at the end."""


class Stopping(Protocol):
    """The host, as its stop sees it."""

    stopping: "Stop | None"

    def give(self, act: Callable[[Any], None], subject: Any) -> None:
        """Do it when the process has time."""

    def settle(self) -> None:
        """Carry out what follows."""

    def end(self, *, has_queues: bool = False) -> None:
        """The process ends, with the mark in its journal or without."""


class Stop:
    """One stop of a node that keeps a journal."""

    def __init__(self, engine: Engine, host: Stopping, machine: Machine, journal: Journal) -> None:
        self.starts_again = False
        """Somebody wants the node to run again."""
        self._engine = engine
        self._host = host
        self._machine = machine
        self._journal = journal
        self._portion = 1 + len(machine.state.jobs) // PORTIONS
        self._jobs = machine.state.jobs.walk()
        machine.record_queues(on=True)
        journal.begin_anew()
        engine.later(PAUSE, self._go_on, None)

    def _go_on(self, _subject: object) -> None:
        if self._host.stopping is self:
            self._host.give(self._step, None)

    def _step(self, _subject: object) -> None:
        """Write the next jobs, or end. Without a disk that writes there is no mark."""
        if self._host.stopping is not self:
            return
        journal = self._journal
        jobs = [] if journal.has_trouble() else list(islice(self._jobs, self._portion))
        journal.write_anew(
            LoadJob(journaling.stored(self._machine.state, job))
            for job in jobs
            if journaling.has_record(job)
        )
        if jobs:
            self._engine.later(PAUSE, self._go_on, None)
            return
        for _ in range(_ROUNDS):
            journal.flush()
            self._host.settle()
        self._host.end(has_queues=journal.seal())
