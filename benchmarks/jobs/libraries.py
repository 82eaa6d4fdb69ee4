"""The libraries that are compared, and how many jobs at a time each is measured with."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from benchmarks.contenders import OURS, Contender
from benchmarks.jobs import environments
from benchmarks.programs import DisqueServer, RedisServer
from benchmarks.tool import BenchmarkError
from disque_trio import __version__
from tests.cluster.processes import DISQUE_TRIO

REDIS: Final = "redis-server"


@attrs.frozen
class Shape:
    """How a worker runs: what `kind` means is the library's affair."""

    kind: str
    concurrency: int

    def __str__(self) -> str:
        return f"{self.kind} x {self.concurrency}" if self.kind else str(self.concurrency)


def _shapes(text: str) -> tuple[Shape, ...]:
    """`kind:number` for each."""
    pairs = (word.partition(":") for word in text.split())
    return tuple(Shape(kind, int(number)) for kind, _, number in pairs)


@attrs.frozen
class Traits:
    """What must be known of a library to measure it."""

    shapes: Sequence[Shape]
    """Tried before the first sample; the quickest is used."""
    wide: Shape
    """For jobs that sleep: 100 at a time, or as many as are sensible."""
    few: Shape
    """Four at a time, for workers that are killed."""
    probe: int = 2000
    """Jobs to try a shape with."""
    module: str = ""
    """In `peers/`, where that is not the library's name."""


TRAITS: Final = {
    OURS: Traits(
        _shapes("trio:10 trio:100 asyncio:10 asyncio:100"),
        Shape("trio", 100),
        Shape("trio", 4),
        5000,
        "disque",
    ),
    "celery": Traits(
        _shapes("prefork:1 prefork:2 threads:8 solo:1"), Shape("threads", 100), Shape("threads", 4)
    ),
    "rq": Traits(
        _shapes("fork:1 fork:4 simple:1 simple:2"), Shape("simple", 16), Shape("fork", 4), 100
    ),
    "dramatiq": Traits(_shapes("1:1 1:8 2:8"), Shape("1", 100), Shape("1", 4)),
    "taskiq": Traits(_shapes("1:10 1:100 2:100"), Shape("1", 100), Shape("1", 4)),
    "huey": Traits(
        _shapes("thread:1 thread:8 process:2"), Shape("thread", 100), Shape("thread", 4)
    ),
    "arq": Traits(_shapes(":10 :100"), Shape("", 100), Shape("", 4), 1000),
    "saq": Traits(_shapes(":10 :100"), Shape("", 100), Shape("", 4)),
    "streaq": Traits(_shapes(":16 :100"), Shape("", 100), Shape("", 4)),
}
"""By library. `kind` of Dramatiq and taskiq is the number of processes."""


@attrs.frozen
class Library(Contender):
    """A worker library with its broker's program."""

    python: Path = attrs.field(kw_only=True)

    @property
    def version(self) -> str:
        """Of the library."""
        if self.name == OURS:
            return __version__
        return environments.version(self.name, environments.requirements(self.name))

    @property
    def traits(self) -> Traits:
        """How it is measured."""
        return TRAITS[self.name]

    @property
    def module(self) -> str:
        """What runs in its environment."""
        return f"benchmarks.jobs.peers.{self.traits.module or self.name}"

    def url(self, port: int) -> str:
        """Its broker's."""
        return f"{'disque' if self.name == OURS else 'redis'}://127.0.0.1:{port}"


def ours() -> Library:
    """Our library, with our server."""
    return Library(OURS, DisqueServer, DISQUE_TRIO, python=environments.own())


def peers(names: Sequence[str], problems: list[str]) -> list[Library]:
    """Those that can be installed; the others are told of in `problems`."""
    redis = shutil.which(REDIS)
    if redis is None:
        problems.append(f"{REDIS} is not on PATH, and all other libraries need it: apt install it")
        return []
    found = []
    for name in names:
        try:
            python = environments.python(name)
        except (BenchmarkError, OSError) as error:
            problems.append(f"{name} is left out: {error}")
        else:
            found.append(Library(name, RedisServer, (redis,), python=python))
    return found
