"""The environment of an app: clocks, unique names, clients, executors.

Test kits replace it (`disque_trio.testing`), for the process or for some of its tasks.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final

import attrs

from disque_trio import client as clients
from disque_trio.client.address import Cluster
from disque_trio.worker.envelope import new_key


def _client(url: str | Cluster) -> "clients.Client":
    return clients.Client(url)


def _blocking_client(url: str | Cluster) -> "clients.BlockingClient":
    return clients.BlockingClient(url)


@attrs.define(eq=False, kw_only=True)
class Runtime:
    """The environment of an app. An app has one client for each."""

    now: Callable[[], float] = time.time
    """Unix time."""
    monotonic: Callable[[], float] = time.monotonic
    new_key: Callable[[], str] = new_key
    client: Callable[[str | Cluster], "clients.Client"] = _client
    blocking_client: Callable[[str | Cluster], "clients.BlockingClient"] = _blocking_client
    executors: Callable[[int, int], Mapping[str, Any]] | None = None
    """Creates executors for these numbers of threads and processes; None creates the real ones."""


_of_process: Final = [Runtime()]
_of_task: Final[ContextVar[Runtime | None]] = ContextVar("disque_trio.worker.runtime", default=None)


def runtime() -> Runtime:
    """The runtime of this task, or of the process."""
    return _of_task.get() or _of_process[-1]


@contextlib.contextmanager
def for_process(found: Runtime) -> Iterator[None]:
    """Replace the runtime of the process."""
    _of_process.append(found)
    try:
        yield
    finally:
        _of_process.remove(found)


@contextlib.contextmanager
def for_task(found: Runtime) -> Iterator[None]:
    """Replace the runtime of this task, and of the tasks that it starts."""
    token = _of_task.set(found)
    try:
        yield
    finally:
        _of_task.reset(token)


def of_worker(name: str, recorder: "clients.Recorder | None") -> Runtime:
    """The current runtime, with clients of this name and recorder."""
    return attrs.evolve(
        runtime(),
        client=lambda url: clients.Client(url, name=name, recorder=recorder),
        blocking_client=lambda url: clients.BlockingClient(url, name=name, recorder=recorder),
    )
