"""A simulated host whose node is driven by the event heap."""

from disque_trio.node import Node
from disque_trio.sim.engines.trio.hosts import NodeHost
from disque_trio.sim.engines.trio.hub import SimHub
from disque_trio.sim.engines.virtual.hub import HeapHub


class VirtualHost(NodeHost):
    """A host without tasks."""

    hub_kind = HeapHub

    def _launch(self, node: Node, hub: SimHub) -> None:
        assert isinstance(hub, HeapHub)
        hub.run_batch = self._run_batch
        hub.begin(node, self._engine)

    def _kill(self) -> None:
        self._node.end()

    def _run_batch(self, node: Node) -> None:
        hub = self.hub
        assert isinstance(hub, HeapHub)
        try:
            hub.batch(node)
        except Exception as error:
            self._fail(error)
        if not hub.is_dead and node.life.is_over:
            node.end()
            self.now = node.now
            self.write_rows()
            self._ended(node)
