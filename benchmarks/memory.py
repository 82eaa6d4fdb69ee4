"""`python -m benchmarks.memory`: a node's memory account compared with its resident size.

Each case fills a machine in a process of its own, without sockets, and compares the growth of the
account with that of the resident size. The weights in `statemachine.memory` were measured in this
way; the table is in docs/memory.md.
"""

import argparse
import gc
import os
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Final

from rich.console import Console
from rich.table import Table

from disque_trio.serving.process import facts, tame_collector
from disque_trio.statemachine import pressure
from disque_trio.statemachine.base import MYSELF, Now
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.messages import GotJob, JobCopy, ReplJob
from disque_trio.system import rss_bytes
from disque_trio.wire.frames import FrameParser, encode

WALL: Final = 1_800_000_000_000
TOTAL: Final = 64 << 20
"""About how much memory a case fills, so that fluctuations of the process do not matter."""
MINE: Final = b"a" * 40
OTHERS: Final = (b"b" * 40, b"c" * 40)


class Filler:
    """A machine in a cluster of three, with a clock for so many inputs a second."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.ticks = 0
        config = Config(maxmemory=1 << 40, cluster_node_timeout=1 << 40)
        nodes = [Peer(name, f"127.0.0.{i + 2}", 7711) for i, name in enumerate(OTHERS)]
        process = facts(config)
        myself = Peer(MINE, "127.0.0.1", 7711, MYSELF)
        rng = random.Random(0)
        self.machine = Machine(config, myself, rng, self.now, process, nodes)
        self.parser = FrameParser(knows=lambda _id: True)
        self.go_on(100)
        for peer in nodes:
            self.machine.linked(peer.link, "127.0.0.1", peer.ip, self.now)
        self.link = self.machine.accepted("127.0.0.1", "127.0.0.2", self.now)
        client = self.machine.connect(b"127.0.0.1:1", self.now)
        assert client is not None
        self.client = client
        self.machine.take()

    @property
    def now(self) -> Now:
        passed = self.ticks * 1000 // self.rate
        return Now(1000 + passed, WALL + passed)

    def go_on(self, ticks: int = 1) -> None:
        self.ticks += ticks
        if self.machine.deadline() <= self.now.mono:
            self.machine.tick(self.now)
        if self.ticks % 32 == 0:
            self.machine.take()

    def ask(self, *words: bytes) -> None:
        self.machine.request(self.client, list(words), self.now)
        self.go_on()

    def add(self, queue: bytes, body: int, *options: bytes) -> None:
        self.ask(b"ADDJOB", bytes(bytearray(queue)), os.urandom(body), b"0", *options)

    def replicate(self, queue: bytes, body: int) -> None:
        """Its own job with three copies, confirmed by the others."""
        self.add(queue, body, b"REPLICATE", b"3")
        job = self.client.pending_adds[0].job
        assert job is not None
        for number, name in enumerate(OTHERS):
            self.receive(name, encode(name, 7711, 0, GotJob(job.id)), number)

    def receive(self, sender: bytes, data: bytes, _number: int = 0) -> None:
        for frame in self.parser.feed(data):
            assert frame.sender == sender
            self.machine.message(self.link, frame, self.now)
        self.go_on()

    def hold(self, queue: bytes, body: int) -> None:
        """A copy of another node's job, as the bus brings it."""
        job_id = b"D-bbbbbbbb-%012x%012x-05a1" % (self.ticks, self.ticks)
        copy = JobCopy(
            job_id, 0, 0, 0, 3, 86_401, WALL * 1_000_000 + self.ticks, 0, 300, 0, 0, queue,
            os.urandom(body), (*OTHERS, MINE),
        )  # fmt: skip
        self.receive(OTHERS[0], encode(OTHERS[0], 7711, 0, ReplJob((copy,), no_reply=True)))


Act = Callable[[Filler, int], None]


def _adds(body: int, queues: int) -> Act:
    return lambda filler, i: filler.add(b"queue-%d" % (i % queues), body, b"REPLICATE", b"1")


CASES: Final[dict[str, tuple[int, int, Act]]] = {
    # name: bytes of one, a second, what is done
    **{
        f"body {body} B, {queues} queue(s)": (body + 700, 20_000, _adds(body, queues))
        for body in (10, 100, 1000, 100_000)
        for queues in (1, 100)
    },
    "body 100 B, 10000 queues": (800, 20_000, _adds(100, 10_000)),
    "body 100 B, 100 jobs/s": (1100, 100, _adds(100, 1)),
    "body 100 B, three copies, here": (800, 20_000, lambda f, _i: f.replicate(b"queue", 100)),
    "body 100 B, copies of others": (800, 20_000, lambda f, _i: f.hold(b"queue", 100)),
    "body 1000 B, copies of others": (1700, 20_000, lambda f, _i: f.hold(b"queue", 1000)),
    "dummy acks": (700, 20_000, lambda f, i: f.ask(b"ACKJOB", b"D-bbbbbbbb-%024x-05a1" % i)),
    "empty queues": (2000, 20_000, lambda f, i: f.ask(b"GETJOB", b"NOHANG", b"FROM", b"q%d" % i)),
}


def main() -> int:
    """Run all cases, or one in this very process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    case = parser.parse_args().case
    if case is not None:
        sys.stdout.write("{} {} {}".format(*_fill(case)))
        return 0
    table = Table("case", "number", "resident", "accounted", "accounted / resident")
    for name in CASES:
        command = [sys.executable, "-m", "benchmarks.memory", "--case", name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        count, resident, accounted = map(int, done.stdout.split())
        table.add_row(
            name, str(count), f"{resident / count:.0f} B", f"{accounted / count:.0f} B",
            f"{accounted / resident:.2f}",
        )  # fmt: skip
    Console().print(table)
    return 0


def _fill(case: str) -> tuple[int, int, int]:
    size, rate, act = CASES[case]
    filler = Filler(rate)
    count = TOTAL // size
    tame_collector()
    node = filler.machine.state
    pressure.review(node)
    resident, used = rss_bytes(), pressure.used(node)
    for number in range(count):
        act(filler, number)
    filler.machine.take()
    gc.collect()
    pressure.review(node)
    return count, rss_bytes() - resident, pressure.used(node) - used


if __name__ == "__main__":
    raise SystemExit(main())
