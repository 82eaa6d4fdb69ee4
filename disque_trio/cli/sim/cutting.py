"""Cuts the tasks of a sweep into pieces of about ten seconds, the most expensive seeds first."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Self

import attrs

from disque_trio.cli.sim.pool import Done, Task
from disque_trio.sim.scenarios.scenario import Scenario
from disque_trio.statemachine.form import FORM

PIECE_S: Final = 10.0
"""How long a piece should take. Spark adds some 50 ms to each."""
_LEAST_S: Final = 1.0
_MOST_TRIED: Final = 64
"""At most so many seeds in a piece while the cost of a seed is unknown."""
_EPSILON: Final = 1e-6


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
    left: tuple[Task, ...] = ()
    """Tasks that were not begun, because those before took too long."""
    host: str = ""
    error: str = ""
    """Why it cannot be run, as a sentence."""
    form: str = FORM
    """Of the code that ran it."""


@attrs.define
class _Queue:
    """Tasks of one scenario."""

    path: str
    tasks: deque[Task] = attrs.Factory(deque)
    known_s: float = 0.0
    """The sum of those costs that are known."""
    unknown: int = 0
    """How many there are of unknown cost."""

    def add(self, task: Task) -> None:
        """It is the last one."""
        self.tasks.append(task)
        self._count(task, 1)

    def put_back(self, task: Task) -> None:
        """It is the next one."""
        self.tasks.appendleft(task)
        self._count(task, 1)

    def take(self) -> Task:
        """The next one."""
        task = self.tasks.popleft()
        self._count(task, -1)
        return task

    def _count(self, task: Task, change: int) -> None:
        if task.expected_s:
            self.known_s += change * task.expected_s
        else:
            self.unknown += change


class Cutter:
    """Makes pieces as they are asked for. Their size follows from the cost of seeds, which earlier
    sweeps have told (`Task.expected_s`), or the pieces before.

    One seed of each scenario comes first, so that all costs are known early. Then comes the
    scenario with the most expensive seeds: a long seed at the end would leave all other processors
    idle. Second runs come last, so that most of them run in another process than the first.
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
        """The cost of a seed of unknown cost, by path."""
        self._tried: Counter[str] = Counter()
        self._queues: dict[tuple[bool, str], _Queue] = {}
        for task in sorted(tasks, key=lambda task: (task.is_recheck, -task.expected_s)):
            self._queue_of(task).add(task)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Piece:
        """The next piece. After `StopIteration` there may be one again, if tasks were left."""
        queue = self._chosen()
        if queue is None:
            raise StopIteration
        tasks = tuple(self._taken(queue))
        self._number += 1
        return Piece(self._number, self._scenarios[queue.path], tasks)

    def learn(self, outcome: Outcome) -> None:
        """A piece is done: update the cost of a seed, and take back what is left of it."""
        cost = outcome.seconds / len(outcome.done)
        known = self._seconds.get(outcome.path, cost)
        self._seconds[outcome.path] = (known + cost) / 2
        for task in reversed(outcome.left):
            self._queue_of(task).put_back(task)

    def _queue_of(self, task: Task) -> _Queue:
        return self._queues.setdefault((task.is_recheck, task.path), _Queue(task.path))

    def _chosen(self) -> _Queue | None:
        queues = [queue for queue in self._queues.values() if queue.tasks]
        queues = [queue for queue in queues if not queue.tasks[0].is_recheck] or queues
        for queue in queues:
            if not self._tried[queue.path] and not self._expected(queue.tasks[0]):
                return queue
        return max(queues, key=lambda queue: self._expected(queue.tasks[0]), default=None)

    def _taken(self, queue: _Queue) -> Iterator[Task]:
        if not self._expected(queue.tasks[0]):
            size = min(1 << self._tried[queue.path], _MOST_TRIED, len(queue.tasks))
            self._tried[queue.path] += 1
            yield from (queue.take() for _ in range(size))
            return
        # Towards the end pieces get smaller, so that all processors end together.
        left = sum(self._left()) / (2 * self._processors())
        rest = min(PIECE_S, max(left, _LEAST_S))
        while queue.tasks and rest > _EPSILON:
            task = queue.take()
            rest -= self._expected(task)
            yield task

    def _expected(self, task: Task) -> float:
        """What a task should cost; 0 if nobody knows."""
        return task.expected_s or self._seconds.get(task.path, 0.0)

    def _left(self) -> Iterator[float]:
        """Estimated seconds of work in each queue."""
        usual = max(self._seconds.values(), default=0.0)
        for queue in self._queues.values():
            yield queue.known_s + queue.unknown * self._seconds.get(queue.path, usual)
