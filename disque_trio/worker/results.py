"""Results of jobs, for the client that waits for them (docs/worker-results.md).

A worker adds a result to a queue of the client before it acknowledges the job. All tasks that wait
share one GETJOB on that queue.
"""

import logging
import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

import anyio
import attrs

from disque_trio import client as clients
from disque_trio.client import commands, records
from disque_trio.client.errors import DisqueError
from disque_trio.client.nodes import SILENT_S, NoNodeError
from disque_trio.client.records import JobDetails
from disque_trio.client.refusals import UnknownJobError
from disque_trio.worker import codec, kept
from disque_trio.worker.checks import seconds_of
from disque_trio.worker.codec import Part
from disque_trio.worker.codecs import Codecs
from disque_trio.worker.describing import describe
from disque_trio.worker.ends import (
    PATIENCE_S,
    SETTLED_S,
    Ended,
    Found,
    Watched,
    at_all,
    jobs_in,
    look,
)
from disque_trio.worker.envelope import as_coded
from disque_trio.worker.exceptions import NoResultError
from disque_trio.worker.options import Place
from disque_trio.worker.runtime import runtime

Value = TypeVar("Value")
Kept = TypeVar("Kept")

QUEUES: Final = "disque-trio.reply."
_READ_S: Final = 5.0
"""How long to wait for one node: if it does not answer, another one is asked after that."""
_AT_ONCE: Final = 100
_PAUSE_S: Final = 1.0
LOOK_S: Final = 0.5
"""The interval at which nodes are asked whether awaited jobs have ended."""
_LOOKS_PER_S: Final = 5000
"""The maximum number of jobs that nodes are asked about per second; with more jobs the interval
grows."""
_BETWEEN_S: Final = 0.1
"""How long the transfer of a result between two nodes may take without faults."""
_PEEKED: Final = 300
"""The number of results that are peeked at on each node, to find that of a job that has ended."""
_MOST_UPDATES: Final = 100
"""The maximum number of unread updates of a job."""

_log: Final = logging.getLogger("disque_trio.worker.results")


@attrs.frozen
class Update:
    """A progress report of a handler (`Job.progress`)."""

    percent: float
    text: str


@attrs.define(eq=False)
class _Waiting:
    """A task that waits for the result of a job."""

    key: str
    """The key of the result."""
    watched: Watched
    since: float
    """When the job was created, by `anyio.current_time`; its result was added later."""
    scope: anyio.CancelScope | None = None
    """The scope of the current wait."""
    ended_at: float = math.inf
    """When the end of the job was detected, by `anyio.current_time`."""
    is_over: bool = False
    """Has the job ended without a result?"""

    def end(self) -> None:
        """End the wait: there will be no result."""
        self.is_over = True
        if self.scope is not None:
            self.scope.cancel()


