"""Batches: jobs that are added together, to wait for all of them or to add a job when all have
ended.

The producer and the workers leave tokens in a queue of the batch, which contain the ids of the
members and how they ended. The collector, a job itself, takes the tokens, asks nodes for members
whose end no worker has reported, and adds the last job when all have ended (decision 107).
"""

import logging
import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, Generic, Literal, TypeVar, get_args

import anyio
import attrs

from disque_trio.client.errors import DisqueError
from disque_trio.client.settings import WINDOW
from disque_trio.terminal.counting import counted
from disque_trio.worker import codec, tokens
from disque_trio.worker.checks import listed, seconds_of
from disque_trio.worker.copies import Copies
from disque_trio.worker.enqueue import Call, Enqueuer, check_call
from disque_trio.worker.enqueued import Enqueued
from disque_trio.worker.exceptions import JobFailedError, NoResultError
from disque_trio.worker.kinds import OF_APP, check_kinds
from disque_trio.worker.options import UNKEPT, Options, place_of
from disque_trio.worker.requests import EnqueueUnknownError, Result
from disque_trio.worker.runtime import runtime
from disque_trio.worker.tokens import LEASE_S, SPARE_S, TOKENS, End, Member, Token, shortened

R = TypeVar("R")

COLLECT: Final = "disque-trio.collect"
"""The task of collectors."""
PATIENCE_S: Final = 10.0
"""How long to try to add the token with the ids of members."""
_AT_ONCE: Final = 128
"""The number of results that are awaited at the same time."""
IfFailed = Literal["run", "skip"]
"""Whether the job that follows a batch runs if members have failed."""

_log: Final = logging.getLogger("disque_trio.worker.batches")


class BatchFailedError(DisqueError):
    """Not all members of the batch succeeded."""

    def __init__(self, missing: list[str], failed: dict[str, DisqueError]) -> None:
        late = f"{counted(len(missing), 'job has', 'jobs have')} reported no result in time"
        bad = f"{counted(len(failed), 'job has', 'jobs have')} failed"
        super().__init__(", and ".join([late] * bool(missing) + [bad] * bool(failed)))
        self.missing = missing
        """Keys of members that reported nothing in time."""
        self.failed = failed
        """The errors of failed members, by key. If a member could not be added, the key is its
        place in the batch."""


@attrs.frozen
class Batch(Generic[R]):
    """Jobs that were added together (`App.batch`)."""

    id: str
    jobs: list[Result[R]]
    """In the order of the calls. If a job could not be added, its item is the error."""
    then: Enqueued[Any] | None = None
    """The collector, if the batch has a `then`. Its result is the result of the last step of
    `then`."""

    async def wait(self, timeout: float | None = None) -> list[R]:
        """The results of all members, in order. Waits at most `timeout` seconds; None is no limit.
        Raises `BatchFailedError` if members failed or reported no result in time, but not before
        all others have reported."""
        ends = anyio.current_time() + seconds_of(timeout)
        results: dict[int, R] = {}
        missing: dict[int, str] = {}
        failed: dict[int, tuple[str, DisqueError]] = {}
        raised: list[Exception] = []

        async def one(place: int, job: Result[R]) -> None:
            if isinstance(job, DisqueError):
                failed[place] = str(place), job
                return
            try:
                left = None if timeout is None else max(ends - anyio.current_time(), 0.0)
                results[place] = await job.result(left)
            except JobFailedError as error:
                failed[place] = job.key, error
            except NoResultError:
                missing[place] = job.key
            except Exception as error:  # raised below, in no group
                raised.append(error)
                tasks.cancel_scope.cancel()

        for start in range(0, len(self.jobs), _AT_ONCE):
            async with anyio.create_task_group() as tasks:
                for place, job in enumerate(self.jobs[start : start + _AT_ONCE], start):
                    tasks.start_soon(one, place, job)
            if raised:
                raise raised[0]
        if missing or failed:
            failures = dict(failed[place] for place in sorted(failed))
            raise BatchFailedError([missing[place] for place in sorted(missing)], failures)
        return [results[place] for place in range(len(self.jobs))]


async def add(
    enqueuer: Enqueuer,
    calls: Iterable[Call[R]],
    then: Call[Any] | None,
    deadline: int,
    if_failed: IfFailed,
) -> Batch[R]:
    """Add the calls, and a collector that adds `then` when all have ended (`App.batch`)."""
    if if_failed not in get_args(IfFailed):
        raise ValueError(f"if_failed={if_failed!r} must be one of {', '.join(get_args(IfFailed))}")
    check_kinds({"deadline": deadline}, OF_APP)
    batch = runtime().new_key()
    members = listed(calls, "calls")
    for call in members if then is None else (*members, then):
        check_call(call)
    if then is None:
        jobs = await enqueuer.add_many(_with_result(call, deadline) for call in members)
        return Batch(batch, jobs)
    until = runtime().now() + deadline
    collector = await _add_collector(enqueuer, batch, len(members), then, until, if_failed)
    copies = then.definition.options.copies
    roster = _Roster(enqueuer, TOKENS + batch, deadline, copies)
    ours = {"id": batch, "ttl": deadline + SPARE_S, "until": until, **copies.as_options()}
    found: list[Result[R]] = []
    for start in range(0, len(members), WINDOW):
        some = [
            attrs.evolve(call, headers={"batch": {**ours, "n": place}})
            for place, call in enumerate(members[start : start + WINDOW], start)
        ]
        results = await enqueuer.add_many(some)
        found += results
        await roster.add(start, some, results)
    await roster.finish()
    return Batch(batch, found, collector)


