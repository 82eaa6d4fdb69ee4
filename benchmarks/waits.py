"""How long a worker waits for a job that appears at another node, in milliseconds.

Each scenario has some queues with one worker each, so that the messages are about one job.
"""

import itertools
import random
import select
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs

from benchmarks.case import Sample
from benchmarks.contenders import Subject
from benchmarks.load.clients import Client
from benchmarks.load.dialects import resp
from benchmarks.tool import BenchmarkError
from disque_trio.statemachine.base import JobId
from tests.cluster.processes import Server

Scenario = Callable[[Subject, Sequence[str]], list[float]]
"""Uses the named queues, and returns how long each of their workers waited, in seconds."""

_QUEUES: Final = 20
_SETTLE_S: Final = 0.5
"""How long workers have waited when jobs come."""
_APART_S: Final = 0.01
"""Between two jobs."""
_TICK_S: Final = 0.001
_LIMIT_S: Final = 60.0
"""The original asks again after 30 s at most."""
_ALONE: Final = ("REPLICATE", 1)
_SOON: Final = 2
"""RETRY and DELAY of these scenarios, in seconds."""
_JOBS: Final = 3
"""Jobs for each queue of `sporadic`."""
_names = itertools.count()


def measure(subject: Subject, size: float, *, scenario: Scenario) -> Sample:
    """The median and the longest wait of a scenario. Queues are new for each sample."""
    subject.flush()
    number = next(_names)
    names = [f"meet:{number}:{each}" for each in range(max(2, round(_QUEUES * size)))]
    waits = scenario(subject, names)
    return {"p50": statistics.median(waits) * 1000, "worst": max(waits) * 1000}


