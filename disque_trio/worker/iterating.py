"""Tasks that yield checkpoints: an interrupted job resumes at the last one
(docs/worker-iterating.md).

The last checkpoint of a job is kept as a note (`notes`) whose key is the job's id. It is written
every few seconds, and when a run ends early.
"""

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from functools import partial, wraps
from typing import Any, Final

import anyio
import anyio.to_thread
import attrs

from disque_trio.client.errors import DisqueError
from disque_trio.terminal.counting import counted
from disque_trio.worker import codec, notes, snoozing
from disque_trio.worker.context import Job, NoJobError, current_job
from disque_trio.worker.decoding import PATIENCE_S
from disque_trio.worker.describing import describe, type_and_text
from disque_trio.worker.engine.records import Reason
from disque_trio.worker.enqueue import Enqueuer
from disque_trio.worker.envelope import as_coded
from disque_trio.worker.exceptions import Dead, Snooze

SAVE_EVERY_S: Final = 5.0
"""The interval between saved checkpoints: if the worker is killed, up to this time of work is
repeated."""
MAX_CHECKPOINT: Final = 4096
"""Bytes, as JSON."""
AFTERWARDS_S: Final = 600
"""How long the last checkpoint is kept after a success, because the acknowledgement may be lost."""
GRACE_S: Final = 5.0
"""How long saving a checkpoint may take when a run ends."""
Checkpoints = AsyncGenerator[Any, None]


@attrs.define(eq=False)
class _Kept:
    """The checkpoints of one run."""

    enqueuer: Enqueuer
    job: Job[Any]
    _saved: bytes | None = None
    """The last checkpoint that nodes have; None before the first."""
    _last: bytes | None = None
    """The last checkpoint that was yielded, before codecs encode it."""
    _next_at: float = 0.0

    async def load(self) -> None:
        """Set `Job.checkpoint` to the checkpoint that nodes keep, if any. Raises `DisqueError`, and
        errors of codecs."""
        self._next_at = anyio.current_time() + SAVE_EVERY_S
        found = await notes.find(self.enqueuer, self.job.id)
        if found is not None:
            self._saved = self._last = await self._decoded(found)
            self.job.checkpoint = codec.read_plain(self._last, "json")

    async def reached(self, checkpoint: object) -> None:
        """The handler has yielded a checkpoint: save it if it is time. Raises `Snooze` if the
        worker stops."""
        self._last = _written(checkpoint)
        self.job.checkpoint = codec.read_plain(self._last, "json")
        if self.job.stopping and snoozing.can_wait(self.job.run):
            raise Snooze(0, reason="it was interrupted at a checkpoint: the worker stops")
        if anyio.current_time() >= self._next_at:
            await self._save(notes.life_of(self.job.run))
            self._next_at = anyio.current_time() + SAVE_EVERY_S

    async def interrupted(self) -> None:
        """The run ends early: save the last checkpoint. Never raises; if saving fails, work is
        repeated."""
        if self._last != self._saved and self.job.run.why in (None, *_STILL_OURS):
            with anyio.move_on_after(GRACE_S, shield=True):
                await self._save(notes.life_of(self.job.run))

    async def ended(self) -> None:
        """The handler has returned: shorten the life of the saved checkpoint."""
        if self._saved is not None:
            await self._save(AFTERWARDS_S)

    async def _decoded(self, body: bytes) -> bytes:
        codecs, coded = self.enqueuer.codecs, as_coded(body)
        if coded is None:
            return body
        codecs.check(coded)
        if not codecs.waits(coded):
            return codecs.decode(coded)
        with anyio.fail_after(PATIENCE_S):
            return await anyio.to_thread.run_sync(codecs.decode, coded, abandon_on_cancel=True)

    async def _encoded(self, body: bytes) -> bytes:
        codecs = self.enqueuer.codecs
        encode = partial(codecs.encode_checkpoint, self.job.task, self.job.key, body)
        if not codecs.blocks:
            return encode()
        return await anyio.to_thread.run_sync(encode, abandon_on_cancel=True)

    async def _save(self, seconds: int) -> None:
        if self._last is None:
            return
        try:
            body = await self._encoded(self._last)
        except Exception as error:  # codecs of users may raise anything
            self.job.log.warning("its checkpoint cannot be encoded: %s", describe(error))
            return
        try:
            await notes.keep(
                self.enqueuer,
                self.job.id,
                body,
                seconds=seconds,
                replicate=self.job.copies.replicate,
                sync=self.job.copies.awaited,
            )
            self._saved = self._last
        except DisqueError as error:
            self.job.log.warning("its checkpoint cannot be saved: %s", error)


_STILL_OURS: Final = (Reason.SHUTDOWN, Reason.TOO_LONG)


def _written(checkpoint: object) -> bytes:
    """The encoded checkpoint. Raises `Dead` if nodes cannot keep it, because every attempt would
    yield the same."""
    try:
        body = codec.write(checkpoint, "json")
    except Exception as error:  # values of users may raise anything
        raise Dead(f"a checkpoint cannot be encoded: {type_and_text(error)}") from error
    if len(body) > MAX_CHECKPOINT:
        raise Dead(
            f"a checkpoint has {counted(len(body), 'byte')} as JSON, "
            f"and the limit is {MAX_CHECKPOINT:,}: yield where to continue, not what was done"
        )
    return body


def iterated(
    enqueuer: Enqueuer, fn: Callable[..., Checkpoints]
) -> Callable[..., Coroutine[Any, Any, None]]:
    """An `async def` that runs the function to its end and saves its checkpoints. Outside of a job
    it only runs the function."""

    @wraps(fn)
    async def run(*args: Any, **kwargs: Any) -> None:
        try:
            job = current_job()
        except NoJobError:
            async with aclosing(fn(*args, **kwargs)) as steps:
                async for _ in steps:
                    pass
            return
        kept = _Kept(enqueuer, job)
        await kept.load()
        try:
            async with aclosing(fn(*args, **kwargs)) as steps:
                async for checkpoint in steps:
                    await kept.reached(checkpoint)
        except BaseException:
            await kept.interrupted()
            raise
        await kept.ended()

    run.__annotations__ = {**fn.__annotations__, "return": None}
    return run
