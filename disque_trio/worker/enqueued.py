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
"""Waits for the result of a job, with a timeout in seconds."""
Follow = Callable[[str, float | None], "AsyncIterator[Update]"]
"""Yields the updates of a job until its result arrives, with a timeout in seconds."""


class NotOpenError(DisqueError):
    """The app is not open in this event loop, or was closed since; or the job was added without
    `result_ttl`, so it has no result to wait for."""


@attrs.frozen
class Enqueued(JobHandle, Generic[R_co]):
    """A job that was added. If it has a `unique` key, `id` may be that of an earlier job with the
    key."""

    key: str
    """The key that identifies the job, even if it was added twice."""
    task: str
    queue: str
    _wait: Wait[R_co] | None = attrs.field(default=None, eq=False, repr=False)
    _follow: Follow | None = attrs.field(default=None, eq=False, repr=False)
    steps: Sequence[Place] = attrs.field(default=(), eq=False, repr=False)
    """The queue and key of each later step of the chain."""

    async def result(self, timeout: float | None = None) -> R_co:
        """The return value of the function, for a job with `result_ttl`; for a chain, that of its
        last step. Waits at most `timeout` seconds; None is no limit. The app must be open; if it
        was open when the job was added, it must not have been closed since. Raises `JobFailedError`
        if the job is dead, its handler raised `Cancel`, or its result cannot be read;
        `NoResultError` on a timeout or if the job has ended without a result; and
        `NotOpenError`."""
        if self._wait is None:
            raise self._sends("no result: set result_ttl of the task")
        return await self._wait(self.id, timeout)

    def updates(self, timeout: float | None = None) -> "AsyncIterator[Update]":
        """The updates of `Job.progress`, until the result arrives, for a job with `result_ttl` that
        was added while the app was open. Raises `NoResultError` after `timeout` seconds, and
        `NotOpenError`."""
        if self._follow is None:
            inside = "and add the job inside `async with app:`"
            raise self._sends(f"no updates: set result_ttl of the task, {inside}")
        return self._follow(self.id, timeout)

    def _sends(self, what: str) -> NotOpenError:
        return NotOpenError(f"job {self.key} of {self.task} sends {what}")