class _Workers:
    """A connection for each queue, all of them at one node."""

    def __init__(self, subject: Subject, server: Server, names: Sequence[str]) -> None:
        self.clients = {name: Client(server.port, subject.dialect) for name in names}
        self._by_fd = {client.socket.fileno(): name for name, client in self.clients.items()}
        self._epoll = select.epoll()
        for fd in self._by_fd:
            self._epoll.register(fd, select.EPOLLIN)
        self.ids: dict[str, bytes] = {}
        self.came: dict[str, float] = {}
        """When each queue's job arrived."""

    def wait(self, name: str, timeout_ms: int = 0) -> None:
        """Send GETJOB; a timeout of 0 is for ever."""
        limit = [b"TIMEOUT", b"%d" % timeout_ms] if timeout_ms else []
        self.clients[name].ask((resp(b"GETJOB", *limit, b"FROM", name.encode()), 1))

    def receive(self, seconds: float) -> Iterator[tuple[str, bool]]:
        """For so long, yield each queue whose worker gets a reply, and whether it is a job."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            for fd, _ in self._epoll.poll(left):
                name = self._by_fd[fd]
                answers = self.clients[name].receive()
                if answers is not None:
                    if answers[0]:
                        self.came[name] = time.monotonic()
                        self.ids[name] = answers[0][0][1]
                    yield name, bool(answers[0])

    def receive_all(self) -> None:
        """Wait until each worker has a job."""
        deadline = time.monotonic() + _LIMIT_S
        while len(self.came) < len(self.clients):
            if time.monotonic() > deadline:
                raise BenchmarkError(f"no job has come to a worker within {_LIMIT_S:g} s")
            for _ in self.receive(_APART_S):
                pass

    def close(self) -> None:
        """Disconnect."""
        self._epoll.close()
        for client in self.clients.values():
            client.socket.close()


def _waiting(subject: Subject, server: Server, names: Sequence[str]) -> _Workers:
    """Workers that have waited for a while."""
    workers = _Workers(subject, server, names)
    for name in names:
        workers.wait(name)
    time.sleep(_SETTLE_S)
    return workers


def _since(workers: _Workers, began: dict[str, float]) -> list[float]:
    """How long after `began` each worker got its job. Closes the workers."""
    workers.receive_all()
    workers.close()
    return [max(workers.came[name] - at, 0.0) for name, at in began.items()]


def _one_by_one(
    workers: _Workers, names: Sequence[str], act: Callable[[str], object]
) -> list[float]:
    """Call `act` for each queue in turn, which brings its worker a job."""
    began: dict[str, float] = {}
    for name in names:
        began[name] = time.monotonic()
        act(name)
        for _ in workers.receive(_APART_S):
            pass
    return _since(workers, began)


def first_job(subject: Subject, names: Sequence[str]) -> list[float]:
    """A worker waits at B, and a job is added at A."""
    a, b, *_ = subject.servers
    workers = _waiting(subject, b, names)
    return _one_by_one(workers, names, lambda name: a.client.add(name, "first", *_ALONE))


def second_job(subject: Subject, names: Sequence[str]) -> list[float]:
    """Then the worker has gone; another job is added at A, and a worker asks there."""
    a, b, *_ = subject.servers
    workers = _waiting(subject, b, names)
    _one_by_one(workers, names, lambda name: a.client.add(name, "first", *_ALONE))
    b.client.call("ACKJOB", *workers.ids.values())
    for name in names:
        a.client.add(name, "second", *_ALONE)
    time.sleep(_SETTLE_S)
    workers = _Workers(subject, a, names)
    return _one_by_one(workers, names, workers.wait)


def after_nack(subject: Subject, names: Sequence[str]) -> list[float]:
    """A worker waits at A, and a job that was taken at B gets a NACK there."""
    a, b, *_ = subject.servers
    jobs = _taken(b, names)
    workers = _waiting(subject, a, names)
    return _one_by_one(workers, names, lambda name: b.client.call("NACK", jobs[name]))


def _taken(server: Server, names: Sequence[str], *options: str | int) -> dict[str, JobId]:
    for name in names:
        server.client.add(name, "body", *_ALONE, *options)
    return {name: server.client.get(name)[0].id for name in names}


def after_retry(subject: Subject, names: Sequence[str]) -> list[float]:
    """A worker waits at A, and a job that was taken at B is not acknowledged within RETRY."""
    a, b, *_ = subject.servers
    jobs = _taken(b, names, "RETRY", _SOON)
    return _when_due(subject, a, b, jobs)


def after_delay(subject: Subject, names: Sequence[str]) -> list[float]:
    """A worker waits at A, and the DELAY of a job at B ends."""
    a, b, *_ = subject.servers
    jobs = {name: b.client.add(name, "body", *_ALONE, "DELAY", _SOON) for name in names}
    return _when_due(subject, a, b, jobs)


def _when_due(
    subject: Subject, waits_at: Server, has_jobs: Server, jobs: dict[str, JobId]
) -> list[float]:
    """From the moment at which a job is to be queued, as its node reports: RETRY is spread by up to
    a quarter of a second either way, which is no wait of the worker."""
    due = {name: _due(has_jobs, job) for name, job in jobs.items()}
    workers = _Workers(subject, waits_at, list(jobs))
    for name in jobs:
        workers.wait(name)
    return _since(workers, due)


def _due(server: Server, job: JobId) -> float:
    within_ms = server.client.show(job)["next-requeue-within"]
    assert isinstance(within_ms, int), within_ms
    return time.monotonic() + within_ms / 1000


# Sporadic workers.


@attrs.define
class _SporadicWorker:
    """A queue whose worker comes and goes. Times are in seconds."""

    next_at: float
    """When the worker comes again, while it is away."""
    add_at: float
    """When the next job is added, unless there is one."""
    asked: float = 0.0
    added: float = 0.0
    """0 while there is no job."""
    waited: float = 0.0
    """How long the worker has waited for this job so far."""

    def end_wait(self, draw: random.Random, *, has_job: bool, waits: list[float]) -> None:
        """The worker has its reply and goes."""
        now = time.monotonic()
        if self.added:
            self.waited += now - max(self.asked, self.added)
        if has_job:
            waits.append(self.waited)
            self.added = self.waited = 0.0
            self.add_at = now + draw.uniform(0, 1)
        self.asked, self.next_at = 0.0, now + draw.uniform(0.1, 0.5)


def sporadic(subject: Subject, names: Sequence[str]) -> list[float]:
    """Workers at B wait for 100 to 500 ms and are away for as long, while A has a job now and then.
    Only the time in which there are both a job and a worker is counted."""
    a, b, *_ = subject.servers
    draw, began = random.Random(0), time.monotonic()
    workers = _Workers(subject, b, names)
    queues = {
        name: _SporadicWorker(began + draw.uniform(0, 0.5), began + draw.uniform(0, 2))
        for name in names
    }
    waits: list[float] = []
    while len(waits) < _JOBS * len(names):
        now = time.monotonic()
        if now > began + _LIMIT_S:
            waits += [queue.waited for queue in queues.values() if queue.added]
            break
        for name, queue in queues.items():
            if not queue.asked and now >= queue.next_at:
                queue.asked = time.monotonic()
                workers.wait(name, draw.randint(100, 500))
            if not queue.added and now >= queue.add_at:
                queue.added = time.monotonic()
                a.client.add(name, "body", *_ALONE)
        for name, has_job in workers.receive(_TICK_S):
            queues[name].end_wait(draw, has_job=has_job, waits=waits)
    workers.close()
    return waits
