"""A job that was added, for its producer."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import attrs

from disque_trio.client.errors import DisqueError
from disque_trio.worker.handles import JobHandle
from disque_trio.worker.options import Place

if TYPE_CHECKING:
    from disque_trio.worker.results import Update

R_co = TypeVar("R_co", covariant=True)
Wait = Callable[[str, float | None], Awaitable[R_co]]
"""Waits for the result of a job, for so many seconds at most."""
Follow = Callable[[str, float | None], "AsyncIterator[Update]"]
"""What the handler tells until then, for so many seconds at most."""


class NotOpenError(DisqueError):
    """The app has no client yet."""


@attrs.frozen
class Enqueued(JobHandle, Generic[R_co]):
    """A job that was added. With a `unique` key its id may be that of an earlier job with the
    key."""

    key: str
    """Identifies the job in its body, also if it was added twice."""
    task: str
    queue: str
    _wait: Wait[R_co] | None = attrs.field(default=None, eq=False, repr=False)
    _follow: Follow | None = attrs.field(default=None, eq=False, repr=False)
    steps: Sequence[Place] = attrs.field(default=(), eq=False, repr=False)
    """Where nodes find the later steps of a chain: their queues, and their keys there."""

    async def result(self, timeout: float | None = None) -> R_co:
        """The return value of the function, for a job with `result_ttl`; the app must be open, and
        if it was when the job was added, still be. Raises `JobFailedError` if it is dead, and
        `NoResultError` after `timeout` seconds, or when it has ended without a result."""
        if self._wait is None:
            raise self._sends("no result: give the task result_ttl")
        return await self._wait(self.id, timeout)

    def updates(self, timeout: float | None = None) -> "AsyncIterator[Update]":
        """The updates of `Job.progress`, for a job with `result_ttl`, until its result arrives.
        Raises `NoResultError` after `timeout` seconds."""
        if self._follow is None:
            inside = "and add the job inside of `async with app:`"
            raise self._sends(f"no updates: give the task result_ttl, {inside}")
        return self._follow(self.id, timeout)

    def _sends(self, what: str) -> NotOpenError:
        return NotOpenError(f"job {self.key} of {self.task} sends {what}")
