"""Run times of tasks: a histogram of at most a few hundred numbers for each. Histograms of several
workers can be added.

Each bucket is a quarter of an octave, so a run time is known to within a quarter. Recording one
costs less than a microsecond. A report contains only the last five to ten minutes, so that old run
times do not hide a change (decision 130).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import frexp, ldexp
from typing import Final

import attrs

from disque_trio.worker.runtime import runtime

WINDOW_S: Final = 300.0
"""Reports contain the runs of the last one or two windows of this length."""
MOST_TASKS: Final = 50
"""The number of tasks in a report: those with the most runs."""
_NANO: Final = 1e-9
"""Replaces 0, which is in no octave."""
_AT_ONCE: Final = 1000
_OCTAVES: Final = range(-12, 15, 2)
"""Bounds of the histogram for Prometheus, as powers of two of a second: 0.24 ms to 4.6 h."""


def bucket_of(seconds: float) -> int:
    """The bucket of a run time above 0."""
    part, octave = frexp(seconds)
    return (octave << 2) + int(part * 8)


def bounds(bucket: int) -> tuple[float, float]:
    """The lower and the upper bound of a bucket, in seconds."""
    octave, part = divmod(bucket - 4, 4)
    return ldexp(4 + part, octave - 3), ldexp(5 + part, octave - 3)


@attrs.define(kw_only=True)
class TaskTimes:
    """The runs of a task that have ended."""

    task: str
    failures: int = 0
    """The number of runs that failed: the job is retried, or dead."""
    seconds: float = 0.0
    """The sum of all run times."""
    buckets: dict[int, int] = attrs.Factory(dict)
    """The number of runs by bucket (`bounds`)."""
    longest: float = 0.0
    """The longest run time in seconds; 0 if it is unknown, because of workers of an earlier
    version."""

    @property
    def runs(self) -> int:
        """The number of runs."""
        return sum(self.buckets.values())

    def add(self, other: "TaskTimes") -> None:
        """Add the runs of another worker or another time."""
        self.failures += other.failures
        self.seconds += other.seconds
        if self.runs and other.runs and not (self.longest and other.longest):
            self.longest = 0.0
        else:
            self.longest = max(self.longest, other.longest)
        for bucket, count in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + count

    @property
    def _most(self) -> float:
        """An upper bound of the longest run: every other run took at least the lower bound of its
        bucket."""
        if self.longest:
            return self.longest
        least = sum(bounds(bucket)[0] * count for bucket, count in self.buckets.items())
        return self.seconds - least + bounds(max(self.buckets))[0]

    def quantile(self, share: float) -> float | None:
        """The run time in seconds that this share of the runs did not exceed; None without runs."""
        if self.runs == 1:
            return _rounded(self.seconds, self.seconds)
        left = share * self.runs
        for bucket in sorted(self.buckets):
            count = self.buckets[bucket]
            if left <= count:
                low, high = bounds(bucket)
                within = low + (high - low) * max(left, 0) / count
                return _rounded(within, self._most)
            left -= count
        return None


def _rounded(seconds: float, most: float) -> float:
    """The seconds rounded to three digits, but at most `most`."""
    return min(float(f"{seconds:.3g}"), most)


def merged(times: Iterable[TaskTimes]) -> dict[str, TaskTimes]:
    """The sums by task."""
    found: dict[str, TaskTimes] = {}
    for each in times:
        found.setdefault(each.task, TaskTimes(task=each.task)).add(each)
    return found


@attrs.define(eq=False)
class RunTimes:
    """The run times of one worker."""

    now: Callable[[], float] = attrs.field(factory=lambda: runtime().monotonic)
    _raw: dict[str, list[float]] = attrs.Factory(dict)
    """By task: run times that are in no bucket yet."""
    _current: dict[str, TaskTimes] = attrs.Factory(dict)
    _before: dict[str, TaskTimes] = attrs.Factory(dict)
    """The previous window."""
    _past: dict[str, TaskTimes] = attrs.Factory(dict)
    """All earlier windows."""
    _since: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._since = self.now()

    def note(self, task: str, seconds: float, is_failure: bool) -> None:
        """Record a run. This happens for every job, so run times are sorted into buckets in groups,
        which costs less."""
        raw = self._raw.get(task)
        if raw is None:
            raw = self._raw[task] = []
        raw.append(seconds or _NANO)
        if is_failure:
            self._of(task).failures += 1
        if len(raw) >= _AT_ONCE:
            self._sort_in(task, raw)

    def _of(self, task: str) -> TaskTimes:
        return self._current.setdefault(task, TaskTimes(task=task))

    def _sort_in(self, task: str, raw: list[float]) -> None:
        times = self._of(task)
        times.seconds += sum(raw)
        times.longest = max(times.longest, *raw)
        found = Counter([(octave << 2) + int(part * 8) for part, octave in map(frexp, raw)])
        for bucket, count in found.items():
            times.buckets[bucket] = times.buckets.get(bucket, 0) + count
        raw.clear()

    def _sort_all(self) -> None:
        for task, raw in self._raw.items():
            if raw:
                self._sort_in(task, raw)

    def lately(self) -> list[TaskTimes]:
        """The run times of recent runs, for a report."""
        self._sort_all()
        late = self.now() - self._since
        if late >= WINDOW_S:
            self._past = merged([*self._past.values(), *self._before.values()])
            self._before, self._current = self._current, {}
            self._since += late - late % WINDOW_S
        found = merged([*self._before.values(), *self._current.values()]).values()
        return sorted(found, key=lambda each: -each.runs)[:MOST_TASKS]

    def ever(self) -> Mapping[str, TaskTimes]:
        """The run times since the worker started."""
        self._sort_all()
        return merged([*self._past.values(), *self._before.values(), *self._current.values()])


_HEADS: Final = """\
# HELP disque_worker_task_seconds Run times of jobs, by task.
# TYPE disque_worker_task_seconds histogram
"""
_FAILURES: Final = """\
# HELP disque_worker_task_failures_total Runs that failed, by task.
# TYPE disque_worker_task_failures_total counter
"""


def exposition(times: RunTimes) -> str:
    """The run times in the text format of Prometheus."""
    ever = sorted(times.ever().values(), key=lambda each: each.task)
    lines = [line for each in ever for line in _histogram(each)]
    failures = [
        f"disque_worker_task_failures_total{{{_label(each)}}} {each.failures}\n" for each in ever
    ]
    return "".join([_HEADS, *lines, _FAILURES, *failures])


def _label(times: TaskTimes) -> str:
    name = times.task.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'task="{name}"'


def _histogram(times: TaskTimes) -> Iterator[str]:
    name, label, below = "disque_worker_task_seconds", _label(times), Counter[int]()
    for bucket, count in times.buckets.items():
        below[next((each for each in _OCTAVES if bounds(bucket)[1] <= ldexp(1, each)), 99)] += count
    sum_ = 0
    for octave in _OCTAVES:
        sum_ += below[octave]
        yield f'{name}_bucket{{{label},le="{ldexp(1, octave):g}"}} {sum_}\n'
    yield f'{name}_bucket{{{label},le="+Inf"}} {times.runs}\n'
    yield f"{name}_sum{{{label}}} {times.seconds:.6f}\n"
    yield f"{name}_count{{{label}}} {times.runs}\n"
