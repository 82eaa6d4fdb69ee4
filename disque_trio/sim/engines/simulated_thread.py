"""The `DiskThread` of a simulated node, without its timing: results wait until they are
collected."""

from collections.abc import Callable
from functools import partial
from typing import Any

from outcome import Error, Outcome, capture

Act = Callable[[], object]
Then = Callable[[Outcome[Any]], None]


class SimulatedThread:
    """A thread whose work takes no time, unless a subclass changes that."""

    def __init__(self) -> None:
        self.wake: Callable[[], None] = lambda: None
        self.pending = 0
        self._done: list[Callable[[], None]] = []
        self._abandoned = 0
        """The number of calls of `abandon`."""

    def _begin(self, write: Act, sync: Act | None, then: Then) -> None:
        """Write, sync if requested, and call `_finish`, now or later."""
        self._finish(done(write, sync), then)

    def _finish(self, outcome: Outcome[Any], then: Then) -> None:
        """Record the result, and wake the node."""
        self._done.append(partial(then, outcome))
        self.wake()

    def start(
        self,
        act: Callable[..., object],
        args: tuple[Any, ...],
        then: Callable[[OSError | None], None],
        *,
        sync: Act | None = None,
        wait_s: float = 0.0,  # noqa: ARG002
    ) -> None:
        """Start work. The journal starts no other before `then` has been called."""
        abandoned = self._abandoned

        def on_done(outcome: Outcome[Any]) -> None:
            if abandoned == self._abandoned:
                error = outcome.error if isinstance(outcome, Error) else None
                assert error is None or isinstance(error, OSError)
                then(error)

        self.pending += 1
        self._begin(partial(act, *args), sync, on_done)

    def beside(
        self,
        act: Callable[..., object],
        args: tuple[Any, ...],
        then: Then,
        *,
        sync: Act | None = None,
    ) -> None:
        """Start work beside that of `start`."""
        self.pending += 1
        self._begin(partial(act, *args), sync, then)

    def collect(self) -> None:
        """Call `then` for all finished work."""
        done, self._done = self._done, []
        self.pending -= len(done)
        for call in done:
            call()

    def abandon(self) -> None:
        """Do not call `then` for the work of earlier `start`s."""
        self._abandoned += 1


def done(write: Act, sync: Act | None) -> Outcome[Any]:
    """Write, and sync unless the write fails; return the result of the write, or the error."""
    written = capture(write)
    if sync is None or isinstance(written, Error):
        return written
    synced = capture(sync)
    return synced if isinstance(synced, Error) else written
