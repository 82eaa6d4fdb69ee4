"""Jobs that are added together: to wait for all of them, or to do something when all are done.

Each member that is done leaves a token in a queue of the batch. The collector, a job itself, takes
tokens until it has seen those of all members; then it adds the last job. Tokens are a set under
union: what comes twice counts once, and several are merged into one.
"""

import math
from collections.abc import Iterable
from typing import Any, Final, Generic, TypeVar

import anyio
import attrs

from disque_trio.client.errors import DisqueError
from disque_trio.worker import codec
from disque_trio.worker.enqueue import Call, Enqueuer, Result
from disque_trio.worker.enqueued import Enqueued
from disque_trio.worker.options import Options
from disque_trio.worker.outside import outside
from disque_trio.worker.results import JobFailedError, NoResultError

R = TypeVar("R")

COLLECT: Final = "disque-trio.collect"
"""The task of collectors."""
SPARE_S: Final = 24 * 3600
"""Tokens and collectors live so much longer than the batch may take."""


class BatchFailedError(DisqueError):
    """Not all members are done."""

    def __init__(self, missing: list[str], failed: dict[str, DisqueError]) -> None:
        super().__init__(
            f"{len(missing)} jobs have not told a result in time, {len(failed)} have failed"
        )
        self.missing = missing
        """Keys of those that have told nothing."""
        self.failed = failed
        """By key: why; those that could not be added have their place in the batch as key."""


@attrs.frozen
class Batch(Generic[R]):
    """Jobs that were added together."""

    id: str
    jobs: list[Result[R]]
    """In order; an error stands where a job could not be added."""
    then: Enqueued[Any] | None = None
    """The collector; its result is that of the job that comes last."""

    async def wait(self, timeout: float | None = None) -> list[R]:
        """The results of all, in order. Raises `BatchFailedError` when each has told its result or
        its failure, or after so many seconds."""
        ends = anyio.current_time() + (math.inf if timeout is None else timeout)
        results: list[R] = []
        missing: list[str] = []
        failed: dict[str, DisqueError] = {}
        for place, job in enumerate(self.jobs):
            if isinstance(job, DisqueError):
                failed[str(place)] = job
                continue
            left = None if timeout is None else max(ends - anyio.current_time(), 0.0)
            try:
                results.append(await job.result(left))
            except JobFailedError as error:
                failed[job.key] = error
            except NoResultError:
                missing.append(job.key)
        if missing or failed:
            raise BatchFailedError(missing, failed)
        return results


async def add(
    enqueuer: Enqueuer, calls: Iterable[Call[R]], then: Call[Any] | None, deadline: int
) -> Batch[R]:
    """Add the calls, and `then` when all are done (`App.batch`)."""
    batch = outside().new_key()
    members = list(calls)
    collector = None
    if then is None:
        members = [_with_result(call, deadline) for call in members]
    else:
        collector = await _add_collector(enqueuer, batch, len(members), then, deadline)
        ttl = deadline + SPARE_S
        members = [
            attrs.evolve(call, headers={"batch": {"id": batch, "n": n, "ttl": ttl}})
            for n, call in enumerate(members)
        ]
    return Batch(batch, await enqueuer.add_many(members), collector)


def _with_result(call: Call[R], ttl: int) -> Call[R]:
    last: Call[Any] = call.then[-1] if call.then else call
    if last.definition.options.result_ttl is not None:
        return call
    options = attrs.evolve(last.definition.options, result_ttl=ttl)
    last = attrs.evolve(last, definition=attrs.evolve(last.definition, options=options))
    return attrs.evolve(call, then=(*call.then[:-1], last)) if call.then else last


async def _add_collector(
    enqueuer: Enqueuer, batch: str, size: int, then: Call[Any], deadline: int
) -> Enqueued[Any]:
    if then.is_open:
        raise ValueError(f"{then.definition.name}: no result is given to what follows a batch")
    calls = (then, *then.then)
    first, *others = [call.step(enqueuer.form) for call in calls]
    headers: dict[str, Any] = {"then": others} if others else {}
    asked, wait = enqueuer.awaited(calls[-1], (first, *others)[-1].key)
    arguments = {
        "batch": batch,
        "size": size,
        "then": first,
        "headers": headers | asked,
        "until": outside().now() + deadline,
    }
    kwargs = {name: codec.part(value, enqueuer.form) for name, value in arguments.items()}
    options = Options(queue=then.definition.options.queue, ttl=deadline + SPARE_S)
    request = enqueuer.packed(COLLECT, batch, ([], kwargs), options, enqueuer.form, {})
    return await enqueuer.add(attrs.evolve(request, wait=wait))
