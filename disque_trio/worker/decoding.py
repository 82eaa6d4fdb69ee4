"""Decodes bodies in a worker, and deletes what codecs keep when their jobs end."""

import logging
from contextlib import AsyncExitStack
from typing import Final

import anyio
import attrs

from disque_trio.worker.codecs import Codecs
from disque_trio.worker.describing import describe
from disque_trio.worker.envelope import as_coded
from disque_trio.worker.protocol import Run

PATIENCE_S: Final = 60.0
"""How long a codec may wait for files or the network before the attempt fails."""
_LOOK_S: Final = 0.5
_LAST_S: Final = 5.0
"""How long deleting may take when the worker ends."""
_log: Final = logging.getLogger("disque_trio.worker.codecs")


@attrs.define(eq=False)
class Decoding:
    """The codecs of an app in one worker."""

    codecs: Codecs
    _ended: list[Run] = attrs.field(init=False, factory=list)

    async def open(self, stack: AsyncExitStack) -> None:
        """Until the stack is left, delete what codecs keep for jobs that have ended."""
        if self.codecs.keeps:
            stack.push_async_callback(self._forget_last)
            tasks = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(tasks.cancel_scope.cancel)
            tasks.start_soon(self._keep_forgetting)

    async def decode(self, run: Run) -> None:
        """Replace the body of this run by the decoded body, if codecs have encoded it. Raises as
        `Codecs.decode`, and `TimeoutError`."""
        coded = as_coded(run.start.body)
        if coded is None:
            return
        run.task = coded.task
        self.codecs.check(coded)
        if self.codecs.waits(coded):
            with anyio.fail_after(PATIENCE_S):
                body = await anyio.to_thread.run_sync(
                    self.codecs.decode, coded, abandon_on_cancel=True
                )
        else:
            body = self.codecs.decode(coded)
        run.start, run.coded = attrs.evolve(run.start, body=body), coded

    def ended(self, run: Run) -> None:
        """The job has ended for good: delete what codecs keep for it once a node has confirmed the
        end."""
        if self.codecs.keeps and run.coded is not None:
            self._ended.append(run)

    async def _keep_forgetting(self) -> None:
        while True:
            await anyio.sleep(_LOOK_S)
            await self._forget()

    async def _forget_last(self) -> None:
        with anyio.move_on_after(_LAST_S):
            await self._forget()

    async def _forget(self) -> None:
        """Skip jobs whose end no node has confirmed: they may run again."""
        confirmed = [run for run in self._ended if not run.node]
        self._ended = [run for run in self._ended if run.node]
        for run in confirmed:
            assert run.coded is not None
            try:
                await anyio.to_thread.run_sync(
                    self.codecs.forget, run.coded, abandon_on_cancel=True
                )
            except Exception as error:  # codecs of users may raise anything
                text = "cannot delete the data of a codec for %s %s: %s"
                id = run.start.id.decode(errors="backslashreplace")
                _log.warning(text, run.task, id, describe(error))
