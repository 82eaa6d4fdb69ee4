"""`disque-trio worker --reload`: restarts the worker when a Python file below the current
directory changes. For development.

The worker is a child process, which stops gracefully: running jobs finish. One that cannot start,
for example because its app cannot be imported, is started again after the next change.
"""

import logging
import os
import signal
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import anyio
import attrs
from anyio.abc import TaskGroup

from disque_trio.cli.worker.logs import log_to_stderr
from disque_trio.cli.worker.options import Options
from disque_trio.cli.worker.running import RELOADED, SIGNALS, Child, start_process
from disque_trio.terminal.options import UsageError
from disque_trio.worker.statuses import CLEAN, RESTART

_STOPPING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_log: Final = logging.getLogger("disque_trio.worker.reload")


def reload(argv: Sequence[str], options: Options) -> int:
    """Run this command line in a child process, again after each change; the exit status of the
    last one. Raises `UsageError` without watchfiles."""
    try:
        watchfiles = import_module("watchfiles")
    except ModuleNotFoundError:
        raise UsageError('--reload needs watchfiles: pip install "disque-trio[reload]"') from None
    log_to_stderr(options.log_level, form=options.log_format)
    logging.getLogger("watchfiles").setLevel(logging.WARNING)  # it logs each change, too
    # Trio, for on asyncio a signal to a child that has just ended takes its exit status away.
    return anyio.run(_Reloader(argv, watchfiles).run, backend="trio")


@attrs.define(eq=False)
class _Reloader:
    argv: Sequence[str]
    watchfiles: Any
    _child: Child | None = attrs.field(init=False, default=None)
    _is_stopping: bool = attrs.field(init=False, default=False)
    _changed: anyio.Event = attrs.field(init=False)

    async def run(self) -> int:
        """Until a signal stops it, or until the worker ends well; the exit status."""
        self._changed = anyio.Event()
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._pass_signals_on)
            tasks.start_soon(self._watch)
            status = None
            while status is None:
                status = await self._one()
            tasks.cancel_scope.cancel()
        assert status is not None
        return status

    async def _one(self) -> int | None:
        """One child, until it has ended and another one is due; else how this process ends."""
        self._changed = anyio.Event()
        child = self._child = await start_process(self.argv, {RELOADED: "1"})
        status = await self._until_changed(child)
        if status is None and not self._is_stopping:
            child.send_signal(signal.SIGTERM)
            await child.wait()
        elif status is None:
            status = await child.wait()
        self._child = None
        if self._is_stopping:
            return CLEAN if status is None else status
        if status is None or status == RESTART:
            return None
        if status == CLEAN:
            return status
        _log.error("the worker has ended with status %d; it restarts after a change", status)
        await self._changed.wait()
        return status if self._is_stopping else None

    async def _until_changed(self, child: Child) -> int | None:
        """The exit status of the child; None if a file has changed before."""
        found: list[int] = []

        async def wait(tasks: TaskGroup) -> None:
            found.append(await child.wait())
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait, tasks)
            await self._changed.wait()
            tasks.cancel_scope.cancel()
        return found[0] if found else None

    async def _watch(self) -> None:
        here = os.getcwd()
        only = self.watchfiles.PythonFilter()
        async for changes in self.watchfiles.awatch(here, watch_filter=only):
            names = sorted({os.path.relpath(path, here) for _, path in changes})
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            _log.info("%s%s changed: restarting", ", ".join(names[:3]), more)
            self._changed.set()

    async def _pass_signals_on(self, *, task_status: Any = anyio.TASK_STATUS_IGNORED) -> None:
        with anyio.open_signal_receiver(*SIGNALS) as signals:
            task_status.started()
            async for number in signals:
                self._is_stopping |= number in _STOPPING
                if self._child is not None:
                    self._child.send_signal(number)
                elif self._is_stopping:
                    self._changed.set()  # no child runs: it waits for a change
