"""What has become of a job, out of what the nodes of a cluster know of its copies."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

import attrs

from disque_trio.client.address import Address
from disque_trio.client.records import JobDetails, LastError
from disque_trio.worker.envelope import task_at_start, task_of

if TYPE_CHECKING:
    from disque_trio.worker.operating.asking import Found

State = Literal["waiting", "delayed", "leased", "backing-off", "dead", "done", "ended", "unknown"]

_FOLLOWS: Final = 1
"""In SHOW: it is held back until another job has ended."""


@attrs.frozen(kw_only=True)
class JobStatus:
    """The state of a job. `attrs.asdict` converts it to a dictionary for a JSON response."""

    id: str
    state: State
    """`waiting`: it is queued, or held back until the job that has its key has ended. `delayed`:
    its `delay` or `at` is not over. `leased`: a worker has it, which runs it or soon will.
    `backing-off`: it waits after a failed attempt, or was snoozed. `dead`: it is not tried again.
    `done`: it was acknowledged, by a worker or because it was cancelled. `ended`: it has ended
    without that, see `outcome`. `unknown`: no node that answered knows it: it was never added, or
    ended before the jobs whose ends nodes remember (`ended-jobs`)."""
    task: str = ""
    queue: str = ""
    failures: int = 0
    """Failed attempts."""
    deliveries: int = 0
    """How often it was redelivered because a worker had lost it."""
    reason: str = ""
    """Why it is dead."""
    added_at: float | None = None
    """Unix time."""
    due_in: float | None = None
    """Seconds until it is enqueued, if it is delayed or backs off."""
    outcome: str = ""
    """How it ended (`Ending.outcome`), if a node remembers that."""
    ended_at: float | None = None
    """Unix time, likewise."""
    error: LastError | None = None
    """Of the last failed attempt."""
    worker: str = ""
    """The name of the worker that runs it, as that reports every few seconds."""
    since: float | None = None
    """When that has begun the run, in Unix time."""
    has_result: bool = False
    """Do nodes keep its result (`App.result`)?"""
    unreached: Mapping[str, str] = attrs.field(factory=dict)
    """The reason of each node that did not answer. The state lacks what only such nodes hold."""

    @property
    def is_over(self) -> bool:
        """True if it will not run again, as far as is known. One that is `unknown` may be at a node
        that did not answer."""
        return self.state in ("dead", "done", "ended") or (
            self.state == "unknown" and not self.unreached
        )


@attrs.frozen(kw_only=True)
class Copy:
    """A job, as one node knows it."""

    node: Address = attrs.field(repr=str)
    job: JobDetails

    @property
    def task(self) -> str:
        """The name of its task; empty if it is of no task."""
        ending = self.job.ending
        if ending is not None and self.job.body is None:
            return task_at_start(ending.body_start)
        return task_of(self.job.body or b"")

    @property
    def reason(self) -> str:
        """Why it is dead; empty if nobody has said it."""
        reason = self.job.more.get("reason", b"")
        return reason.decode(errors="backslashreplace") if isinstance(reason, bytes) else ""

    @property
    def added(self) -> float:
        """When it was added, in Unix seconds."""
        return added_at(self.job)


def status_of(id: str, found: "Found[Copy]", now: float) -> JobStatus:
    """Of all copies of a job; `now` is Unix time."""
    if not found.items:
        return JobStatus(id=id, state="unknown", unreached=found.unreached)
    of_states: dict[State, Copy] = {}
    for copy in found.items:
        of_states.setdefault(_state(copy.job, now), copy)
    # A copy that is not queued says "leased" whoever has the job, so others know better.
    state = next(each for each in _BEST_FIRST if each in of_states)
    copy = of_states[state]
    ending = copy.job.ending
    errors = [each.job.error for each in found.items if each.job.error is not None]
    return JobStatus(
        id=id,
        state=state,
        task=next((each.task for each in found.items if each.task), ""),
        queue=copy.job.queue or "",
        failures=max(each.job.nacks for each in found.items),
        deliveries=max(each.job.additional_deliveries for each in found.items),
        reason=copy.reason,
        added_at=copy.added or None,
        due_in=_due_in(copy, state, now),
        outcome=ending.outcome if ending else "",
        ended_at=ending.at if ending else None,
        error=max(errors, key=lambda error: error.at, default=None),
        has_result=any("result" in each.job.more for each in found.items),
        unreached=found.unreached,
    )


_BEST_FIRST: Final[tuple[State, ...]] = (
    "done", "ended", "waiting", "dead", "backing-off", "delayed", "leased",
)  # fmt: skip


_ACKNOWLEDGED: Final = ("acknowledged", "cancelled", "purged", "replaced")


def _state(job: JobDetails, now: float) -> State:
    if job.ending is not None:
        return "done" if job.ending.outcome in _ACKNOWLEDGED else "ended"
    if job.state == "acked":
        return "done"
    if job.state == "dead":
        return "dead"
    if job.state == "queued" or job.more.get("follows") == _FOLLOWS:
        return "waiting"
    if job.backing_off is not None:
        return "backing-off"
    return "delayed" if is_delayed(job, now) else "leased"


def is_delayed(job: JobDetails, now: float) -> bool:
    """Is its delay not over?"""
    return added_at(job) + job.delay > now


def added_at(job: JobDetails) -> float:
    """Unix time."""
    return job.ctime // 1_000_000 / 1000


def _due_in(copy: "Copy", state: State, now: float) -> float | None:
    if state == "backing-off":
        return copy.job.backing_off
    return copy.added + copy.job.delay - now if state == "delayed" else None
