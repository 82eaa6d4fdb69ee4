"""What faults do to processes."""

from typing import Final

from disque_trio.sim.engines.heap.fault_actions import FaultActions
from disque_trio.sim.engines.heap.nodes import Host
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.base import NodeId

AGAIN: Final[Micros] = 500_000
TRIES: Final = 60


class ProcessFaultActions(FaultActions):
    """As in the other engines, but processes take time."""

    def crash(self, node: int, cause: str) -> bool:
        """End it, and write the row afterwards: until then the process writes rows itself."""
        host = self._hosts[node]
        if not host.is_up:
            return False
        if cause == "stop":
            return host.stop()
        host.crash(cause)
        host.note("crash", cause=cause)
        return True

    def meet(self, node: int) -> bool:
        """All others meet the node. It may not listen yet, so they try again until they know it."""
        host = self._hosts[node]
        self._introduce(host, host.id, TRIES)
        return True

    def _introduce(self, host: Host, name: NodeId, tries: int) -> None:
        if host.id != name:
            return
        others = [other for other in self._others(host) if other.is_up and not other.knows(name)]
        for other in others:
            self._world.meet(other, host)
        if others and tries:
            self.later(AGAIN, lambda: self._introduce(host, name, tries - 1))
