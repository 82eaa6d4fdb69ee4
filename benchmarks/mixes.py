"""`python -m benchmarks mixes`: resident memory against maxmemory, in ten mixes of jobs.

Each mix fills a server of its own until it refuses jobs, acknowledges most of them, and fills it
again with jobs of other sizes. What stays pins memory that the others cannot use. The greatest
resident size is read of the kernel, and set beside maxmemory (docs/memory.md).
"""

import argparse
import contextlib
import random
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import hiredis
from rich.table import Table

from benchmarks.output import add_json, add_only, console, only, refuse, write_json
from benchmarks.tool import BenchmarkError
from disque_trio.statemachine.form import FORM
from disque_trio.statemachine.pressure import MOST_RESIDENT_PERCENT
from disque_trio.wire.resp import encode_request
from tests.cluster.processes import Fleet, Server
from tests.cluster.talk import LOOPBACK

LIMIT_MB: Final = 160
MOST: Final = MOST_RESIDENT_PERCENT / 100
"""Resident size through maxmemory: what docs/memory.md promises."""
KEPT: Final = 40
"""One job in so many survives."""
_PIECE: Final = 256 << 10
"""About how many bytes of requests are sent at a time."""
_PATIENCE_S: Final = 1.5
"""A node that takes no job for so long is full. It may give memory back meanwhile."""
_PAUSE_S: Final = 0.1

Size = Callable[[random.Random], int]
"""Draws the size of a body."""


@attrs.define(eq=False)
class Load:
    """One connection to a server, and the jobs that are there."""

    server: Server
    rng: random.Random = attrs.Factory(lambda: random.Random(0))
    jobs: list[bytes] = attrs.Factory(list)
    added: list[int] = attrs.Factory(list)
    """How many jobs each filling has added."""
    full: list[float] = attrs.Factory(list)
    """The account when each filling was refused, as a part of maxmemory."""
    _reader: hiredis.Reader = attrs.Factory(hiredis.Reader)
    _socket: socket.socket = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._socket = socket.create_connection((LOOPBACK, self.server.port), 60)

    def ask_all(self, requests: Sequence[Sequence[bytes]]) -> list[Any]:
        """Send them in one piece. Returns the replies."""
        self._socket.sendall(b"".join(map(encode_request, requests)))
        replies: list[Any] = []
        while len(replies) < len(requests):
            reply = self._reader.gets()
            if reply is False:
                self._reader.feed(self._socket.recv(1 << 18))
            else:
                replies.append(reply)
        return replies

    def fill(self, size: Size, queues: int = 1, *, keys: bool = False) -> None:
        """Add jobs until the server takes no more."""
        before = len(self.jobs)
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until:
            taken = self._add_some(size, queues, keys=keys)
            if taken:
                until = time.monotonic() + _PATIENCE_S
            else:
                time.sleep(_PAUSE_S)
        info = self.server.client.info("memory")
        self.full.append(int(info["used_memory"]) / int(info["maxmemory"]))
        self.added.append(len(self.jobs) - before)

    def _add_some(self, size: Size, queues: int, *, keys: bool) -> int:
        requests: list[list[bytes]] = []
        room = _PIECE
        while room > 0 and len(requests) < 200:
            body = self.rng.randbytes(size(self.rng))
            words = [b"ADDJOB", b"q%d" % self.rng.randrange(queues), body, b"0"]
            if keys:
                words += [b"UNIQUE", b"%032x" % self.rng.getrandbits(128)]
            requests.append(words)
            room -= len(body) + 100
        ids = [reply for reply in self.ask_all(requests) if isinstance(reply, bytes)]
        self.jobs += ids
        return len(ids)

    def drain(self, *, in_order: bool = True, keep: int = KEPT) -> None:
        """Acknowledge all but one in so many (all, if 0), from the oldest, or in a random order."""
        jobs, self.jobs = self.jobs, []
        if not in_order:
            self.rng.shuffle(jobs)
        gone = [job for at, job in enumerate(jobs) if not keep or at % keep]
        self.jobs = [job for at, job in enumerate(jobs) if keep and not at % keep]
        for at in range(0, len(gone), 200):
            self.ask_all([[b"ACKJOB", *gone[at : at + 200]]])

    def close(self) -> None:
        """Disconnect."""
        self._socket.close()


def just(size: int) -> Size:
    """Bodies of one size."""
    return lambda _rng: size


def between(least: int, most: int) -> Size:
    """Any size from `least` to `most`."""
    return lambda rng: rng.randint(least, most)


def of_any_magnitude(rng: random.Random) -> int:
    """From 10 bytes to 200 kB; each magnitude is as frequent as another."""
    return int(10 ** rng.uniform(1, 5.3))


def _stages(*sizes: int, in_order: bool = True, keep: int = KEPT) -> Callable[[Load], None]:
    def run(load: Load) -> None:
        for size in sizes:
            load.fill(just(size))
            load.drain(in_order=in_order, keep=keep)

    return run


