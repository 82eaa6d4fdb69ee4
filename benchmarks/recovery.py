"""The speed of loading a journal: `python -m benchmarks recovery`.

A journal of jobs with bodies of 100 bytes and two holders is written, then read, then loaded into
a machine until every job is restored. Each measurement has a process of its own; times are CPU
times. The disk is not measured: the file is in the cache.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.meters import rss_bytes
from benchmarks.output import add_json, write_json
from disque_trio.serving.process import tame_collector
from disque_trio.statemachine.base import MYSELF, QUEUED, Now
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.job import make_id
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.messages import JobCopy
from disque_trio.statemachine.records import LoadJob, Record
from disque_trio.wire.journal import Format, Reader, Writer

ME: Final = b"a" * 40
OTHER: Final = b"b" * 40
BODY: Final = b"x" * 100
QUEUES: Final = 10
PORTION: Final = 1 << 16
GOAL: Final = 1_000_000
"""Jobs a minute."""

Rates = dict[str, float]


def _jobs(count: int) -> Iterator[JobCopy]:
    wall_s = int(time.time())
    rng = random.Random(1)
    for number in range(count):
        yield JobCopy(
            id=make_id(ME, rng.getrandbits(144), 86_400, at_least_once=True),
            state=QUEUED,
            gc_attempt=0,
            flags=0,
            replicas=2,
            etime=wall_s + 86_400,
            ctime=wall_s * 1_000_000_000 + number,
            delay=0,
            retry=300,
            nacks=0,
            deliveries=0,
            queue=b"queue-%d" % (number % QUEUES),
            body=BODY,
            holders=(ME, OTHER),
        )


def write(path: str, jobs: int, format_: Format) -> Rates:
    """Write the journal."""
    copies = [LoadJob(copy) for copy in _jobs(jobs)]
    writer = Writer(format_, 1)
    began = time.process_time()
    data = writer.header + b"".join(map(writer.encode, copies))
    seconds = time.process_time() - began
    Path(path).write_bytes(data)
    return {"seconds": seconds, "bytes": len(data)}


def read(path: str) -> Rates:
    """Parse the journal, and discard the records."""
    tame_collector()
    return _timed(path, lambda _records: None)


def load(path: str) -> Rates:
    """Restore all jobs."""
    tame_collector()
    now = Now(mono=10_000, wall=int(time.time() * 1000))
    peers = [Peer(OTHER, "127.0.0.1", 7712)]
    myself = Peer(ME, "127.0.0.1", 7711, MYSELF)
    machine = Machine(Config(appendonly=True), myself, random.Random(1), now, nodes=peers)
    before = rss_bytes([os.getpid()])
    began = time.process_time()
    rates = _timed(path, lambda records: machine.load(records, now))
    while not machine.loaded(now, 1000):
        machine.take()
    rates["seconds"] = time.process_time() - began
    rates["jobs"] = len(machine.state.jobs)
    rates["resident"] = rss_bytes([os.getpid()]) - before
    return rates


def _timed(path: str, take: Callable[[list[Record]], None]) -> Rates:
    began = time.process_time()
    reader = Reader()
    with open(path, "rb") as file:
        while portion := file.read(PORTION):
            take(reader.feed(portion))
    assert not reader.finish()
    return {"seconds": time.process_time() - began}


def measure(jobs: int) -> dict[str, Rates]:
    """Measure writing, reading and loading in both formats."""
    found: dict[str, Rates] = {}
    with tempfile.TemporaryDirectory() as folder:
        for format_ in Format:
            path = f"{folder}/{format_.value}.aof"
            found[f"write, {format_.value}"] = _alone(write, path, jobs, format_)
            found[f"read, {format_.value}"] = _alone(read, path)
            found[f"load, {format_.value}"] = _alone(load, path)
    return found


def _alone(act: Callable[..., Rates], *args: object) -> Rates:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(act, *args).result()


def main(argv: Sequence[str]) -> int:
    """Measure, and print; 1 if loading is slower than it should be."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks recovery", description="How fast a node comes back."
    )
    parser.add_argument("--jobs", type=int, default=GOAL, help="in the journal (1000000)")
    add_json(parser)
    options = parser.parse_args(argv)
    found = measure(options.jobs)
    table = Table("what", title=f"{options.jobs:,} jobs")
    for column in ("records/s", "us each", "jobs a minute", "bytes a job in memory"):
        table.add_column(column, justify="right")
    for what, rates in found.items():
        each = rates["seconds"] / options.jobs
        memory = f"{rates['resident'] / options.jobs:,.0f}" if "resident" in rates else ""
        table.add_row(what, f"{1 / each:,.0f}", f"{each * 1e6:.2f}", f"{60 / each:,.0f}", memory)
    Console().print(table)
    write_json(options.json, found)
    return int(any(60 * options.jobs / found[f"load, {f.value}"]["seconds"] < GOAL for f in Format))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
