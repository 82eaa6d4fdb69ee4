"""The hub of a simulated node: takes inputs, and gives them to the node in batches.

When a batch begins is the business of a `Driver`: the event heap's, or a task of Trio.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from disque_trio.driver.sessions import LinkSession
from disque_trio.node import Node
from disque_trio.ports import Courier, LinkPort
from disque_trio.sim.engines.heap.nodes import Host

Act = Callable[[Node, Any], None]
"""An input to a node, with what it is about."""


class HubHost(Host):
    """A host on which nodes run, for their hubs, drivers and links."""

    # Not a protocol: the compiled form looks up the attributes of one by name.
    hub: "SimHub | None"
    """The hub of the present life."""

    @abstractmethod
    def write_rows(self) -> None:
        """Write the rows of what the machine has done."""

    @abstractmethod
    def has_loaded(self) -> None:
        """The node takes inputs."""

    @abstractmethod
    def fail(self, error: Exception) -> None:
        """The node has raised: raise an error that ends the run."""

    @abstractmethod
    def has_ended(self) -> None:
        """The process has ended by itself."""


class Driver(Protocol):
    """Runs the batches of one life of a node."""

    def begin(self) -> None:
        """Start the node."""

    def put(self, act: Act, subject: Any) -> None:
        """An input has come."""

    def wake(self) -> None:
        """Begin a batch soon, or compute anew when the next one begins."""

    def kill(self) -> None:
        """The process is gone, whatever it was doing."""

    async def run(self) -> None:
        """Run batches until the node is over, if they need a task for that."""


Dialler = Callable[[LinkSession, str, int], LinkPort]


class SimHub:
    """The hub of one life of a node."""

    node: Node
    driver: Driver
    """The host sets both, as soon as they can be made."""

    def __init__(self, host: HubHost, dial: Dialler, courier: Courier, encodes_every: int) -> None:
        """One batch in `encodes_every` is sent as bytes, the others by `courier`."""
        self.is_dead = False
        """The process has been killed: it does nothing more."""
        self.is_open = False
        """Inputs reach the node; not before it has read the journal."""
        self.is_listening = True
        self.is_woken = False
        self.inputs: list[tuple[Act, Any]] = []
        self._host = host
        self._open = dial
        self._courier = courier
        self._encodes_every = encodes_every
        self._sendings = 0

    # For the world.

    def put(self, act: Act, subject: Any) -> None:
        """Add an input to the next batch."""
        self.driver.put(act, subject)

    # For the node.

    def wake(self) -> None:
        """Begin a batch soon: something about the host, its node or its disk has changed."""
        self.is_woken = True
        self.driver.wake()

    def wake_from_thread(self) -> None:
        """Where there are no threads, the same."""
        self.wake()

    def dial(self, session: LinkSession, ip: str, port: int) -> LinkPort:
        """Open a link."""
        return self._open(session, ip, port)

    def courier(self) -> Courier | None:
        """Most messages travel as they are: encoding and parsing them costs more than the rest."""
        self._sendings += 1
        return self._courier if self._sendings % self._encodes_every else None

    def open_clients(self) -> None:
        """Clients wait until the node has loaded its jobs, and are not told LOADING."""

    def open_bus(self) -> None:
        """The node has loaded its jobs."""
        self.is_open = True
        self._host.has_loaded()

    def stop_listening(self) -> None:
        """The node is stopping, and gets no more inputs."""
        self.inputs.clear()
        self.is_listening = False

    def has_unsent(self) -> bool:
        """Never: output leaves at once."""
        return False

    async def run(self, node: Node, *, task_status: Any = None) -> None:  # noqa: ARG002
        """Run the node in this task, if its driver needs one."""
        if task_status is not None:
            task_status.started()
        await self.driver.run()

    # For the driver.

    @property
    def has_work(self) -> bool:
        """Is there a reason for a batch, the node's deadline apart?"""
        return self.is_woken or (self.is_open and bool(self.inputs))

    def batch(self, inputs: Sequence[tuple[Act, Any]] = ()) -> None:
        """One batch of these inputs after those that wait."""
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
