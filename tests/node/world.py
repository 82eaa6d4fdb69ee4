"""A world in memory for nodes: Trio's virtual clock, clients and links without sockets."""

import math
import random
from collections import deque
from collections.abc import Callable
from math import inf

import attrs
import trio

from disque_trio.driver.sessions import LinkSession, Session
from disque_trio.net.tls import Keeper
from disque_trio.node import Node
from disque_trio.statemachine.base import MYSELF, Millis, NodeId, Now
from disque_trio.statemachine.chores import Connection, Shutdown, Vitals
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.stats import Facts
from disque_trio.storage.journal import Journal
from tests.storage.disks import MemoryDisk, MemoryThread

WALL = 1_800_000_000_000
ME: NodeId = b"a" * 40


class VirtualClock:
    """A node's clocks on Trio's."""

    def now(self) -> Now:
        mono = math.floor(trio.current_time() * 1000 + 1e-6)
        return Now(mono, WALL + mono)

    def seconds_until(self, mono: Millis) -> float:
        return max(0.0, mono / 1000 - trio.current_time())


class MemoryClient:
    """A client, and the port by which the node writes to it.

    It reads up to `window` bytes and leaves the rest unsent.
    """

    def __init__(self, world: "World", window: float = math.inf) -> None:
        self.event_loop = world.event_loop
        self.window = window
        self.read = b""
        self.writes: list[bytes] = []
        self.unsent = b""
        self.is_half_closed = False
        self.is_held = False
        self.is_closing = False
        self.is_over = False
        self.session: Session
        self.event_loop.put(self._connect)

    def _connect(self, node: Node) -> None:
        session = node.connect(self, b"127.0.0.1:50000")
        if session is None:
            self.is_over = True
        else:
            self.session = session

    # What the client does.

    def send(self, data: bytes) -> None:
        self.event_loop.put(lambda node: node.received(self.session, data))

    def leave(self) -> None:
        self.event_loop.put(self._end)

    def half_close(self) -> None:
        """Say that nothing more will come, while the node does not read."""
        self.is_half_closed = True
        self.event_loop.put(lambda node: node.half_closed(self.session))

    def read_all(self) -> None:
        """Read what is unsent, and whatever comes from now on."""
        self.window = math.inf
        self.read += self.unsent
        self.unsent = b""
        self.event_loop.put(lambda node: node.drained(self.session))

    async def expect(self, data: bytes) -> None:
        """Wait for exactly these bytes."""
        await until(lambda: len(self.read) >= len(data))
        assert self.read == data
        self.read = b""

    async def ask(self, *words: str) -> bytes:
        """One inline request and what comes back."""
        self.send(" ".join(words).encode() + b"\r\n")
        await until(lambda: bool(self.read))
        answer, self.read = self.read, b""
        return answer

    def _end(self, node: Node) -> None:
        if not self.is_over:
            self.is_over = True
            node.lost(self.session)

    # ClientPort.

    def write(self, data: bytes) -> int:
        self.writes.append(data)
        room = int(min(self.window, len(data))) if not self.unsent else 0
        self.window -= room
        self.read += data[:room]
        self.unsent += data[room:]
        return len(self.unsent)

    def hold(self) -> None:
        self.is_held = True

    def resume(self) -> None:
        self.is_held = False

    def close(self) -> None:
        self.is_closing = True
        if not self.unsent:
            self.event_loop.put(self._end)

    def abort(self) -> None:
        self.unsent = b""
        self.event_loop.put(self._end)

    def facts(self) -> Connection:
        return Connection(fd=7, output_bytes=len(self.unsent))


class MemoryLink:
    """One end of a bus connection; `other` is the other one, None where no node listens."""

    def __init__(self, event_loop: "MemoryHub") -> None:
        self.event_loop = event_loop
        self.other: MemoryLink | None = None
        self.session: LinkSession
        self.sent: list[list[bytes]] = []
        self.room = math.inf

    def send(self, frames: list[bytes]) -> int:
        taken = frames[: int(min(self.room, len(frames)))]
        self.sent.append(taken)
        if self.other is not None:
            self.other.arrive(b"".join(taken))
        return len(frames) - len(taken)

    def arrive(self, data: bytes) -> None:
        self.event_loop.put(lambda node: node.link_received(self.session, data))

    def break_off(self) -> None:
        """The connection ends, and both sides notice."""
        self.hang_up()
        self.event_loop.put(lambda node: node.link_lost(self.session))

    def hang_up(self) -> None:
        if self.other is not None:
            other, self.other = self.other, None
            other.other = None
            other.event_loop.put(lambda node: node.link_lost(other.session))


