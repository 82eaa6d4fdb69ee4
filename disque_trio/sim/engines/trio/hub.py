"""The hub of a simulated node, and the other ports that are no connections (`disque_trio.ports`).

A hub takes inputs and gives them to its node in batches, as the real one does with input from
sockets; without inputs it sleeps until the node's deadline, on Trio's clock.
"""

import math
from collections import deque
from collections.abc import Callable
from typing import Protocol

import trio

from disque_trio.driver.sessions import LinkSession
from disque_trio.node import Node
from disque_trio.ports import LinkPort
from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.simulated_thread import SimulatedThread, Then
from disque_trio.sim.model.clock import NodeClock
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.base import FOREVER, Millis, Now
from disque_trio.statemachine.chores import Shutdown, Vitals
from disque_trio.statemachine.config import Config

Act = Callable[[Node], None]
"""An input to a node."""


class SimulatedHost(Protocol):
    """What the hub and the ports need of the host on which their node runs."""

    clock: NodeClock
    live: Engine
    now: Now
    nodes_conf: bytes
    slowness: Micros
    is_paused: bool

    def write_rows(self) -> None:
        """Write the rows of what the machine has done."""


class HostClock:
    """The clocks of a simulated host, as its node reads them."""

    def __init__(self, host: SimulatedHost) -> None:
        self._host = host

    def now(self) -> Now:
        """Both clocks."""
        return self._host.clock.now(self._host.live.sync())

    def seconds_until(self, mono: Millis) -> float:
        """The same duration on a true clock, as Trio's is."""
        if mono >= FOREVER:
            return math.inf
        host = self._host
        return max(0, host.clock.when(mono) - host.live.sync()) / 1_000_000


class PromptThread(SimulatedThread):
    """The `DiskThread` of a disk that never fails, and takes no time."""

    def _begin(self, act: Callable[[], object], then: Then, *, syncs: bool) -> None:  # noqa: ARG002
        self._finish(act, then)


class HostStore:
    """A disk that never fails."""

    def __init__(self, host: SimulatedHost) -> None:
        self._host = host

        self.thread = PromptThread()

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


class Dialler(Protocol):
    """Opens links."""

    def __call__(self, session: LinkSession, ip: str, port: int) -> LinkPort:
        """Open one."""


class SimHub:
    """Gives inputs to one life of a node."""

    def __init__(self, host: SimulatedHost, dial: Dialler, opened: Callable[[], None]) -> None:
        """`opened` is called when the node takes inputs."""
        self.is_dead = False
        """The process has been killed: it does nothing more, whatever it was doing."""
        self.is_open = False
        """Inputs reach the node; not before it has read the journal."""
        self._host = host
        self._is_listening = True
        self._open = dial
        self._opened = opened
        self._is_woken = False
        self._inputs: deque[Act] = deque()
        self._came = trio.Event()

    # For the world.

    def put(self, act: Act) -> None:
        """Add an input to the next batch."""
        if self._is_listening:
            self._inputs.append(act)
        self.wake()

    # For the node.

    def wake(self) -> None:
        """Begin a batch soon: something about the host, its node or its disk has changed."""
        self._is_woken = True
        self._came.set()

    def wake_from_thread(self) -> None:
        """Where there are no threads, the same."""
        self.wake()

    def dial(self, session: LinkSession, ip: str, port: int) -> LinkPort:
        """Open a link."""
        return self._open(session, ip, port)

    def open_clients(self) -> None:
        """Clients wait until the node has loaded its jobs, and are not told LOADING."""

    def open_bus(self) -> None:
        """The node has loaded its jobs."""
        self.is_open = True
        self._opened()

    def stop_listening(self) -> None:
        """The node is stopping, and gets no more inputs."""
        self._inputs.clear()
        self._is_listening = False

    def has_unsent(self) -> bool:
        """Never: output leaves at once."""
        return False

    async def run(
        self, node: Node, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Give inputs to the node until it is over or cancelled."""
        task_status.started()
        node.start()
        try:
            while not node.life.is_over:
                await self._wait(node)
                self._batch(node)
                await trio.sleep(self._host.slowness / 1_000_000)
        finally:
            node.end()

    async def _wait(self, node: Node) -> None:
        """Wait until there is something to do and the process may do it."""
        while True:
            self._came = trio.Event()
            if self.is_dead or self._host.is_paused:
                seconds = math.inf
            elif node.is_napping:
                seconds = node.seconds_left()
            elif self._is_woken or (self._inputs and self.is_open):
                return
            else:
                seconds = node.seconds_left()
                if not seconds:
                    return
            with trio.move_on_after(seconds):
                await self._came.wait()

    def _batch(self, node: Node) -> None:
        host = self._host
        self._is_woken = False
        node.begin()
        host.now = node.now
        inputs: deque[Act] = deque()
        if self.is_open:
            inputs, self._inputs = self._inputs, inputs
        for act in inputs:
            act(node)
            host.write_rows()
        node.settle()
        host.write_rows()
