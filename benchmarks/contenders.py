"""The servers that are compared: ours, the original, redis-server and beanstalkd."""

import contextlib
import enum
import shutil
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

from benchmarks import meters
from benchmarks.load.dialects import Beanstalkd, Dialect, Disque, Redis
from benchmarks.profilers import Profilers
from benchmarks.tool import BenchmarkError
from disque_trio.statemachine.form import COMPILED
from tests.cluster.processes import DISQUE_TRIO, Cluster, Server
from tests.cluster.talk import LOOPBACK, RefusedError

OURS: Final = "disque_trio"
"""In the form in which the benchmark runs."""
PURE: Final = "disque_trio (pure)"
"""The other form, where that is the compiled one."""
NODE_TIMEOUT: Final = "15000"
"""The default: saturated nodes must not be suspected to have failed."""
MAX_CLIENTS: Final = "15000"
MAX_MEMORY: Final = "16gb"
"""The default is too little for two million jobs, in ours and in the original."""
ROOT: Final = Path(__file__).parent.parent
_START_S: Final = 30.0
_POLL_S: Final = 0.002
_LARGEST: Final = str(64 << 20)
"""Bytes of a job that beanstalkd takes."""


class Kind(enum.Enum):
    """The protocol of a contender."""

    DISQUE = "disque"
    REDIS = "redis"
    BEANSTALKD = "beanstalkd"


DISQUE: Final = frozenset({Kind.DISQUE})
RESP: Final = frozenset({Kind.DISQUE, Kind.REDIS})
ALL: Final = frozenset(Kind)


@attrs.frozen
class Place:
    """How servers are started for a case."""

    name: str
    nodes: int = 1
    journal: str = ""
    """`everysec` or `always`; empty for no journal."""
    is_fresh: bool = False
    """A new server for each sample, instead of one that is flushed."""


_DIALECTS: Final[dict[Kind, Dialect]] = {
    Kind.DISQUE: Disque(),
    Kind.REDIS: Redis(),
    Kind.BEANSTALKD: Beanstalkd(),
}


@attrs.frozen
class Contender:
    """A server that can be started."""

    name: str
    kind: Kind
    command: Sequence[str]

    @property
    def version(self) -> str:
        """As the server reports it."""
        return meters.version(self.command)


def ours() -> Contender:
    """Our server, which the others are compared with."""
    return Contender(OURS, Kind.DISQUE, DISQUE_TRIO)


def pure() -> Contender:
    """Our server as Python."""
    return Contender(PURE, Kind.DISQUE, ("env", f"PYTHONPATH={ROOT}", *DISQUE_TRIO))


KNOWN: Final = ("redis-server", "beanstalkd")
"""Servers that are searched for on this machine."""


def others(against: str) -> list[Contender]:
    """The servers that this machine has. `against` is a program that speaks Disque."""
    found = [pure()] if COMPILED else []
    if against:
        path = shutil.which(against)
        if path is None:
            raise BenchmarkError(f"{against}: there is no such program")
        found.append(Contender(Path(path).name, Kind.DISQUE, (str(Path(path).resolve()),)))
    for name, kind in zip(KNOWN, (Kind.REDIS, Kind.BEANSTALKD), strict=True):
        if shutil.which(name) is not None:
            found.append(Contender(name, kind, (name,)))
    return found


