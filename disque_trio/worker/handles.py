"""Handles of jobs by id, in any process that has the app: status, result, cancellation."""

import re
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

from disque_trio.worker.options import Place

if TYPE_CHECKING:
    from disque_trio.client import BlockingClient, Client
    from disque_trio.client.records import KeyHolder
    from disque_trio.worker.codec import Result
    from disque_trio.worker.codecs import Codecs
    from disque_trio.worker.operating.asking import Asking
    from disque_trio.worker.operating.states import JobStatus

Places = Sequence[Place | None]
"""The queues and keys by which nodes find a job with a `unique` key, and the later steps of its
chain."""
_ID: Final = re.compile(r"D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}")


class Clients(Protocol):
    """The clients of an app."""

    @property
    def client(self) -> "Client":
        """The client of this event loop. Raises `NotOpenError`."""
        ...

    @property
    def blocking_client(self) -> "BlockingClient":
        """The client of this thread."""
        ...

    @property
    def codecs(self) -> "Codecs":
        """The codecs that decode results."""
        ...

    def read_kept(self, result: "Result") -> Any:
        """The value of a result. Raises `JobFailedError`."""
        ...


@attrs.frozen
class BlockingJobHandle:
    """A job of the cluster, for threads and code without an event loop."""

    id: str
    _enqueuer: Clients = attrs.field(eq=False, repr=False)
    _places: Places = attrs.field(default=(None,), eq=False, repr=False)

    def status(self) -> "JobStatus":
        """The state of the job (`JobHandle.status`)."""
        found: JobStatus = self._finished(_status)
        return found

    def cancel(self) -> bool:
        """Cancel the job (`JobHandle.cancel`)."""
        return bool(self._finished(_cancel))

    def result(self, timeout: float | None = None) -> Any:
        """The result of the job (`JobHandle.result`)."""
        asking = _operating("asking")
        client = asking.InSteps(self._enqueuer.blocking_client)
        return asking.finished(_result(self._enqueuer, client, self.id, timeout))

    def _finished(self, ask: Any) -> Any:
        asking = _operating("asking")
        return asking.finished(
            ask(asking.InSteps(self._enqueuer.blocking_client), self.id, self._places)
        )


@attrs.frozen
class JobHandle:
    """A job of the cluster."""

    id: str
    """The id of the job. For text that is not a valid id, nodes are not asked, and the job is
    unknown."""
    _enqueuer: Clients = attrs.field(kw_only=True, eq=False, repr=False)
    _places: Places = attrs.field(default=(None,), kw_only=True, eq=False, repr=False)

    async def status(self) -> "JobStatus":
        """The state of the job; for a chain that this process has just added, that of its current
        step. The app must be open. Raises `NoNodeError` if no node answers."""
        return await _status(self._enqueuer.client, self.id, self._places)

    async def cancel(self) -> bool:
        """Cancel the job on all nodes. A worker that runs it cancels the handler at the next
        renewal of the lease. Returns False if no node holds the job or it has ended. The app must
        be open. Raises `NoNodeError` if no node answers."""
        return await _cancel(self._enqueuer.client, self.id, self._places)

    async def result(self, timeout: float | None = None) -> Any:
        """The return value of the function, for a job with `result_ttl`, as kept by nodes; for a
        chain, that of its last step. It has the annotated type if the app has the task. Waits at
        most `timeout` seconds; None is no limit. The app must be open. Raises `JobFailedError` if
        the job is dead, was cancelled by its handler, or its result cannot be read; `NoResultError`
        on a timeout or if the job has ended and nodes keep no result; and `NoNodeError` if no node
        answers until the timeout."""
        return await _result(self._enqueuer, self._enqueuer.client, self.id, timeout)

    @property
    def blocking(self) -> BlockingJobHandle:
        """A handle of the same job for threads and code without an event loop."""
        return BlockingJobHandle(self.id, self._enqueuer, self._places)


async def _status(client: "Asking", id: str, places: Places) -> "JobStatus":
    jobs = _operating("jobs").Jobs(client)
    now = await _under_way(client, id, places)
    unknown: JobStatus = _operating("states").JobStatus(id=now or id, state="unknown")
    found: JobStatus = await jobs.status(now or id) if now or _ID.fullmatch(id) else unknown
    # Nodes keep the key of a job for longer than its record.
    return attrs.evolve(found, state="done") if now and found.state == "unknown" else found


async def _cancel(client: "Asking", id: str, places: Places) -> bool:
    now = await _under_way(client, id, places)
    if not now and not _ID.fullmatch(id):
        return False
    return bool(await _operating("jobs").Jobs(client).cancel(now or id))


async def _result(enqueuer: Clients, client: "Asking", id: str, timeout: float | None) -> Any:
    kept = import_module("disque_trio.worker.kept")
    if not _ID.fullmatch(id):
        raise kept.NoResultError(id, None, "this is not the id of a job")
    return enqueuer.read_kept(await kept.wait(client, enqueuer.codecs, id, timeout))


async def _under_way(client: "Asking", id: str, places: Places) -> str | None:
    """The id of the last step of the chain that nodes have; None if they find none by its key."""
    key_holder: Callable[..., Awaitable[KeyHolder | None]] = _operating("key_holders").key_holder
    for n, place in reversed(list(enumerate(places))):
        holder = None if place is None else await key_holder(client, place)
        if holder is not None and (n > 0 or holder.id == id):
            return holder.id
    return None


def _operating(name: str) -> Any:
    """Import a module that needs an event loop, which adding jobs does not."""
    return import_module(f"disque_trio.worker.operating.{name}")
