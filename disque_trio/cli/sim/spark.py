"""Seeds run on Spark: the tasks of a sweep in pieces of about ten seconds each."""

import math
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Final, Self

import attrs

from disque_trio.cli.frame import UsageError
from disque_trio.cli.sim.pool import Done, Task, cycles_collected_between_seeds, run_seeds
from disque_trio.pipeline import shipping
from disque_trio.pipeline.errors import PipelineError
from disque_trio.pipeline.fanout import Fanout
from disque_trio.sim.scenarios.scenario import Scenario

PIECE_S: Final = 10.0
"""How long a piece should take. Spark adds some 50 ms to each."""
_LEAST_S: Final = 1.0
_MOST_TRIED: Final = 64
"""At most so many seeds in a piece while the cost of a seed is unknown."""
_MEMORY: Final = "1g"
"""Of the driver, which only forwards results."""


@attrs.frozen
class Piece:
    """Seeds of one scenario that are run together."""

    number: int
    scenario: Scenario
    tasks: tuple[Task, ...]


@attrs.frozen
class Outcome:
    """The result of a piece."""

    path: str
    done: tuple[Done, ...]
    seconds: float
    host: str = ""
    error: str = ""
    """Why it cannot be run, as a sentence."""


def run_all(
    tasks: Iterable[Task],
    scenarios: Mapping[str, Scenario],
    master: str,
    settings: Mapping[str, str],
    ready: Callable[[int], None],
) -> Generator[Done, None, None]:
    """The tasks' results in the order in which they are finished. Closing ends Spark.

    `ready` is called with the number of processors as soon as Spark runs.
    """
    with shipping.running(
        master, app="disque-trio sweep", memory=_MEMORY, settings=settings
    ) as spark:
        fanout = Fanout(spark)
        ready(fanout.processors)
        cutter = Cutter(tasks, scenarios, lambda: fanout.processors)
        outcomes = fanout.run(run_piece, cutter)
        try:
            for outcome in outcomes:
                if outcome.error:
                    raise UsageError(f"an executor on {outcome.host} says: {outcome.error}")
                cutter.learn(outcome)
                yield from outcome.done
        finally:
            outcomes.close()


def run_piece(piece: Piece) -> Outcome:
    """On an executor."""
    began = time.monotonic()
    path = piece.tasks[0].path
    try:
        with cycles_collected_between_seeds():
            done = tuple(run_seeds(piece.tasks, piece.scenario, str(piece.number)))
    except (UsageError, PipelineError) as error:
        # Spark would retry an exception, and report it with a page of Java.
        return Outcome(path, (), 0.0, socket.gethostname(), str(error))
    return Outcome(path, done, time.monotonic() - began)


class Cutter:
    """Cuts the tasks into pieces; their size follows from the cost of those before.

    Second runs come last, so that most of them run in another process than the first.
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        scenarios: Mapping[str, Scenario],
        processors: Callable[[], int],
    ) -> None:
        self._scenarios = scenarios
        self._processors = processors
        self._number = 0
        self._seconds: dict[str, float] = {}
        """The cost of a seed, by path."""
        self._tried: Counter[str] = Counter()
        queues: dict[tuple[bool, str], deque[Task]] = {}
        for task in tasks:
            queues.setdefault((task.is_recheck, task.path), deque()).append(task)
        self._queues = deque(sorted(queues.values(), key=lambda queue: queue[0].is_recheck))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Piece:
        """The next piece."""
        if not self._queues:
            raise StopIteration
        queue = self._queues[0]
        path = queue[0].path
        tasks = tuple(queue.popleft() for _ in range(min(self._size(path), len(queue))))
        if not queue:
            self._queues.popleft()
        self._number += 1
        return Piece(self._number, self._scenarios[path], tasks)

    def learn(self, outcome: Outcome) -> None:
        """A piece is done: update the cost of a seed."""
        cost = outcome.seconds / len(outcome.done)
        known = self._seconds.get(outcome.path, cost)
        self._seconds[outcome.path] = (known + cost) / 2

    def _size(self, path: str) -> int:
        cost = self._seconds.get(path)
        if cost is None:
            size = min(1 << self._tried[path], _MOST_TRIED)
            self._tried[path] += 1
            return size
        # Towards the end pieces get smaller, so that all processors end together.
        left = sum(self._left()) / (2 * self._processors())
        return max(1, math.ceil(min(PIECE_S, max(left, _LEAST_S)) / max(cost, 1e-6)))

    def _left(self) -> Iterator[float]:
        """Estimated seconds of work in each queue."""
        usual = max(self._seconds.values(), default=0.0)
        for queue in self._queues:
            yield len(queue) * self._seconds.get(queue[0].path, usual)
