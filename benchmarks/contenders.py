"""Who is measured: our server, redis-server as a yardstick, another server that speaks Disque."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from benchmarks.loads import Load
from benchmarks.tool import BenchmarkError, ops_per_second
from tests.cluster.processes import DISQUE_TRIO, Fleet, Server

OURS: Final = "disque_trio"
YARDSTICK: Final = "redis-server"
NODE_TIMEOUT: Final = "15000"
"""As by default: saturated nodes must not be taken for dead ones."""


@attrs.frozen
class Contender:
    """Servers of one kind that run, the first of which is sent the load."""

    name: str
    servers: Sequence[Server]

    def words(self, load: Load) -> tuple[str, ...]:
        """The request in this server's words."""
        return load.redis if self.name == YARDSTICK else load.disque

    def measure(self, load: Load, requests: int) -> float:
        """Ops/s."""
        count = int(requests * load.share)
        return ops_per_second(self.servers[0].port, self.words(load), count, load.pipeline)

    def flush(self) -> None:
        """Forget everything."""
        for server in self.servers:
            server.client.call(
                *(("FLUSHALL",) if self.name == YARDSTICK else ("DEBUG", "FLUSHALL"))
            )


@contextmanager
def alone(directory: Path, other: str) -> Iterator[list[Contender]]:
    """A node of each kind."""
    with _fleets(directory / "alone", other, yardstick=True) as fleets:
        yield [Contender(name, [fleet.server(*_options(name))]) for name, fleet in fleets.items()]


@contextmanager
def together(directory: Path, other: str) -> Iterator[list[Contender]]:
    """A cluster of three nodes of each kind that can have one."""
    with _fleets(directory / "together", other, yardstick=False) as fleets:
        yield [
            Contender(name, fleet.cluster(3, "--cluster-node-timeout", NODE_TIMEOUT).servers)
            for name, fleet in fleets.items()
        ]


@contextmanager
def _fleets(directory: Path, other: str, *, yardstick: bool) -> Iterator[dict[str, Fleet]]:
    commands: dict[str, Sequence[str]] = {OURS: DISQUE_TRIO}
    if yardstick and has_yardstick():
        commands[YARDSTICK] = (YARDSTICK,)
    if other:
        commands[Path(other).name] = (_command(other),)
    fleets = {name: Fleet(directory / name, command) for name, command in commands.items()}
    try:
        yield fleets
    finally:
        for fleet in fleets.values():
            fleet.close()


def _command(other: str) -> str:
    path = shutil.which(other)
    if path is None:
        raise BenchmarkError(f"{other}: there is no such program")
    return str(Path(path).resolve())


def has_yardstick() -> bool:
    """Is there a redis-server?"""
    return shutil.which(YARDSTICK) is not None


def _options(name: str) -> tuple[str, ...]:
    return ("--save", "", "--appendonly", "no") if name == YARDSTICK else ()
