"""Between the driver, which runs jobs, and what a job means: `Run` and `Handler`.

The driver knows no task and no body. It gives a `Handler` one `Run` after another, and gets what a
node is to learn of each.
"""

import math
from typing import TYPE_CHECKING, Protocol

import attrs

from disque_trio.worker.engine.records import Outcome, Reason, Start

if TYPE_CHECKING:
    import anyio

    from disque_trio.worker.codec import Coded
    from disque_trio.worker.open_scopes import OpenScopes


class Driver(Protocol):
    """What a run may ask of the driver. Times are seconds on its monotonic clock, which is that of
    `anyio.current_time`."""

    @property
    def is_stopping(self) -> bool:
        """Does the worker stop?"""
        ...

    @property
    def slots(self) -> int:
        """How many jobs may run at once."""
        ...

    def lease_end(self, id: bytes) -> float:
        """When the job's lease ends; infinity if it has none, minus infinity if it is lost."""
        ...

    def node_of(self, id: bytes) -> str:
        """The node that has delivered the job; empty if it is not in hand any more."""
        ...

    def has(self, feature: bytes) -> bool:
        """Has any node said that it has this feature, also if it does not answer now?"""
        ...

    def has_slot_for(self, queue: bytes) -> bool:
        """Could another job of this queue begin here now?"""
        ...

    def limit(self, id: bytes, seconds: float) -> float:
        """Cancel the handler of the job after so long, with `Reason.TOO_LONG`; infinity is never.
        Returns when that is."""
        ...


@attrs.define(eq=False)
class Run:
    """One run of a job."""

    start: Start
    _driver: Driver
    why: Reason | None = None
    """Why its scope was cancelled; None while it was not."""
    thread: int | None = None
    """In which other thread it runs, if it does."""
    began: float = 0.0
    """By `runtime.Runtime.monotonic`."""
    task: str = ""
    """The name of its task, once its body has been read."""
    is_traced: bool = False
    """Has the log the traceback of what it has raised?"""
    ends: float = math.inf
    """When its time limit is over, by `anyio.current_time`."""
    _limit: float = math.inf
    _is_waiting: bool = False
    scope: "anyio.CancelScope | None" = None
    """What its time limit cancels, while it is there: the function of a task, without what is
    around it. None is all of the run."""
    coded: "Coded | None" = None
    """What the body was before codecs changed it back, if they have."""
    scopes: "OpenScopes | None" = None
    """The scopes around it, in its task, if they are known."""

    @property
    def is_stopping(self) -> bool:
        """Does the worker stop? A long handler may end early then."""
        return self._driver.is_stopping

    @property
    def node(self) -> str:
        """The node that has delivered the job; empty if it is not in hand any more."""
        return self._driver.node_of(self.start.id)

    def lease_end(self) -> float:
        """When the lease ends as known now, by `anyio.current_time`; infinity if it has none, minus
        infinity if it is lost."""
        return self._driver.lease_end(self.start.id)

    def has(self, feature: bytes) -> bool:
        """Has any node said that it has this feature, also if it does not answer now?"""
        return self._driver.has(feature)

    @property
    def slots(self) -> int:
        """How many jobs may run at once in this worker."""
        return self._driver.slots

    def has_free_slot(self) -> bool:
        """Could another job of its queue begin in this worker now?"""
        return self._driver.has_slot_for(self.start.queue)

    def limit(self, seconds: float) -> None:
        """It may take so long, from now on. Then it is cancelled with `Reason.TOO_LONG`."""
        self._limit, self.ends = seconds, self._driver.limit(self.start.id, seconds)

    def wait(self) -> None:
        """Its function waits for a free thread or process. What has not begun cannot take too
        long, so its time limit stands still until `begin`."""
        if self._limit < math.inf and self.why is None:
            self._is_waiting = True
            self.ends = self._driver.limit(self.start.id, math.inf)

    def begin(self) -> None:
        """Its function begins, or waits for nothing more."""
        if self._is_waiting:
            self._is_waiting = False
            if self.why is None:
                self.limit(self._limit)


class Handler(Protocol):
    """What is done with jobs."""

    async def __call__(self, run: Run) -> Outcome:
        """Run a job, in a cancel scope of its own, and say what a node is to learn.

        Every end of a run is turned into an outcome here, also that by its time limit. Only the
        worker's cancellation for another reason is raised. What is raised all the same is a bug:
        it is logged, and the job is tried again as the default policy says.
        """
        ...
