"""Results of jobs: one for the client that waits, as a job in its queue, and one for any client,
which nodes keep with the acknowledgement."""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import anyio
import anyio.to_thread
import attrs

from disque_trio.client import commands
from disque_trio.terminal.counting import counted
from disque_trio.worker import codec
from disque_trio.worker.context import number
from disque_trio.worker.copies import Copies
from disque_trio.worker.decoding import PATIENCE_S
from disque_trio.worker.enqueue import Enqueuer
from disque_trio.worker.options import UNKEPT
from disque_trio.worker.results import QUEUES

RETRY_S: Final = 60
"""The lease of a result: if its delivery is lost, it is redelivered after this time."""
_TTL_S: Final = 600

_log: Final = logging.getLogger("disque_trio.worker.jobs")


def is_awaited(headers: Mapping[str, Any]) -> bool:
    """Does a client wait for the result of a job with these headers?"""
    queue = headers.get("reply_to")
    return isinstance(queue, str) and queue.startswith(QUEUES)


def kept_s(headers: Mapping[str, Any]) -> int:
    """The seconds for which nodes keep the result of a job with these headers; 0 if they do not."""
    return 0 if headers.get(UNKEPT) else number(headers, "result_ttl")


def key_of(headers: Mapping[str, Any], otherwise: str) -> str:
    """The client's key of the job."""
    key = headers.get("reply_key")
    return key if isinstance(key, str) else otherwise


async def kept_body(enqueuer: Enqueuer, headers: Mapping[str, Any], result: codec.Result) -> bytes:
    """The result for nodes to keep, encoded for clients that have the codecs in these headers.
    Raises errors of codecs, and `TimeoutError`."""
    codecs, names = enqueuer.codecs, headers.get("reply_codecs")
    body = codec.write(result, "json")
    if codecs.waits_for_result(names) and len(body) <= codecs.longest:
        encode = partial(codecs.encode_result, names, result.key, body, may_wait=True)
        with anyio.fail_after(PATIENCE_S):
            found = await anyio.to_thread.run_sync(encode, abandon_on_cancel=True)
        if len(found) <= enqueuer.max_body:
            return found
    return _body_of(enqueuer, headers, result, body)


def _body_of(
    enqueuer: Enqueuer,
    headers: Mapping[str, Any],
    result: codec.Result,
    body: bytes | None = None,
) -> bytes:
    """The encoded result, or an error if it is too large."""
    body = codec.write(result, "json") if body is None else body
    if len(body) > enqueuer.max_body:
        text = (
            f"the result has {counted(len(body), 'byte')}, and the limit is {enqueuer.max_body:,}"
        )
        if result.task or not kept_s(headers):  # log once, even if nodes keep it as well
            _log.warning("%s is done, but the waiting client gets an error: %s", result.key, text)
        too_large = {"type": "TooLargeError", "text": text}
        body = codec.write(codec.Result(result.key, error=too_large, task=result.task), "json")
    return enqueuer.codecs.encode_result(headers.get("reply_codecs"), result.key, body)


def or_where_it_is(
    enqueuer: Enqueuer, headers: Mapping[str, Any], result: codec.Result, job: str
) -> codec.Result:
    """The result for the queue of a client. If it is too large, and nodes keep it by a codec that
    blocks, return a reference to it instead."""
    waits = enqueuer.codecs.waits_for_result(headers.get("reply_codecs"))
    if waits and kept_s(headers) and len(codec.write(result, "json")) > enqueuer.max_body:
        return codec.Result(result.key, next=job)
    return result


async def add(
    enqueuer: Enqueuer, headers: Mapping[str, Any], copies: Copies, result: codec.Result
) -> None:
    """Add a result to the queue that these headers name. Raises `DisqueError`."""
    body = _body_of(enqueuer, headers, result)
    ttl = max(number(headers, "result_ttl") or _TTL_S, 2)
    command = commands.addjob(
        headers["reply_to"],
        body,
        ttl=ttl,
        retry=min(RETRY_S, ttl - 1),
        replicate=copies.replicate,
        sync=copies.awaited,
    )
    await enqueuer.client.run(attrs.evolve(command, is_repeatable=True))


async def send_failure(
    enqueuer: Enqueuer, headers: Mapping[str, Any], copies: Copies, result: codec.Result
) -> None:
    """Add a failure for the client that these headers name, if any. Raises `DisqueError`."""
    if is_awaited(headers):
        key = key_of(headers, result.key)
        await add(enqueuer, headers, copies, codec.Result(key, error=result.error))
