"""`python -m benchmarks inprocess`: the CPU time of each command in a node, in microseconds.

Bytes are passed to the node in place of a socket's input, and taken in place of its output: this
measures the parser, the machine, the encoder and all between them, without the kernel. CPU time is
measured, so that other work on the machine matters little. Before each case the node gets the jobs
to be fetched or acknowledged.

`--flat` shows instead how that cost grows with the jobs, the queues and the clients of the node.
"""

import argparse
import gc
import itertools
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs
from rich.console import Console
from rich.table import Table

from benchmarks.output import add_json, write_json
from disque_trio.driver.sessions import Session
from disque_trio.net.listeners import Listeners
from disque_trio.node import Node
from disque_trio.serving.logs import open_log
from disque_trio.serving.process import SystemHost, tame_collector
from disque_trio.serving.server import assemble, hub_for
from disque_trio.statemachine.chores import Connection
from disque_trio.statemachine.config import Config
from disque_trio.wire.resp import encode_request

CLIENTS: Final = 50
PIPELINES: Final = (1, 16, 128)
BODY: Final = b"ten bytes!"
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


class NoStore:
    """A store that discards the node table."""

    def save(self, text: bytes) -> None:
        """Discard it."""


class Bench:
    """A single node with its clients."""

    def __init__(self, clients: int = CLIENTS) -> None:
        config = Config(maxmemory=1 << 40, maxclients=1 << 20)
        log = open_log(attrs.evolve(config, logfile=os.devnull))
        host = SystemHost()
        hub = hub_for(config, Listeners(), host.tls)
        self.node: Node = assemble(config, hub, NoStore(), None, host, log)
        self.node.begin()
        self.ports = [Port() for _ in range(clients)]
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

    def add(self, count: int, queues: int = 1) -> None:
        """Fill queues with so many jobs."""
        name = (b"bench-%d" % (i % queues) if queues > 1 else b"bench" for i in itertools.count())
        for _ in range(0, count, 1000):
            requests = [encode_request([b"ADDJOB", next(name), BODY, b"0"]) for _ in range(1000)]
            pieces = [b"".join(requests[i : i + 100]) for i in range(0, 1000, 100)]
            self.run(iter([pieces]))

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


ADD: Final = (b"ADDJOB", b"bench", BODY, b"0")
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
    turns = list(_turns(lines, pipeline, CLIENTS))
    gc.collect()
    spent = bench.run(iter(turns))
    whole = len(turns[0]) * pipeline * jobs
    some = [ns for ns, turn in zip(spent, turns, strict=True) if len(turn) == len(turns[0])]
    return _us(some) / whole


def _us(spent: list[float]) -> float:
    """The median of relative times, in microseconds of an idle machine."""
    return statistics.median(spent) * 2 * REFERENCE_US


def _turns(lines: list[bytes], pipeline: int, clients: int) -> Iterator[list[bytes]]:
    """The input that arrives at a time: from many clients, or from few with pipelines."""
    many = max(1, min(clients, 256 // pipeline))
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


def _cycle(bench: Bench, names: Sequence[bytes], requests: int) -> float:
    """Microseconds for a job that is added, fetched and acknowledged, with one request each."""
    count, clients = len(names), min(CLIENTS, len(bench.sessions))
    adds = [encode_request([b"ADDJOB", names[i % count], BODY, b"0"]) for i in range(requests)]
    gets = [encode_request([b"GETJOB", b"FROM", names[i % count]]) for i in range(requests)]
    for port in bench.ports:
        port.keeps = True
    spent = _us(bench.run(_turns(adds, 1, clients)))
    for port in bench.ports:
        port.answers.clear()
    spent += _us(bench.run(_turns(gets, 1, clients)))
    ids = [id for port in bench.ports for id in _ID.findall(b"".join(port.answers))]
    for port in bench.ports:
        port.keeps = False
        port.answers.clear()
    acks = [encode_request([b"ACKJOB", id]) for id in ids]
    return (spent + _us(bench.run(_turns(acks, 1, clients)))) / clients


def _flat(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """The cost of a job by the number of jobs, queues and clients."""
    names = [b"bench"]
    found: dict[str, dict[str, float]] = {}

    def note(what: str, number: int, bench: Bench, names: Sequence[bytes]) -> None:
        values = [_cycle(bench, names, options.requests) for _ in range(options.rounds)]
        found.setdefault(what, {})[str(number)] = round(statistics.median(values), 3)

    for jobs in options.jobs:
        bench = Bench()
        tame_collector()
        bench.add(jobs)
        note("jobs", jobs, bench, names)
        del bench
    for queues in options.queues:
        bench = Bench()
        bench.add(2 * queues, queues)
        some = [b"bench-%d" % (i * 7919 % queues) for i in range(queues)]
        note("queues", queues, bench, some if queues > 1 else [b"bench"])
        del bench
    for clients in options.clients:
        bench = Bench(clients)
        bench.add(1000)
        note("clients", clients, bench, names)
        del bench
    return found


def main(argv: Sequence[str]) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks inprocess")
    parser.add_argument("--case", action="append", default=[], choices=CASES, help="only these")
    parser.add_argument("--pipeline", type=int, nargs="+", default=PIPELINES, metavar="N")
    parser.add_argument("--rounds", type=int, default=5, help="medians are of so many (5)")
    parser.add_argument("--requests", type=int, default=20_000, help="for each sample (20000)")
    parser.add_argument("--flat", action="store_true", help="how cost grows, instead")
    parser.add_argument("--jobs", type=int, nargs="*", default=(1000, 100_000, 2_000_000))
    parser.add_argument("--queues", type=int, nargs="*", default=(1, 1000, 100_000))
    parser.add_argument("--clients", type=int, nargs="*", default=(10, 1000, 10_000))
    add_json(parser)
    options = parser.parse_args(argv)
    tame_collector()
    found = _flat(options) if options.flat else _table(options)
    table = Table("us of the processor", *(() if options.flat else map(str, options.pipeline)))
    if options.flat:
        table = Table("of what", "how many", "us per job added, fetched and acknowledged")
    for name, row in found.items():
        if options.flat:
            for number, us in row.items():
                table.add_row(name, f"{int(number):,}", f"{us:.2f}")
        else:
            table.add_row(
                name, *[f"{row[str(p)]:.2f}" if str(p) in row else "" for p in options.pipeline]
            )
    Console().print(table)
    write_json(options.json, found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
