"""Nodes in one process: bytes instead of sockets, and a clock that stands still until it is moved.

What a node does is the same each time, to the instruction, and its surroundings do little: links
hand over bytes, replies are kept, and a journal is a list.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import attrs

from disque_trio.driver.sessions import LinkSession, Session
from disque_trio.node import Node
from disque_trio.ports import JournalFile
from disque_trio.sim.engines.heap.ports import HostProcess, NoLog
from disque_trio.sim.engines.simulated_thread import Act, SimulatedThread
from disque_trio.statemachine.address import BUS_OFFSET
from disque_trio.statemachine.base import MYSELF, Millis, Now
from disque_trio.statemachine.chores import Connection
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.stats import Facts
from disque_trio.storage.journal import Journal
from disque_trio.wire.resp import encode_request

IP: Final = "127.0.0.1"
PORT: Final = 7711
_START: Final = 1_000_000
_WALL: Final = 1_800_000_000_000
_TO_SETTLE: Final[Millis] = 3_000
_TURNS_PER_MS: Final = 20
"""Turns of a busy node in a millisecond."""


@attrs.define(eq=False)
class Clock:
    """The clocks of all nodes."""

    mono: Millis = _START
    reading: Now = attrs.field(factory=lambda: Now(_START, _WALL))

    def now(self) -> Now:
        """Both clocks."""
        return self.reading

    def move(self, ms: Millis) -> None:
        """Time passes."""
        self.mono += ms
        self.reading = Now(self.mono, _WALL + self.mono - _START)

    def seconds_until(self, mono: Millis) -> float:
        """Nobody sleeps."""
        return max(0, mono - self.mono) / 1000


@attrs.define(eq=False)
class Socket:
    """A client that reads everything at once."""

    answers: list[bytes] = attrs.Factory(list)
    is_half_closed: bool = False

    def write(self, data: bytes) -> int:
        """Nothing is left unsent."""
        self.answers.append(data)
        return 0

    def hold(self) -> None:
        """It sends nothing else."""

    def resume(self) -> None:
        """It sends nothing else."""

    def close(self) -> None:
        """A node that cuts off a client spoils the measure."""
        raise AssertionError("cut off")

    def abort(self) -> None:
        """The same."""
        raise AssertionError("cut off")

    def facts(self) -> Connection:
        """Unused."""
        return Connection(fd=0, output_bytes=0, output_chunks=0, events=b"")


@attrs.define(eq=False)
class Wire:
    """One direction of a link."""

    inputs: list[tuple[LinkSession, bytes]]
    """Of the node at the other end."""
    far: LinkSession | None = None
    """What that calls the link, once it is open."""
    waiting: list[bytes] = attrs.Factory(list)
    """What is sent before that."""

    def open(self, far: LinkSession) -> None:
        """It is open."""
        self.far = far
        self.send(self.waiting)

    def send(self, frames: list[bytes]) -> int:
        """Nothing is dropped."""
        if self.far is None:
            self.waiting += frames
        else:
            self.inputs.append((self.far, b"".join(frames)))
        return 0

    def hang_up(self) -> None:
        """A link that breaks spoils the measure."""
        raise AssertionError("hung up")


class File:
    """A journal in memory."""

    def __init__(self) -> None:
        self.size = 0
        self._data: list[bytes] = []

    def read(self, offset: int, count: int) -> bytes:
        """Up to so many bytes."""
        return b"".join(self._data)[offset : offset + count]

    def append(self, data: bytes) -> None:
        """Write at the end."""
        self._data.append(data)
        self.size += len(data)

    def sync(self) -> None:
        """It is durable."""

    def rewind(self, size: int) -> None:
        """Nothing fails here."""

    def cut(self, size: int) -> None:
        """Nothing is torn here."""

    def loss(self) -> str:
        """None."""
        return ""

    def close(self) -> None:
        """Nothing to do."""


class Thread(SimulatedThread):
    """A thread that is done at once, where the node waits for it."""

    def start(
        self,
        act: Callable[..., object],
        args: tuple[Any, ...],
        then: Callable[[OSError | None], None],
        *,
        sync: Act | None = None,
        wait_s: float = 0.0,
    ) -> None:
        """Do something."""
        if wait_s:
            act(*args)
            then(None)
        else:
            super().start(act, args, then, sync=sync)


class Store:
    """The stores of a node: nodes.conf, which nobody reads, and the journal."""

    name = "memory"

    def __init__(self) -> None:
        self.thread = Thread()
        self.file = File()

    def save(self, text: bytes) -> None:
        """Forget it."""

    def exists(self) -> bool:
        """Is there a journal?"""
        return self.file.size > 0

    def open(self) -> JournalFile:
        """The journal."""
        return self.file

    def begin(self) -> JournalFile:
        """An empty one."""
        return File()

    def replace(self, new: JournalFile) -> None:
        """Use it."""
        assert isinstance(new, File)
        self.file = new

    def set_aside(self) -> None:
        """Nothing to do."""

    def settle(self) -> None:
        """Nothing to do."""

    def discard(self, new: JournalFile) -> None:
        """Nothing to do."""

    def salt(self) -> int:
        """Always the same."""
        return 0x5EED

    def boot(self) -> str:
        """Always the same."""
        return "a boot"


class Loop:
    """The event loop of a node, and the node."""

    def __init__(
        self, cluster: "Cluster", number: int, peers: Sequence[Peer], store: "Store"
    ) -> None:
        self._cluster = cluster
        self.is_woken = False
        self.inputs: list[tuple[LinkSession, bytes]] = []
        config = cluster.config
        myself = Peer(b"%040x" % (number + 1), IP, PORT + number, MYSELF)
        facts = Facts(port=myself.port, incarnation=number + 1)
        others = [Peer(each.id, each.ip, each.port) for each in peers if each.id != myself.id]
        clock = cluster.clock
        machine = Machine(config, myself, random.Random(number), clock.now(), facts, others)
        journal = Journal(store, machine.state, NoLog()) if config.appendonly else None
        self.node = Node(machine, clock, self, Store(), HostProcess(), NoLog(), journal)
        self.node.start()

    # For the node.

    def dial(self, session: LinkSession, ip: str, port: int) -> Wire:  # noqa: ARG002
        """Open a link to a node of the cluster."""
        number = port - BUS_OFFSET - PORT
        wire = Wire(self._cluster.loops[number].inputs)
        self._cluster.opening.append((self, session, wire, number))
        return wire

    def courier(self) -> None:
        """Messages are encoded."""

    def open_clients(self) -> None:
        """They are connected by `Cluster`."""

    def open_bus(self) -> None:
        """Links are made by `Cluster`."""

    def wake(self) -> None:
        """One more turn."""
        self.is_woken = True

    def wake_from_thread(self) -> None:
        """The same."""
        self.is_woken = True

    def stop_listening(self) -> None:
        """Nodes run to the end."""

    def has_unsent(self) -> bool:
        """Never."""
        return False

    async def run(self, node: Node, *, task_status: object = None) -> None:
        """Turns are driven from outside."""

    # For the benchmark.

    def turn(self, sessions: Sequence[Session] = (), requests: Sequence[bytes] = ()) -> None:
        """One turn: what came on links, and these requests of clients."""
        node = self.node
        self.is_woken = False
        inputs = self.inputs[:]
        self.inputs.clear()
        node.begin()
        for link, data in inputs:
            node.link_received(link, data)
        for session, data in zip(sessions, requests, strict=False):
            node.received(session, data)
        node.settle()


class Cluster:
    """So many nodes, with clients at each."""

    def __init__(
        self, nodes: int = 1, clients: int = 16, stores: Sequence[Store] = (), **config: Any
    ) -> None:
        """With stores of their journals that may have something."""
        self.config = Config(maxmemory=1 << 40, maxclients=1 << 20, trace_sample=0, **config)
        self.clock = Clock()
        self.opening: list[tuple[Loop, LinkSession, Wire, int]] = []
        self._turns = 0
        peers = [Peer(b"%040x" % (each + 1), IP, PORT + each) for each in range(nodes)]
        self.loops: list[Loop] = []
        for number in range(nodes):
            store = stores[number] if stores else Store()
            self.loops.append(Loop(self, number, peers, store))
        self.pass_time(_TO_SETTLE if nodes > 1 else 1)
        self.clients = [[self._connect(loop) for _ in range(clients)] for loop in self.loops]
        self.carry()

    def _connect(self, loop: Loop) -> Session:
        session = loop.node.connect(Socket(), b"127.0.0.1:1")
        assert session is not None
        return session

    def turn(self, number: int, requests: Sequence[bytes]) -> None:
        """One turn of a node with requests of its clients, one for each."""
        self._turns += 1
        if self._turns % _TURNS_PER_MS == 0:
            self.clock.move(1)
        self.loops[number].turn(self.clients[number], requests)

    def serve(self, number: int, turns: Iterable[Sequence[bytes]]) -> None:
        """Turns of a node, after each of which all nodes do what follows."""
        for requests in turns:
            self.turn(number, requests)
            self.carry()

    def step(self, number: int) -> None:
        """A turn of a node for each piece that came on its links."""
        loop = self.loops[number]
        waiting = loop.inputs[:]
        loop.inputs.clear()
        for each in waiting:
            loop.inputs.append(each)
            loop.turn()

    def carry(self) -> None:
        """Turns of all nodes until nothing is under way."""
        is_under_way = True
        while is_under_way:
            is_under_way = False
            for loop in self.loops:
                if loop.inputs or loop.is_woken or loop.node.deadline() <= self.clock.mono:
                    loop.turn()
                    is_under_way = True
            opening, self.opening = self.opening, []
            for loop, session, wire, number in opening:
                back = Wire(loop.inputs, session)
                wire.open(self.loops[number].node.accept_link(back, IP, IP))
                loop.node.link_up(session, IP, IP)
                loop.is_woken = is_under_way = True

    def pass_time(self, ms: Millis) -> None:
        """So much time passes for idle nodes."""
        until = self.clock.mono + ms
        self.carry()
        while (due := min(loop.node.deadline() for loop in self.loops)) <= until:
            self.clock.move(due - self.clock.mono)
            self.carry()
        self.clock.move(until - self.clock.mono)

    def sent(self, number: int) -> list[bytes]:
        """What the clients of a node have been sent since the last call, client by client."""
        found: list[bytes] = []
        for session in self.clients[number]:
            port = session.port
            assert isinstance(port, Socket)
            found += port.answers
            port.answers.clear()
        return found


def request(*words: bytes | str | int) -> bytes:
    """Its bytes."""
    return encode_request([w if isinstance(w, bytes) else str(w).encode() for w in words])
