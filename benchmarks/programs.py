"""How a server of each kind is started, asked and emptied."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import attrs
from hiredis import ReplyError

from benchmarks.load.clients import Client
from benchmarks.load.dialects import (
    GROUP,
    QUEUE,
    Ask,
    Beanstalkd,
    Dialect,
    Disque,
    Redis,
    RedisStreams,
)
from benchmarks.tool import BenchmarkError
from tests.cluster.processes import START_S, Cluster, Server
from tests.cluster.talk import LOOPBACK, RefusedError

NODE_TIMEOUT: Final = "15000"
"""The default: saturated nodes must not be suspected to have failed."""
MAX_CLIENTS: Final = "15000"
MAX_MEMORY: Final = "16gb"
"""The default is too little for two million jobs, in ours and in the original."""
_POLL_S: Final = 0.002
_PATIENCE_S: Final = 2.0
"""For one reply: some servers say nothing while they start."""
_LARGEST: Final = str(64 << 20)
"""Bytes of a job that beanstalkd takes."""


@attrs.frozen
class Place:
    """How servers are started for a case."""

    name: str
    nodes: int = 1
    journal: str = ""
    """`everysec` or `always`; empty for no journal."""
    is_fresh: bool = False
    """A new server for each sample, instead of one that is flushed."""


@attrs.define(eq=False)
class Program(Server):
    """A server of some kind; its files are in its directory."""

    dialect: ClassVar[Dialect]

    @classmethod
    def prepare(cls, command: Sequence[str], place: Place, directory: Path) -> Sequence[Self]:
        """The servers of a place, which are not yet started."""
        nodes = [cls(directory / f"node-{n}", (), command) for n in range(place.nodes)]
        for node in nodes:
            node.options = node.settings(place, nodes)
        return nodes

    def settings(self, place: Place, nodes: Sequence[Self]) -> Sequence[str]:
        """Options on the command line."""
        raise NotImplementedError

    def answers(self) -> bool:
        """Does it serve clients? An error says no, too."""
        raise NotImplementedError

    def wait(self, within_s: float = START_S) -> Self:
        """Wait until it answers. The poll is frequent, because this time is a figure."""
        deadline = time.monotonic() + within_s
        while not self._answers():
            if not self.is_running() or time.monotonic() > deadline:
                raise BenchmarkError(f"{self.command[0]} does not start: {self.log()[-2000:]}")
            time.sleep(_POLL_S)
        return self

    def _answers(self) -> bool:
        try:
            return self.answers()
        except (OSError, RefusedError, ReplyError):
            return False

    @classmethod
    def join(cls, nodes: Sequence[Self]) -> None:
        """Wait until all nodes are one cluster."""

    @classmethod
    def flush(cls, nodes: Sequence[Self]) -> None:
        """Delete all jobs."""
        raise NotImplementedError

    def length(self, queue: str) -> int:
        """Jobs in a queue."""
        raise NotImplementedError

    @contextlib.contextmanager
    def connected(self) -> Iterator[Client]:
        """A connection in its dialect. TimeoutError if the server is silent."""
        client = Client(self.port, self.dialect)
        with client.socket:
            client.socket.settimeout(_PATIENCE_S)
            yield client

    def call(self, ask: Ask) -> list[Any]:
        """Replies of the server. Errors are ReplyErrors."""
        with self.connected() as client:
            return client.call(ask)


class RespServer(Program):
    """A server that is asked as Redis is."""

    length_command: ClassVar[str]

    def answers(self) -> bool:
        """PING."""
        return self.client.text("PING") == b"PONG"

    def length(self, queue: str) -> int:
        """Jobs in a queue."""
        return self.client.number(self.length_command, queue)


class DisqueServer(RespServer):
    """Ours, and the original."""

    dialect = Disque()
    length_command = "QLEN"

    def settings(self, place: Place, nodes: Sequence[Self]) -> Sequence[str]:
        """A cluster has a timeout, too."""
        cluster = ("--cluster-node-timeout", NODE_TIMEOUT) if len(nodes) > 1 else ()
        return (*_settings(place), "--maxmemory", MAX_MEMORY, *cluster)

    @classmethod
    def join(cls, nodes: Sequence[Self]) -> None:
        """CLUSTER MEET."""
        if len(nodes) > 1:
            cluster = Cluster(list(nodes))
            cluster.meet()
            cluster.wait()

    @classmethod
    def flush(cls, nodes: Sequence[Self]) -> None:
        """DEBUG FLUSHALL."""
        for node in nodes:
            node.client.call("DEBUG", "FLUSHALL")


def _settings(place: Place) -> Sequence[str]:
    """Options that Disque has from Redis."""
    journal = ("yes", "--appendfsync", place.journal) if place.journal else ("no",)
    return ("--maxclients", MAX_CLIENTS, "--appendonly", *journal)


class RedisServer(RespServer):
    """redis-server, with lists as queues."""

    dialect: ClassVar[Dialect] = Redis()
    length_command = "LLEN"

    def settings(self, place: Place, _nodes: Sequence[Self]) -> Sequence[str]:
        """No snapshots."""
        return (*_settings(place), "--save", "")

    @classmethod
    def flush(cls, nodes: Sequence[Self]) -> None:
        """FLUSHALL."""
        nodes[0].client.call("FLUSHALL")


class StreamServer(RedisServer):
    """redis-server, with a stream as queue."""

    dialect = RedisStreams()
    length_command = "XLEN"

    @classmethod
    def flush(cls, nodes: Sequence[Self]) -> None:
        """And the group is made."""
        super().flush(nodes)
        nodes[0].client.call("XGROUP", "CREATE", QUEUE, GROUP, "0", "MKSTREAM")


class Tube(Program):
    """beanstalkd, which has options of its own."""

    dialect = Beanstalkd()

    def settings(self, place: Place, _nodes: Sequence[Self]) -> Sequence[str]:
        """Where the journal is, and how often it is flushed to the disk."""
        if not place.journal:
            return ()
        self._log.mkdir(parents=True, exist_ok=True)
        return ("-b", str(self._log), "-f", "0" if place.journal == "always" else "1000")

    def words(self) -> list[str]:
        """The command line."""
        where = ("-l", LOOPBACK, "-p", str(self.port), "-z", _LARGEST)
        return [*self.command, *where, *self.options]

    def answers(self) -> bool:
        """stats."""
        return self._stat("pid") == self.pid

    @classmethod
    def flush(cls, nodes: Sequence[Self]) -> None:
        """Start it anew: it has no command for that."""
        (tube,) = nodes
        tube.kill()
        for file in tube._log.glob("*"):
            file.unlink()
        tube.start()
        tube.wait()

    def length(self, _queue: str) -> int:
        """Of the only tube."""
        return self._stat("current-jobs-ready")

    @property
    def _log(self) -> Path:
        return self.directory / "log"

    def _stat(self, name: str) -> int:
        """A number of its statistics."""
        ((_, said),) = self.call((b"stats\r\n", 1))
        fields = dict(line.split(": ", 1) for line in said.decode().splitlines() if ": " in line)
        return int(fields[name])