class MemoryHub:
    """The `EventLoop` of a node in memory. `network` has the event loops that listen on the bus."""

    def __init__(self, network: "dict[tuple[str, int], MemoryHub]", ip: str) -> None:
        self.network = network
        self.ip = ip
        self.is_listening = True
        self.has_clients = False
        self.is_bus_open = False
        self.unsent: Callable[[], bool] = lambda: False
        self.dialled: list[MemoryLink] = []
        self._inputs: deque[Callable[[Node], object]] = deque()
        self._came = trio.Event()

    def put(self, act: Callable[[Node], object]) -> None:
        """Something happens to the node, in its next batch."""
        self._inputs.append(act)
        self._came.set()

    def dial(self, session: LinkSession, ip: str, port: int) -> MemoryLink:
        link = MemoryLink(self)
        link.session = session
        self.dialled.append(link)
        remote = self.network.get((ip, port))
        if remote is None:
            self.put(lambda node: node.link_lost(session))
        else:
            link.other = far = MemoryLink(remote)
            far.other = link
            remote.put(lambda node: _accept(node, far, ip, self.ip))
            self.put(lambda node: node.link_up(session, self.ip, ip))
        return link

    def courier(self) -> None: ...

    def open_clients(self) -> None:
        self.has_clients = True
        self.wake()

    def open_bus(self) -> None:
        self.is_bus_open = True

    def wake(self) -> None:
        self._came.set()

    def wake_from_thread(self) -> None:
        self.wake()

    def stop_listening(self) -> None:
        self.is_listening = False

    def has_unsent(self) -> bool:
        return self.unsent()

    async def run(
        self, node: Node, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        node.start()
        has_started = False
        try:
            while not node.life.is_over:
                if node.life.is_ready and not has_started:
                    has_started = True
                    task_status.started()
                await self._rest(node)
                self._batch(node)
                await trio.lowlevel.checkpoint()
        finally:
            node.end()

    async def _rest(self, node: Node) -> None:
        if node.is_napping:
            await trio.sleep(node.seconds_left())
        elif not (self._inputs and self.has_clients):
            with trio.move_on_after(node.seconds_left()):
                await self._came.wait()
        self._came = trio.Event()

    def _batch(self, node: Node) -> None:
        inputs: deque[Callable[[Node], object]] = deque()
        if self.has_clients:
            inputs, self._inputs = self._inputs, inputs
        node.begin()
        for act in inputs:
            act(node)
        node.settle()


def _accept(node: Node, link: MemoryLink, local_ip: str, remote_ip: str) -> None:
    link.session = node.accept_link(link, local_ip, remote_ip)


class MemoryStore:
    """nodes.conf in memory; `error` is what writing it meets."""

    def __init__(self) -> None:
        self.saved: list[bytes] = []
        self.error: OSError | None = None
        self.answers: trio.Event | None = None
        """If there is one, the disk hangs until it is set."""
        self.thread = MemoryThread(self._answer)

    async def _answer(self) -> None:
        if self.answers is not None:
            await self.answers.wait()

    def save(self, text: bytes) -> None:
        if self.error is not None:
            raise self.error
        self.saved.append(text)


@attrs.define
class MemoryHost:
    """A process that does as it is told and remembers it."""

    chores: list[object] = attrs.Factory(list)
    refusal: str | None = None
    tls: Keeper | None = None
    room: float = inf

    def rewrite_config(self, config: Config) -> str | None:
        self.chores.append(("rewrite", config.maxclients))
        return self.refusal

    def change_directory(self, path: str) -> str | None:
        self.chores.append(("chdir", path))
        return self.refusal

    def raise_file_limit(self, clients: int) -> int:
        self.chores.append(("files", clients))
        return min(clients, 20_000)

    def reload_tls(self, config: Config) -> str | None:
        self.chores.append(("tls", config.tls_cert_file))
        return self.refusal if self.tls is None else self.tls.reload(config)

    def vitals(self) -> Vitals:
        return Vitals(rss_bytes=123_456)

    def has_room(self, size: int) -> bool:
        return size <= self.room

    def refuse_shutdown(self, shutdown: Shutdown) -> str | None:
        self.chores.append(shutdown)
        return self.refusal


@attrs.define
class MemoryLog:
    """Remembers (level, event, facts)."""

    lines: list[tuple[str, str, dict[str, object]]] = attrs.Factory(list)
    level: str = "notice"

    def debug(self, event: str, **facts: object) -> None:
        self.lines.append(("debug", event, facts))

    def verbose(self, event: str, **facts: object) -> None:
        self.lines.append(("verbose", event, facts))

    def notice(self, event: str, **facts: object) -> None:
        self.lines.append(("notice", event, facts))

    def warning(self, event: str, **facts: object) -> None:
        self.lines.append(("warning", event, facts))

    def set_level(self, level: str) -> None:
        self.level = level

    def events(self) -> list[str]:
        """What was said."""
        return [event for _, event, _ in self.lines]


class World:
    """One node with everything around it in memory."""

    def __init__(
        self,
        config: Config | None = None,
        *,
        name: NodeId = ME,
        ip: str = "127.0.0.1",
        network: dict[tuple[str, int], MemoryHub] | None = None,
        disk: MemoryDisk | None = None,
    ) -> None:
        config = config or Config()
        clock = VirtualClock()
        self.event_loop = MemoryHub({} if network is None else network, ip)
        self.event_loop.network[ip, config.port + 10_000] = self.event_loop
        self.store = MemoryStore()
        self.host = MemoryHost()
        self.log = MemoryLog()
        myself = Peer(name, "", config.port, MYSELF)
        facts = Facts(port=config.port, config_file="disque.conf")
        machine = Machine(config, myself, random.Random(0), clock.now(), facts)
        self.disk = disk or MemoryDisk()
        self.journal = Journal(self.disk, machine.state, self.log)
        self.node = Node(
            machine, clock, self.event_loop, self.store, self.host, self.log, self.journal
        )

    def client(self, window: float = math.inf) -> MemoryClient:
        """A client that connects."""
        return MemoryClient(self, window)


async def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait for a condition, on whatever clock Trio has."""
    with trio.fail_after(seconds):
        while not condition():
            await trio.sleep(0.001)
