"""Drives a node on the event heap: a batch is an event, or follows an input at once."""

from typing import Any

from disque_trio.sim.engines.events import NEVER, Engine
from disque_trio.sim.engines.heap.node_hosts import Act, NodeHost, SimEventLoop
from disque_trio.sim.model.clock import NodeClock
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.base import FOREVER, Millis


class HeapDriver:
    """The `Driver` of one life."""

    def __init__(
        self, host: NodeHost, event_loop: SimEventLoop, clock: NodeClock, engine: Engine
    ) -> None:
        self._host = host
        self._event_loop = event_loop
        self._node = event_loop.node
        self._clock = clock
        self._engine = engine
        self._batch_at: Micros = NEVER
        """The time of the next batch."""
        self._alarm: Millis = FOREVER
        """The node's deadline for which the next batch is planned; FOREVER if it is planned for
        another reason."""
        self._busy_until: Micros = -NEVER
        """When the last batch of a slow process ends."""
        self._is_in_batch = False

    def begin(self) -> None:
        """Start the node, with its first batch."""
        self._node.start()
        self._run()

    def put(self, act: Act, subject: Any) -> None:
        """Start a batch with this input now, unless the process is busy."""
        event_loop = self._event_loop
        if not event_loop.is_listening:
            return
        if event_loop.is_open and not self._is_in_batch and self._may_run():
            self._run((act, subject))
        else:
            event_loop.inputs.append((act, subject))
            self._plan()

    def wake(self) -> None:
        """Plan the next batch again."""
        self._alarm = FOREVER
        if not self._is_in_batch:
            self._plan()

    def kill(self) -> None:
        """Drop what is in progress."""
        self._node.end()

    async def run(self) -> None:
        """Events need no task."""

    def _may_run(self) -> bool:
        return not (
            self._host.is_paused or self._busy_until > self._engine.now or self._node.is_napping
        )

    def _plan(self) -> None:
        """Plan the next batch, or move it to an earlier time."""
        node, event_loop = self._node, self._event_loop
        if event_loop.is_dead or self._host.is_paused:
            return
        at = self._engine.now
        if not event_loop.has_work or node.is_napping:
            deadline = node.deadline()
            if deadline == self._alarm and self._batch_at < NEVER:
                return
            if deadline >= FOREVER:
                return
            self._alarm = deadline
            at = max(at, self._clock.when(deadline))
        at = max(at, self._busy_until)
        if at < self._batch_at:
            self._batch_at = at
            self._engine.at(at, self._due, at)

    def _due(self, at: Micros) -> None:
        """Run the batch planned for this time, unless it has been moved, or there is no work."""
        if at != self._batch_at or self._event_loop.is_dead:
            return
        self._batch_at = NEVER
        if self._may_run() and (
            self._event_loop.has_work or self._clock.when(self._node.deadline()) <= at
        ):
            self._run()
        else:
            self._plan()

    def _run(self, *inputs: tuple[Act, Any]) -> None:
        host, event_loop, node = self._host, self._event_loop, self._node
        self._is_in_batch = True
        try:
            event_loop.batch(inputs)
        except Exception as error:
            host.fail(error)
        self._is_in_batch = False
        if host.slowness:
            self._busy_until = self._engine.now + host.slowness
        if not node.life.is_over:
            self._plan()
        elif not event_loop.is_dead:
            node.end()
            host.has_ended()
