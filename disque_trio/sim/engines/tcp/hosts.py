"""A host of the tcp engine: a process of the server, started and ended by its id."""

import random
from collections.abc import Sequence
from typing import Final

from disque_trio.sim.engines.heap.nodes import Host, MachineError, Site
from disque_trio.sim.engines.live_events import LiveEngine
from disque_trio.sim.engines.tcp.addresses import NodeAddresses
from disque_trio.sim.engines.tcp.pairing import NodeTrace
from disque_trio.sim.engines.tcp.processes import NodeProcess
from disque_trio.sim.engines.tcp.trace_reader import TraceReader
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.base import MYSELF, NodeId, Now
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.nodesfile import nodes_text
from disque_trio.statemachine.stats import Facts
from disque_trio.statemachine.wording import short_name

STOPS_WITHIN: Final[Micros] = 30_000_000
"""How long a process may take to end after SIGTERM. It waits a few seconds for its clients."""


class ProcessHost(Host):
    """A host with a process, which is observed from outside."""

    def __init__(
        self,
        engine: LiveEngine,
        recorder: Recorder,
        site: Site,
        addresses: NodeAddresses,
        process: NodeProcess,
    ) -> None:
        self._live = engine
        self._stop_by: Micros = 0
        self.addresses = addresses
        self.process = process
        self.tail = TraceReader(process.trace)
        self.links: frozenset[NodeId] = frozenset()
        """The nodes to which it had links at the last poll."""
        self.ids: dict[NodeId, None] = {}
        """All ids that it has had."""
        self.starts_fresh = True
        """The next life is the first one with its id."""
        super().__init__(engine, recorder, site)
        self.ip = addresses.seen(self.number)

    # Its state.

    @property
    def is_up(self) -> bool:
        """Is there a process?"""
        return self.process.is_running

    def has_jobs(self) -> bool:
        """Does its node have a record of any job, in the trace read so far?"""
        return self.is_up and bool(self.tail.held)

    def knows(self, other: NodeId) -> bool:
        """Does it have a link to the other node? If not, an unnecessary MEET does no harm."""
        return other in self.links

    def is_linked_to(self, other: NodeId) -> bool:
        """Did it have a link to the other node at the last poll?"""
        return other in self.links

    # Its life.

    def new_identity(self) -> None:
        """Set a new id for the next life."""
        super().new_identity()
        self.ids[self.id] = None
        if self.lives:
            self.process.forget()
            self.starts_fresh = True

    def start(self, cause: str, others: Sequence[Peer] = ()) -> None:  # noqa: ARG002
        """Start the process; the node's own trace has the row."""
        if self.starts_fresh:
            self.process.introduce(self._first_table(others))
            self.starts_fresh = False
        self.lives += 1
        self.is_stopping = False
        self.is_paused = False
        self.tail.begin()
        self.process.start()

    def _first_table(self, others: Sequence[Peer]) -> bytes:
        """Return a nodes.conf with the id from the plan's seed."""
        port = self.addresses.port
        peers = [Peer(other.id, other.ip, port) for other in others]
        myself = Peer(self.id, "", port, MYSELF)
        machine = Machine(
            self._site.config, myself, random.Random(0), Now(0, 0), Facts(port=port), peers
        )
        return nodes_text(machine.state, handshakes=False)

    def stop(self) -> bool:
        """Send SIGTERM; the process ends later. Return False if it is already stopping or not
        running."""
        if self.is_stopping or not self.is_up:
            return False
        self.is_stopping = True
        self._stop_by = self._live.now + STOPS_WITHIN
        self.process.terminate()
        return True

    def look_after(self) -> None:
        """Record that a process has ended after SIGTERM. Raise `MachineError` if one has ended by
        itself, or does not end."""
        has_ended = self.process.has_ended_by_itself
        if has_ended and self.is_stopping:
            self.end()
        elif has_ended:
            raise MachineError(f"{self.name} has ended by itself: {self.process.log[-2000:]}")
        elif self.is_stopping and self._live.now > self._stop_by and not self.is_paused:
            raise MachineError(
                f"{self.name} has not ended after SIGTERM: {self.process.log[-2000:]}"
            )

    def crash(self, cause: str, detail: str = "") -> None:
        """Send SIGKILL; after an orderly stop there is no process left. Until then the process
        itself may write rows."""
        self.is_stopping = False
        self.is_paused = False
        self.links = frozenset()
        self.process.kill()
        self.note("crash", cause=cause, detail=detail)

    def pause(self) -> None:
        """Send SIGSTOP."""
        self.is_paused = True
        self.process.freeze()

    def resume(self) -> None:
        """Send SIGCONT."""
        self.is_paused = False
        self.process.thaw()

    def trace(self) -> NodeTrace:
        """Return all rows of all its lives."""
        shorts = tuple(short_name(id) for id in self.ids)
        return NodeTrace(self.name, shorts, self.tail.rows, self.tail.begins)

    def note(self, kind: str, *, peer: str = "", cause: str = "", detail: str = "") -> None:
        """Write a row about the node, without its clocks. Ending a process takes time, in which it
        may write rows, so the time is read again."""
        now = self._live.sync()
        self._recorder.add((now, kind, self.name, "", "", "", peer, cause, detail, 0, 0, 0, ()))
