"""How samples are taken: each function puts one load on running servers and returns the figures.

Loads of a single request are sent by redis-benchmark, which is independent of the servers; those
for beanstalkd, and those that depend on replies, by our own generator (`benchmarks.load`).
"""

import random
import statistics
import time
from collections.abc import Sequence
from typing import Final

from benchmarks import meters, simulator
from benchmarks.case import Sample
from benchmarks.contenders import Subject
from benchmarks.load import dialects, tasks
from benchmarks.load.processes import Task, rate, work
from benchmarks.programs import DisqueServer, RedisServer, Tube
from benchmarks.tool import CLIENTS, BenchmarkError, ops_per_second
from tests.cluster.processes import eventually

QUEUE: Final = dialects.QUEUE.decode()
BODY: Final = "ten bytes!"
_FILLERS: Final = 4
"""Connections that fill a queue before a measurement, with `_FILL_DEPTH` jobs at a time each."""
_FILL_DEPTH: Final = 128
_WORKERS: Final = 4
_BATCH: Final = 200
_IN_FLIGHT: Final = 16
"""Jobs of each worker."""
_HALF_LOAD: Final = 20_000
"""Jobs a second: about half the load of a node on a core that it shares with the generator."""
_LOOK: Final = 0.1
_FORGET_S: Final = 60.0
_FEDERATION_S: Final = 8.0
"""The limit for jobs to reach the other node."""
_JOB: Final = b"x" * 100


class _Watch:
    """Measures the CPU time of a subject, and runs its profilers."""

    def __init__(self, subject: Subject) -> None:
        self._pids = subject.pids
        self._profilers = subject.profilers
        if self._profilers is not None:
            self._profilers.begin(self._pids)
        self.restart()

    def restart(self) -> None:
        """Begin anew."""
        self._began = meters.cpu_s(self._pids)

    def us(self) -> float:
        """Microseconds so far. Ends the profilers."""
        spent = (meters.cpu_s(self._pids) - self._began) * 1e6
        if self._profilers is not None:
            self._profilers.end()
        return spent


def _count(size: float, number: int, least: int = 200) -> int:
    return max(least, int(size * number))


def _many(size: float, number: int, least: int = 200) -> int:
    """A number in the case's title: it is reduced for a quick check only."""
    return number if size >= _LOOK else _count(size, number, least)


# One request, again and again.


def ping(subject: Subject, size: float, *, pipeline: int) -> Sample:
    """PING."""
    count = _count(size, 100_000 if pipeline == 1 else 400_000)
    watch = _Watch(subject)
    speed = ops_per_second(subject.port, ["PING"], count, pipeline)
    return {"speed": speed, "cpu": watch.us() / count}


def add(
    subject: Subject, size: float, *, number: int = 100_000, pipeline: int = 1,
    options: Sequence[bytes] = (),
) -> Sample:  # fmt: skip
    """ADDJOB, LPUSH or put."""
    subject.flush()
    count = _count(size, number)
    watch = _Watch(subject)
    if subject.kind is Tube:
        speed = _put(subject, count, pipeline)
    else:
        words = ["LPUSH", QUEUE, BODY]
        if subject.kind is DisqueServer:
            words = ["ADDJOB", QUEUE, BODY, "0", *(option.decode() for option in options)]
        speed = ops_per_second(subject.port, words, count, pipeline)
    spent = watch.us()
    if subject.length(QUEUE) < count:
        raise BenchmarkError(f"{subject.contender.name} has not taken all of {count} jobs")
    return {"speed": speed, "cpu": spent / count}


def _put(subject: Subject, count: int, pipeline: int) -> float:
    args = (subject.port, subject.dialect, [b"default"], BODY.encode(), count, CLIENTS, pipeline)
    return rate(work([Task(tasks.adding, args)]))


def get(subject: Subject, size: float, *, number: int = 100_000, pipeline: int = 1) -> Sample:
    """GETJOB or RPOP of one job from a queue that does not become empty."""
    subject.flush()
    count = _count(size, number)
    _fill(subject, count + CLIENTS * pipeline, BODY.encode())
    watch = _Watch(subject)
    words = ["RPOP", QUEUE] if subject.kind is RedisServer else ["GETJOB", "FROM", QUEUE]
    speed = ops_per_second(subject.port, words, count, pipeline)
    spent = watch.us()
    if subject.length(QUEUE) > CLIENTS * pipeline:
        raise BenchmarkError(f"{subject.contender.name} has not given {count} jobs")
    return {"speed": speed, "cpu": spent / count}


