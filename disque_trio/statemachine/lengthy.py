"""Replies that are produced while their clients read them (decision 115).

The request selects the items; each value is made when it is about to be sent. A job that is dropped
meanwhile is shown in its last state.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from disque_trio.statemachine.base import Body, Lengthy, Opening, Reply
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.state import NodeState

T = TypeVar("T")
SOME: Final = 16
"""The number of values per step."""
FEWER: Final = 4
"""The number of values per step, for values that take longer."""
STEP_WORK: Final = 64
"""The cost of a step, in bytes of a reply with the same cost."""
_SAMPLES: Final = 256
_VALUE_BYTES: Final = 64


class JobsLeft:
    """The remaining jobs of a reply, with their bodies, because a dropped job loses its own."""

    def __init__(self, node: NodeState, jobs: Iterable[Job] = ()) -> None:
        self._jobs = node.jobs
        self._left: list[tuple[Job, Body | None] | None] = []
        self._at = 0
        self.add(jobs)

    def add(self, jobs: Iterable[Job]) -> None:
        """Add jobs, before the first one is shown."""
        self._left += [(job, job.body) for job in jobs]

    def parts(
        self, head: list[Reply], show: Callable[[Job, Body | None], Reply], some: int = SOME
    ) -> Generator[list[Reply], None, None]:
        """The values of `head` and the number of jobs; then the jobs, `some` per step, as made by
        `show`."""
        yield [*head, Opening(len(self._left))]
        while self._at < len(self._left):
            now = self._left[self._at : self._at + some]
            self._left[self._at : self._at + some] = [None] * len(now)
            self._at += len(now)
            yield [show(*each) for each in now if each is not None]

    def sizes(self) -> tuple[int, int]:
        """`Lengthy.left`, estimated from a sample."""
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
    """A reply of `head`, followed by the values that `show` makes for each name."""
    return Lengthy(_parts_of_names(names, show, head), work)


def _parts_of_names(
    names: Sequence[bytes], show: Callable[[bytes], list[Reply]], head: list[Reply]
) -> Generator[list[Reply], None, None]:
    yield head
    for at in range(0, len(names), SOME):
        yield [value for name in names[at : at + SOME] for value in show(name)]


def whole(reply: Reply) -> Reply:
    """The reply; a `Lengthy` is produced completely."""
    if not isinstance(reply, Lengthy):
        return reply
    values = (value for part in reply.parts for value in part)
    return _next_value(values)


def _next_value(values: Iterator[Reply]) -> Reply:
    value = next(values)
    if isinstance(value, Opening):
        return [_next_value(values) for _ in range(value.count)]
    return value
