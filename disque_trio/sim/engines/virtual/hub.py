"""The hub of a node on the event heap: a batch is an event, or follows an input at once."""

from collections.abc import Callable

from disque_trio.node import Node
from disque_trio.sim.engines.events import NEVER, Engine
from disque_trio.sim.engines.trio.hub import Act, SimHub
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.base import FOREVER


class HeapHub(SimHub):
    """Gives inputs to one life of a node, when the heap says so."""

    node: Node
    engine: Engine
    run_batch: Callable[[Node], None]
    """Calls `batch`, and deals with what it raises and with the end of the node."""
    _batch_at: Micros = NEVER
    """The time of the next batch."""
    _busy_until: Micros = -NEVER
    """The last batch of a slow process takes so long."""
    _is_in_batch = False

    def begin(self, node: Node, engine: Engine) -> None:
        """Start the node; its first batch is an event of now."""
        self.node, self.engine = node, engine
        node.start()
        self._plan()

    def put(self, act: Act) -> None:
        """Add an input to the next batch, which is now, unless the process is busy."""
        if self._is_listening:
            self._inputs.append(act)
        if self.is_open and not self._is_in_batch and self._may_run():
            self._run()
        else:
            self._plan()

    def wake(self) -> None:
        """Begin a batch soon."""
        self._is_woken = True
        self._plan()

    def batch(self, node: Node) -> None:
        """One batch."""
        self._batch(node)

    def _may_run(self) -> bool:
        now = self.engine.now
        return not (self._host.is_paused or self._busy_until > now or self.node.is_napping)

    def _plan(self) -> None:
        """Plan the next batch, or plan it earlier than it is planned."""
        node, host = self.node, self._host
        if self.is_dead or host.is_paused:
            return
        at = self.engine.now
        if node.is_napping or not (self._is_woken or (self._inputs and self.is_open)):
            deadline = node.deadline()
            if deadline >= FOREVER:
                return
            at = max(at, host.clock.when(deadline))
        at = max(at, self._busy_until)
        if at < self._batch_at:
            self._batch_at = at
            self.engine.at(at, self._due, at)

    def _due(self, at: Micros) -> None:
        """The time of a batch, unless it is planned for another by now, or there is no need."""
        if at != self._batch_at or self.is_dead:
            return
        self._batch_at = NEVER
        needed = self._is_woken or (self._inputs and self.is_open)
        if self._may_run() and (needed or self._host.clock.when(self.node.deadline()) <= at):
            self._run()
        else:
            self._plan()

    def _run(self) -> None:
        self._is_in_batch = True
        self.run_batch(self.node)
        self._is_in_batch = False
        self._busy_until = self.engine.now + self._host.slowness
        if not self.node.life.is_over:
            self._plan()