@attrs.define(eq=False)
class Results:
    """The results and updates that have arrived for a client."""

    client: "clients.Client"
    codecs: Codecs = attrs.Factory(Codecs)
    queue: str = attrs.field(init=False, factory=lambda: QUEUES + runtime().new_key())
    _keep_s: float = attrs.field(init=False, default=0.0)
    _found: dict[str, tuple[float, codec.Result]] = attrs.field(init=False, factory=dict)
    """By key: the time of arrival, and the result."""
    _updates: dict[str, tuple[float, deque[Update]]] = attrs.field(init=False, factory=dict)
    """By key: the time of the last update, and all unread ones."""
    _unreadable: dict[str, tuple[float, Exception]] = attrs.field(init=False, factory=dict)
    """By key: the time at which a result or update arrived that cannot be decoded, and the
    error."""
    _changed: anyio.Event = attrs.field(init=False, factory=anyio.Event)
    _is_read: bool = attrs.field(init=False, default=False)
    _is_held_up: bool = attrs.field(init=False, default=False)
    """Is reading suspended for a moment?"""
    _unacknowledged: list[records.Job] = attrs.field(init=False, factory=list)
    """Results that have arrived, until a node has answered ACKJOB. While one counts as leased, it
    looks like a result in transit."""
    _waiting: dict[_Waiting, None] = attrs.field(init=False, factory=dict)
    _looking: anyio.Lock = attrs.field(init=False, factory=anyio.Lock)
    _look_at: float = attrs.field(init=False, default=0.0)
    """When nodes are asked next whether jobs have ended."""
    _settle_at: float = attrs.field(init=False, default=math.inf)
    """When nodes are asked next whether results are in transit, if jobs have ended."""
    _pause_s: float = attrs.field(init=False, default=_BETWEEN_S)
    """The pause before that is repeated."""

    def now(self) -> float:
        """The time of creation of a job, for `wait`."""
        return anyio.current_time()

    def ask(self, ttl: int) -> dict[str, Any]:
        """The headers of a job whose result is kept for `ttl` seconds."""
        self._keep_s = max(self._keep_s, ttl)
        return {"reply_to": self.queue, "result_ttl": ttl}

    async def wait(
        self,
        key: str,
        read: Callable[[Part], Value],
        job: str,
        timeout: float | None,
        *,
        steps: Sequence[Place] = (),
        since: float = -math.inf,
    ) -> Value:
        """The result of a job, or of the last of its steps. The job was created at `since`. Raises
        `JobFailedError`, and `NoResultError` after `timeout` seconds or if the job has ended
        without a result."""
        ends = anyio.current_time() + seconds_of(timeout)
        with self._waiting_for(key, job, steps, since) as waiting:
            with anyio.move_on_at(ends):
                await self._wait(waiting, lambda: key in self._found)
            result = self._found[key][1] if key in self._found else await self._kept(waiting)
            if result is None:
                raise await self._no_result(job, waiting)
        if result.next:  # the result is too large for a queue
            left = None if timeout is None else max(ends - anyio.current_time(), 0)
            result = await kept.wait(self.client, self.codecs, result.next, left)
        return kept.value_of(result, read)

    async def updates(
        self,
        key: str,
        job: str,
        timeout: float | None,
        *,
        steps: Sequence[Place] = (),
        since: float = -math.inf,
    ) -> AsyncIterator[Update]:
        """The updates of a job, until its result arrives. Raises `NoResultError` after `timeout`
        seconds, or if the job has ended without a result."""
        ends = anyio.current_time() + seconds_of(timeout)
        with self._waiting_for(key, job, steps, since) as waiting:
            while True:
                _, come = self._updates.pop(key, (0.0, ()))
                for update in come:
                    yield update
                if key in self._found:
                    return
                if waiting.is_over or anyio.current_time() >= ends:
                    raise await self._no_result(job, waiting)
                with anyio.move_on_at(ends):
                    await self._wait(waiting, lambda: key in self._found or key in self._updates)

    @contextmanager
    def _waiting_for(
        self, key: str, job: str, steps: Sequence[Place], since: float
    ) -> Iterator[_Waiting]:
        if not self._waiting:
            self._look_at = anyio.current_time() + LOOK_S
        waiting = _Waiting(key, Watched(job, steps), since)
        self._waiting[waiting] = None
        try:
            yield waiting
        finally:
            del self._waiting[waiting]

    async def _wait(self, waiting: _Waiting, is_here: Callable[[], bool]) -> None:
        """Wait until `is_here`, or until nothing more will arrive."""
        failed: Exception | None = None
        async with anyio.create_task_group() as tasks:
            waiting.scope = tasks.cancel_scope
            tasks.start_soon(self._keep_looking)
            try:
                while not (is_here() or waiting.is_over):
                    await self._more()
            except Exception as error:  # not in a group
                failed = error
            tasks.cancel_scope.cancel()
        if isinstance(failed, DisqueError):
            text = f"results cannot be read: {failed}"
            raise NoResultError(waiting.watched.id, None, text) from failed
        if failed is not None:
            raise failed

    async def _more(self) -> None:
        if self._is_read or self._is_held_up:
            await self._changed.wait()
        else:
            await self._read()

    async def _read(self) -> None:
        """One task reads for all; when it ends, another one takes over."""
        self._is_read = True
        try:
            await self._acknowledge()
            # Tied: if the connection is lost, results are redelivered in seconds, not after their
            # lease.
            read = commands.getjob(self.queue, count=_AT_ONCE, timeout=_READ_S, is_tied=True)
            jobs = await self.client.run(attrs.evolve(read, patience_s=SILENT_S))
            self._take(jobs)
        except NoNodeError as error:
            _log.warning("cannot read results now: %s", error)
            await anyio.sleep(_PAUSE_S)
        else:
            with suppress(NoNodeError):  # the next read repeats it
                await self._acknowledge()
        finally:
            self._is_read = False
            self._change()

    def _change(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def _acknowledge(self) -> None:
        if jobs := tuple(self._unacknowledged):
            await self.client.ackjob(*jobs)
            del self._unacknowledged[: len(jobs)]

    # Jobs that end without a result.

    async def _keep_looking(self) -> None:
        """One task asks for all; when it ends, another one takes over."""
        async with self._looking:
            while True:
                await anyio.sleep_until(min(self._look_at, self._settle_at))
                now = anyio.current_time()
                try:
                    if now >= self._look_at:
                        await self._look(now)
                    await self._settle()
                except DisqueError as error:
                    _log.debug("cannot query the outcomes of jobs now: %s", error)

    async def _look(self, now: float) -> None:
        pause = max(LOOK_S, len(self._waiting) / _LOOKS_PER_S)
        self._look_at = now + pause / 4  # if this task ends meanwhile
        await look(self.client, [each.watched for each in self._waiting])
        self._look_at, self._pause_s = now + pause, _BETWEEN_S

    async def _settle(self) -> None:
        """End waits for jobs that have ended without a result. A result in transit may belong to
        another job, so this is repeated before the next look, with doubling pauses."""
        self._settle_at = math.inf
        now = anyio.current_time()
        ended = [each for each in self._waiting if each.watched.end is not None]
        if not ended:
            return
        self._settle_at, self._pause_s = now + self._pause_s, 2 * self._pause_s
        for each in ended:
            each.ended_at = min(each.ended_at, now)
        is_late = any(now >= each.ended_at + _BETWEEN_S for each in ended)
        left = await (self._hold_up() if is_late else self._left(0))
        now = anyio.current_time()
        coming = set() if left is None else {_key_of(job) for job in left.peeked}
        for each in ended:
            is_sure = left is not None and left.is_sure(now - each.since)
            if (is_sure and each.key not in coming) or now > each.ended_at + SETTLED_S:
                each.end()
        if all(each.is_over for each in ended):
            self._settle_at = math.inf

    async def _hold_up(self) -> Found | None:
        """The remaining results while reading is suspended: otherwise some could always be in
        transit."""
        self._is_held_up = True
        try:
            left = await self._left(_PEEKED)
            if left is None:  # results that were just read may not be acknowledged yet
                with anyio.move_on_after(_BETWEEN_S):
                    while self._is_read:
                        await self._changed.wait()
                left = await self._left(_PEEKED)
            return left
        finally:
            self._is_held_up = False
            self._change()

    async def _left(self, peek: int) -> Found | None:
        """The results on all nodes, if all could be peeked at; None if there may be others. A
        worker adds a result before the job ends, so none is added later. A result may be in transit
        between two nodes, so nodes are asked twice."""
        first = await jobs_in(self.client, self.queue, peek)
        if first is None or first.count:
            return None
        await anyio.sleep(_BETWEEN_S)
        second = await jobs_in(self.client, self.queue, peek)
        if second is None or second.count:
            return None
        return attrs.evolve(second, peeked=[*first.peeked, *second.peeked])

    def _take(self, jobs: Sequence[records.Job]) -> None:
        now = anyio.current_time()
        _forget(self._found, now - self._keep_s)
        _forget(self._updates, now - self._keep_s)
        _forget(self._unreadable, now - self._keep_s)
        self._unacknowledged += jobs
        for job in jobs:
            try:
                result = codec.read_result(self.codecs.decoded(job.body))
            except Exception as error:  # codecs of users may raise anything
                _log.warning("result %s cannot be read: %s", job.id, describe(error))
                if (key := _key_of(job)) is not None:
                    self._unreadable.setdefault(key, (now, error))
                continue
            if result.progress is None:
                self._found.setdefault(result.key, (now, result))
            else:
                _, come = self._updates.pop(result.key, (0.0, deque(maxlen=_MOST_UPDATES)))
                come.append(Update(*result.progress))
                self._updates[result.key] = now, come

    async def _kept(self, waiting: _Waiting) -> codec.Result | None:
        """The result that nodes keep of an acknowledged job: the reply went to another producer or
        was lost."""
        if waiting.watched.end in ("acked", "gone"):
            with anyio.move_on_after(PATIENCE_S):
                return await kept.safely(self.client, self.codecs, waiting.watched.id)
        return None

    async def _no_result(self, job: str, waiting: _Waiting) -> DisqueError:
        id, end = waiting.watched.id, waiting.watched.end
        if end in ("acked", "gone") and waiting.key in self._unreadable:
            return kept.unreadable(self._unreadable[waiting.key][1])
        text = f"no node has answered for {PATIENCE_S:.0f} s, so it may have ended or not"
        with anyio.move_on_after(PATIENCE_S):
            end, text = await self._why(id, end)
        if id != job:
            text = f"its step {id}: {text}"
        return NoResultError(job, None if end == "gone" else end, text)

    async def _why(self, id: str, end: Ended | None) -> tuple[Ended | None, str]:
        """How the job has ended, and why there is no result."""
        try:
            if end is None:
                end = await self.client.waitjob(id, timeout=0)
        except UnknownJobError:
            end = "gone"
        except DisqueError as error:
            return None, str(error)
        end, text = await kept.why(self.client, id, end)
        if end == "dead" and (reason := await self._reason(id)):
            text += f": {reason}"
        return end, text

    async def _reason(self, job: str) -> str:
        """Why the job is dead, if a node reports it."""
        nodes = self.client.nodes.order(anyio.current_time())
        for answer in await at_all(nodes, lambda node: self.client.ask(node, [commands.show(job)])):
            match answer:
                case [JobDetails(state="dead", more={"reason": bytes(reason)})]:
                    return reason.decode(errors="backslashreplace")
        return ""


def _key_of(job: records.Job) -> str | None:
    """The key of a result or update; None if the body is neither."""
    if (coded := as_coded(job.body)) is not None:
        return coded.key
    try:
        return codec.read_result(job.body).key
    except codec.BAD_INPUT:
        return None


def _forget(kept: dict[str, tuple[float, Kept]], until: float) -> None:
    """Remove items that arrived before `until`; the dictionary is in order of arrival."""
    for key, (came_at, _) in list(kept.items()):
        if came_at > until:
            break
        del kept[key]
