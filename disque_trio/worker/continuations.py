"""Adds what follows a job before the worker acknowledges it: the next step of its chain, or its
result and its token in a batch.

If the worker dies in between, they are added twice, but never lost (decision 80).
"""

import itertools
from typing import Any, Final

import anyio
import msgspec

from disque_trio.client.errors import DisqueError
from disque_trio.client.nodes import NoNodeError
from disque_trio.client.refusals import (
    NotReplicatedError,
    QueueFullError,
    QueuePausedError,
    UnavailableError,
)
from disque_trio.worker import codec, membership, replies, steps
from disque_trio.worker.context import Job
from disque_trio.worker.deciding import End
from disque_trio.worker.describing import (
    describe,
    escaped,
    leaves,
    name_of,
    text_of,
    trace_of,
    type_and_text,
)
from disque_trio.worker.engine import records
from disque_trio.worker.engine.records import Reason
from disque_trio.worker.enqueue import Enqueuer
from disque_trio.worker.requests import EnqueueUnknownError
from disque_trio.worker.tokens import State

PATIENCE_S: Final = 60.0
"""How long nodes may reject these jobs before the attempt fails, although its handler has
returned."""
TELL_S: Final = 5.0
"""How long reporting a failure to a waiting client may take."""
_SPARE_S: Final = 10.0
"""The part of `PATIENCE_S` for the last try."""
_PAUSES_S: Final = (0.1, 0.5, 1.0, 2.0, 5.0)
PASSING: Final = (
    EnqueueUnknownError,
    NoNodeError,
    NotReplicatedError,
    QueueFullError,
    QueuePausedError,
    UnavailableError,
)
DONE: Final = records.Done()
_LONGEST_TEXT: Final = 1000
_LONGEST_TRACEBACK: Final = 8192
"""Characters."""


async def keep(enqueuer: Enqueuer, job: Job[Any], value: object) -> records.Done:
    """The handler has returned `value`: add what follows. If no node accepts it, try again for a
    minute, or until the worker stops; the lease is renewed meanwhile, so the handler need not run
    again. Returns the outcome, with the result that nodes are to keep. Raises `DisqueError`."""
    last = anyio.current_time() + PATIENCE_S - _SPARE_S
    for pause in itertools.chain(_PAUSES_S, itertools.repeat(_PAUSES_S[-1])):
        try:
            return await _keep(enqueuer, job, value)
        except PASSING as error:
            if job.stopping or anyio.current_time() + pause > last:
                _warn(job, "the attempt has failed")
                raise
            job.run.limit(PATIENCE_S)  # the task's `timeout` is for the handler only
            _warn(job, f"retrying for up to {last - anyio.current_time():.0f} s: {error}")
        except DisqueError:
            _warn(job, "the attempt has failed")
            raise
        await anyio.sleep(pause)
    raise AssertionError("attempts are endless")


def _warn(job: Job[Any], what: str) -> None:
    job.log.warning(
        "the handler has returned, but its continuation cannot be added (the next step of its "
        "chain, its result, or its part of a batch): %s",
        what,
    )


async def _keep(enqueuer: Enqueuer, job: Job[Any], value: object) -> records.Done:
    if job.headers.get("then"):
        added = await enqueuer.add(steps.next_request(enqueuer, job, value))
        following = codec.Result(_key(job), next=added.id)
        return await _with_result(enqueuer, job, following, steps.KEEP_S)
    if isinstance(value, codec.Result):  # of a collector
        return await _with_result(enqueuer, job, value, steps.KEEP_S)
    outcome = DONE
    if "result_ttl" in job.headers or replies.is_awaited(job.headers):
        result = _result(enqueuer, job, value)
        if replies.is_awaited(job.headers):
            reply = replies.or_where_it_is(enqueuer, job.headers, result, job.id)
            await replies.add(enqueuer, job.headers, job.copies, reply)
        outcome = await _with_result(enqueuer, job, result)
    await membership.leave(enqueuer.client, job, None)
    return outcome


async def _with_result(
    enqueuer: Enqueuer, job: Job[Any], result: codec.Result, least_s: int = 0
) -> records.Done:
    """The outcome of a job that is done, with the result for nodes to keep if its producer asked
    for one."""
    keep_s = replies.kept_s(job.headers)
    if not keep_s:
        return DONE
    kept = msgspec.structs.replace(result, task=job.task)
    body = await replies.kept_body(enqueuer, job.headers, kept)
    return records.Done(body, max(keep_s, least_s))


async def ended(enqueuer: Enqueuer, job: Job[Any], end: End) -> records.Outcome:
    """The job has ended for good without a return value: report that to waiting clients and to its
    batch. This takes at most `TELL_S`. Returns the outcome of the job, for nodes. Never raises."""
    try:
        with anyio.move_on_after(TELL_S, shield=job.run.why is Reason.TOO_LONG) as scope:
            await _report_end(enqueuer, job, end)
        if scope.cancelled_caught:
            _warn_unreported(job, f"no node has accepted the report within {TELL_S:.0f} s")
    except BaseException as error:  # an encoder of users, or a cancellation: the job is over
        _warn_unreported(job, describe(error))
    if isinstance(end.outcome, records.Done):  # nodes keep dead jobs themselves
        try:
            return await _with_result(enqueuer, job, _failure(job, end.error))
        except Exception as error:
            _warn_unreported(job, describe(error))
    return end.outcome


async def _report_end(enqueuer: Enqueuer, job: Job[Any], end: End) -> None:
    try:
        if replies.is_awaited(job.headers):
            await replies.add(enqueuer, job.headers, job.copies, _failure(job, end.error))
    finally:
        state: State = "cancelled" if end.how == "cancelled" else "dead"
        await membership.leave(enqueuer.client, job, (state, end.reason))


def _warn_unreported(job: Job[Any], why: str) -> None:
    job.log.warning("cannot report its end to the waiting client or batch: %s", why)


async def report_progress(enqueuer: Enqueuer, job: Job[Any], percent: float, text: str) -> None:
    """Report progress to a waiting client. Errors are logged."""
    if replies.is_awaited(job.headers):
        try:
            progress = codec.Result(_key(job), progress=(percent, escaped(text[:_LONGEST_TEXT])))
            await replies.add(enqueuer, job.headers, job.copies, progress)
        except DisqueError as error:
            job.log.warning("cannot report its progress to the waiting client: %s", error)


def _result(enqueuer: Enqueuer, job: Job[Any], value: object) -> codec.Result:
    try:
        part = codec.part(value, "json")
    except Exception as error:  # classes of users may encode themselves
        job.log.warning(
            "it is done, but its result cannot be encoded, so the waiting client gets an error: %s",
            type_and_text(error),
        )
        return _failure(job, error)
    task = enqueuer.app and enqueuer.app.find_task(job.task)
    if task and (change := task.arguments.first_change(value, part)):
        job.log.warning(
            "its result, and maybe those of later jobs of %s, change when they are encoded: %s; "
            "annotate the function with its type",
            job.task,
            change,
        )
    return codec.Result(_key(job), value=part)


def _failure(job: Job[Any], error: BaseException) -> codec.Result:
    first = leaves(error)[0]
    details = {
        "type": name_of(type(first)),
        "text": text_of(first),
        "traceback": trace_of(error)[-_LONGEST_TRACEBACK:],
    }
    return codec.Result(_key(job), error={name: escaped(text) for name, text in details.items()})


def _key(job: Job[Any]) -> str:
    return replies.key_of(job.headers, job.key or job.id)
