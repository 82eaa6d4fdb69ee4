"""The state of a job, from the states of its replicas."""

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
"""The value of `follows` in SHOW for a job that is held back until another job has ended."""


@attrs.frozen(kw_only=True)
class JobStatus:
    """The state of a job. `attrs.asdict` converts it to a dictionary for a JSON response."""

    id: str
    state: State
    """`waiting`: it is enqueued, or held back until the job with its key has ended. `delayed`: its
    `delay` or `at` is not over. `leased`: a worker has it, and runs it or will soon. `backing-off`:
    it waits after a failed attempt or a snooze. `dead`: it is not retried. `done`: it was
    acknowledged, by a worker or by a cancellation. `ended`: it has ended in another way
    (`outcome`). `unknown`: no node that answered has it; it was never added, or nodes no longer
    have the record of its end (`ended-jobs`)."""
    task: str = ""
    queue: str = ""
    failures: int = 0
    """The number of failed attempts."""
    deliveries: int = 0
    """The number of redeliveries because a worker lost it."""
    reason: str = ""
    """Why it is dead."""
    added_at: float | None = None
    """When it was added, in Unix seconds."""
    due_in: float | None = None
    """Seconds until it is enqueued, if it is delayed or backs off."""
    outcome: str = ""
    """How it ended (`Ending.outcome`), if a node has the record."""
    ended_at: float | None = None
    """When it ended, in Unix seconds, if a node has the record."""
    error: LastError | None = None
    """The error of the last failed attempt."""
    worker: str = ""
    """The name of the worker that runs it, from the heartbeat that the worker publishes every few
    seconds."""
    since: float | None = None
    """When the worker started the run, in Unix seconds."""
    has_result: bool = False
    """Do nodes keep its result (`App.result`)?"""
    unreached: Mapping[str, str] = attrs.field(factory=dict)
    """By node that did not answer: the error. The state excludes what only such nodes have."""

    @property
    def is_over(self) -> bool:
        """Has the job ended, as far as known? An `unknown` job may be on a node that did not
        answer."""
        return self.state in ("dead", "done", "ended") or (
            self.state == "unknown" and not self.unreached
        )


@attrs.frozen(kw_only=True)
class Copy:
    """The replica of a job on one node."""

    node: Address = attrs.field(repr=str)
    job: JobDetails

    @property
    def task(self) -> str:
        """The name of its task; empty if the body is not of a task."""
        ending = self.job.ending
        if ending is not None and self.job.body is None:
            return task_at_start(ending.body_start)
        return task_of(self.job.body or b"")

    @property
    def reason(self) -> str:
        """Why it is dead; empty if no reason is known."""
        reason = self.job.more.get("reason", b"")
        return reason.decode(errors="backslashreplace") if isinstance(reason, bytes) else ""

    @property
    def added(self) -> float:
        """When it was added, in Unix seconds."""
        return added_at(self.job)


def status_of(id: str, found: "Found[Copy]", now: float) -> JobStatus:
    """The state of a job from all of its replicas; `now` is Unix time."""
    if not found.items:
        return JobStatus(id=id, state="unknown", unreached=found.unreached)
    of_states: dict[State, Copy] = {}
    for copy in found.items:
        of_states.setdefault(_state(copy.job, now), copy)
    # A replica that is not enqueued reports "leased" wherever the job is, so other states win.
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
    """Is the delay of the job not over?"""
    return added_at(job) + job.delay > now


def added_at(job: JobDetails) -> float:
    """When the job was added, in Unix seconds."""
    return job.ctime // 1_000_000 / 1000


def _due_in(copy: "Copy", state: State, now: float) -> float | None:
    if state == "backing-off":
        return copy.job.backing_off
    return copy.added + copy.job.delay - now if state == "delayed" else None
