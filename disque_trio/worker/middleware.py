"""Middleware around each run of a job."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from disque_trio.worker.context import Job

Inner = Callable[[], Awaitable[object]]
Middleware = Callable[[Job[Any], Inner], Awaitable[object]]
"""Called with the job and a function that runs it, which it awaits once; returns the result."""
Body = Callable[[Job[Any], Sequence[Any], dict[str, Any]], Awaitable[object]]


def compose(layers: Sequence[Middleware], body: Body) -> Body:
    """The body wrapped in all layers, the first one outermost."""
    for layer in reversed(layers):
        body = _around(layer, body)
    return body


def _around(layer: Middleware, inner: Body) -> Body:
    async def body(job: Job[Any], args: Sequence[Any], kwargs: dict[str, Any]) -> object:
        return await layer(job, lambda: inner(job, args, kwargs))

    return body
