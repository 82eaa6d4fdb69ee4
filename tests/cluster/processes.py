"""Real servers for tests: processes on free loopback ports, clusters of them, and patience.

A `Fleet` ends each of its processes by its pid when its test ends, however it ends, and then says
which of them had ended by themselves or left a traceback in their logs.
"""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

import attrs

from disque_trio.statemachine.base import JobId
from tests.cluster.talk import LOOPBACK, Client, RefusedError

DISQUE_TRIO: Final = (sys.executable, "-m", "disque_trio", "server")
NODE_TIMEOUT: Final = 2000
BUS_OFFSET: Final = 10_000
WEB_OFFSET: Final = 1_000
"""How far above the client port `disque-trio up` listens for HTTP by default."""
START_S: Final = 120.0
"""How long a server may take to answer, on a machine that is busy with other tests."""
JOIN_S: Final = 120.0
SOON_S: Final = 120.0
"""What takes a moment where a machine has nothing else to do."""
CALM: Final = ("--cluster-node-timeout", "15000")
"""For nodes that are not killed: a slow machine must not make them give each other up."""
POLL_S: Final = 0.03
_PORTS: Final = tuple(port for port in range(11_000, 21_000) if port // 1000 % 2)
"""Client ports: none is a bus port of another, 10,000 above, or a web port of `disque-trio up`,
1,000 above; all are below the kernel's ephemeral ones."""
_claims: Final[dict[int, socket.socket]] = {}

Result = TypeVar("Result")


def eventually(condition: Callable[[], Result], within_s: float, what: str) -> Result:
    """Ask until the answer is true, and return it. A server that does not answer is asked again."""
    return _poll(condition, bool, within_s, what)


def becomes(ask: Callable[[], Result], wanted: Result, within_s: float, what: str) -> None:
    """Ask until the answer is the wanted one."""
    _poll(ask, lambda answer: answer == wanted, within_s, what)


def _poll(
    ask: Callable[[], Result], is_enough: Callable[[Result], bool], within_s: float, what: str
) -> Result:
    deadline = time.monotonic() + within_s
    while True:
        seen: object
        try:
            answer = ask()
        except (OSError, RefusedError) as error:
            seen = repr(error)
        else:
            if is_enough(answer):
                return answer
            seen = answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s:g} s: {what}; the last answer was {seen}")
        time.sleep(POLL_S)


def free_port(more: int = 0) -> int:
    """A port for clients whose bus and web port are free too, and so are `more` above each.

    It is this process's for good: no test, and no run of tests beside this one, gets it again while
    a server of it is down for a moment.
    """
    while True:
        port = random.choice(_PORTS)
        if all(_claim(each) for each in range(port, port + more + 1)):
            return port


def _claim(port: int) -> bool:
    offsets = (0, BUS_OFFSET, WEB_OFFSET)
    if port in _claims or port not in _PORTS or not all(_is_free(port + each) for each in offsets):
        return False
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0disque-trio-tests-port-{port}")  # ends with this process, however it ends
    except OSError:
        claim.close()
        return False
    _claims[port] = claim
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as candidate:
        try:
            candidate.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


@contextlib.contextmanager
def postponed_interrupts() -> Iterator[None]:
    """Defer SIGINT and SIGTERM until this is over. Only the main thread gets them at all."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)


@attrs.define(eq=False)
class Server:
    """One server process, which may be started again at the same port with the same files."""

    directory: Path
    options: Sequence[str] = ()
    command: Sequence[str] = DISQUE_TRIO
    port: int = attrs.Factory(free_port)
    host: str = LOOPBACK
    """Where it listens, and whence it dials others."""
    _process: subprocess.Popen[bytes] | None = None
    _client: Client | None = None

    def start(self) -> "Server":
        """Begin to start; `wait` tells when it is done."""
        assert self._process is None, "is running"
        self.directory.mkdir(parents=True, exist_ok=True)
        # A Ctrl-C must not come between the start of the process and our knowing of it.
        with open(self.log_path, "ab") as log, postponed_interrupts():
            self._process = subprocess.Popen(
                self.words(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
            )
        return self

    def words(self) -> list[str]:
        """The command line."""
        where = ("--port", str(self.port), "--bind", self.host, "--dir", str(self.directory))
        return [*self.command, *where, *self.options]

    def wait(self, within_s: float = START_S) -> "Server":
        """Wait until it answers."""
        eventually(self._has_started, within_s, f"the server at port {self.port} answers PING")
        return self

    def _has_started(self) -> bool:
        assert self.is_running(), f"the server has ended: {self.log()}"
        return self.client.text("PING") == b"PONG"

    def is_running(self) -> bool:
        """Is there a process? One that has been stopped by a signal counts."""
        return self._process is not None and self._process.poll() is None

    @property
    def is_meant_to_run(self) -> bool:
        """Has it been started, and not been ended by us?"""
        return self._process is not None

    @property
    def pid(self) -> int:
        """The process's id."""
        assert self._process is not None, "is not running"
        return self._process.pid

    # Ending it.

    def kill(self) -> None:
        """kill -9: no goodbye."""
        self._end(signal.SIGKILL)

    def terminate(self) -> int:
        """SIGTERM. Returns the exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        assert self._process is not None, "is not running"
        self.hang_up()
        self._process.send_signal(number)
        try:
            return self._process.wait(START_S)
        finally:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """SIGSTOP: the process stands still, its sockets stay open."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> list[str]:
        """End it for good. Returns what went wrong."""
        complaints = []
        if self._process is not None:
            if not self.is_running():
                complaints.append(f"ended by itself, code {self._process.returncode}")
            self._end(signal.SIGKILL)
        if "Traceback" in self.log():
            complaints.append(f"left a traceback:\n{self.log()[-4000:]}")
        return [f"the server at port {self.port} {complaint}" for complaint in complaints]

    # Facts.

    @property
    def log_path(self) -> Path:
        """The file of its output, of all its starts."""
        return self.directory / "server.log"

    def log(self) -> str:
        """Its output so far."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def rss_mib(self) -> float:
        """Resident memory."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE") / (1 << 20)

    # Conversation, over one connection that is opened when it is needed.

    @property
    def client(self) -> Client:
        """The harness's own connection."""
        if self._client is not None and not self._client.is_usable:
            self.hang_up()
        if self._client is None:
            self._client = Client(self.port, host=self.host)
        return self._client

    def hang_up(self) -> None:
        """Close it."""
        if self._client is not None:
            self._client.close()
            self._client = None

    @property
    def id(self) -> str:
        """Its node id."""
        return self.client.text("CLUSTER", "MYID").decode()


