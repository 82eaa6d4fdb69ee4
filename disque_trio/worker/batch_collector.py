"""The task of a batch's collector: it decides when the batch is complete, and adds the job that
follows (decision 107).

A collector receives the tokens of its batch, merges them, and snoozes. When all members have ended,
it adds the job that follows, marks the batch as over, and empties the batch's queue.
"""

import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

import anyio
import attrs

from disque_trio import client as clients
from disque_trio.client.records import Job as Delivered
from disque_trio.terminal.counting import counted
from disque_trio.worker import codec, steps, tokens
from disque_trio.worker.batches import COLLECT
from disque_trio.worker.context import Job
from disque_trio.worker.copies import Copies
from disque_trio.worker.ends import SETTLED_S, Watched, jobs_in, look
from disque_trio.worker.enqueue import Enqueuer
from disque_trio.worker.envelope import BadBodyError, created_at
from disque_trio.worker.exceptions import Snooze
from disque_trio.worker.membership import over
from disque_trio.worker.operating.key_holders import key_holder
from disque_trio.worker.options import Definition, Options, place_of
from disque_trio.worker.pace import Pace
from disque_trio.worker.protocol import Run
from disque_trio.worker.replies import send_failure
from disque_trio.worker.tally import BatchEnds, Tally, crowded
from disque_trio.worker.tokens import RETRY_S, SPARE_S, TOKENS, Token

_LOOK_S: Final = 2.0
"""How long to wait for another token."""
_REST_S: Final = 0.2
"""How long to wait if all existing tokens should be here."""
_LEAST_S: Final = 0.02
"""How long to wait without a free slot. The node requests tokens from other nodes meanwhile."""
_SLICE_S: Final = 0.25
"""How often to check for a free slot."""
_ROUND_S: Final = 20.0
_AT_ONCE: Final = 100
_SWEEP_S: Final = 20.0
"""How long until the next attempt to take tokens that another collector had taken."""
_UNCOUNTED_S: Final = 1.0
"""Longer than half a second, in which a node of an earlier version counts a delivered job neither
as leased nor as queued, just before it enqueues the job again."""
_CLOCKS_S: Final = 5.0
"""The largest supported difference between the clocks of a producer and a collector."""
_LONGEST_SWEEP_S: Final = 600.0
"""How long to wait for nodes that do not answer."""
_MOST_NAMED: Final = 1000
"""The largest number of failed members in a `BatchEnds`."""

_log: Final = logging.getLogger("disque_trio.worker.batches")


def definition() -> Definition:
    """The definition of the collectors' task."""
    return Definition(name=COLLECT, is_bound=True)


