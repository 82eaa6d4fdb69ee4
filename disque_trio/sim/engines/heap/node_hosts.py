"""A host whose processes are whole nodes: `disque_trio.node.Node` with simulated ports.

Each life has a `SimEventLoop`, which collects inputs and gives them to the node in batches. A
`Driver`, on the event heap or in a Trio task, decides when a batch begins. The node's tasks, its
journal and its driver are those of the server. With `appendonly yes` the journal is a file on the
host's disk, and the next life loads what has survived there.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol

from disque_trio.driver.sessions import LinkSession
from disque_trio.node import Node
from disque_trio.ports import Courier, LinkPort
from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.nodes import PORT, Host, MachineError, MachineFactory, Site
from disque_trio.sim.engines.heap.ports import (
    HostClock,
    HostProcess,
    NoLog,
    SpillInMemory,
    TableStore,
)
from disque_trio.sim.engines.heap.store import DiskStore
from disque_trio.sim.engines.task_errors import root_of
from disque_trio.sim.model.disk import Found
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.random_streams import stream
from disque_trio.statemachine import limiting
from disque_trio.statemachine.base import CAPABILITIES, MYSELF, ClientId, LinkId, NodeId
from disque_trio.statemachine.chores import Shutdown
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.messages import Frame
from disque_trio.statemachine.nodesfile import nodes_text, parse_limits, parse_nodes
from disque_trio.statemachine.stats import Facts
from disque_trio.storage.journal import Journal
from disque_trio.storage.spill import Spiller

START_AGAIN: Final = 1_000_000
"""Microseconds until a process that could not start is started again."""

Act = Callable[[Node, Any], None]
"""An input to a node: a function, called with the node and the subject."""


class Driver(Protocol):
    """Runs the batches of one life of a node."""

    def begin(self) -> None:
        """Start the node."""

    def put(self, act: Act, subject: Any) -> None:
        """An input has arrived."""

    def wake(self) -> None:
        """Start a batch soon, or compute again when the next one starts."""

    def kill(self) -> None:
        """End the process at once."""

    async def run(self) -> None:
        """Run batches until the node has ended, if the driver needs a task for that."""


class NodeLinks(Protocol):
    """The links of a run, as a host uses them."""

    def open(self, host: "NodeHost", session: LinkSession, ip: str, port: int) -> LinkPort:
        """A node dials."""

    def pass_on(self, host: "NodeHost", targets: Sequence[LinkId], frame: Frame) -> None:
        """Send a frame on these links as an object."""


class SimEventLoop:
    """The event loop of one life of a node."""

    node: Node
    driver: Driver
    """The host sets both as soon as it has created them."""

    def __init__(self, host: "NodeHost", links: NodeLinks, encodes_every: int) -> None:
        """One batch in `encodes_every` is sent as bytes."""
        self.is_dead = False
        """The process has been killed: nothing else happens."""
        self.is_open = False
        """Inputs reach the node: it has loaded its journal."""
        self.is_listening = True
        self.is_woken = False
        self.inputs: list[tuple[Act, Any]] = []
        self._host = host
        self._links = links
        self._courier: Courier = partial(links.pass_on, host)
        self._encodes_every = encodes_every
        self._sendings = 0

    # For the world.

    def put(self, act: Act, subject: Any) -> None:
        """Add an input to the next batch."""
        self.driver.put(act, subject)

    # For the node.

    def wake(self) -> None:
        """Start a batch soon: something about the host, its node or its disk has changed."""
        self.is_woken = True
        self.driver.wake()

    def wake_from_thread(self) -> None:
        """The same as `wake`: there are no threads."""
        self.wake()

    def dial(self, session: LinkSession, ip: str, port: int) -> LinkPort:
        """Open a link."""
        return self._links.open(self._host, session, ip, port)

    def courier(self) -> Courier | None:
        """Return the courier for most messages, which passes them as objects: encoding and parsing
        would cost more than everything else."""
        self._sendings += 1
        return self._courier if self._sendings % self._encodes_every else None

    def open_clients(self) -> None:
        """Do nothing: clients wait until the node has loaded its jobs, and receive no LOADING."""

    def open_bus(self) -> None:
        """The node has loaded its jobs."""
        self.is_open = True
        self._host.has_loaded()

    def stop_listening(self) -> None:
        """The node is stopping, and receives no more inputs."""
        self.inputs.clear()
        self.is_listening = False

    def has_unsent(self) -> bool:
        """Return False: output is sent at once."""
        return False

    async def run(self, node: Node, *, task_status: Any = None) -> None:  # noqa: ARG002
        """Run the node in this task, if its driver needs one."""
        if task_status is not None:
            task_status.started()
        await self.driver.run()

    # For the driver.

    @property
    def has_work(self) -> bool:
        """Is there a reason for a batch other than the node's deadline?"""
        return self.is_woken or (self.is_open and bool(self.inputs))

    def batch(self, inputs: Sequence[tuple[Act, Any]] = ()) -> None:
        """Run one batch with these inputs, after the pending ones."""
        node, host = self.node, self._host
        self.is_woken = False
        node.begin()
        host.now = node.now
        if self.is_open and self.inputs:
            inputs, self.inputs = [*self.inputs, *inputs], []
        for act, subject in inputs:
            act(node, subject)
            host.write_rows()
        node.settle()
        host.write_rows()


Drive = Callable[["NodeHost", SimEventLoop], Driver]
"""Creates the driver of a life."""