def _halves(load: Load) -> None:
    for _ in range(8):
        load.fill(of_any_magnitude)
        load.drain(in_order=False, keep=2)


def _thresholds(load: Load) -> None:
    for _ in range(3):
        load.fill(between(440, 520))
        load.drain(in_order=False)
        load.fill(between(126 << 10, 130 << 10))
        load.drain(in_order=False)


def _many_queues(load: Load) -> None:
    for size in (30, 20_000, 300, 60_000):
        load.fill(just(size), queues=20_000, keys=True)
        load.drain(in_order=False)


def _replies(load: Load) -> None:
    """Eight clients leave replies of 2 MB unread while jobs come and go."""
    with contextlib.ExitStack() as stack:
        for size in (20_000, 30, 60_000, 3000):
            load.fill(just(size))
            count = b"%d" % max(1, (2 << 20) // size) if size > 30 else b"1000"
            for _ in range(8):
                client = stack.enter_context(_slow_client(load.server))
                client.sendall(encode_request([b"QPEEK", b"q0", count]))
            load.drain()
            stack.close()


@contextlib.contextmanager
def _slow_client(server: Server) -> Iterator[socket.socket]:
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((LOOPBACK, server.port))
        yield client


def _rewrites(load: Load) -> None:
    for size in (3000, 30, 20_000, 700):
        load.fill(just(size))
        load.server.client.call("BGREWRITEAOF")
        load.drain()


@attrs.frozen
class Mix:
    """What is done to a server, and the options that it is started with."""

    name: str
    about: str
    run: Callable[[Load], None]
    options: Sequence[str] = ()


MIXES: Final = (
    Mix("one-size", "3 kB, three times, all drained", _stages(3000, 3000, 3000, keep=0)),
    Mix("survivors", "small and large in turn", _stages(3000, 30, 20_000, 700, 60_000, 3000)),
    Mix("small-large", "30 B, then 100 kB", _stages(30, 100_000, 30, 100_000)),
    Mix("growing", "each size three to ten times the one before",
        _stages(10, 100, 300, 1000, 10_000, 100_000, 1_000_000)),
    Mix("shrinking", "the same, backwards, at random",
        _stages(1_000_000, 100_000, 10_000, 1000, 300, 100, 10, in_order=False)),
    Mix("halves", "10 B to 200 kB; half goes, at random", _halves),
    Mix("thresholds", "about 512 B and 128 KiB, at random", _thresholds),
    Mix("queues", "20,000 queues, unique keys, at random", _many_queues),
    Mix("replies", "eight clients that do not read", _replies),
    Mix("rewrites", "with a journal that is rewritten when full", _rewrites,
        ("--appendonly", "yes")),
)  # fmt: skip


@attrs.frozen
class Outcome:
    """What came of a mix. Bytes; parts of maxmemory."""

    name: str
    peak: int
    ratio: float
    full: list[float]
    added: list[int]
    seconds: float


def main(argv: Sequence[str]) -> int:
    """Measure, and print; the exit code is 1 if a mix took more than `MOST`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks mixes", description=__doc__)
    parser.add_argument("--mb", type=int, default=LIMIT_MB, help=f"maxmemory ({LIMIT_MB})")
    add_only(parser)
    add_json(parser)
    options = parser.parse_args(argv)
    out = console()
    try:
        mixes = only(options.only, MIXES, "mix")
    except BenchmarkError as error:
        return refuse(out, error)
    table = Table("mix", "", "peak", "peak / maxmemory", "full at", "jobs added", "s")
    outcomes: list[Outcome] = []
    for mix in mixes:
        outcome = measure(mix, options.mb << 20)
        outcomes.append(outcome)
        out.print(f"{outcome.name:12} {outcome.ratio:.2f}", highlight=False)
        table.add_row(
            mix.name, mix.about, f"{outcome.peak / 1e6:.0f} MB", f"{outcome.ratio:.2f}",
            " ".join(f"{part:.2f}" for part in outcome.full),
            " ".join(map(str, outcome.added)), f"{outcome.seconds:.0f}",
        )  # fmt: skip
    out.print(table)
    write_json(options.json, {"form": FORM, "mixes": [attrs.asdict(each) for each in outcomes]})
    return int(any(outcome.ratio > MOST for outcome in outcomes))


def measure(mix: Mix, limit: int) -> Outcome:
    """Run a mix on a server with this maxmemory."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name, contextlib.closing(Fleet(Path(name))) as fleet:
        server = fleet.server("--maxmemory", str(limit), *mix.options)
        with contextlib.closing(Load(server)) as load:
            mix.run(load)
        peak = peak_rss_bytes(server.pid)
    seconds = time.monotonic() - began
    return Outcome(mix.name, peak, peak / limit, load.full, load.added, seconds)


def peak_rss_bytes(pid: int) -> int:
    """The greatest resident size that the process has had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))
