"""Layers around each run of a job, composed once."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from disque_trio.worker.context import Job

Inner = Callable[[], Awaitable[object]]
Middleware = Callable[[Job[Any], Inner], Awaitable[object]]
"""Gets the job and what runs it, which it awaits once; it returns the result."""
Body = Callable[[Job[Any], Sequence[Any], dict[str, Any]], Awaitable[object]]


def compose(layers: Sequence[Middleware], body: Body) -> Body:
    """The body with all layers around it, the first one outermost."""
    for layer in reversed(layers):
        body = _around(layer, body)
    return body


def _around(layer: Middleware, inner: Body) -> Body:
    async def body(job: Job[Any], args: Sequence[Any], kwargs: dict[str, Any]) -> object:
        return await layer(job, lambda: inner(job, args, kwargs))

    return body
