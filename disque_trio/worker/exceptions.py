"""Exceptions that a handler raises to decide the outcome of its job, exceptions that end a run, and
exceptions of results."""

from typing import Final

from disque_trio.client.errors import DisqueError
from disque_trio.client.records import End
from disque_trio.statemachine.base import LONGEST_PERIOD_S
from disque_trio.terminal.escapes import printable, printable_lines
from disque_trio.worker import checks
from disque_trio.worker.engine.records import Reason

LONGEST_S: Final = LONGEST_PERIOD_S
"""The longest delay that nodes accept: ten years. For nodes without the feature `long-waits` it is
`ORIGINAL_PERIOD_S`."""


class Retry(Exception):  # noqa: N818  # handlers write `raise Retry(after=30)`
    """The attempt has failed. Retry `after` this many seconds; None leaves the wait to the task's
    policy. The policy's number of attempts applies either way. Raises `ValueError` for an invalid
    wait."""

    def __init__(self, after: float | None = None, reason: str = "") -> None:
        super().__init__(reason or "the handler asks for another attempt")
        self.after = _seconds(after)


class Snooze(Exception):  # noqa: N818
    """Run the job again `after` this many seconds. This does not count as an attempt. If the job
    was already snoozed `most` times, it is a failed attempt instead. Raises `ValueError` for
    invalid arguments."""

    def __init__(self, after: float, most: int | None = None, reason: str = "") -> None:
        super().__init__(reason or "the handler asks for a later time")
        if after is None or (most is not None and not (checks.is_whole(most) and most >= 0)):
            wrong = f"most={checks.shown(most)}" if after is not None else "after=None"
            raise ValueError(f"Snooze(after, most): seconds and a whole number, not {wrong}")
        self.after = _seconds(after) or 0.0
        self.most = most


class Dead(Exception):  # noqa: N818
    """The job cannot succeed: make it dead, with this reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class Cancel(Exception):  # noqa: N818
    """The job is no longer needed: acknowledge it."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)


class JobTimeoutError(DisqueError):
    """A run exceeded the `timeout` of its task. This counts as a failed attempt."""


class InterruptedJobError(DisqueError):
    """Raised by `Job.check`: the run is over, because the lease is lost, the worker is stopping, or
    the time limit is exceeded."""

    def __init__(self, why: Reason) -> None:
        super().__init__(why.value)
        self.why = why


class JobFailedError(DisqueError):
    """The job is dead, its handler raised `Cancel`, or its result cannot be read. The texts come
    from a worker; control characters in them are escaped."""

    def __init__(self, kind: str, text: str, traceback: str = "") -> None:
        self.kind = printable(kind)
        """The name of the exception's class."""
        self.text = printable_lines(text)
        self.traceback = printable_lines(traceback)
        """The traceback in the worker; empty if there is none."""
        super().__init__(f"{self.kind}: {self.text}".removesuffix(": "))
        if traceback:
            self.add_note(f"On the worker:\n{self.traceback}")


class NoResultError(DisqueError):
    """No result arrived in time, or the job ended without one."""

    def __init__(self, job: str, end: End | None, text: str) -> None:
        super().__init__(f"no result of job {printable(job)}: {printable(text)}")
        self.end = end
        """How the job ended; None if it has not, or if nodes no longer have this information."""


def _seconds(after: float | None) -> float | None:
    if after is not None and not (checks.is_number(after) and 0 <= after <= LONGEST_S):
        raise ValueError(
            f"a wait must be a number of seconds from 0 to {LONGEST_S}, not {checks.shown(after)}"
        )
    return None if after is None else float(after)
