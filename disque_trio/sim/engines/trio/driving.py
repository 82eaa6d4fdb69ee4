"""Drives a node in a Trio task, like a process of its own."""

import math
from typing import Any

import trio

from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.node_hosts import Act, NodeHost, SimEventLoop


class TaskDriver:
    """The `Driver` of one life: without inputs it sleeps until the node's deadline."""

    def __init__(
        self, host: NodeHost, event_loop: SimEventLoop, engine: Engine, nursery: trio.Nursery
    ) -> None:
        self._host = host
        self._event_loop = event_loop
        self._node = event_loop.node
        self._engine = engine
        self._nursery = nursery
        self._scope = trio.CancelScope()
        self._came = trio.Event()

    def begin(self) -> None:
        """Start the task."""
        self._nursery.start_soon(self._live)

    def put(self, act: Act, subject: Any) -> None:
        """Add an input to the next batch."""
        if self._event_loop.is_listening:
            self._event_loop.inputs.append((act, subject))
        self._came.set()

    def wake(self) -> None:
        """Wake the task."""
        self._came.set()

    def kill(self) -> None:
        """End the task, wherever it is."""
        self._scope.cancel()

    async def _live(self) -> None:
        host, event_loop, node = self._host, self._event_loop, self._node
        try:
            with self._scope:
                await node.run()
        except Exception as error:
            self._engine.sync()
            host.fail(error)
        finally:
            node.end()
        if not event_loop.is_dead:
            self._engine.sync()
            host.has_ended()

    async def run(self) -> None:
        """Run one batch after another."""
        node = self._node
        node.start()
        while not node.life.is_over:
            await self._wait()
            self._event_loop.batch()
            await trio.sleep(self._host.slowness / 1_000_000)

    async def _wait(self) -> None:
        """Wait until there is work and the process may run."""
        event_loop, node = self._event_loop, self._node
        while True:
            self._came = trio.Event()
            if event_loop.is_dead or self._host.is_paused:
                seconds = math.inf
            elif event_loop.has_work and not node.is_napping:
                return
            else:
                seconds = node.seconds_left()
                if not seconds and not node.is_napping:
                    return
            with trio.move_on_after(seconds):
                await self._came.wait()
