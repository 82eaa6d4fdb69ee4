"""Inspects nodes during a run: the invariants of their states, and their node tables.

Rows of jobs and messages show neither. Every simulated second all node tables are read, and
`invariants.check` examines the whole state of one node in turn; after each planned fault, and at
the end, the states of all nodes. A violated invariant writes a row ``invariant``. A changed node
table writes a row ``nodes``; an unchanged one does so every few seconds. `checkers.tables` judges
both.
"""

from typing import Final

from disque_trio.sim.engines.heap.nodes import PORT, Host
from disque_trio.sim.engines.heap.world import World
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine import invariants
from disque_trio.statemachine.base import FAIL, HANDSHAKE, LEAVING, NOADDR, PFAIL
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.machine import Machine

EVERY: Final[Micros] = 1_000_000
SAY_AGAIN: Final = 5
"""After this many looks, a table is written even if it has not changed."""
MANY: Final = 500
"""For each further `MANY` jobs of a node, one more look skips the states, because the check takes
long."""
_MOST: Final = 300
_FLAGS: Final = ((PFAIL, "pfail"), (FAIL, "fail"), (NOADDR, "noaddr"), (LEAVING, "leaving"))


class Inspection:
    """The inspection of one run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._engine = world.engine
        self._recorder = world.recorder
        self._looks = 0
        self._rest = 0
        """The number of looks to come that check no state."""
        self._last_tables: dict[str, str] = {}

    def begin(self) -> None:
        """Start to look every second."""
        self._engine.later(EVERY, self._look, None)

    def look_at_all(self) -> None:
        """Inspect the state and the table of every node."""
        for host in self._world.hosts.values():
            self._check(host)
            self._read_table(host, is_due=True)

    def check_all(self) -> None:
        """Check the state of every node, unless they are too large for that."""
        if not self._rest:
            for host in self._world.hosts.values():
                self._check(host)

    def _look(self, _subject: object) -> None:
        self._looks += 1
        is_due = self._looks % SAY_AGAIN == 0
        hosts = list(self._world.hosts.values())
        for host in hosts:
            self._read_table(host, is_due=is_due)
        if self._rest:
            self._rest -= 1
        else:
            self._check(hosts[self._looks % len(hosts)])
        self._engine.later(EVERY, self._look, None)

    def _check(self, host: Host) -> None:
        machine = host.machine
        if machine is None or not host.is_settled:
            return
        self._rest = max(self._rest, len(machine.state.jobs) // MANY)
        try:
            invariants.check(machine.state)
        except Exception as error:
            self._say("invariant", host, f"{type(error).__name__}: {error}"[:_MOST])

    def _read_table(self, host: Host, *, is_due: bool) -> None:
        if host.machine is None or host.is_paused:
            self._last_tables.pop(host.name, None)
            return
        table = self._table(host.machine)
        if is_due or table != self._last_tables.get(host.name):
            self._last_tables[host.name] = table
            self._say("nodes", host, table)

    def _table(self, machine: Machine) -> str:
        cluster = machine.state.cluster
        return " ".join(
            [
                self._shown(peer, is_self=peer is cluster.myself)
                for peer in cluster.nodes.values()
                if not peer.flags & HANDSHAKE
            ]
        )

    def _shown(self, peer: Peer, *, is_self: bool) -> str:
        """Return ``n3``, ``n3~12345678`` (a former id of n3), or ``?12345678`` (unknown), followed
        by its flags and a wrong address: ``n3:fail,at=10.0.0.9:7711``."""
        name = self._world.names.get(peer.id, "")
        host = self._world.hosts.get(int(name[1:])) if name else None
        short = peer.id[:8].decode()
        if host is None:
            name = f"?{short}"
        elif host.id != peer.id:
            name += f"~{short}"
        words = [word for flag, word in _FLAGS if peer.flags & flag]
        is_placed = peer.ip and not is_self and host is not None
        if is_placed and host is not None and (peer.ip, peer.port) != (host.ip, PORT):
            words.append(f"at={peer.ip}:{peer.port}")
        return f"{name}:{','.join(words)}" if words else name

    def _say(self, kind: str, host: Host, detail: str) -> None:
        self._recorder.add(
            (self._engine.now, kind, host.name, "", "", "", "", "", detail, 0, 0, 0, ())
        )
