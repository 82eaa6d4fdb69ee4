"""The servers that are compared: ours, the original, and what people would use instead."""

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

from benchmarks import meters
from benchmarks.brokers import MemoryNatsServer, NatsServer, RabbitServer
from benchmarks.load.dialects import Dialect
from benchmarks.profilers import Profilers
from benchmarks.programs import (
    DisqueServer,
    Place,
    Program,
    RedisServer,
    StreamServer,
    Tube,
)
from benchmarks.tool import BenchmarkError
from disque_trio.statemachine.form import COMPILED
from tests.cluster.processes import DISQUE_TRIO

OURS: Final = "disque_trio"
"""In the form in which the benchmark runs."""
PURE: Final = "disque_trio (pure)"
"""The other form, where that is the compiled one."""
ROOT: Final = Path(__file__).parent.parent
_PATH: Final = f"/usr/lib/rabbitmq/bin:{os.environ.get('PATH', '')}:/usr/sbin"
"""Debian's rabbitmq-server on PATH is a script that changes the user."""

Kind = type[Program]
DISQUE: Final[frozenset[Kind]] = frozenset({DisqueServer})
RESP: Final = DISQUE | {RedisServer}
ALL: Final = RESP | {Tube}
REPLICATED: Final = DISQUE | {MemoryNatsServer, NatsServer, RabbitServer}
QUEUES: Final = REPLICATED | {Tube, StreamServer}
"""Servers whose jobs are acknowledged."""


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
    return Contender(OURS, DisqueServer, DISQUE_TRIO)


def pure() -> Contender:
    """Our server as Python."""
    return Contender(PURE, DisqueServer, ("env", f"PYTHONPATH={ROOT}", *DISQUE_TRIO))


KNOWN: Final[dict[str, tuple[Kind, str]]] = {
    "redis-server": (RedisServer, "redis-server"),
    "beanstalkd": (Tube, "beanstalkd"),
    "redis-streams": (StreamServer, "redis-server"),
    "jetstream-memory": (MemoryNatsServer, "nats-server"),
    "jetstream-file": (NatsServer, "nats-server"),
    "rabbitmq": (RabbitServer, "rabbitmq-server"),
}
"""Contenders and their programs, which are also the names of Debian's packages."""


def others(against: str) -> list[Contender]:
    """The servers that this machine has. `against` is a program that speaks Disque."""
    found = [pure()] if COMPILED else []
    if against:
        path = shutil.which(against)
        if path is None:
            raise BenchmarkError(f"{against}: there is no such program")
        found.append(Contender(Path(path).name, DisqueServer, (str(Path(path).resolve()),)))
    for name, (kind, program) in KNOWN.items():
        path = shutil.which(program, path=_PATH)
        if path is not None:
            found.append(Contender(name, kind, (path,)))
    return found


def missing() -> str:
    """What to install for the contenders that this machine does not have; empty if it has all."""
    programs = dict.fromkeys(program for _, program in KNOWN.values())
    absent = [each for each in programs if shutil.which(each, path=_PATH) is None]
    return f"left out, not installed: apt install {' '.join(absent)}" if absent else ""


@attrs.frozen
class Subject:
    """The running servers of a contender; clients use the first unless stated otherwise."""

    contender: Contender
    servers: Sequence[Program]
    start_s: float
    """How long it took to the first reply."""
    profilers: Profilers | None = None
    """Run while it is measured."""

    @property
    def kind(self) -> Kind:
        """Its program."""
        return self.contender.kind

    @property
    def dialect(self) -> Dialect:
        """Its requests."""
        return self.kind.dialect

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
        return self.servers[0].length(queue)

    def flush(self) -> None:
        """Delete all jobs."""
        self.kind.flush(self.servers)

    def registered(self) -> int:
        """Job records of all nodes."""
        return sum(server.client.registered_jobs() for server in self.servers)


@contextlib.contextmanager
def running(contender: Contender, place: Place, directory: Path) -> Iterator[Subject]:
    """Start the servers, and end them in any case."""
    servers = contender.kind.prepare(contender.command, place, directory)
    complaints: list[str] = []
    try:
        began = time.monotonic()
        for server in servers:
            server.start()
        for server in servers:
            server.wait()
        subject = Subject(contender, servers, time.monotonic() - began)
        contender.kind.join(servers)
        yield subject
    finally:
        for server in servers:
            complaints += server.close()
    if complaints:
        raise BenchmarkError("; ".join(complaints))
