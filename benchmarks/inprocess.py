"""`python -m benchmarks inprocess`: the CPU time of each command in a node, in microseconds.

Bytes are passed to the node in place of a socket's input, and taken in place of its output: this
measures the parser, the machine, the encoder and all between them, without the kernel. CPU time is
measured, so that other work on the machine matters little. Before each case the node gets the jobs
to be fetched or acknowledged.
"""

import argparse
import gc
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

import attrs
from rich.console import Console
from rich.table import Table

from benchmarks.output import add_json, write_json
from disque_trio.driver.sessions import Session
from disque_trio.net.listeners import Listeners
from disque_trio.node import Node
from disque_trio.serving.logs import open_log
from disque_trio.serving.process import SystemHost, tame_collector
from disque_trio.serving.server import assemble, event_loop_for
from disque_trio.statemachine.chores import Connection
from disque_trio.statemachine.config import Config
from disque_trio.storage.nodes_conf import NoNodesConf
from disque_trio.wire.resp import encode_request

T = TypeVar("T")
CLIENTS: Final = 50
PIPELINES: Final = (1, 16, 128)
ADD: Final = (b"ADDJOB", b"bench", b"ten bytes!", b"0")
_ID: Final = re.compile(rb"D-[0-9a-f]{8}-.{24}-[0-9a-f]{4}")


@attrs.define(eq=False)
class Port:
    """A client that reads everything at once."""

    is_half_closed: bool = False
    sent: int = 0
    keeps: bool = False
    answers: list[bytes] = attrs.Factory(list)

    def write(self, data: bytes) -> int:
        """Nothing is ever left unsent."""
        self.sent += len(data)
        if self.keeps:
            self.answers.append(data)
        return 0

    def hold(self) -> None:
        """Nobody reads ahead."""

    def resume(self) -> None:
        """Nobody reads ahead."""

    def close(self) -> None:
        """The benchmark ends first."""

    def abort(self) -> None:
        """A node that cuts off a client spoils the measure."""
        raise AssertionError("cut off")

    def facts(self) -> Connection:
        """Unused."""
        return Connection(fd=0, output_bytes=0, output_chunks=0, events=b"")


class Bench:
    """A single node with its clients."""

    def __init__(self) -> None:
        config = Config(maxmemory=1 << 40, maxclients=1 << 20)
        log = open_log(attrs.evolve(config, logfile=os.devnull))
        host = SystemHost()
        event_loop = event_loop_for(config, Listeners(), host.tls)
        self.node: Node = assemble(config, event_loop, NoNodesConf(), None, host, log)
        self.node.begin()
        self.ports = [Port() for _ in range(CLIENTS)]
        self.sessions = [self._connect(port) for port in self.ports]
        self.node.settle()
        self._next = 0

    def _connect(self, port: Port) -> Session:
        session = self.node.connect(port, b"127.0.0.1:1")
        assert session is not None
        return session

    def run(self, turns: Iterator[list[bytes]]) -> list[float]:
        """Handle each turn, the input of several clients. Returns the times, relative to
        `_reference_work`."""
        node, sessions = self.node, self.sessions
        received = node.received
        spent: list[float] = []
        for pieces in turns:
            first, self._next = self._next, (self._next + len(pieces)) % len(sessions)
            chosen = (sessions * 2)[first : first + len(pieces)] if first else sessions
            before = _reference_work()
            started = time.process_time_ns()
            node.begin()
            for session, data in zip(chosen, pieces, strict=False):
                received(session, data)
            node.settle()
            ended = time.process_time_ns()
            spent.append((ended - started) / (before + _reference_work()))
        return spent

    def add(self, count: int) -> None:
        """Fill the queue with so many jobs."""
        for _ in range(0, count, 1000):
            self.run(iter([[encode_request(ADD) * 100] * 10]))

    def fetch(self, count: int) -> list[bytes]:
        """The ids of so many jobs that have been delivered."""
        ids: list[bytes] = []
        port = self.ports[self._next]
        port.keeps = True
        for _ in range(0, count, 200):
            self._next = self.ports.index(port)
            self.run(iter([[encode_request([b"GETJOB", b"COUNT", b"200", b"FROM", b"bench"])]]))
            ids += _ID.findall(b"".join(port.answers))
            port.answers.clear()
        port.keeps = False
        return ids


REFERENCE_US: Final = 9.4
"""The time of `_reference_work` on the machine where this was written, when that was idle."""