def _fill(
    subject: Subject, count: int, body: bytes, *, queues: Sequence[bytes] = (),
    options: Sequence[bytes] = (),
) -> float:  # fmt: skip
    """Add `count` jobs. Returns the jobs per second."""
    names = queues or [QUEUE.encode()]
    args = (
        subject.port, subject.dialect, names, body, count, _FILLERS, _FILL_DEPTH, options,
    )  # fmt: skip
    return rate(work([Task(tasks.adding, args)]))


# Workers.


def drain(subject: Subject, size: float, *, number: int, options: Sequence[bytes] = ()) -> Sample:
    """Workers that take 200 jobs at a time and acknowledge them, until there are none.

    CPU time is counted until all nodes have forgotten the jobs.
    """
    subject.flush()
    count = _count(size, number)
    _fill(subject, count, BODY.encode(), options=options)
    watch = _Watch(subject)
    args = (subject.port, subject.dialect, QUEUE.encode(), _BATCH, _WORKERS)
    reports = work([Task(tasks.draining, args)], watch.restart)
    _see(reports, count, subject)
    _forgotten(subject)
    return {"speed": rate(reports), "cpu": watch.us() / count}


def _see(reports: Sequence[tasks.Report], count: int, subject: Subject) -> None:
    done = sum(report.count for report in reports)
    if done < count:
        raise BenchmarkError(f"{subject.contender.name} gave {done} of {count} jobs")


def _forgotten(subject: Subject) -> None:
    count = subject.registered if subject.kind is DisqueServer else lambda: subject.length(QUEUE)
    eventually(lambda: not count(), _FORGET_S, "the jobs are forgotten")


def flow(subject: Subject, size: float, *, number: int, options: Sequence[bytes]) -> Sample:
    """Jobs are added, and then taken and acknowledged, with 64 in flight, by our generator."""
    subject.flush()
    count = _count(size, number)
    port, words, queue = subject.port, subject.dialect, QUEUE.encode()
    watch = _Watch(subject)
    producer = (port, words, [queue], _JOB, count, _WORKERS, _IN_FLIGHT, options)
    added = work([Task(tasks.adding, producer)], watch.restart)
    adding = watch.us()
    if subject.length(QUEUE) < count:
        raise BenchmarkError(f"{subject.contender.name} has not taken all of {count} jobs")
    consumer = (port, words, queue, _IN_FLIGHT, _WORKERS, count, tasks.LIMIT_S)
    drained = work([Task(tasks.consuming, consumer)], watch.restart)
    _see(drained, count, subject)
    _forgotten(subject)
    return {
        "added": rate(added), "adding": adding / count,
        "drained": rate(drained), "draining": watch.us() / count,
    }  # fmt: skip


def federate(subject: Subject, size: float, *, number: int) -> Sample:
    """Jobs with one copy are added to one node while workers wait for them at another."""
    subject.flush()
    count = _count(size, number)
    queue, body = QUEUE.encode(), BODY.encode()
    first, *_, last = subject.ports
    words = subject.dialect
    producer = (first, words, [queue], body, count, _WORKERS, 16, (b"REPLICATE", b"1"))
    consumer = (last, words, queue, _BATCH, _WORKERS, count, _FEDERATION_S)
    watch = _Watch(subject)
    todo = [Task(tasks.adding, producer), Task(tasks.consuming, consumer)]
    reports = work(todo, watch.restart)
    spent = watch.us()
    done = reports[1].count
    if not done:
        raise BenchmarkError(f"{subject.contender.name} has brought no job to another node")
    began = min(report.began for report in reports)
    return {"speed": done / (reports[1].ended - began), "cpu": spent / done}


