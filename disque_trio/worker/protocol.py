"""The interface between the driver, which runs jobs, and the tasks: `Run` and `Handler`.

The driver is independent of tasks and of the format of bodies. It calls a `Handler` with each
`Run`, and receives the outcome for the node.
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
    """The functions of the driver that a run may use. Times are seconds on the clock of
    `anyio.current_time`."""

    @property
    def is_stopping(self) -> bool:
        """Is the worker stopping?"""
        ...

    @property
    def slots(self) -> int:
        """The number of jobs that may run at the same time."""
        ...

    def lease_end(self, id: bytes) -> float:
        """When the job's lease ends; infinity if it has none, minus infinity if it is lost."""
        ...

    def node_of(self, id: bytes) -> str:
        """The node that delivered the job; empty if the worker no longer has it."""
        ...

    def has(self, feature: bytes) -> bool:
        """Has any node announced this feature, even if it does not answer now?"""
        ...

    def has_slot_for(self, queue: bytes) -> bool:
        """Could another job of this queue start here now?"""
        ...

    def limit(self, id: bytes, seconds: float) -> float:
        """Cancel the handler of the job after this time, with `Reason.TOO_LONG`; infinity is never.
        Returns the time of the cancellation."""
        ...


@attrs.define(eq=False)
class Run:
    """One run of a job."""

    start: Start
    _driver: Driver
    why: Reason | None = None
    """Why its scope was cancelled; None if it was not."""
    thread: int | None = None
    """The other thread in which it runs, if any."""
    began: float = 0.0
    """When it started, by `runtime.Runtime.monotonic`."""
    task: str = ""
    """The name of its task, once its body has been read."""
    is_traced: bool = False
    """Has the traceback of its error been logged?"""
    ends: float = math.inf
    """When its time limit ends, by `anyio.current_time`."""
    _limit: float = math.inf
    _is_waiting: bool = False
    scope: "anyio.CancelScope | None" = None
    """The scope that the time limit cancels: that of the task's function, without middleware. If
    None, it is the whole run."""
    coded: "Coded | None" = None
    """The encoded body, if codecs have decoded it."""
    scopes: "OpenScopes | None" = None
    """The scopes around the run in its task, if known."""

    @property
    def is_stopping(self) -> bool:
        """Is the worker stopping? A long handler may then end early."""
        return self._driver.is_stopping

    @property
    def node(self) -> str:
        """The node that delivered the job; empty if the worker no longer has it."""
        return self._driver.node_of(self.start.id)

    def lease_end(self) -> float:
        """When the lease ends as known now, on the clock of `anyio.current_time`; infinity if there
        is none, minus infinity if it is lost."""
        return self._driver.lease_end(self.start.id)

    def has(self, feature: bytes) -> bool:
        """Has any node announced this feature, even if it does not answer now?"""
        return self._driver.has(feature)

    @property
    def slots(self) -> int:
        """The number of jobs that may run at the same time in this worker."""
        return self._driver.slots

    def has_free_slot(self) -> bool:
        """Could another job of this queue start in this worker now?"""
        return self._driver.has_slot_for(self.start.queue)

    def limit(self, seconds: float) -> None:
        """Limit the run: after this time it is cancelled with `Reason.TOO_LONG`."""
        self._limit, self.ends = seconds, self._driver.limit(self.start.id, seconds)

    def wait(self) -> None:
        """The function waits for a free thread or process. Its time limit is suspended until
        `begin`."""
        if self._limit < math.inf and self.why is None:
            self._is_waiting = True
            self.ends = self._driver.limit(self.start.id, math.inf)

    def begin(self) -> None:
        """The function starts, or no longer waits."""
        if self._is_waiting:
            self._is_waiting = False
            if self.why is None:
                self.limit(self._limit)


class Handler(Protocol):
    """Runs jobs."""

    async def __call__(self, run: Run) -> Outcome:
        """Run a job, in its own cancel scope, and return the outcome for the node.

        Every end of a run becomes an outcome, including a timeout. Only a cancellation by the
        worker for another reason is raised. Any other error is a bug: it is logged, and the job is
        retried by the default policy.
        """
        ...