def collector(
    enqueuer: Enqueuer, now: Callable[[], float], pace: Pace
) -> Callable[..., Coroutine[Any, Any, codec.Result | None]]:
    """The function of the task. `now` returns Unix time. The function returns the result that nodes
    keep for clients that wait for the job that follows the batch."""

    async def collect(
        job: Job[Any],
        batch: str,
        size: int,
        then: dict[str, Any],
        headers: dict[str, Any],
        until: float,
        if_failed: str = "run",
        replicate: int | None = None,
        sync: int | None = None,
    ) -> codec.Result | None:
        born, copies = created_at(batch) or 0.0, Copies(replicate=replicate, sync=sync)
        found = Collector(enqueuer, TOKENS + batch, Tally(size), born, now, copies, job.run, pace)
        if await over(found.client, found.queue) != "no":  # a collector was delivered twice
            await found.sweep()
            is_asked = "result_ttl" in job.headers
            return await _added_before(found.client, batch, then) if is_asked else None
        await found.collect()
        unreported = found.tally.unreported() if now() > until else []
        if now() > until:
            found.tally.late()
        if not found.tally.is_complete:
            await found.put_back(max(until - now(), 0) + SPARE_S)
            raise Snooze(found.pause_s())
        why_not = ""
        ends = found.ends(enqueuer.max_body // 2)
        if unreported:
            missing = f"{len(unreported)} of {counted(size, 'member')}"
            why_not = f"its producer ended before it added {missing}"
        elif if_failed == "skip" and ends.failed:
            why_not = found.tally.failures()
        if why_not:
            job.log.warning("batch %s: cannot add its continuation: %s", batch, why_not)
            result = _failed(batch, why_not)
            await send_failure(enqueuer, headers, copies, result)
        else:
            added = await enqueuer.add(_last(enqueuer, then, headers, ends))
            result = codec.Result(batch, next=added.id)
        await found.finish(max(until - now(), 0) + SPARE_S)
        return result

    return collect


@attrs.define(eq=False)
class Collector:
    """One run of the collector of a batch."""

    enqueuer: Enqueuer
    queue: str
    tally: Tally
    born: float
    """When the batch was created, in Unix seconds."""
    now: Callable[[], float]
    copies: Copies
    run: Run
    pace: Pace
    _began: float = attrs.field(init=False, factory=anyio.current_time)
    _held: list[tuple[Delivered, Token]] = attrs.field(init=False, factory=list)
    _refused_at: float = attrs.field(init=False, default=0.0)
    """When a node last rejected a job for lack of other nodes, in Unix seconds."""
    changed: list[int] = attrs.field(init=False, factory=list)
    """Places of members whose state is more recent than in the tokens."""

    @property
    def client(self) -> "clients.Client":
        """The client of the app."""
        return self.enqueuer.client

    async def collect(self) -> None:
        """Take tokens until all members have ended or no more tokens arrive, then ask nodes for the
        others."""
        await self._take(_LOOK_S)
        if not self.tally.is_complete:
            await self.look()

    async def look(self) -> None:
        """Ask nodes for members whose end no token reports."""
        pending = self.tally.pending()
        if not pending:
            return
        watched = {place: Watched(each.id, each.steps) for place, each in pending.items()}
        await look(self.client, watched.values())
        ended = {place: each.end for place, each in watched.items() if each.end is not None}
        if not ended:
            return
        # A worker leaves the token before it acknowledges the job, so all tokens must be here.
        await self._take(_REST_S)
        left = await self._left()
        if left is not None and left <= len(self._held):
            fresh = {n: end for n, end in ended.items() if not self.tally.has_ended(n)}
            known = {place: self.tally.ended.get(place) for place in fresh}
            self.tally.infer_ends(fresh, self.now())
            self.changed += [n for n, end in known.items() if self.tally.ended.get(n) != end]
            self.tally.join()

    async def _take(self, wait: float) -> None:
        ends = anyio.current_time() + _ROUND_S
        while not self.tally.is_complete and anyio.current_time() < ends:
            if not await self.take_some(wait):
                break

    async def take_some(self, wait: float) -> bool:
        """Take the tokens that are there, or wait up to `wait` seconds for the first ones while the
        worker has a free slot; members may need this slot. Returns whether there were any."""
        found: list[Delivered] = []
        while not found and wait > 0:
            slice_s = min(wait, _SLICE_S)
            if not self.run.has_free_slot():
                wait, slice_s = 0.0, _LEAST_S
            found = await self._tokens(slice_s)
            wait -= slice_s
        for job in found:
            token = _read(job)
            self._held.append((job, token))
            self.tally.take(token)
        self.tally.join()
        return bool(found)

    async def _tokens(self, wait: float) -> list[Delivered]:
        # Tied: if a collector dies, its tokens are redelivered in seconds, not after their lease.
        return await self.client.getjob(
            self.queue, count=_AT_ONCE, timeout=wait, with_meta=True, is_tied=True
        )

    def pause_s(self) -> float:
        """Seconds until the next look."""
        self.pace.looked(self.queue, self._began, anyio.current_time())
        slots = 0 if self.run.has_free_slot() else self.run.slots
        return self.pace.pause(self._quiet_s(), len(self.tally.pending()), slots)

    def _quiet_s(self) -> float:
        """Seconds since the last change in the batch."""
        if self.changed:
            return 0.0
        ages = [job.meta.age for job, _ in self._held if job.meta is not None]
        return max(min([self.now() - self.born, *ages]), 0.0)

    async def put_back(self, ttl: float) -> None:
        """Put the tokens back, merged into fewer if possible."""
        which = crowded([token for _, token in self._held], self.changed)
        merged = [each for each, is_merged in zip(self._held, which, strict=True) if is_merged]
        places = [*self.changed, *(n for _, token in merged for n in token.places())]
        for token in self.tally.chunks(places):
            await self.client.run(tokens.add(self.queue, token, ttl, self.copies))
        if merged:
            await self.client.ackjob(*(job for job, _ in merged))
        rest = [job for (job, _), is_merged in zip(self._held, which, strict=True) if not is_merged]
        if rest:
            await self.client.release(*rest)

    def ends(self, room: int) -> BatchEnds:
        """How the members have ended, encoded in at most `room` bytes."""
        most = _MOST_NAMED
        while most and len(codec.write(self.tally.ends(most), "json")) > room:
            most //= 2
        return self.tally.ends(most)

    async def finish(self, ttl: float) -> None:
        """Mark the batch as over and empty its queue, after the job that follows was added or
        skipped."""
        await self.client.run(tokens.add_mark(self.queue, ttl, self.copies))
        if self._held:
            await self.client.ackjob(*(job for job, _ in self._held))
        await self.sweep()

    async def sweep(self) -> None:
        """Acknowledge all jobs in the queue of the batch; the mark that the batch is over comes
        last."""
        mark: Delivered | None = None
        while True:
            left = await self._left()
            is_last = left == (mark is not None)
            if is_last and not self._may_come_again():
                break
            found = await self._tokens(_UNCOUNTED_S if is_last else _REST_S)
            if not found:
                break
            mark = next((job for job in found if _read(job).is_over), mark)
            if others := [job for job in found if job is not mark]:
                await self.client.ackjob(*others)
        age = 0.0 if mark is None or mark.meta is None else mark.meta.age
        if mark is not None and (left == 1 or age > _LONGEST_SWEEP_S):
            if self._refused_at > self.born - _CLOCKS_S and age < SETTLED_S:
                # A rejected token may have left a replica, which is enqueued after its RETRY.
                await self.client.release(mark)
                raise Snooze(SETTLED_S - age)
            await self.client.ackjob(mark)
        elif left or (left is None and await over(self.client, self.queue) == "yes"):
            # Tokens that a dead collector had taken may be redelivered.
            if mark is not None:
                await self.client.release(mark)
            raise Snooze(_SWEEP_S if left else SETTLED_S)

    def _may_come_again(self) -> bool:
        """Is the batch so old that a token of a dead collector may be redelivered now?"""
        return self.now() - self.born > RETRY_S - _CLOCKS_S

    async def _left(self) -> int | None:
        """The number of tokens; None if it is uncertain."""
        found = await jobs_in(self.client, self.queue)
        self._refused_at = max(self._refused_at, 0.0 if found is None else found.refused_at)
        is_sure = found is not None and found.is_sure(self.now() - self.born)
        return found.count if found is not None and is_sure else None


def _read(job: Delivered) -> Token:
    try:
        return tokens.read(job.body)
    except codec.BAD_INPUT as error:
        _log.warning("%s is not the token of a batch: %s", job.id, error)
        return Token()


async def _added_before(client: "clients.Client", batch: str, then: dict[str, Any]) -> codec.Result:
    """The result of a collector, if an earlier delivery of it has added the job that follows."""
    holder = await key_holder(client, place_of(codec.read_step(then)))
    if holder is None:
        return _failed(batch, "no node has its continuation: it was never added, or has ended")
    return codec.Result(batch, next=holder.id)


def _failed(batch: str, why: str) -> codec.Result:
    return codec.Result(batch, error={"type": "BatchFailedError", "text": why})


def _last(
    enqueuer: Enqueuer, then: dict[str, Any], headers: dict[str, Any], ends: BatchEnds
) -> Any:
    try:
        step = codec.read_step(then)
        options = Options(**step.options)
    except codec.BAD_INPUT as error:
        raise BadBodyError(f"unreadable: the continuation of the batch: {error}") from error
    return steps.request(enqueuer, step, options, [ends] if step.is_open else [], headers)