def latency(
    subject: Subject, size: float, *, per_second: int, seconds: float, workers: int,
    load: bool = False,
) -> Sample:  # fmt: skip
    """The age of jobs when a waiting worker gets them: quantiles in milliseconds."""
    subject.flush()
    count = _count(size, int(per_second * seconds), least=per_second // 5)
    port, words, queue = subject.port, subject.dialect, QUEUE.encode()
    limit_s = count / per_second + 10
    todo = [
        Task(tasks.consuming, (port, words, queue, 1, workers, count, limit_s)),
        Task(tasks.pacing, (port, words, queue, per_second, count, 10)),
    ]
    if load:
        work_load = int(_HALF_LOAD * (count / per_second + 0.2))
        args = (port, words, b"queue:other", _HALF_LOAD, work_load, 10)
        todo.append(Task(tasks.pacing, args))
    watch = _Watch(subject)
    waits = work(todo, watch.restart)[0].waits
    spent = watch.us()
    if len(waits) < count:
        raise BenchmarkError(f"{subject.contender.name} gave {len(waits)} of {count} jobs")
    cuts = statistics.quantiles([wait / 1e6 for wait in waits], n=1000)
    return {"p50": cuts[499], "p99": cuts[989], "p99.9": cuts[998], "cpu": spent / count}


def turn(
    subject: Subject, size: float, *, number: int = 30_000, jobs: int = 1000, queues: int = 1,
    connections: int = CLIENTS, body: int = 100,
) -> Sample:  # fmt: skip
    """Each client adds a job, gets one and acknowledges it, in turn, beside `jobs` others."""
    subject.flush()
    queues = min(queues, _many(size, queues, least=1))
    names = [QUEUE.encode(), *(b"queue:%d" % number for number in range(1, queues))]
    random.Random(0).shuffle(names)
    content = b"x" * body
    waiting = _many(size, jobs, least=min(jobs, 1000))
    if waiting:
        _fill(subject, max(waiting, queues), content, queues=names)
    clients = min(connections, _many(size, connections, least=10))
    count = _count(size, number, least=2 * clients)
    watch = _Watch(subject)
    args = (subject.port, subject.dialect, names, content, count, clients)
    reports = work([Task(tasks.turning, args)], watch.restart)
    return {"speed": rate(reports), "cpu": watch.us() / count}


# Many of something.


def delayed(subject: Subject, size: float) -> Sample:
    """A million jobs with a delay of an hour: the cost of adding and of keeping them."""
    count = _many(size, 1_000_000)
    before = meters.rss_bytes(subject.pids)
    watch = _Watch(subject)
    options = (b"DELAY", b"3600")
    speed = _fill(subject, count, _JOB, options=options)
    spent = watch.us()
    resident = meters.rss_bytes(subject.pids) - before
    return {
        "speed": speed,
        "cpu": spent / count,
        "resident": resident / count,
        "idle": _idle(subject, 3 * size),
    }


def crowd(subject: Subject, size: float) -> Sample:
    """ADDJOB from 50 clients beside 10,000 idle ones."""
    silent = _many(size, 10_000)
    found: Sample = {}

    def measure() -> None:
        found.update(add(subject, size))

    args = (subject.port, subject.dialect, silent, 0.0)
    work([Task(tasks.holding, args)], measure)
    return found


def resident(subject: Subject, size: float) -> Sample:
    """The memory of a job with a body of 100 bytes, without that of the process itself."""
    count = _count(size, 500_000)
    before = meters.rss_bytes(subject.pids)
    _fill(subject, count, _JOB)
    return {"resident": (meters.rss_bytes(subject.pids) - before) / count}


def idle(subject: Subject, size: float) -> Sample:
    """The CPU use of idle servers."""
    subject.flush()
    return {"idle": _idle(subject, 8 * size)}


def _idle(subject: Subject, seconds: float) -> float:
    """Percent of a core."""
    watch = _Watch(subject)
    began = time.monotonic()
    time.sleep(max(seconds, 0.2))
    return watch.us() / (time.monotonic() - began) / 1e4


def start(subject: Subject, _size: float) -> Sample:
    """The time from the start command to the first reply."""
    return {"start": subject.start_s * 1000, "cpu": meters.cpu_s(subject.pids) * 1000}


def simulate(_subject: Subject, size: float) -> Sample:
    """Events of simulated clusters, per second of CPU time."""
    rates = simulator.speeds(max(1, round(2 * size)))
    return {
        "bare": rates["events/s, without vector clocks"],
        "clocks": rates["events/s, with vector clocks"],
        "judged": rates["events/s, with vector clocks and judge"],
    }
