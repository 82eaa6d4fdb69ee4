"""The clients of an app: one for each event loop and runtime in which the app is open.

The event loop keeps its client alive, not the app. If a loop ends without closing the app, it
closes the client when it finalizes its asynchronous generators. If it does not finalize them, the
sockets are shut down when the client is collected.
"""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary, ref

import attrs

from disque_trio import client as clients
from disque_trio.client.address import Cluster
from disque_trio.worker.codecs import Codecs
from disque_trio.worker.enqueued import NotOpenError
from disque_trio.worker.runtime import Runtime, runtime

if TYPE_CHECKING:
    from disque_trio.worker.codec import Part
    from disque_trio.worker.enqueued import R_co
    from disque_trio.worker.options import Place
    from disque_trio.worker.results import Results, Update

_Key = tuple[int, Runtime, "ref[Any]"]
"""A process, a runtime, an event loop."""


@attrs.define(eq=False)
class Opened:
    """The client of an app in one event loop."""

    client: "clients.Client"
    results: "Results"
    count: int = 0
    """The number of times the app was opened and not closed."""
    _process: int = attrs.field(init=False, factory=os.getpid)
    _release: Callable[[], object] = attrs.field(init=False)
    _closing: AsyncGenerator[None, None] = attrs.field(init=False)

    async def begin(self) -> None:
        """Close the client when the event loop ends, unless `end` was called before."""
        self._release = _loops().keep(self)
        self._closing = _closing(self.client)
        await anext(self._closing)

    async def end(self) -> None:
        """Close the client."""
        self._release()
        await self._closing.aclose()

    def __del__(self) -> None:
        if self._process == os.getpid():
            self.client.abandon()


async def _closing(client: "clients.Client") -> AsyncGenerator[None, None]:
    """Asyncio and Trio finalize asynchronous generators when the event loop ends."""
    try:
        yield
    finally:
        await client.close()


class OpenedApp:
    """All clients of an app except the blocking ones."""

    def __init__(self, codecs: Codecs) -> None:
        self._codecs = codecs
        self._all: WeakValueDictionary[_Key, Opened] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._all)

    def __bool__(self) -> bool:
        return bool(self._all)

    def find(self) -> Opened | None:
        """The client of the current event loop; None if the app is not open in it."""
        if not self._all:
            return None
        try:
            return self._all.get(_key())
        except RuntimeError:  # no event loop runs here
            return None

    def get(self) -> Opened:
        """The client of the current event loop. Raises `NotOpenError` if the app is not open in
        it."""
        opened = self.find()
        if opened is None:
            raise NotOpenError(
                "the app is not open in this event loop: write `async with app:` around what adds "
                "jobs, in each event loop that does, or add them with `task.blocking.enqueue`"
            )
        return opened

    async def open(self, url: str | Cluster) -> None:
        """Open the client of this event loop. Each call needs a call of `close`."""
        opened = self.find()
        if opened is None:
            client = runtime().client(url)
            results = import_module("disque_trio.worker.results")  # it needs an event loop
            opened = self._all[_key()] = Opened(client, results.Results(client, self._codecs))
            await opened.begin()
        opened.count += 1

    async def close(self) -> None:
        """Undo one `open`. The last `close` closes the client. Raises `NotOpenError`."""
        opened = self.get()
        opened.count -= 1
        if not opened.count:
            del self._all[_key()]
            await opened.end()

    # Results of jobs that `results` asked for.

    async def wait(
        self,
        results: "Results",
        key: str,
        read: "Callable[[Part], R_co]",
        job: str,
        timeout: float | None,
        *,
        steps: "Sequence[Place]",
        since: float,
    ) -> "R_co":
        """As `Results.wait`. Raises `NotOpenError` if these results are sent to another event
        loop."""
        self._check(results, job)
        return await results.wait(key, read, job, timeout, steps=steps, since=since)

    async def updates(
        self,
        results: "Results",
        key: str,
        job: str,
        timeout: float | None,
        *,
        steps: "Sequence[Place]",
        since: float,
    ) -> "AsyncIterator[Update]":
        """As `Results.updates`. Raises `NotOpenError` if these results are sent to another event
        loop."""
        self._check(results, job)
        async for update in results.updates(key, job, timeout, steps=steps, since=since):
            yield update

    def _check(self, results: "Results", job: str) -> None:
        opened = self.find()
        if opened is None or opened.results is not results:
            raise NotOpenError(
                f"the result of job {job} is sent to another event loop, or the app has been "
                "closed since: await it inside of the `async with app:` that added the job, or "
                "read what nodes keep by `app.result(id)`"
            )


def _key() -> _Key:
    return os.getpid(), runtime(), ref(_loops().current_loop())


@cache
def _loops() -> Any:
    """Imported lazily, for processes that add jobs without an event loop."""
    return import_module("disque_trio.worker.event_loops")
