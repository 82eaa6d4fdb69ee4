"""What a handler raises to say what becomes of its job, and what it may be ended with."""

from typing import Final

from disque_trio.client.errors import DisqueError
from disque_trio.statemachine.base import LONGEST_PERIOD_S
from disque_trio.worker import checks
from disque_trio.worker.engine.records import Why

LONGEST_S: Final = LONGEST_PERIOD_S
"""What a node takes as a delay: ten years. One without the feature `long-waits` is asked for
`ORIGINAL_PERIOD_S` at most."""


class Retry(Exception):  # noqa: N818  # said by name in handlers: raise Retry(after=30)
    """The attempt has failed: try again `after` so many seconds, or when the task's policy says."""

    def __init__(self, after: float | None = None, reason: str = "") -> None:
        super().__init__(reason or "the handler asks for another attempt")
        self.after = _seconds(after)


class Snooze(Exception):  # noqa: N818
    """Not now: run it again `after` so many seconds. It counts as no attempt, but the one that
    comes after `most` others does."""

    def __init__(self, after: float, most: int | None = None, reason: str = "") -> None:
        super().__init__(reason or "the handler asks for a later time")
        if after is None or (most is not None and not (checks.is_whole(most) and most >= 0)):
            wrong = f"most={checks.shown(most)}" if after is not None else "after=None"
            raise ValueError(f"Snooze(after, most): seconds and a whole number, not {wrong}")
        self.after = _seconds(after) or 0.0
        self.most = most


class Dead(Exception):  # noqa: N818
    """It can never be done: keep it as dead, with the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class Cancel(Exception):  # noqa: N818
    """It is not needed any more: acknowledge it."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)


class JobTimeoutError(DisqueError):
    """A run took longer than its task may. It counts as a failed attempt."""


class InterruptedJobError(DisqueError):
    """`Job.check`: the run is over, because the lease is lost, or the worker stops, or the time
    limit is over."""

    def __init__(self, why: Why) -> None:
        super().__init__(why.value)
        self.why = why


def _seconds(after: float | None) -> float | None:
    if after is not None and not (checks.is_number(after) and 0 <= after <= LONGEST_S):
        raise ValueError(f"a wait is a number of seconds, 0 to {LONGEST_S}: {checks.shown(after)}")
    return None if after is None else float(after)
