"""A job by its id, for any process that has the app: what has become of it, and its end."""

import re
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import attrs

from disque_trio.client import commands

if TYPE_CHECKING:
    from disque_trio.worker.enqueue import Enqueuer
    from disque_trio.worker.operating.asking import Asking
    from disque_trio.worker.operating.states import JobStatus

Unique = tuple[str, str]
"""A queue, and the key of a job in it."""
_ID: Final = re.compile(r"D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}")


@attrs.frozen
class BlockingJobHandle:
    """A job of the cluster, by a client of the thread."""

    id: str
    _enqueuer: "Enqueuer" = attrs.field(eq=False, repr=False)
    _unique: Unique | None = attrs.field(default=None, eq=False, repr=False)

    def status(self) -> "JobStatus":
        """What has become of it (`JobHandle.status`)."""
        found: JobStatus = self._finished(partial(_status, unique=self._unique))
        return found

    def cancel(self) -> bool:
        """End it, wherever it is (`JobHandle.cancel`)."""
        return bool(self._finished(_cancel))

    def _finished(self, ask: Any) -> Any:
        asking = _operating("asking")
        return asking.finished(ask(asking.InSteps(self._enqueuer.blocking_client), self.id))


@attrs.frozen
class JobHandle:
    """A job of the cluster."""

    id: str
    """Nodes are asked only about what can be the id of a job; any other is unknown."""
    _enqueuer: "Enqueuer" = attrs.field(kw_only=True, eq=False, repr=False)
    _unique: Unique | None = attrs.field(default=None, kw_only=True, eq=False, repr=False)

    async def status(self) -> "JobStatus":
        """What has become of it. The app must be open. Raises `NoNodeError` if no node answers."""
        return await _status(self._enqueuer.client, self.id, self._unique)

    async def cancel(self) -> bool:
        """End it, wherever it is. A worker that runs it cancels the handler when it renews the
        lease. False if no node has it, or it has ended. The app must be open. Raises `NoNodeError`
        if no node answers."""
        return await _cancel(self._enqueuer.client, self.id)

    @property
    def blocking(self) -> BlockingJobHandle:
        """The same for threads and code without an event loop."""
        return BlockingJobHandle(self.id, self._enqueuer, self._unique)


async def _status(client: "Asking", id: str, unique: Unique | None) -> "JobStatus":
    if not _ID.fullmatch(id):
        unknown: JobStatus = _operating("states").JobStatus(id=id, state="unknown")
        return unknown
    found: JobStatus = await _operating("jobs").Jobs(client).status(id)
    if found.state == "unknown" and unique is not None:  # nodes may keep the key of an ended job
        holder = await client.run(commands.show_key(*unique))
        if holder is not None and holder.id == id:
            return attrs.evolve(found, state="done", queue=unique[0])
    return found


async def _cancel(client: "Asking", id: str) -> bool:
    return bool(_ID.fullmatch(id)) and bool(await _operating("jobs").Jobs(client).cancel(id))


def _operating(name: str) -> Any:
    """A module that needs an event loop: who adds jobs does without it."""
    return import_module(f"disque_trio.worker.operating.{name}")