@attrs.frozen
class Subject:
    """The running servers of a contender; clients use the first unless stated otherwise."""

    contender: Contender
    servers: Sequence[Server]
    start_s: float
    """How long it took to the first reply."""
    profilers: Profilers | None = None
    """Run while it is measured."""

    @property
    def kind(self) -> Kind:
        """Its protocol."""
        return self.contender.kind

    @property
    def dialect(self) -> Dialect:
        """Its requests."""
        return _DIALECTS[self.kind]

    @property
    def ports(self) -> list[int]:
        """Of each server."""
        return [server.port for server in self.servers]

    @property
    def port(self) -> int:
        """Of the first."""
        return self.servers[0].port

    @property
    def pids(self) -> list[int]:
        """Of each server."""
        return [server.pid for server in self.servers]

    def length(self, queue: str) -> int:
        """Jobs in it."""
        match self.kind:
            case Kind.DISQUE:
                return self.servers[0].client.number("QLEN", queue)
            case Kind.REDIS:
                return self.servers[0].client.number("LLEN", queue)
            case Kind.BEANSTALKD:
                return _stat(self.port, "current-jobs-ready")

    def flush(self) -> None:
        """Delete all jobs. beanstalkd, which has no command for that, is restarted."""
        for server in self.servers:
            match self.kind:
                case Kind.DISQUE:
                    server.client.call("DEBUG", "FLUSHALL")
                case Kind.REDIS:
                    server.client.call("FLUSHALL")
                case Kind.BEANSTALKD:
                    server.kill()
                    for file in _log_of(server.directory).glob("*"):
                        file.unlink()
                    server.start()
                    _wait(server)

    def registered(self) -> int:
        """Job records of all nodes."""
        return sum(server.client.registered_jobs() for server in self.servers)


@attrs.define(eq=False)
class Tube(Server):
    """A beanstalkd, which has options of its own."""

    def words(self) -> list[str]:
        """The command line."""
        where = ("-l", LOOPBACK, "-p", str(self.port), "-z", _LARGEST)
        return [*self.command, *where, *self.options]


@contextlib.contextmanager
def running(contender: Contender, place: Place, directory: Path) -> Iterator[Subject]:
    """Start the servers, and end them in any case."""
    make = Tube if contender.kind is Kind.BEANSTALKD else Server
    options = _options(contender.kind, place, directory)
    servers: list[Server] = [
        make(directory / f"node-{number}", options, contender.command)
        for number in range(place.nodes)
    ]
    complaints: list[str] = []
    try:
        began = time.monotonic()
        for server in servers:
            server.start()
        for server in servers:
            _wait(server)
        subject = Subject(contender, servers, time.monotonic() - began)
        if place.nodes > 1:
            cluster = Cluster(servers)
            cluster.meet()
            cluster.wait()
        yield subject
    finally:
        for server in servers:
            complaints += server.close()
    if complaints:
        raise BenchmarkError("; ".join(complaints))


def _wait(server: Server) -> None:
    """Wait until it answers. The poll is frequent, because this time is a figure."""
    deadline = time.monotonic() + _START_S
    while not _answers(server):
        if not server.is_running() or time.monotonic() > deadline:
            raise BenchmarkError(f"{server.command[0]} does not start: {server.log()[-2000:]}")
        time.sleep(_POLL_S)


def _answers(server: Server) -> bool:
    try:
        if isinstance(server, Tube):
            _stat(server.port, "pid")
            return True
        return server.client.text("PING") == b"PONG"
    except (OSError, RefusedError):
        return False


def _options(kind: Kind, place: Place, directory: Path) -> tuple[str, ...]:
    journal = place.journal
    if kind is Kind.BEANSTALKD:
        if not journal:
            return ()
        log = _log_of(directory / "node-0")
        log.mkdir(parents=True, exist_ok=True)
        return ("-b", str(log), "-f", "0" if journal == "always" else "1000")
    options = ["--maxclients", MAX_CLIENTS, "--appendonly", "yes" if journal else "no"]
    if journal:
        options += ["--appendfsync", journal]
    options += ["--save", ""] if kind is Kind.REDIS else ["--maxmemory", MAX_MEMORY]
    if place.nodes > 1:
        options += ["--cluster-node-timeout", NODE_TIMEOUT]
    return tuple(options)


# beanstalkd.


def _log_of(directory: Path) -> Path:
    return directory / "log"


def _stat(port: int, name: str) -> int:
    """A number of its statistics."""
    with socket.create_connection((LOOPBACK, port)) as talk:
        talk.sendall(b"stats\r\n")
        said = b""
        while not said.endswith(b"\r\n") or said.count(b"\r\n") < 2:
            more = talk.recv(1 << 16)
            if not more:
                raise ConnectionError("beanstalkd has hung up")
            said += more
    fields = dict(line.split(": ", 1) for line in said.decode().splitlines() if ": " in line)
    return int(fields[name])
