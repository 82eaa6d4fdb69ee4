"""What a worker adds before it acknowledges a job: the next step of its chain, or its result and
its token in a batch.

A worker that dies in between leaves a duplicate, never a hole (decision 80).
"""

import itertools
from typing import Any, Final

import anyio
import attrs

from disque_trio.client import commands
from disque_trio.client.errors import DisqueError
from disque_trio.client.nodes import NoNodeError
from disque_trio.client.refusals import (
    NotReplicatedError,
    QueueFullError,
    QueuePausedError,
    UnavailableError,
)
from disque_trio.worker import codec, collecting, steps
from disque_trio.worker.context import Job, number
from disque_trio.worker.deciding import End
from disque_trio.worker.engine.records import Why
from disque_trio.worker.enqueue import Enqueuer, EnqueueUnknownError
from disque_trio.worker.policies import describe, leaves, name_of, text_of, trace_of
from disque_trio.worker.results import QUEUES

PATIENCE_S: Final = 60.0
"""How long nodes may take no job before an attempt whose handler has returned counts as failed."""
TELL_S: Final = 5.0
"""How long a client that waits may take to be told of a failure."""
_SPARE_S: Final = 10.0
"""Of that for the last try."""
_PAUSES_S: Final = (0.1, 0.5, 1.0, 2.0, 5.0)
_PASSING: Final = (
    EnqueueUnknownError,
    NoNodeError,
    NotReplicatedError,
    QueueFullError,
    QueuePausedError,
    UnavailableError,
)
_RESULT_TTL_S: Final = 600
_RESULT_RETRY_S: Final = 60
_LONGEST_TEXT: Final = 1000
_LONGEST_TRACEBACK: Final = 8192
"""Characters."""


async def keep(enqueuer: Enqueuer, job: Job[Any], value: object) -> None:
    """The handler has returned this. While no node takes what was promised, this tries again, for a
    minute, or until the worker stops: the lease is renewed, and the handler need not run again.
    Raises `DisqueError`."""
    last = anyio.current_time() + PATIENCE_S - _SPARE_S
    for pause in itertools.chain(_PAUSES_S, itertools.repeat(_PAUSES_S[-1])):
        try:
            await _keep(enqueuer, job, value)
        except _PASSING as error:
            if job.stopping or anyio.current_time() + pause > last:
                _warn(job, "the attempt has failed")
                raise
            job.run.limit(PATIENCE_S)  # what its task may take is for the handler
            _warn(job, f"trying again for up to {last - anyio.current_time():.0f} s: {error}")
        except DisqueError:
            _warn(job, "the attempt has failed")
            raise
        else:
            return
        await anyio.sleep(pause)


def _warn(job: Job[Any], what: str) -> None:
    job.log.warning(
        "the handler has returned, but what follows cannot be added (the next step of its chain, "
        "its result, or its part of a batch): %s",
        what,
    )


async def _keep(enqueuer: Enqueuer, job: Job[Any], value: object) -> None:
    if job.headers.get("then"):
        await enqueuer.add(steps.next_request(enqueuer, job, value))
    elif _wants_result(job):
        await _add_result(enqueuer, job, _result(job, value))
    if not job.headers.get("then") and (command := collecting.token(job.headers)) is not None:
        await enqueuer.client.run(command)


async def ended(enqueuer: Enqueuer, job: Job[Any], end: End) -> None:
    """The job has ended for good, and its handler has not returned: tell those who wait. This may
    take `TELL_S`. Never raises."""
    try:
        with anyio.move_on_after(TELL_S, shield=job.run.why is Why.TOO_LONG) as scope:
            await _tell_end(enqueuer, job, end)
        if scope.cancelled_caught:
            _unsaid(job, f"no node has taken it within {TELL_S:.0f} s")
    except BaseException as error:  # an encoder of users, or a cancellation: the job is over
        _unsaid(job, describe(error))


async def _tell_end(enqueuer: Enqueuer, job: Job[Any], end: End) -> None:
    if _wants_result(job):
        await _add_result(enqueuer, job, _failure(job, end.error))


def _unsaid(job: Job[Any], why: str) -> None:
    job.log.warning("its failure cannot be told to the client that waits: %s", why)


async def tell(enqueuer: Enqueuer, job: Job[Any], percent: float, text: str) -> None:
    """The handler is so far."""
    if _wants_result(job):
        try:
            told = codec.Result(_key(job), progress=(percent, text[:_LONGEST_TEXT]))
            await _add_result(enqueuer, job, told)
        except DisqueError as unsaid:
            job.log.warning("its progress cannot be told to the client that waits: %s", unsaid)


def _wants_result(job: Job[Any]) -> bool:
    queue = job.headers.get("reply_to")
    return isinstance(queue, str) and queue.startswith(QUEUES)


def _result(job: Job[Any], value: object) -> codec.Result:
    try:
        return codec.Result(_key(job), value=codec.part(value, "json"))
    except codec.BAD_INPUT as error:
        return _failure(job, error)


def _failure(job: Job[Any], error: BaseException) -> codec.Result:
    first = next(leaves(error))
    told = {
        "type": name_of(type(first)),
        "text": text_of(first),
        "traceback": trace_of(error)[-_LONGEST_TRACEBACK:],
    }
    return codec.Result(_key(job), error={name: _clean(text) for name, text in told.items()})


def _clean(text: str) -> str:
    """Without lone surrogates, which are no UTF-8."""
    return text.encode(errors="backslashreplace").decode()


async def _add_result(enqueuer: Enqueuer, job: Job[Any], result: codec.Result) -> None:
    body = codec.write(result, "json")
    if len(body) > enqueuer.max_body:
        text = f"the result has {len(body)} bytes, of {enqueuer.max_body} at most"
        too_large = {"type": "TooLargeError", "text": text}
        body = codec.write(codec.Result(_key(job), error=too_large), "json")
    ttl = max(number(job.headers, "result_ttl") or _RESULT_TTL_S, 2)
    command = commands.addjob(
        job.headers["reply_to"], body, ttl=ttl, retry=min(_RESULT_RETRY_S, ttl - 1)
    )
    await enqueuer.client.run(attrs.evolve(command, is_repeatable=True))


def _key(job: Job[Any]) -> str:
    of_chain = job.headers.get("reply_key")
    return of_chain if isinstance(of_chain, str) else job.key or job.id