@attrs.define(eq=False)
class _Roster:
    """Adds tokens with the ids of the members for the collector."""

    enqueuer: Enqueuer
    queue: str
    deadline: int
    copies: Copies
    _unsent: list[Token] = attrs.field(init=False, factory=list)

    async def add(
        self, start: int, calls: Sequence[Call[Any]], results: Sequence[Result[Any]]
    ) -> None:
        """Add the ids of members whose first one has the place `start`."""
        jobs: list[tuple[int, Member]] = []
        ended: list[tuple[int, End]] = []
        for place, (call, result) in enumerate(zip(calls, results, strict=True), start):
            if isinstance(result, Enqueued):
                jobs.append((place, _member(call, result)))
            elif isinstance(result, EnqueueUnknownError):
                jobs.append((place, Member("")))
            else:
                ended.append((place, ("refused", shortened(str(result)))))
        await self._send_token(Token(jobs=jobs, ended=ended))

    async def finish(self) -> None:
        """Add the tokens that no node has accepted so far."""
        unsent, self._unsent = self._unsent, []
        for token in unsent:
            await self._send_token(token)
        if self._unsent:
            _log.warning(
                "%s: no node stores the list of the members: members without a report count "
                "as late after %d s",
                self.queue,
                self.deadline,
            )

    async def _send_token(self, token: Token) -> None:
        # The members exist: a cancellation here would leave the collector without their ids.
        with anyio.move_on_after(PATIENCE_S, shield=True):
            try:
                command = tokens.add(self.queue, token, self.deadline + SPARE_S, self.copies)
                await self.enqueuer.client.run(command)
                return
            except DisqueError as error:
                _log.debug("%s: %s", self.queue, error)
        self._unsent.append(token)


def _member(call: Call[Any], job: Enqueued[Any]) -> Member:
    options = call.definition.options
    now = runtime().now()
    return Member(
        job.id,
        expires=round(now + options.times(now)[1]),
        is_unique=bool(options.unique),
        steps=job.steps,
    )


def _with_result(call: Call[R], ttl: int) -> Call[R]:
    last: Call[Any] = call.then[-1] if call.then else call
    if last.definition.options.result_ttl is not None:
        return call
    options = attrs.evolve(last.definition.options, result_ttl=ttl)
    last = attrs.evolve(last, definition=attrs.evolve(last.definition, options=options))
    found = attrs.evolve(call, then=(*call.then[:-1], last)) if call.then else last
    # Only this producer can wait for the results, so nodes need not keep them.
    return attrs.evolve(found, headers={**found.headers, UNKEPT: True})


async def _add_collector(
    enqueuer: Enqueuer,
    batch: str,
    size: int,
    then: Call[Any],
    until: float,
    if_failed: IfFailed,
) -> Enqueued[Any]:
    calls = (then, *then.then)
    first, *others = [call.step(enqueuer.form) for call in calls]
    options, result_ttl = then.definition.options, calls[-1].definition.options.result_ttl
    headers = dict(enqueuer.adding(then.name, options, first.key).headers)
    if others:
        headers["then"] = others
    places = [place_of(step) for step in (first, *others)]
    asked, wait, _ = enqueuer.awaited(calls[-1], (first, *others)[-1].key, places)
    arguments = {
        "batch": batch,
        "size": size,
        "then": first,
        "headers": headers | asked,
        "until": until,
    }
    if if_failed != "run":  # workers of earlier releases do not support it
        arguments["if_failed"] = if_failed
    arguments |= options.copies.as_options()
    kwargs = {name: codec.part(value, enqueuer.form) for name, value in arguments.items()}
    ttl = math.ceil(until - runtime().now()) + SPARE_S
    options = Options(
        queue=enqueuer.queue_of_looks(options.queue),
        ttl=ttl,
        lease=LEASE_S,
        replicate=options.replicate,
        sync=options.sync,
    )
    kept = {} if result_ttl is None else enqueuer.kept(result_ttl)
    request = enqueuer.packed(COLLECT, batch, ([], kwargs), options, enqueuer.form, kept)
    added = await enqueuer.add(attrs.evolve(request, steps=places, wait=wait))
    return attrs.evolve(added, task=then.name)
