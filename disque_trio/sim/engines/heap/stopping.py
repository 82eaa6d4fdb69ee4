"""An orderly stop, as SIGTERM and SHUTDOWN begin it: the journal is rewritten while the node
serves, its queues are recorded, and a mark ends it (docs/durability.md, "Stopping and starting").
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
"""In about so many portions all jobs are written."""
PAUSE: Final[Micros] = 20_000
"""The time between two portions."""
_ROUNDS: Final = 10
"""How often, at the end, output that waits for the disk is flushed at most."""


class Stopping(Protocol):
    """The host, as its stop sees it."""

    stopping: "OrderlyStop | None"

    def give(self, act: Callable[[Any], None], subject: Any) -> None:
        """Do it when the process runs."""

    def settle(self) -> None:
        """Carry out the output."""

    def end(self, *, has_queues: bool = False) -> None:
        """End the process; `has_queues` if the mark is in its journal."""


class OrderlyStop:
    """An orderly stop that is under way."""

    starts_again = False
    """Start the node again afterwards."""


class Stop(OrderlyStop):
    """One stop of a node that keeps a journal."""

    def __init__(self, engine: Engine, host: Stopping, machine: Machine, journal: Journal) -> None:
        self._engine = engine
        self._host = host
        self._machine = machine
        self._journal = journal
        self._portion = 1 + len(machine.state.jobs) // PORTIONS
        self._jobs = machine.state.table.walk()
        machine.record_queues(on=True)
        journal.begin_anew()
        journal.write_anew(journaling.kept_keys(machine.state))
        engine.later(PAUSE, self._go_on, None)

    def _go_on(self, _subject: object) -> None:
        if self._host.stopping is self:
            self._host.give(self._step, None)

    def _step(self, _subject: object) -> None:
        """Write the next jobs, or end. If the disk fails there is no mark."""
        if self._host.stopping is not self:
            return
        journal = self._journal
        jobs = [] if journal.has_trouble() else list(islice(self._jobs, self._portion))
        journal.write_anew(
            LoadJob(journaling.stored(self._machine.state, job))
            for job in jobs
            if journaling.has_record(self._machine.state, job)
        )
        if jobs:
            self._engine.later(PAUSE, self._go_on, None)
            return
        for _ in range(_ROUNDS):
            journal.flush()
            self._host.settle()
        self._host.end(has_queues=journal.seal())