class NodeHost(Host):
    """A host on which nodes run."""

    def __init__(
        self,
        engine: Engine,
        recorder: Recorder,
        site: Site,
        *,
        links: NodeLinks,
        crashed: "Callable[[NodeHost], None]",
        factory: MachineFactory,
        drive: Drive,
        encodes_every: int,
    ) -> None:
        """`crashed` is called when a process has ended."""
        super().__init__(engine, recorder, site)
        self._links = links
        self.clients: dict[ClientId, str] = {}
        """The names of the agents, by client id of the node."""
        self._crashed = crashed
        self._factory = factory
        self._drive = drive
        self._encodes_every = encodes_every
        self.event_loop: SimEventLoop | None = None
        """The event loop of the present life."""
        self._store: DiskStore | None = None
        self._found: Found | None = None
        """The content of the journal, until the node has loaded it."""

    # Its state.

    @property
    def is_up(self) -> bool:
        """Is there a process?"""
        return self.machine is not None

    @property
    def is_settled(self) -> bool:
        """Has a node loaded its journal?"""
        return self.event_loop is not None and self.event_loop.is_open

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

    def start(self, cause: str, others: Sequence[Peer] = ()) -> None:
        """Start the process, with the nodes in nodes.conf, or with `others` if there is none."""
        site, config = self._site, self._site.config
        self.lives += 1
        self.now = self.clock.now(self._engine.now)
        rng = stream(site.seed, "node", self.number, self.lives)
        myself = Peer(self.id, "", PORT, MYSELF)
        if self.nodes_conf:
            myself, others = parse_nodes(self.nodes_conf)
        versions = site.capabilities or (CAPABILITIES,)
        capabilities = versions[min(self.lives, len(versions)) - 1]
        facts = Facts(port=PORT, knobs=site.knobs, capabilities=capabilities)
        machine = self._factory(config, myself, rng, self.now, facts, list(others))
        self.machine = machine
        limiting.restore(machine.state, parse_limits(self.nodes_conf))
        machine.state.trace = []
        self.nodes_conf = nodes_text(machine.state, handshakes=False)
        self.is_paused = self.is_stopping = self.starts_again = False
        found = self.disk.load() if config.appendonly else None
        self._found = found if cause != "fresh" else None
        self.note("start", cause=self._found.start if self._found else cause)
        self.event_loop = event_loop = SimEventLoop(self, self._links, self._encodes_every)
        journal = None
        if config.appendonly:
            self._store = DiskStore(self._engine, self.disk)
            journal = Journal(self._store, machine.state, NoLog())
        clock = HostClock(self.clock, self._engine)
        event_loop.node = node = Node(
            machine, clock, event_loop, TableStore(self), HostProcess(), NoLog(), journal
        )
        if config.spill_directory:
            node.spiller = Spiller(machine, SpillInMemory())
        event_loop.driver = self._drive(self, event_loop)
        event_loop.driver.begin()

    def has_loaded(self) -> None:
        """The node accepts inputs."""
        if self.event_loop is not None:
            self.now = self.event_loop.node.now
        self.write_rows()
        found, self._found = self._found, None
        if found is not None:
            self.note("loaded", cause=found.how, detail=f"records={len(found.records)}")

    def fail(self, error: Exception) -> None:
        """End the run with an error, because the node has raised an exception."""
        error = root_of(error)
        self.note("error", cause=type(error).__name__, detail=str(error))
        raise MachineError(f"{self.name} at {self._engine.now} us: {error!r}") from error

    def has_ended(self) -> None:
        """The process has ended by itself."""
        assert self.event_loop is not None, "an event loop that is dead tells of no end"
        node = self.event_loop.node
        self.now = node.now
        self.write_rows()
        if not node.life.failure:
            self.end(has_queues=self.disk.is_sealed())
            return
        self.crash("failure")
        # A supervisor would restart it.
        self._engine.later(START_AGAIN, self._start_again, self.lives)

    def _start_again(self, life: int) -> None:
        if self.machine is None and self.lives == life:
            self.start("empty")

    def stop(self) -> bool:
        """Send SIGTERM, which a paused process receives when it resumes."""
        event_loop = self.event_loop
        if event_loop is None or self.is_stopping:
            return False
        self.is_stopping = True
        if event_loop.is_open:
            event_loop.put(_terminate, None)
        else:
            _terminate(event_loop.node, None)
        return True

    def crash(self, cause: str, detail: str = "") -> None:
        """End the process at once, whatever the node is doing."""
        self.note("crash", cause=cause, detail=detail)
        event_loop, self.event_loop = self.event_loop, None
        if event_loop is not None:
            event_loop.is_dead = True
            if self._store is not None:
                self._store.thread.end()
            event_loop.driver.kill()
        if cause == "power":
            self.disk.lose_power()
        self.machine = None
        self.clients = {}
        self._store = None
        self.is_paused = self.is_stopping = self.starts_again = False
        self._crashed(self)

    def rewind(self) -> None:
        """Compute the next wake-up again: the clock has changed, or the process has resumed."""
        if self.event_loop is not None:
            self.event_loop.driver.wake()

    # Rows.

    def write_rows(self) -> None:
        """Write the rows of the machine's trace."""
        machine = self.machine
        if machine is None or not machine.state.trace:
            return
        trace, machine.state.trace = machine.state.trace, []
        add, vector, now = self._recorder.add, self.vector, self.now
        names, clients = self._site.names, self.clients
        time, name, mono, wall = self._engine.now, self.name, now.mono, now.wall
        for event in trace:
            client = clients.get(event.client, "")
            peer = names.get(event.peer, "?") if event.peer else ""
            add(
                (
                    time, event.kind._value_, name, event.job.decode("latin-1"),
                    event.queue.decode("utf-8", "replace"), client, peer, event.cause._value_,
                    event.detail, 0, mono, wall, vector.tick(),
                )
            )  # fmt: skip


def _terminate(node: Node, _subject: object) -> None:
    node.stop(Shutdown(), "SIGTERM")
