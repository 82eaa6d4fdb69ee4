"""Results of jobs, for the client that waits for them (docs/worker-results.md).

A worker adds them to a queue of the client, before it acknowledges the job. All tasks that wait
share one GETJOB on that queue.
"""

import logging
import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, TypeVar

import anyio
import attrs

from disque_trio import client as clients
from disque_trio.client import records
from disque_trio.client.errors import DisqueError
from disque_trio.client.nodes import NoNodeError
from disque_trio.client.records import End
from disque_trio.client.refusals import UnknownJobError
from disque_trio.worker import codec
from disque_trio.worker.codec import Part
from disque_trio.worker.outside import outside

Value = TypeVar("Value")
Kept = TypeVar("Kept")

QUEUES: Final = "disque-trio.reply."
_READ_S: Final = 30.0
_AT_ONCE: Final = 100
_PAUSE_S: Final = 1.0
_MOST_UPDATES: Final = 100
"""Kept for a job of which nobody reads them."""

_log: Final = logging.getLogger("disque_trio.worker.results")


class JobFailedError(DisqueError):
    """The job has failed, and is not tried again."""

    def __init__(self, kind: str, text: str, traceback: str = "") -> None:
        super().__init__(f"{kind}: {text}".removesuffix(": "))
        self.kind = kind
        """The name of the exception's class."""
        self.text = text
        self.traceback = traceback
        """That of the worker; empty if it told none."""
        if traceback:
            self.add_note(f"On the worker:\n{traceback}")


class NoResultError(DisqueError):
    """No result has come in time."""

    def __init__(self, job: str, end: End | None, text: str) -> None:
        super().__init__(f"no result of job {job}: {text}")
        self.end = end
        """How the job ended, if a node says that it has."""


@attrs.frozen
class Update:
    """How far a handler is."""

    percent: float
    text: str


@attrs.define(eq=False)
class Results:
    """What has come for a client."""

    client: "clients.Client"
    queue: str = attrs.field(init=False, factory=lambda: QUEUES + outside().new_key())
    _keep_s: float = attrs.field(init=False, default=0.0)
    _found: dict[str, tuple[float, codec.Result]] = attrs.field(init=False, factory=dict)
    """By key: when it came, and what."""
    _updates: dict[str, tuple[float, deque[Update]]] = attrs.field(init=False, factory=dict)
    """By key: when the last one came, and all."""
    _changed: anyio.Event = attrs.field(init=False, factory=anyio.Event)
    _is_read: bool = attrs.field(init=False, default=False)

    def ask(self, ttl: int) -> dict[str, Any]:
        """The headers of a job whose result is kept for so many seconds."""
        self._keep_s = max(self._keep_s, ttl)
        return {"reply_to": self.queue, "result_ttl": ttl}

    async def wait(
        self, key: str, read: Callable[[Part], Value], job: str, timeout: float | None
    ) -> Value:
        """The result of a job. Raises `JobFailedError`, and `NoResultError` after so many
        seconds."""
        result = None
        with anyio.move_on_after(timeout):
            result = await self._result(key)
        if result is None:
            raise await self._end(job)
        if result.error is not None:
            raise JobFailedError(*(result.error.get(each, "") for each in _ERROR))
        return read(result.value)

    async def updates(self, key: str, job: str, timeout: float | None) -> AsyncIterator[Update]:
        """What a job's handler tells, until its result is here. Raises `NoResultError` after so
        many seconds."""
        ends = anyio.current_time() + (math.inf if timeout is None else timeout)
        while True:
            _, come = self._updates.pop(key, (0.0, ()))
            for update in come:
                yield update
            if key in self._found:
                return
            if anyio.current_time() >= ends:
                raise await self._end(job)
            with anyio.move_on_at(ends):
                await self._more()

    async def _result(self, key: str) -> codec.Result:
        while key not in self._found:
            await self._more()
        return self._found[key][1]

    async def _more(self) -> None:
        if self._is_read:
            await self._changed.wait()
        else:
            await self._read()

    async def _read(self) -> None:
        """One task reads for all; when it ends, another one goes on."""
        self._is_read = True
        try:
            jobs = await self.client.getjob(self.queue, count=_AT_ONCE, timeout=_READ_S)
            self._take(jobs)
            if jobs:
                await self.client.ackjob(*jobs)
        except NoNodeError as error:
            _log.warning("results cannot be read now: %s", error)
            await anyio.sleep(_PAUSE_S)
        finally:
            self._is_read = False
            changed, self._changed = self._changed, anyio.Event()
            changed.set()

    def _take(self, jobs: Sequence[records.Job]) -> None:
        now = anyio.current_time()
        _forget(self._found, now - self._keep_s)
        _forget(self._updates, now - self._keep_s)
        for job in jobs:
            try:
                result = codec.read_result(job.body)
            except codec.BAD_INPUT as error:
                _log.warning("%s is no result: %s", job.id, error)
                continue
            if result.progress is None:
                self._found.setdefault(result.key, (now, result))
            else:
                _, come = self._updates.pop(result.key, (0.0, deque(maxlen=_MOST_UPDATES)))
                come.append(Update(*result.progress))
                self._updates[result.key] = now, come

    async def _end(self, job: str) -> NoResultError:
        end: End | None = None
        try:
            end = await self.client.waitjob(job, timeout=0)
            text = _ENDS[end]
        except UnknownJobError:
            text = "no node knows the job: it has ended"
        except DisqueError as error:
            text = str(error)
        return NoResultError(job, end, text)


def _forget(kept: dict[str, tuple[float, Kept]], until: float) -> None:
    """What came until then goes; the dictionary begins with what came first."""
    for key, (came_at, _) in list(kept.items()):
        if came_at > until:
            break
        del kept[key]


_ERROR: Final = ("type", "text", "traceback")
_ENDS: Final[dict[End | None, str]] = {
    None: "it has not ended",
    "acked": "it was acknowledged, and no result has come",
    "dead": "it is dead",
    "expired": "it has expired",
}
