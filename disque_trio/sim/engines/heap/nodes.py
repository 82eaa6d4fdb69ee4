"""One simulated node: the real machine, on a host that has its own clocks and can be paused.

The host keeps the driver contract (docs/design.md, "The machine"): inputs, then `take`, then
everything in the outbox in its order. `links` and `clients` pass their inputs to `Host.give`, which
keeps them back while the process is stopped or slow.

With `appendonly yes` a host has a disk (`disk`), and each life of the process a journal (`journal`)
that decides when a batch may leave. The next life loads what has survived on the disk.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn, Protocol

from disque_trio.sim.engines.events import NEVER, Engine
from disque_trio.sim.engines.heap.journal import Journal
from disque_trio.sim.engines.heap.spill import SimSpill, whole_message, whole_reply
from disque_trio.sim.engines.heap.stopping import OrderlyStop, Stop
from disque_trio.sim.engines.heap.surroundings import NodeClients, NodeLinks
from disque_trio.sim.model.clock import NodeClock
from disque_trio.sim.model.disk import Disk, Found
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.model.vector_clocks import VectorClock
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.base import FOREVER, MYSELF, Millis, NodeId, Now
from disque_trio.statemachine.chores import Chore, RaiseFileLimit, ReadVitals, Shutdown, Vitals
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.journaling import STARTED
from disque_trio.statemachine.knobs import Knobs
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.nodesfile import nodes_text, parse_nodes
from disque_trio.statemachine.outbox import Outbox
from disque_trio.statemachine.stats import Facts
from disque_trio.storage.spill import Spiller

PORT: Final = 7711


class MachineFactory(Protocol):
    """`Machine`, or its replacement in a test."""

    def __call__(
        self,
        config: Config,
        myself: Peer,
        rng: random.Random,
        now: Now,
        facts: Facts,
        nodes: Sequence[Peer],
    ) -> Machine:
        """A machine."""


class MachineError(Exception):
    """A machine has raised, which it never must (S12)."""


class Host:
    """A place where a node's processes run, one life after the other."""

    __slots__ = (
        "_alarm", "_clients", "_config", "_engine", "_factory", "_inbox", "_links", "_names",
        "_recorder", "_seed", "_wake_at", "clock", "disk", "id", "ip", "is_held", "is_paused",
        "journal", "knobs", "lives", "machine", "name", "nodes_conf", "now", "number", "slowness",
        "spiller", "stopping", "vector",
    )  # fmt: skip

    def __init__(
        self,
        engine: Engine,
        recorder: Recorder,
        number: int,
        *,
        links: "NodeLinks[Host]",
        clients: "NodeClients[Host]",
        seed: int,
        config: Config,
        factory: MachineFactory,
        clock: NodeClock,
        vector: VectorClock,
        names: dict[NodeId, str],
        disk: Disk,
        knobs: Knobs,
    ) -> None:
        self._engine = engine
        self._recorder = recorder
        self._links = links
        self._clients = clients
        self._seed = seed
        self._config = config
        self._factory = factory
        self._names = names
        self.knobs = knobs
        self.number = number
        self.name = f"n{number}"
        self.ip = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        self.clock = clock
        self.vector = vector
        self.machine: Machine | None = None
        self.lives = 0
        self.nodes_conf = b""
        """Survives a crash, as the disk does."""
        self.disk = disk
        self.journal: Journal | None = None
        """The journal of this life, if there is one."""
        self.spiller: Spiller | None = None
        self.stopping: OrderlyStop | None = None
        self.is_paused = False
        self.is_held = False
        """Inputs wait: the process is stopped, or busy with the last batch."""
        self.slowness: Micros = 0
        """How long a batch keeps it busy."""
        self.now = Now(0, 0)
        self._inbox: list[tuple[Callable[[Any], None], Any]] = []
        self._wake_at = NEVER
        self._alarm = FOREVER
        """The deadline for which `_wake_at` is set."""
        self.new_identity()

    # Its state.

    @property
    def is_up(self) -> bool:
        """Is there a process?"""
        return self.machine is not None

    def has_jobs(self) -> bool:
        """Does its node have a record of any job?"""
        return self.machine is not None and bool(self.machine.state.jobs)

    def knows(self, other: NodeId) -> bool:
        """Is the other node in its table?"""
        return self.machine is not None and other in self.machine.state.cluster.nodes

    def is_linked_to(self, other: NodeId) -> bool:
        """Is its own link to the other node up?"""
        if self.machine is None:
            return False
        peer = self.machine.state.cluster.nodes.get(other)
        return peer is not None and peer.is_connected

    # Its life.

    def new_identity(self) -> None:
        """A node id that the run has not seen, and an empty nodes.conf."""
        rng = stream(self._seed, "id", self.number, self.lives)
        self.id: NodeId = b"%040x" % rng.getrandbits(160)
        self._names[self.id] = self.name
        self.nodes_conf = b""
        self.disk.clear()

    def start(self, cause: str, others: Sequence[Peer] = ()) -> None:
        """Start the process, with the nodes in nodes.conf, or with `others` if there is none."""
        engine = self._engine
        self.lives += 1
        self.now = self.clock.now(engine.now)
        rng = stream(self._seed, "node", self.number, self.lives)
        myself = Peer(self.id, "", PORT, MYSELF)
        if self.nodes_conf:
            myself, others = parse_nodes(self.nodes_conf)
        facts = Facts(port=PORT, knobs=self.knobs)
        self.machine = self._factory(self._config, myself, rng, self.now, facts, list(others))
        self.machine.state.trace = []
        self.spiller = Spiller(self.machine, SimSpill()) if self._config.spill_directory else None
        self.nodes_conf = nodes_text(self.machine.state, handshakes=False)
        self.is_paused = self.is_held = False
        found = self._open_journal(self.machine) if self._config.appendonly else None
        found = None if cause == "fresh" else found
        self.note("start", cause=found.start if found else cause)
        self._wake_at = NEVER
        self.settle()
        if found:
            self._tell_loaded(found)

    def _tell_loaded(self, found: Found) -> None:
        self.note("loaded", cause=found.how, detail=f"records={len(found.records)}")

    def _open_journal(self, machine: Machine) -> Found:
        """Load the records on the disk into the machine, and append to that file from now on."""
        found = self.disk.load()
        machine.load(found.records, self.now)
        if not self.disk.note_start():
            machine.load([STARTED], self.now)
        machine.loaded(self.now)
        self.journal = Journal(self._engine, self, self.disk, machine)
        return found

    def crash(self, cause: str = "kill") -> None:
        """End at once. Memory and unsent output are lost."""
        if self.journal is not None:
            self.journal.end()
            self.journal = None
        if cause == "power":
            self.disk.lose_power()
        self.machine = self.stopping = None
        self.is_paused = self.is_held = False
        self._wake_at = NEVER
        self._inbox.clear()
        self._links.crashed(self)
        self._clients.crashed(self)

    def stop(self) -> bool:
        """Begin an orderly stop; with a journal it serves on meanwhile. False if one is running."""
        if self.stopping is not None:
            return False
        if self.machine is None or self.journal is None:
            self.end()
        else:
            self.stopping = Stop(self._engine, self, self.machine, self.journal)
        return True

    def end(self, *, has_queues: bool = False) -> None:
        """End after an orderly stop."""
        starts_again = self.stopping is not None and self.stopping.starts_again
        self.note("crash", cause="stop", detail="queues" if has_queues else "")
        self.crash("stop")
        if starts_again:
            self.start("empty")

    def pause(self) -> None:
        """Stop the process (SIGSTOP). The kernel still accepts connections and data."""
        self.is_paused = self.is_held = True

    def resume(self) -> None:
        """Let it run again: all inputs that have come meanwhile are one batch."""
        self.is_paused = False
        self._catch_up(self.machine)

    # Inputs.

    def give(self, act: Callable[[Any], None], subject: Any) -> None:
        """Take an input: now, or when the process runs again."""
        if self.is_held:
            self._inbox.append((act, subject))
            return
        self.clock.show(self.now, self._engine.now)
        try:
            act(subject)
            self.settle()
        except Exception as error:
            self._fail(error)
        if self.slowness:
            self._be_busy()

    def _fail(self, error: Exception) -> NoReturn:
        """A node that raises ends the run."""
        self.note("error", cause=type(error).__name__, detail=str(error))
        raise MachineError(f"{self.name} at {self._engine.now} us: {error!r}") from error

    def _be_busy(self) -> None:
        self.is_held = True
        self._engine.later(self.slowness, self._catch_up, self.machine)

    def _catch_up(self, machine: Machine | None) -> None:
        """Take the inputs that have waited, and timers that are due."""
        if machine is None or machine is not self.machine or self.is_paused:
            return
        self.is_held = False
        inbox, self._inbox = self._inbox, []
        inbox.append((self._tick_if_due, machine))
        self.give(self._take_in, inbox)

    def _take_in(self, inbox: list[tuple[Callable[[Any], None], Any]]) -> None:
        for act, subject in inbox:
            act(subject)

    def _tick_if_due(self, machine: Machine) -> None:
        if machine.deadline() <= self.now.mono:
            machine.tick(self.now)

    def rewind(self) -> None:
        """The clock has changed: compute anew when to wake."""
        if self.machine is not None:
            self._wake_at = NEVER
            self._wake_by(self.machine.deadline())

    def _wake_by(self, deadline: Millis) -> None:
        self._alarm = deadline
        if deadline < FOREVER:
            time = self.clock.when(deadline)
            if time < self._wake_at:
                self._wake_at = time
                self._engine.at(time, self._wake, time)

    def _wake(self, time: Micros) -> None:
        """The alarm, unless it has been reset."""
        machine = self.machine
        if machine is None or time != self._wake_at:
            return
        self._wake_at = NEVER
        if self.is_held:
            return
        deadline = machine.deadline()
        if self.clock.when(deadline) > self._engine.now:
            self._wake_by(deadline)
            return
        self.give(self._tick, machine)

    def _tick(self, machine: Machine) -> None:
        machine.tick(self.now)

    # Outputs.

    def settle(self) -> None:
        """The batch is complete: write its rows, carry out its output."""
        machine = self.machine
        if machine is None:
            return
        machine.complete()
        self._write(machine)
        if machine.state.out and not self._empty(machine):
            return
        if self.spiller is not None:
            self.spiller.settle(self.now)
        deadline = machine.deadline()
        if deadline < self._alarm or self._wake_at == NEVER:
            self._wake_by(deadline)

    def _empty(self, machine: Machine) -> bool:
        """Take and carry out until there is no more output. False if the process has ended."""
        journal = self.journal
        while True:
            out = machine.take()
            if journal is None or not journal.take(out):
                self.carry_out(machine, out)
                if machine is not self.machine:
                    return False
                if journal is None and not (out.resumed or out.chores or out.closes):
                    return True
            machine.complete()
            self._write(machine)
            if not machine.state.out:
                return True

    def carry_out(self, machine: Machine, out: Outbox) -> None:
        """Carry out a batch."""
        links, clients = self._links, self._clients
        if out.nodes_changed:
            self.nodes_conf = nodes_text(machine.state, handshakes=False)
        for link, ip, port in out.dials:
            links.dial(self, link, ip, port)
        for targets, message in out.messages:
            links.send(self, targets, whole_message(message) if self.spiller else message)
        for client, reply in out.replies:
            clients.reply(self, client, whole_reply(reply) if self.spiller else reply)
        for client in out.closes:
            clients.close(self, client)
        for link in out.hangups:
            links.hang_up(self, link)
        for client, chore in out.chores:
            self._do(machine, client, chore)
        for client in out.resumed:
            clients.resume(self, client)

    def _do(self, machine: Machine, client: Client, chore: Chore) -> None:
        """Do a chore, which always succeeds; DEBUG SLEEP takes no time."""
        if self.machine is not machine:
            return
        match chore:
            case Shutdown():
                self.stop()
            case ReadVitals():
                machine.done(client, Vitals(), self.now)
            case RaiseFileLimit():
                machine.done(client, chore.clients, self.now)
            case _:
                machine.done(client, None, self.now)

    # Rows.

    def _write(self, machine: Machine) -> None:
        if not machine.state.trace:
            return
        trace, machine.state.trace = machine.state.trace, []
        add, vector, now = self._recorder.add, self.vector, self.now
        time, name, mono, wall = self._engine.now, self.name, now.mono, now.wall
        for event in trace:
            client = self._clients.client_name(self, event.client) if event.client else ""
            peer = self._names.get(event.peer, "?") if event.peer else ""
            add(
                (
                    time, event.kind._value_, name, event.job.decode("latin-1"),
                    event.queue.decode("utf-8", "replace"), client, peer, event.cause._value_,
                    event.detail, 0, mono, wall, vector.tick(),
                )
            )  # fmt: skip

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
