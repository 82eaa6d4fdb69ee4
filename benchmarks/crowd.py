"""`python -m benchmarks crowd`: the latency of one client beside many, some of them hostile.

An observer sends one request after the other to a node while other clients put loads on it. Its
waits show how the loads affect a client that has no part in them. Loads are added step by step.
"""

import argparse
import contextlib
import multiprocessing
import select
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import attrs

from tests.cluster.processes import Fleet, Server
from tests.cluster.talk import LOOPBACK

IDLE: Final = 10_000
ACTIVE: Final = 1000
SLOW: Final = 100
SLOW_READERS: Final = 5000
_PAUSE_S: Final = 0.002
"""Between two requests of the observer."""
_SETTLING_S: Final = 2.0
"""Clients that never read first fill their buffers."""
_BATCH: Final = 64
"""Connections that the flood opens before it closes them all."""
_PING: Final = b"PING\r\n"
_JOB: Final = b"*4\r\n$6\r\nADDJOB\r\n$1\r\nq\r\n$10\r\nxxxxxxxxxx\r\n$1\r\n0\r\n"
_PEEKED: Final = 100
"""Jobs of a kilobyte in the queue that slow readers look at."""
_PEEK: Final = b"QPEEK slow %d\r\n" % _PEEKED
_SLOW_READ: Final = 4096
"""Bytes that a slow reader reads at a time, and the size of its socket's buffer."""
_LARGE: Final = b"*2\r\n$4\r\nPING\r\n$100000\r\n%b\r\n" % (b"x" * 100_000)

Load = Callable[[int, int, Connection], None]
"""Puts a load on the server at a port until it is killed, and reports its rate each second."""


@attrs.frozen
class Observation:
    """The waits of the observer during one step."""

    name: str
    waits_ms: list[float]
    done: float
    """The rate of the load, per second."""
    rss_mib: float

    def line(self) -> str:
        """For people."""
        cuts = statistics.quantiles(self.waits_ms, n=1000)
        middle, slow, slower = cuts[499], cuts[989], cuts[998]
        return (
            f"{self.name:32} p50 {middle:6.2f}  p99 {slow:6.2f}  p99.9 {slower:6.2f}  "
            f"max {max(self.waits_ms):7.2f} ms  load {self.done:9,.0f}/s  "
            f"rss {self.rss_mib:4.0f} MiB"
        )


def main(argv: Sequence[str]) -> int:
    """Measure, and print; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks crowd", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="each observation lasts (10)")
    parser.add_argument("--idle", type=int, default=IDLE, help=f"idle clients ({IDLE})")
    parser.add_argument("--active", type=int, default=ACTIVE, help=f"active clients ({ACTIVE})")
    parser.add_argument(
        "--slow", type=int, default=SLOW_READERS, help=f"slow readers ({SLOW_READERS})"
    )
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name, contextlib.closing(Fleet(Path(name))) as fleet:
        server = fleet.server(
            "--maxclients", str(options.idle + options.active + options.slow + 3000)
        )
        for observation in _observations(server, options):
            sys.stdout.write(observation.line() + "\n")
            sys.stdout.flush()
    return 0


def _observations(server: Server, options: argparse.Namespace) -> Iterator[Observation]:
    seconds = options.seconds
    yield _observe("nobody else", server, [], seconds)
    _fill(server)
    slow_readers = (_read_slowly, options.slow)
    yield _observe(f"{options.slow:,} that read slowly", server, [slow_readers], seconds)
    with contextlib.ExitStack() as crowd:
        for _ in range(options.idle):
            crowd.enter_context(socket.create_connection((LOOPBACK, server.port)))
        yield _observe(f"{options.idle:,} idle", server, [], seconds)
        active = (_work, options.active)
        yield _observe(f"and {options.active:,} active", server, [active], seconds)
        slow = (_never_read, SLOW)
        yield _observe(f"and {SLOW} that never read", server, [slow, active], seconds)
        _fill(server)
        name = f"and {options.slow:,} that read slowly"
        yield _observe(name, server, [slow_readers, active], seconds)
        flood = (_flood, _BATCH)
        yield _observe("idle, flood of connections", server, [flood], seconds)
        yield _observe("idle, active, flood", server, [flood, active], seconds)


def _fill(server: Server) -> None:
    """Add the jobs that slow readers peek at."""
    for _ in range(_PEEKED):
        server.client.call("ADDJOB", "slow", "x" * 1000, 0)


def _observe(
    name: str, server: Server, loads: Sequence[tuple[Load, int]], seconds: float
) -> Observation:
    """Measure the observer's waits beside these loads; the rate is that of the last load."""
    helpers, reports = [], []
    for load, count in loads:
        ours, theirs = multiprocessing.Pipe()
        helper = multiprocessing.Process(target=load, args=(server.port, count, theirs))
        helper.start()
        helpers.append(helper)
        reports.append(ours)
    try:
        for report in reports:
            report.recv()  # it has begun
        time.sleep(_SETTLING_S if loads else 0)
        waits = ask(server.port, seconds)
        rss = server.rss_mib()
        rate = _rate(reports[-1]) if reports else 0.0
    finally:
        for helper in helpers:
            helper.kill()
            helper.join()
    server.client.call("DEBUG", "FLUSHALL")
    return Observation(name, waits, rate, rss)


