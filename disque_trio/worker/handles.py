"""A job by its id, for any process that has the app: what has become of it, its result, and its
end."""

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
"""By which nodes find a job with a `unique` key, and the later steps of its chain."""
_ID: Final = re.compile(r"D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}")


class Clients(Protocol):
    """Those of an app."""

    @property
    def client(self) -> "Client":
        """That of the event loop. Raises `NotOpenError`."""
        ...

    @property
    def blocking_client(self) -> "BlockingClient":
        """That of the thread."""
        ...

    @property
    def codecs(self) -> "Codecs":
        """By which results are read."""
        ...

    def read_kept(self, result: "Result") -> Any:
        """The value of a result. Raises `JobFailedError`."""
        ...


@attrs.frozen
class BlockingJobHandle:
    """A job of the cluster, by a client of the thread."""

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
    """Nodes are asked only about what can be the id of a job; any other is unknown."""
    _enqueuer: Clients = attrs.field(kw_only=True, eq=False, repr=False)
    _places: Places = attrs.field(default=(None,), kw_only=True, eq=False, repr=False)

    async def status(self) -> "JobStatus":
        """The state of the job; for a chain that was just added, of its current step. The app must
        be open. Raises `NoNodeError` if no node answers."""
        return await _status(self._enqueuer.client, self.id, self._places)

    async def cancel(self) -> bool:
        """Cancel the job on all nodes. A worker that runs it cancels the handler when it renews the
        lease. False if no node holds it, or it has ended. The app must be open. Raises
        `NoNodeError` if no node answers."""
        return await _cancel(self._enqueuer.client, self.id, self._places)

    async def result(self, timeout: float | None = None) -> Any:
        """The return value of the function, for a job with `result_ttl`, as nodes keep it; of a
        chain that of its last step. It has the type of the task's annotation if the app has the
        task. The app must be open. Raises `JobFailedError` if the job is dead or was cancelled by
        its handler, `NoResultError` after `timeout` seconds, or when it has ended and nodes keep no
        result, and `NoNodeError` if no node answers."""
        return await _result(self._enqueuer, self._enqueuer.client, self.id, timeout)

    @property
    def blocking(self) -> BlockingJobHandle:
        """The same for threads and code without an event loop."""
        return BlockingJobHandle(self.id, self._enqueuer, self._places)


async def _status(client: "Asking", id: str, places: Places) -> "JobStatus":
    jobs = _operating("jobs").Jobs(client)
    now = await _under_way(client, id, places)
    unknown: JobStatus = _operating("states").JobStatus(id=now or id, state="unknown")
    found: JobStatus = await jobs.status(now or id) if now or _ID.fullmatch(id) else unknown
    # Nodes keep the key of a job that has ended for longer than its record.
    return attrs.evolve(found, state="done") if now and found.state == "unknown" else found


async def _cancel(client: "Asking", id: str, places: Places) -> bool:
    now = await _under_way(client, id, places)
    if not now and not _ID.fullmatch(id):
        return False
    return bool(await _operating("jobs").Jobs(client).cancel(now or id))


async def _result(enqueuer: Clients, client: "Asking", id: str, timeout: float | None) -> Any:
    kept = import_module("disque_trio.worker.kept")
    if not _ID.fullmatch(id):
        raise kept.NoResultError(id, None, "this is no id of a job")
    return enqueuer.read_kept(await kept.wait(client, enqueuer.codecs, id, timeout))


async def _under_way(client: "Asking", id: str, places: Places) -> str | None:
    """The id of the last step of the chain that nodes know; None if they know none by its key."""
    key_holder: Callable[..., Awaitable[KeyHolder | None]] = _operating("key_holders").key_holder
    for n, place in reversed(list(enumerate(places))):
        holder = None if place is None else await key_holder(client, place)
        if holder is not None and (n > 0 or holder.id == id):
            return holder.id
    return None


def _operating(name: str) -> Any:
    """A module that needs an event loop: who adds jobs does without it."""
    return import_module(f"disque_trio.worker.operating.{name}")
