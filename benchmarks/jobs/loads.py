"""The loads: each function starts producers and workers at a running broker, and takes a sample."""

import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import attrs

from benchmarks import meters
from benchmarks.case import Sample
from benchmarks.contenders import Subject
from benchmarks.jobs.libraries import Library, Shape
from benchmarks.jobs.processes import Producer, Surroundings, Worker, producing, working
from benchmarks.jobs.tally import Tally
from benchmarks.tool import BenchmarkError

WANTED_S: Final = 2.0
"""A drain is to take about that long."""
LEASE_S: Final = 5
"""For workers that are killed: jobs come again after so long, where the library can be told."""
AGAIN_S: Final = 40.0
"""Jobs that have not come again so long after the kill are lost."""
STANDSTILL_S: Final = 20.0
_START_S: Final = 60.0
_SOON_S: Final = 0.002
_POLL_S: Final = 0.01
_SETTLE_S: Final = 0.2
"""For acknowledgements after the last job."""
_MOST: Final = 60_000
_LEAST: Final = 100
_KILL_JOBS: Final = 40
_KILL_PAUSE_S: Final = 0.3
_KILL_AFTER_S: Final = 0.5
_DOWN_S: Final = 0.5
_RESTART_JOBS: Final = 1000
_CALLS: Final = 300
_GAP_S: Final = 0.005
_BULK: Final = 10_000


@attrs.frozen
class Tuned:
    """The quickest shape of a library's worker, and its jobs per second."""

    shape: Shape
    speed: float


@attrs.define(eq=False)
class _Bench:
    """A broker, a folder, and the library, for one load."""

    subject: Subject
    around: Surroundings

    def counted(self, jobs: int) -> Tally:
        return Tally.create(self.around.tally_path, jobs)

    def broker_s(self) -> float:
        return meters.cpu_s(self.subject.pids)


def _library(subject: Subject) -> Library:
    assert isinstance(subject.contender, Library)
    return subject.contender


class Loads:
    """Takes samples, and remembers which shape is the best for each library."""

    def __init__(self) -> None:
        self.tuned: dict[str, Tuned] = {}

    def best(self, subject: Subject) -> Tuned:
        """The quickest shape; the first time, all shapes are tried."""
        library = _library(subject)
        if library.name not in self.tuned:
            count = library.traits.probe
            found = [
                Tuned(shape, _drained(subject, shape, count)["speed"])
                for shape in library.traits.shapes
            ]
            self.tuned[library.name] = max(found, key=lambda each: each.speed)
        return self.tuned[library.name]

    def drain(self, subject: Subject, size: float, *, payload: int = 0) -> Sample:
        """Workers that find a full queue."""
        best = self.best(subject)
        count = jobs_for(best.speed, WANTED_S * size)
        return _drained(subject, best.shape, count, payload=payload)

    def sleep(self, subject: Subject, size: float) -> Sample:
        """Jobs that sleep 10 ms, 100 at a time."""
        best = self.best(subject)
        shape = _library(subject).traits.wide
        count = jobs_for(min(best.speed, 100 * shape.concurrency), WANTED_S * size)
        return _drained(subject, shape, count, pause_s=0.01)

    def bulk(self, subject: Subject, size: float) -> Sample:
        """Adding many jobs."""
        with _bench(subject) as bench, producing(bench.around) as producer:
            producer.add(0, 100)
            before = bench.broker_s()
            count = max(_LEAST, int(_BULK * size))
            took = producer.add(0, count)
            return {
                "speed": count / took["seconds"],
                "worker": took["cpu"] * 1e6 / count,
                "broker": (bench.broker_s() - before) * 1e6 / count,
            }

    def one(self, subject: Subject, size: float) -> Sample:
        """Adding one job at a time, for a worker that waits."""
        shape = self.best(subject).shape
        count = max(50, int(_CALLS * size))
        with _bench(subject) as bench, producing(bench.around) as producer:
            tally = bench.counted(count + 20)
            with working(bench.around, shape) as worker:
                producer.add_one_by_one(0, 20, _GAP_S)
                _wait(lambda: tally.done() >= 20, worker, _START_S, _POLL_S)
                calls = producer.add_one_by_one(20, count, _GAP_S)
                _wait(lambda: tally.lost() == 0, worker, STANDSTILL_S, _POLL_S)
                began = tally.begun_s()[20:]
        adds = [took * 1e3 for _, took in calls]
        starts = [(at - added) * 1e3 for at, (added, _) in zip(began, calls, strict=True)]
        return {
            "add50": percentile(adds, 50),
            "add99": percentile(adds, 99),
            "start50": percentile(starts, 50),
            "start99": percentile(starts, 99),
        }

    def kill(self, subject: Subject, _size: float) -> Sample:
        """kill -9 to one of two workers at work.

        A job is added each second, because some libraries look for lost ones only when there are
        new ones.
        """
        shape = _library(subject).traits.few
        with _bench(subject, LEASE_S) as bench:
            tally = bench.counted(_KILL_JOBS + 2 + int(AGAIN_S) + 2)
            with (
                producing(bench.around) as producer,
                working(bench.around, shape) as victim,
                working(bench.around, shape) as other,
            ):
                _warm(producer, tally, [victim, other])
                producer.add(2, _KILL_JOBS, _KILL_PAUSE_S)
                _wait(lambda: tally.done() > 4, other, _START_S, _SOON_S)
                time.sleep(_KILL_AFTER_S)
                victim.kill()
                killed = time.monotonic()
                _add_until_back(producer, tally, killed + AGAIN_S)
                sample = losses(tally.runs()[: _KILL_JOBS + 2])
                if not sample["lost"]:
                    sample["again"] = max(tally.begun_s()[: _KILL_JOBS + 2]) - killed
                return sample

    def restart(self, subject: Subject, size: float) -> Sample:
        """kill -9 to the broker while jobs run; it is back after half a second."""
        traits = _library(subject).traits
        count = max(_LEAST, int(min(_RESTART_JOBS, 2 * traits.probe) * size))
        with _bench(subject, LEASE_S) as bench:
            tally = bench.counted(count)
            with producing(bench.around) as producer:
                producer.add(0, count, 0.01)
            time.sleep(1.2)  # so that all jobs are in the journal, and their loss is not its
            with working(bench.around, traits.few) as worker:
                _wait(lambda: tally.done() > count / 5, worker, _START_S, _SOON_S)
                (server,) = subject.servers
                killed = time.monotonic()
                server.kill()
                time.sleep(_DOWN_S)
                server.start()
                server.wait()
                ended = _finish(tally, worker)
                pause = longest_pause(killed, tally.begun_s())
                return {**losses(tally.runs()), "pause": pause, "ended": ended}


