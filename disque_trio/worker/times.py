"""How long tasks run: for each a histogram of a few hundred numbers at most, whose sum with that of
another worker is that of both.

Each bucket is a quarter of an octave: a run time is known to within a quarter. To note one costs a
worker less than a microsecond, and a report has the last five to ten minutes only, so that what was
slow last week hides nothing (decision 130).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import frexp, ldexp
from typing import Final

import attrs

from disque_trio.worker.runtime import runtime

WINDOW_S: Final = 300.0
"""Reports have the runs of the last one or two of these."""
MOST_TASKS: Final = 50
"""Of a report: those with most runs."""
_NANO: Final = 1e-9
"""In place of 0, which is in no octave."""
_AT_ONCE: Final = 1000
_OCTAVES: Final = range(-12, 15, 2)
"""Bounds of the histogram for Prometheus, as powers of two of a second: 0.24 ms to 4.6 h."""


def bucket_of(seconds: float) -> int:
    """The bucket of a run time above 0."""
    part, octave = frexp(seconds)
    return (octave << 2) + int(part * 8)


def bounds(bucket: int) -> tuple[float, float]:
    """From which second, and up to which one, a bucket has run times."""
    octave, part = divmod(bucket - 4, 4)
    return ldexp(4 + part, octave - 3), ldexp(5 + part, octave - 3)


@attrs.define(kw_only=True)
class TaskTimes:
    """The runs of a task that have ended."""

    task: str
    failures: int = 0
    """How many failed: the job is tried again, or is dead."""
    seconds: float = 0.0
    """Of all of them together."""
    buckets: dict[int, int] = attrs.Factory(dict)
    """How many took how long (`bounds`)."""
    longest: float = 0.0
    """Seconds of the longest; 0 if workers of an earlier version ran some."""

    @property
    def runs(self) -> int:
        """How many have ended."""
        return sum(self.buckets.values())

    def add(self, other: "TaskTimes") -> None:
        """Those of another worker, or of another time."""
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
        """No run took longer: each other one took as long as its bucket begins at, or longer."""
        if self.longest:
            return self.longest
        least = sum(bounds(bucket)[0] * count for bucket, count in self.buckets.items())
        return self.seconds - least + bounds(max(self.buckets))[0]

    def quantile(self, share: float) -> float | None:
        """Seconds within which so many of the runs ended; None without runs."""
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
    """To three digits, which must not make it more than this."""
    return min(float(f"{seconds:.3g}"), most)


def merged(times: Iterable[TaskTimes]) -> dict[str, TaskTimes]:
    """By task, the sums."""
    found: dict[str, TaskTimes] = {}
    for each in times:
        found.setdefault(each.task, TaskTimes(task=each.task)).add(each)
    return found


@attrs.define(eq=False)
class RunTimes:
    """Of one worker."""

    now: Callable[[], float] = attrs.field(factory=lambda: runtime().monotonic)
    _raw: dict[str, list[float]] = attrs.Factory(dict)
    """By task, seconds that are in no bucket yet."""
    _current: dict[str, TaskTimes] = attrs.Factory(dict)
    _before: dict[str, TaskTimes] = attrs.Factory(dict)
    """Of the window before."""
    _past: dict[str, TaskTimes] = attrs.Factory(dict)
    """All before that."""
    _since: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._since = self.now()

    def note(self, task: str, seconds: float, is_failure: bool) -> None:
        """A run has ended. This is done for each job: to put many into buckets at once costs
        less."""
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
        """For a report."""
        self._sort_all()
        late = self.now() - self._since
        if late >= WINDOW_S:
            self._past = merged([*self._past.values(), *self._before.values()])
            self._before, self._current = self._current, {}
            self._since += late - late % WINDOW_S
        found = merged([*self._before.values(), *self._current.values()]).values()
        return sorted(found, key=lambda each: -each.runs)[:MOST_TASKS]

    def ever(self) -> Mapping[str, TaskTimes]:
        """Since the worker began."""
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
    """For Prometheus."""
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
