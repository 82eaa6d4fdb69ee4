"""The tasks of load processes. Each connects, waits for the start, works and reports.

Times are those of the system's monotonic clock, which all processes share.
"""

import select
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import Final

import attrs

from benchmarks.load.clients import Client, Conversation, connect, converse
from benchmarks.load.dialects import Dialect

LIMIT_S: Final = 100.0
"""The limit for a task."""
_BREATH_S: Final = 0.0005
"""The pause between two bursts of `pacing`."""

Start = Callable[[], None]
"""Reports that the process is ready, and returns when all are."""


@attrs.frozen
class Report:
    """The result of a task."""

    count: int
    """Jobs that went through."""
    began: float
    ended: float
    waits: Sequence[int] = ()
    """Nanoseconds."""


@attrs.define(eq=False)
class Tally:
    """Counts the jobs of all clients of a process."""

    count: int = 0
    last: float = 0.0
    """When a job was last counted."""
    waits: list[int] = attrs.Factory(list)

    def add(self, count: int) -> None:
        """Count more jobs."""
        self.count += count
        self.last = time.monotonic()


def adding(
    start: Start, port: int, dialect: Dialect, queues: Sequence[bytes], body: bytes,
    count: int, connections: int, depth: int, options: Sequence[bytes] = (),
) -> Report:  # fmt: skip
    """Add `count` jobs to the queues in turn, `depth` at a time on each connection."""
    shares = _shares(count, connections)
    names = cycle(queues)
    clients = connect(port, dialect, connections)
    start()
    began = time.monotonic()
    pairs = [
        (client, _adds(client.dialect, names, body, share, depth, options))
        for client, share in zip(clients, shares, strict=True)
    ]
    converse(pairs, LIMIT_S)
    return Report(count, began, time.monotonic())


def _adds(
    dialect: Dialect, names: Iterator[bytes], body: bytes, count: int, depth: int,
    options: Sequence[bytes],
) -> Conversation:  # fmt: skip
    while count > 0:
        number = min(depth, count)
        yield b"".join([dialect.add(next(names), body, options) for _ in range(number)]), number
        count -= number


def draining(
    start: Start, port: int, dialect: Dialect, queue: bytes, batch: int, connections: int
) -> Report:
    """Get and acknowledge `batch` jobs at a time, until the queue is empty."""
    tally = Tally()
    clients = connect(port, dialect, connections)
    start()
    began = time.monotonic()
    converse([(each, _drains(each.dialect, queue, batch, tally)) for each in clients], LIMIT_S)
    return Report(tally.count, began, tally.last)


def _drains(dialect: Dialect, queue: bytes, batch: int, tally: Tally) -> Conversation:
    while jobs := dialect.jobs((yield dialect.get(queue, batch))):
        yield dialect.ack([job_id for job_id, _ in jobs])
        tally.add(len(jobs))


def consuming(
    start: Start, port: int, dialect: Dialect, queue: bytes, batch: int, connections: int,
    count: int, limit_s: float,
) -> Report:  # fmt: skip
    """Wait for jobs and acknowledge them, up to `count` of them or until `limit_s` is over.

    The age of a job is noted if its body begins with a time.
    """
    tally = Tally()
    clients = connect(port, dialect, connections)
    start()
    began = time.monotonic()
    deadline = began + limit_s
    converse(
        [(each, _consumes(each.dialect, queue, batch, tally)) for each in clients],
        LIMIT_S,
        lambda: tally.count >= count or time.monotonic() > deadline,
    )
    return Report(tally.count, began, tally.last, tally.waits)


def _consumes(dialect: Dialect, queue: bytes, batch: int, tally: Tally) -> Conversation:
    jobs = dialect.jobs((yield dialect.block(queue, batch, None), 1))
    while True:
        now = time.monotonic_ns()
        tally.waits += [now - int(stamp) for _, body in jobs if (stamp := body[:20]).isdigit()]
        tally.add(len(jobs))
        data, due = dialect.ack([job_id for job_id, _ in jobs]) if jobs else (b"", 0)
        answers = yield data + dialect.block(queue, batch, len(jobs)), due + 1
        jobs = dialect.jobs(answers[due:])


def turning(
    start: Start, port: int, dialect: Dialect, queues: Sequence[bytes], body: bytes,
    count: int, connections: int,
) -> Report:  # fmt: skip
    """Add a job, get one, acknowledge it: `count` turns over the queues in turn.

    Each client has one turn before the start, because the first request of a client costs more.
    """
    names = cycle(queues)
    clients = connect(port, dialect, connections)
    converse([(client, _turns(client.dialect, names, body, 1)) for client in clients], LIMIT_S)
    start()
    began = time.monotonic()
    pairs = [
        (client, _turns(client.dialect, names, body, share))
        for client, share in zip(clients, _shares(count, connections), strict=True)
    ]
    converse(pairs, LIMIT_S)
    return Report(count, began, time.monotonic())


def _turns(dialect: Dialect, names: Iterator[bytes], body: bytes, count: int) -> Conversation:
    for _ in range(count):
        queue = next(names)
        yield dialect.add(queue, body), 1
        jobs = dialect.jobs((yield dialect.get(queue, 1)))
        assert jobs, "there are as many jobs as clients that get one"
        yield dialect.ack([jobs[0][0]])


def pacing(
    start: Start, port: int, dialect: Dialect, queue: bytes, rate: int, count: int, connections: int
) -> Report:
    """Add `rate` jobs a second, whatever the server does. Bodies have the time when they were
    sent."""
    clients = connect(port, dialect, connections)
    by_fd = {client.socket.fileno(): client for client in clients}
    epoll = select.epoll()
    for fd in by_fd:
        epoll.register(fd, select.EPOLLIN)
    start()
    began = time.monotonic()
    sent = 0
    while sent < count:
        due = min(count, int((time.monotonic() - began) * rate))
        _burst(clients, queue, sent, due)
        sent = due
        for fd, _ in epoll.poll(0):
            by_fd[fd].receive()
        time.sleep(_BREATH_S)
    return Report(count, began, time.monotonic())


def _burst(clients: Sequence[Client], queue: bytes, sent: int, due: int) -> None:
    """Send the jobs that are due, shared out among the clients."""
    shares = _shares(due - sent, len(clients))
    for number, share in enumerate(shares):
        if share:
            client = clients[(sent + number) % len(clients)]
            add = client.dialect.add(queue, b"%020d" % time.monotonic_ns())
            client.ask((add * share, share))


def holding(start: Start, port: int, dialect: Dialect, connections: int, until_s: float) -> Report:
    """Keep idle connections open."""
    clients = connect(port, dialect, connections)
    start()
    began = time.monotonic()
    time.sleep(until_s)
    return Report(len(clients), began, time.monotonic())


def _shares(count: int, clients: int) -> list[int]:
    """The number of jobs for each client, as equal as possible."""
    each, over = divmod(count, clients)
    return [each + (number < over) for number in range(clients)]
