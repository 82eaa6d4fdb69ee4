"""Snoozes jobs that nodes cannot delay without counting a failure: the job is added again and then
acknowledged (decision 98).

The new job has another id. Its headers contain the failures (`tries`) and the snoozes so far.
"""

import math
from collections.abc import Callable
from typing import Any

import attrs

from disque_trio.client.errors import DisqueError
from disque_trio.statemachine.base import ORIGINAL_PERIOD_S
from disque_trio.worker import deciding
from disque_trio.worker.codec import Envelope
from disque_trio.worker.context import Job
from disque_trio.worker.deciding import End
from disque_trio.worker.describing import describe
from disque_trio.worker.engine import records, words
from disque_trio.worker.enqueue import Enqueuer
from disque_trio.worker.options import Options, carried
from disque_trio.worker.protocol import Run
from disque_trio.worker.requests import Request
from disque_trio.worker.runtime import runtime


class NotAddedError(DisqueError):
    """A node has returned the id of a different job."""


def can_wait(run: Run) -> bool:
    """Can nodes delay its job? If its own node does not answer, another one is asked."""
    return run.has(words.RELEASE_DELAY) and not words.is_once(run.start.id)


async def add_again(
    enqueuer: Enqueuer,
    read: Callable[[bytes], Envelope],
    options: Options | None,
    job: Job[Any],
    end: End,
) -> End:
    """Add the job again with a delay, and return the end of the run, in place of the snooze.
    `options` are those of its task; None for a consumer, whose bodies have no headers."""
    if options is not None:
        try:
            request = _request(enqueuer, read(job.run.start.body), options, job, end.after)
            [encoded] = await enqueuer.encoded([request])  # once, because it is compared below
            if isinstance(encoded, DisqueError):
                raise encoded
            request, added = encoded, await enqueuer.add(encoded)
            if added.id == job.id:
                raise NotAddedError(
                    "the reply has the id of the job itself, which still has its key"
                )
            if "unique" in job.headers:
                await _check(enqueuer, request, added.id)
        except BaseException as error:
            if deciding.is_interrupted(job.run, error):
                raise
            job.log.warning(
                "it can be neither postponed nor added again, so this counts as an attempt: %s",
                describe(error),
            )
        else:
            return attrs.evolve(end, outcome=records.Done())
    if words.is_once(job.run.start.id):
        return deciding.dead(f"cannot be postponed with lease 0: {end.reason}", end.error)
    return attrs.evolve(end, outcome=deciding.retry_after(end.after))


def _request(
    enqueuer: Enqueuer, body: Envelope, options: Options, job: Job[Any], after: float
) -> Request[Any]:
    headers = {**job.headers, "tries": job.attempt - 1}
    headers["snoozes"] = job.snoozes + ("due" not in headers)  # the producer's delay is no snooze
    if after < ORIGINAL_PERIOD_S:
        headers.pop("due", None)
        headers.pop("hops", None)
    options = carried(options, headers)
    options = attrs.evolve(
        options,
        queue=job.queue,
        delay=after,
        at=None,
        ttl=options.ttl + math.ceil(after),
        maxlen=None,
        group=None,  # nodes with groups can delay the job itself
        on_conflict="again",
    )
    key, packed = body.key or runtime().new_key(), (body.args, body.kwargs)
    return enqueuer.packed(job.task, key, packed, options, body.form, headers)


async def _check(enqueuer: Enqueuer, request: Request[Any], id: str) -> None:
    """Raise `NotAddedError` if the id is that of a job that already waited for the key: a node
    keeps one of them, so the arguments of this one would be lost."""
    kept = await enqueuer.client.show(id)
    if kept is None or kept.body != request.command.words[2]:
        raise NotAddedError(f"job {id} already waits for its key")