def _reference_work() -> int:
    """Nanoseconds for a fixed piece of work similar to a node's.

    The speed of a shared machine varies by a factor of two, so turns are measured relative to this.
    """
    started = time.process_time_ns()
    table: dict[bytes, list[int]] = {}
    for number in range(50):
        row = [number, number + 1]
        table[b"row %d" % (number & 15)] = row
        row.append(len(table))
    return time.process_time_ns() - started


Make = Callable[[Bench, int], list[bytes]]
"""Prepares the node for so many requests, and returns them."""


def _same(*words: bytes) -> Make:
    return lambda _bench, count: [encode_request(words)] * count


def _get(*words: bytes, jobs: int = 1) -> Make:
    def make(bench: Bench, count: int) -> list[bytes]:
        bench.add(count * jobs)
        return [encode_request([b"GETJOB", *words, b"FROM", b"bench"])] * count

    return make


def _ack(at_once: int) -> Make:
    def make(bench: Bench, count: int) -> list[bytes]:
        bench.add(count * at_once)
        ids = bench.fetch(count * at_once)
        step = range(0, len(ids), at_once)
        return [encode_request([b"ACKJOB", *ids[i : i + at_once]]) for i in step]

    return make


CASES: Final[dict[str, tuple[Make, int]]] = {
    # name: the requests, and how many jobs each of them moves
    "PING": (_same(b"PING"), 1),
    "ADDJOB": (_same(*ADD), 1),
    "ADDJOB with options": (_same(*ADD, b"REPLICATE", b"1", b"RETRY", b"60", b"TTL", b"600"), 1),
    "GETJOB": (_get(), 1),
    "ACKJOB": (_ack(1), 1),
    "GETJOB COUNT 200": (_get(b"COUNT", b"200", jobs=200), 200),
    "ACKJOB of 200": (_ack(200), 200),
}


def measure(bench: Bench, case: str, pipeline: int, requests: int) -> float:
    """Microseconds per request, or per job if a request moves many: the median of the turns."""
    make, jobs = CASES[case]
    lines = make(bench, max(requests // jobs, CLIENTS * pipeline))
    turns = list(_turns(lines, pipeline))
    gc.collect()
    spent = bench.run(iter(turns))
    whole = len(turns[0]) * pipeline * jobs
    some = [ns for ns, turn in zip(spent, turns, strict=True) if len(turn) == len(turns[0])]
    return statistics.median(some) * 2 * REFERENCE_US / whole


def _turns(lines: list[bytes], pipeline: int) -> Iterator[list[bytes]]:
    """The input that arrives at a time: from many clients, or from few with pipelines."""
    many = max(1, min(CLIENTS, 256 // pipeline))
    for at in range(0, len(lines), pipeline * many):
        some = lines[at : at + pipeline * many]
        yield [b"".join(some[i : i + pipeline]) for i in range(0, len(some), pipeline)]


def _table(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Medians by case and pipeline."""
    samples: dict[tuple[str, int], list[float]] = {}
    bench = Bench()
    cases = [case for case in CASES if case in options.case or not options.case]
    for _ in range(options.rounds):
        for case in cases:
            for pipeline in options.pipeline if CASES[case][1] == 1 else (1,):
                us = measure(bench, case, pipeline, options.requests)
                samples.setdefault((case, pipeline), []).append(us)
        bench.node.machine.request(
            bench.sessions[0].client, [b"DEBUG", b"FLUSHALL"], bench.node.now
        )
        bench.node.settle()
    found: dict[str, dict[str, float]] = {}
    for (case, pipeline), values in samples.items():
        found.setdefault(case, {})[str(pipeline)] = round(statistics.median(values), 3)
    return found


def main(argv: Sequence[str]) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks inprocess")
    parser.add_argument("--case", action="append", default=[], choices=CASES, help="only these")
    parser.add_argument("--pipeline", type=int, nargs="+", default=PIPELINES, metavar="N")
    parser.add_argument("--rounds", type=int, default=5, help="medians are of so many (5)")
    parser.add_argument("--requests", type=int, default=20_000, help="for each sample (20000)")
    add_json(parser)
    options = parser.parse_args(argv)
    tame_collector()
    found = _table(options)
    table = Table("us of the processor", *map(str, options.pipeline))
    for name, row in found.items():
        cells = [f"{row[str(p)]:.2f}" if str(p) in row else "" for p in options.pipeline]
        table.add_row(name, *cells)
    Console().print(table)
    write_json(options.json, found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