def _rate(report: Connection) -> float:
    """The rate per second, without the first and the last second."""
    counts: list[int] = []
    while report.poll(0):
        counts.append(report.recv())
    return statistics.mean(counts[1:-1] or counts or [0])


def ask(port: int, seconds: float) -> list[float]:
    """Milliseconds that each request waits which is sent after the one before."""
    waits: list[float] = []
    with socket.create_connection((LOOPBACK, port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        until = time.monotonic() + seconds
        while (asked := time.monotonic()) < until:
            client.sendall(_PING)
            assert client.recv(64)
            waits.append((time.monotonic() - asked) * 1000)
            time.sleep(_PAUSE_S)
    return waits


# Loads.


class _Reporter:
    """Reports the rate of a load each second."""

    def __init__(self, report: Connection) -> None:
        self._report = report
        self._count = 0
        self._due = time.monotonic() + 1
        report.send(0)

    def add(self, count: int) -> None:
        """Count what was done."""
        self._count += count
        if time.monotonic() >= self._due:
            self._report.send(self._count)
            self._count = 0
            self._due += 1


def _work(port: int, count: int, report: Connection) -> None:
    """Clients of which each adds one job after the other."""
    epoll = select.epoll()
    clients: dict[int, socket.socket] = {}
    for _ in range(count):
        client = socket.create_connection((LOOPBACK, port))
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        clients[client.fileno()] = client
        epoll.register(client.fileno(), select.EPOLLIN)
    reporter = _Reporter(report)
    for client in clients.values():
        client.sendall(_JOB)
    while True:
        ready = epoll.poll()
        for fd, _ in ready:
            clients[fd].recv(256)
            clients[fd].sendall(_JOB)
        reporter.add(len(ready))


def _never_read(port: int, count: int, report: Connection) -> None:
    """Clients that send requests with large replies as long as they can, and read nothing."""
    clients = [socket.create_connection((LOOPBACK, port)) for _ in range(count)]
    for client in clients:
        client.setblocking(False)
    reporter = _Reporter(report)
    while True:
        sent = 0
        for client in clients:
            with contextlib.suppress(OSError):
                sent += client.send(_LARGE)
        reporter.add(sent)
        if not sent:
            time.sleep(0.01)


def _read_slowly(port: int, count: int, report: Connection) -> None:
    """Clients that request much more than they read, and read slowly."""
    clients = []
    for _ in range(count):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SLOW_READ)
        client.connect((LOOPBACK, port))
        client.setblocking(False)
        clients.append(client)
    reporter = _Reporter(report)
    while True:
        for client in clients:
            read = 0
            with contextlib.suppress(OSError):
                client.send(_PEEK)
            with contextlib.suppress(OSError):
                read = len(client.recv(_SLOW_READ))
            reporter.add(read)
        time.sleep(0.01)


def _flood(port: int, count: int, report: Connection) -> None:
    """As many new connections as possible, each closed soon."""
    reporter = _Reporter(report)
    while True:
        clients = []
        for _ in range(count):
            client = socket.socket()
            # Closed with a reset, so that the system does not run out of ports.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.settimeout(1)
            with contextlib.suppress(OSError):
                client.connect((LOOPBACK, port))
            clients.append(client)
        for client in clients:
            client.close()
        reporter.add(len(clients))
