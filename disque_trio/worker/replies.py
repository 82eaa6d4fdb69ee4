"""Results on their way to the client that waits for them: jobs in its queue."""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from disque_trio.client import commands
from disque_trio.worker import codec
from disque_trio.worker.context import number
from disque_trio.worker.copies import Copies
from disque_trio.worker.enqueue import Enqueuer
from disque_trio.worker.results import QUEUES

RETRY_S: Final = 60
"""A result whose delivery was lost is delivered again so long after."""
_TTL_S: Final = 600


def is_awaited(headers: Mapping[str, Any]) -> bool:
    """Does a client wait for the result of a job with these headers?"""
    queue = headers.get("reply_to")
    return isinstance(queue, str) and queue.startswith(QUEUES)


def key_of(headers: Mapping[str, Any], otherwise: str) -> str:
    """What the client calls the job."""
    key = headers.get("reply_key")
    return key if isinstance(key, str) else otherwise


async def add(
    enqueuer: Enqueuer, headers: Mapping[str, Any], copies: Copies, result: codec.Result
) -> None:
    """Add a result for the client that these headers name. Raises `DisqueError`."""
    body = codec.write(result, "json")
    if len(body) > enqueuer.max_body:
        text = f"the result has {len(body)} bytes, of {enqueuer.max_body} at most"
        too_large = {"type": "TooLargeError", "text": text}
        body = codec.write(codec.Result(result.key, error=too_large), "json")
    body = enqueuer.codecs.encode_result(headers.get("reply_codecs"), result.key, body)
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


async def tell_failure(
    enqueuer: Enqueuer, headers: Mapping[str, Any], copies: Copies, kind: str, text: str
) -> None:
    """Tell the client that these headers name, if any, that it waits in vain. Raises
    `DisqueError`."""
    if is_awaited(headers):
        error = {"type": kind, "text": text}
        await add(enqueuer, headers, copies, codec.Result(key_of(headers, ""), error=error))