@attrs.frozen
class NodeLine:
    """A line of CLUSTER NODES."""

    id: str
    address: str
    flags: frozenset[str]
    is_connected: bool


def node_lines(server: Server) -> list[NodeLine]:
    """The nodes that a server knows, itself included."""
    lines = [line.split() for line in server.client.text("CLUSTER", "NODES").decode().splitlines()]
    return [
        NodeLine(line[0], line[1], frozenset(line[2].split(",")), line[5] == "connected")
        for line in lines
    ]


def flags_of(server: Server, node: str) -> frozenset[str]:
    """What a server thinks of a node; nothing if it does not know it."""
    return next((line.flags for line in node_lines(server) if line.id == node), frozenset())


@attrs.define(eq=False)
class Cluster:
    """Servers that know each other."""

    servers: list[Server]

    def __getitem__(self, index: int) -> Server:
        return self.servers[index]

    def meet(self) -> None:
        """The first node is told of each other one, once. They find the rest by gossip."""
        for server in self.servers[1:]:
            self.servers[0].client.call("CLUSTER", "MEET", LOOPBACK, server.port)

    def wait(self, within_s: float = JOIN_S) -> "Cluster":
        """Wait until each node is connected with each other one and thinks well of it."""
        size = len(self.servers)
        eventually(self.is_whole, within_s, f"{size} nodes see {size} nodes, all well")
        return self

    def is_whole(self) -> bool:
        """Does each node see all, and no more?"""
        return all(self._sees_all(server) for server in self.servers)

    def _sees_all(self, server: Server) -> bool:
        lines = node_lines(server)
        ill = {"fail", "fail?", "handshake", "noaddr", "leaving"}
        return len(lines) == len(self.servers) and all(
            line.is_connected and not line.flags & ill for line in lines
        )

    def heal(self) -> "Cluster":
        """Start again what is down."""
        for server in self.servers:
            if not server.is_running():
                server.start()
        for server in self.servers:
            server.wait()
        return self.wait()

    def without(self, *gone: Server) -> list[Server]:
        """The other servers."""
        return [server for server in self.servers if server not in gone]

    def holders(self, job: JobId) -> list[Server]:
        """The running nodes that know the job."""
        return [
            server for server in self.servers if server.is_running() and server.client.show(job)
        ]

    def wait_empty(self, within_s: float) -> None:
        """Wait until no node has a record of any job."""
        becomes(
            lambda: [server.client.registered_jobs() for server in self.servers],
            [0] * len(self.servers),
            within_s,
            "the nodes have no record of any job",
        )


class Fleet:
    """Servers that end together."""

    def __init__(self, directory: Path, command: Sequence[str] = DISQUE_TRIO) -> None:
        self._directory = directory
        self._command = command
        self._servers: list[Server] = []

    def server(self, *options: str) -> Server:
        """A server that answers."""
        return self._started(1, options)[0].wait()

    def unstarted(self, *options: str) -> Server:
        """A server that has no directory yet."""
        directory = self._directory / f"node-{len(self._servers)}"
        self._servers.append(Server(directory, options, self._command))
        return self._servers[-1]

    def cluster(self, size: int, *options: str) -> Cluster:
        """Servers that have joined."""
        options = ("--cluster-node-timeout", str(NODE_TIMEOUT), *options)
        cluster = Cluster(self._started(size, options))
        for server in cluster.servers:
            server.wait()
        cluster.meet()
        return cluster.wait()

    def _started(self, count: int, options: Sequence[str]) -> list[Server]:
        first = len(self._servers)
        servers = [
            Server(self._directory / f"node-{number}", options, self._command)
            for number in range(first, first + count)
        ]
        self._servers += servers
        for server in servers:
            server.start()
        return servers

    def close(self) -> None:
        """End all of them; a failure if one of them was not well."""
        complaints = [complaint for server in self._servers for complaint in server.close()]
        assert not complaints, "\n".join(complaints)
