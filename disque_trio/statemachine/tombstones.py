"""Ids of jobs that are over: what keeps a copy on its way from bringing one of them back.

A job that has been collected or deleted everywhere leaves no record. A REPLJOB or YOURJOBS that was
under way meanwhile would make it a new job, to be delivered once more. So a node remembers the
latest of them by their ids alone, and answers whoever still has a copy with SETACK.
"""

from typing import Final

import attrs

from disque_trio.statemachine.base import JobId

GENERATION: Final = 32_768
"""How many ids a generation has. At most two generations are kept: about ten megabytes."""


@attrs.define(eq=False)
class Tombstones:
    """The latest ids, at least `generation` of them once there have been so many.

    An id never comes to life again, so none needs to be forgotten for anything but its memory.
    """

    generation: int = GENERATION
    _young: dict[JobId, None] = attrs.Factory(dict)
    _old: dict[JobId, None] = attrs.Factory(dict)

    def __contains__(self, job_id: JobId) -> bool:
        return job_id in self._young or job_id in self._old

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def bury(self, job_id: JobId) -> None:
        """This job is over, wherever there may be copies of it."""
        self._young[job_id] = None
        if len(self._young) >= self.generation:
            self._old, self._young = self._young, {}

    def forget_all(self) -> None:
        """Remember nothing."""
        self._old, self._young = {}, {}