# The parts of a load.


@contextlib.contextmanager
def _bench(subject: Subject, lease_s: int | None = None) -> Iterator[_Bench]:
    """A folder for the processes of a load."""
    with tempfile.TemporaryDirectory(prefix="jobs-", ignore_cleanup_errors=True) as name:
        around = Surroundings(_library(subject), subject.port, Path(name), lease_s)
        Tally.create(around.tally_path, 1).close()
        yield _Bench(subject, around)


def _drained(
    subject: Subject, shape: Shape, count: int, *, pause_s: float = 0, payload: int = 0
) -> Sample:
    """Fill the queue, start a worker, and measure from the first job to the last."""
    subject.flush()
    with _bench(subject) as bench:
        tally = bench.counted(count)
        with producing(bench.around) as producer:
            producer.add(0, count, pause_s, payload)
        with working(bench.around, shape) as worker:
            _wait(lambda: tally.done() > 0, worker, _START_S, _SOON_S)
            done, worker_s, broker_s = tally.done(), worker.cpu_s(), bench.broker_s()
            _wait(lambda: tally.lost() == 0, worker, AGAIN_S + STANDSTILL_S, _POLL_S)
            time.sleep(_SETTLE_S)
            measured = max(1, count - done)
            began = tally.begun_s()
            return {
                "speed": count / max(1e-6, max(began) - min(began) + pause_s),
                "worker": (worker.cpu_s() - worker_s) * 1e6 / measured,
                "broker": (bench.broker_s() - broker_s) * 1e6 / measured,
                "twice": tally.twice(),
            }


def _warm(producer: Producer, tally: Tally, workers: Sequence[Worker]) -> None:
    """See that jobs run. A worker that needs longer to start than the other gets a second."""
    producer.add(0, 2)
    _wait(lambda: tally.done() == 2, workers[0], _START_S, _POLL_S)
    time.sleep(2.0)


def _wait(is_so: Callable[[], bool], worker: Worker, limit_s: float, poll_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while not is_so():
        if worker.has_ended():
            raise BenchmarkError(f"the worker has ended: {worker.log()}")
        if time.monotonic() > deadline:
            raise BenchmarkError(f"not done after {limit_s:g} s: {worker.log()}")
        time.sleep(poll_s)


def _add_until_back(producer: Producer, tally: Tally, deadline: float) -> None:
    """Add a job each second until all that were there before have run."""
    first = _KILL_JOBS + 2
    for number in range(first, tally.jobs):
        producer.add(number, 1)
        soon = min(deadline, time.monotonic() + 1.0)
        while time.monotonic() < soon:
            if 0 not in tally.runs()[:first]:
                return
            time.sleep(_POLL_S)


def _finish(tally: Tally, worker: Worker) -> int:
    """Wait until all jobs have run or nothing moves any more; how often the worker has ended."""
    ended, done, moved = 0, tally.done(), time.monotonic()
    while tally.lost() and time.monotonic() < moved + STANDSTILL_S:
        if worker.has_ended():
            ended += 1
            worker.restart()
            time.sleep(1.0)
        if tally.done() != done:
            done, moved = tally.done(), time.monotonic()
        time.sleep(_POLL_S)
    return ended


def losses(runs: bytes) -> Sample:
    """Jobs that have not run, and that ran more than once, by how often each has run."""
    never = runs.count(0)
    return {"lost": never, "twice": len(runs) - never - runs.count(1)}


def longest_pause(since: float, begun_s: Sequence[float]) -> float:
    """The longest time after that moment in which no job began."""
    times = [since, *sorted(at for at in begun_s if at > since)]
    return max((after - before for before, after in pairwise(times)), default=0.0)


def jobs_for(speed: float, seconds: float) -> int:
    """How many jobs take so long, within bounds."""
    return min(_MOST, max(_LEAST, int(speed * seconds)))


def percentile(values: Sequence[float], percent: int) -> float:
    """That percentile."""
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
