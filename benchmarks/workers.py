"""`python -m benchmarks workers`: one process against several behind one port (docs/deploying.md).

With `--against PATH`, as many processes of another server that speaks Disque are measured, too.
They share no port, so each of its processes has its part of the producers.

The load generator runs on the same cores, so on a small machine the CPU time per job is more useful
than the jobs per second: with as many workers as cores, the generator has no core of its own.
"""

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Final

import attrs
from rich.console import Console
from rich.table import Table

from benchmarks import contenders, meters, programs
from benchmarks.load import tasks
from benchmarks.load.dialects import Disque
from benchmarks.load.processes import Task, rate, work
from benchmarks.programs import DisqueServer
from tests.cluster.processes import START_S, Server, eventually, free_port
from tests.cluster.talk import connection

QUEUE: Final = b"queue:bench"
BODY: Final = b"x" * 100
GENERATORS: Final = 2
CLIENTS: Final = 25
"""Clients of each process of the generator."""
_BATCH: Final = 200
_FEW_S: Final = 8.0


class _OneCopy(Disque):
    """The original makes copies by default on one machine, too."""

    def add(self, queue: bytes, body: bytes, options: Sequence[bytes] = ()) -> bytes:
        return super().add(queue, body, (*options, b"REPLICATE", b"1"))


_WORDS: Final = _OneCopy()


@attrs.frozen
class Place:
    """Running processes of a server."""

    pids: Sequence[int]
    ports: Sequence[int]
    """Where producers connect: the port that all processes share, or that of each."""
    own_ports: Sequence[int]
    """Of each process."""

    def flush(self) -> None:
        """Forget every job."""
        for port in self.own_ports:
            with connection(port) as client:
                client.call("DEBUG", "FLUSHALL")


Load = Callable[[Place, int], float]
"""Puts that many jobs through. Returns the jobs per second."""


@contextmanager
def running(workers: int, directory: Path) -> Iterator[Place]:
    """A server with so many workers."""
    port = free_port(workers)
    options = ("--workers", str(workers), "--maxmemory", "8gb")
    server = Server(directory / f"workers-{workers}", options, port=port)
    try:
        server.start().wait()
        own = [port]
        if workers > 1:
            own = list(range(port + 1, port + workers + 1))
            eventually(lambda: "all workers serve" in server.log(), START_S, "all serve")
        yield Place([server.pid], [port], own)
    finally:
        if server.is_meant_to_run:
            server.terminate()


@contextmanager
def running_other(program: Path, count: int, directory: Path) -> Iterator[Place]:
    """So many processes of another server, which have met."""
    contender = contenders.Contender(program.name, DisqueServer, (str(program),))
    with contenders.running(contender, programs.Place("workers", count), directory) as subject:
        yield Place(subject.pids, subject.ports, subject.ports)


def _adding(port: int, jobs: int, depth: int) -> Task:
    return Task(tasks.adding, (port, _WORDS, [QUEUE], BODY, jobs, CLIENTS, depth))


def add(place: Place, jobs: int, depth: int) -> float:
    """ADDJOB by producers that are spread over the ports."""
    ports = islice(cycle(place.ports), GENERATORS)
    return rate(work([_adding(port, jobs // GENERATORS, depth) for port in ports]))


def add_in_turn(place: Place, jobs: int) -> float:
    """A client waits for each answer."""
    return add(place, jobs, 1)


def add_in_a_pipeline(place: Place, jobs: int) -> float:
    """Sixteen at a time."""
    return add(place, jobs, 16)


def drain(place: Place, jobs: int) -> float:
    """GETJOB COUNT 200 and ACKJOB of the jobs that `add_in_a_pipeline` has added before.

    At each worker's own port: the kernel may give all clients of the common port to one worker,
    and the jobs are at another.
    """
    del jobs
    ports = islice(cycle(place.own_ports), max(GENERATORS, len(place.own_ports)))
    todo = [Task(tasks.draining, (port, _WORDS, QUEUE, _BATCH, CLIENTS)) for port in ports]
    return rate(work(todo))


def move(place: Place, jobs: int) -> float:
    """All producers at the first worker, all consumers at the last, at the same time."""
    first, last = place.own_ports[0], place.own_ports[-1]
    args = (last, _WORDS, QUEUE, _BATCH, 4, jobs, _FEW_S)
    todo = [_adding(first, jobs, 16), Task(tasks.consuming, args)]
    reports = work(todo)
    return reports[1].count / (reports[1].ended - reports[0].began)


LOADS: Final[dict[str, Load]] = {
    "ADDJOB": add_in_turn,
    "ADDJOB, pipeline 16": add_in_a_pipeline,
    "GETJOB COUNT 200, ACKJOB 200": drain,
    "added at first, consumed at last": move,
}


def measure(place: Place, jobs: int) -> dict[str, tuple[float, float]]:
    """By load: jobs per second, and microseconds of CPU time per job."""
    found = {}
    for name, load in LOADS.items():
        if load is not drain:
            place.flush()
        before = meters.cpu_s(place.pids)
        speed = load(place, jobs)
        spent = meters.cpu_s(place.pids) - before
        found[name] = (speed, spent / jobs * 1e6)
    return found


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        try:
            found = int(text)
        except ValueError:
            found = least - 1
        if found < least:
            raise argparse.ArgumentTypeError(f"{text} is no whole number of at least {least}")
        return found

    return number


def _program(text: str) -> Path:
    found = shutil.which(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text}: there is no such program")
    return Path(found).resolve()


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks workers", description=__doc__)
    parser.add_argument(
        "--workers", type=_at_least(2), default=2, metavar="N", help="against one (2)"
    )
    parser.add_argument(
        "--jobs", type=_at_least(_BATCH), default=60_000, help="of each load (60,000)"
    )
    parser.add_argument("--rounds", type=_at_least(1), default=3, help="medians of so many (3)")
    parser.add_argument(
        "--against", type=_program, metavar="PATH", help="another server that speaks Disque"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Measure by turns, and print medians."""
    options = _options(arguments)
    counts = (1, options.workers)
    starts: dict[tuple[str, int], Callable[[int, Path], AbstractContextManager[Place]]] = {
        (contenders.OURS, count): running for count in counts
    }
    if options.against:
        other = partial(running_other, options.against)
        starts |= {(options.against.name, count): other for count in counts}
    samples: dict[tuple[str, str, int], list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as directory:
        for number in range(options.rounds):
            for (server, count), start in starts.items():
                with start(count, Path(directory) / f"{server}-{count}-{number}") as place:
                    for load, sample in measure(place, options.jobs).items():
                        samples.setdefault((load, server, count), []).append(sample)
    table = Table("load", "processes", "jobs/s", "CPU µs/job")
    for (load, server, count), rows in sorted(samples.items(), key=lambda item: item[0][0]):
        speed, spent = (statistics.median(column) for column in zip(*rows, strict=True))
        table.add_row(load, f"{count} {server}", f"{speed:,.0f}", f"{spent:.1f}")
    Console().print(table)
    return 0
