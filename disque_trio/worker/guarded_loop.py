"""An event loop of asyncio that survives a `SystemExit` of its tasks.

asyncio ends a loop, with everything that runs in it, if a task or a callback raises `SystemExit` or
`KeyboardInterrupt`. In a worker, handlers start such tasks, and these errors must not end the
worker.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from disque_trio.worker.event_loops import current_loop
from disque_trio.worker.workerlog import log

_LEAVING: Final = (SystemExit, KeyboardInterrupt)


class GuardedLoop(asyncio.SelectorEventLoop):
    """Continues after such an error while it is `guarded`, unless its main task has raised it."""

    is_guarded = False
    _main: "asyncio.Future[Any] | None" = None

    def run_until_complete(self, future: Any) -> Any:
        """Run until the future is done."""
        main = asyncio.ensure_future(future, loop=self)
        self._main = main
        return super().run_until_complete(main)

    def run_forever(self) -> None:
        """Run until `stop`. While guarded, run until the main task is done."""
        while True:
            try:
                super().run_forever()
                if not self._goes_on():
                    return
                log.error("a job has stopped the event loop; the worker continues")
            except _LEAVING as error:
                if not self._goes_on():
                    raise
                name = type(error).__name__
                log.error("a task or callback of a job raised %s; the worker continues", name)

    def _goes_on(self) -> bool:
        return self.is_guarded and self._main is not None and not self._main.done()


@contextmanager
def guarded() -> Iterator[None]:
    """Guard the current event loop, if it is a `GuardedLoop`. Signals are orders for the worker
    then."""
    loop = current_loop()
    if not isinstance(loop, GuardedLoop):
        yield
        return
    loop.is_guarded = True
    try:
        yield
    finally:
        loop.is_guarded = False
