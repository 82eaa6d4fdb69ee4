"""The `DiskThread` of a simulated node, but for its time: what is done waits to be collected."""

from collections.abc import Callable
from functools import partial
from typing import Any

from outcome import Error, Outcome, capture

Act = Callable[[], object]
Then = Callable[[Outcome[Any]], None]


class SimulatedThread:
    """What is done takes no time, unless a subclass says so."""

    def __init__(self) -> None:
        self.wake: Callable[[], None] = lambda: None
        self.pending = 0
        self._done: list[Callable[[], None]] = []
        self._abandoned = 0
        """How often what was started was abandoned."""

    def _begin(self, write: Act, sync: Act | None, then: Then) -> None:
        """Write, sync if that is to be done, and `_finish`, now or later."""
        self._finish(done(write, sync), then)

    def _finish(self, outcome: Outcome[Any], then: Then) -> None:
        """All is done."""
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
        """Do something. The journal starts nothing else before `then` has been called."""
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
        """Do something meanwhile."""
        self.pending += 1
        self._begin(partial(act, *args), sync, then)

    def collect(self) -> None:
        """Tell what has been done."""
        done, self._done = self._done, []
        self.pending -= len(done)
        for call in done:
            call()

    def abandon(self) -> None:
        """Do not call `then` for what was started."""
        self._abandoned += 1


def done(write: Act, sync: Act | None) -> Outcome[Any]:
    """Write, and sync unless that fails; what it returned, or what has failed."""
    written = capture(write)
    if sync is None or isinstance(written, Error):
        return written
    synced = capture(sync)
    return synced if isinstance(synced, Error) else written
