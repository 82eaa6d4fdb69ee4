"""Replies that are made while their clients read them (decision 115).

What they show is chosen when the request is carried out; each value is made when it is about to be
sent. A job that goes meanwhile is shown as it went.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from disque_trio.statemachine.base import Body, Lengthy, Opening, Reply
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.state import NodeState

T = TypeVar("T")
SOME: Final = 16
"""Values that are made at a time,"""
FEWER: Final = 4
"""and as many of those that take longer."""
STEP_WORK: Final = 64
"""What a step costs, as the number of bytes of a reply that cost as much."""
_SAMPLES: Final = 256
_VALUE_BYTES: Final = 64


class JobsLeft:
    """Jobs that a reply has still to show, with their bodies: a job that goes leaves its own."""

    def __init__(self, node: NodeState, jobs: Iterable[Job] = ()) -> None:
        self._jobs = node.jobs
        self._left: list[tuple[Job, Body | None] | None] = []
        self._at = 0
        self.add(jobs)

    def add(self, jobs: Iterable[Job]) -> None:
        """Some more jobs, before the first is shown."""
        self._left += [(job, job.body) for job in jobs]

    def parts(
        self, head: list[Reply], show: Callable[[Job, Body | None], Reply], some: int = SOME
    ) -> Generator[list[Reply], None, None]:
        """The values before them, and how many they are; then `some` at a time, as `show` makes
        each."""
        yield [*head, Opening(len(self._left))]
        while self._at < len(self._left):
            now = self._left[self._at : self._at + some]
            self._left[self._at : self._at + some] = [None] * len(now)
            self._at += len(now)
            yield [show(*each) for each in now if each is not None]

    def sizes(self) -> tuple[int, int]:
        """What `Lengthy.left` says, by a sample."""
        all_, alone = 0, 0
        count = len(self._left) - self._at
        step = count // _SAMPLES + 1
        for each in self._left[self._at :: step]:
            if each is not None:
                job, body = each
                size = _VALUE_BYTES + (0 if body is None else len(body))
                all_ += size
                alone += size if self._jobs.get(job.id) is not job else 0
        return all_ * step, alone * step


def of_names(
    names: Sequence[bytes], show: Callable[[bytes], list[Reply]], head: list[Reply], work: int
) -> Lengthy:
    """Many names, or the values that each of them stands for, which follow the head."""
    return Lengthy(_parts_of_names(names, show, head), work)


def _parts_of_names(
    names: Sequence[bytes], show: Callable[[bytes], list[Reply]], head: list[Reply]
) -> Generator[list[Reply], None, None]:
    yield head
    for at in range(0, len(names), SOME):
        yield [value for name in names[at : at + SOME] for value in show(name)]


def whole(reply: Reply) -> Reply:
    """A lengthy reply made at once."""
    if not isinstance(reply, Lengthy):
        return reply
    values = (value for part in reply.parts for value in part)
    return _next_value(values)


def _next_value(values: Iterator[Reply]) -> Reply:
    value = next(values)
    if isinstance(value, Opening):
        return [_next_value(values) for _ in range(value.count)]
    return value
