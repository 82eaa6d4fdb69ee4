"""Tombstones: ids of jobs that are over, so that a late copy does not bring one of them back.

A job that has been collected or deleted everywhere leaves no record. A REPLJOB or YOURJOBS that was
under way meanwhile would make it a new job, and it would be delivered again. So a node keeps the
ids of the latest ones, and answers nodes that still have a copy with SETACK.
"""

import attrs

from disque_trio.statemachine.base import JobId
from disque_trio.statemachine.knobs import DEFAULTS


@attrs.define(eq=False)
class Tombstones:
    """The latest ids, at least `generation` of them once there have been so many.

    An id is never used again, so ids are forgotten only to bound the memory.
    """

    generation: int = DEFAULTS.tombstones
    """How many ids a generation has. At most two generations are kept: about ten megabytes."""
    _young: dict[JobId, bool] = attrs.Factory(dict)
    """Is it known that the job is acknowledged? Otherwise its ADDJOB may have failed."""
    _old: dict[JobId, bool] = attrs.Factory(dict)

    def __contains__(self, job_id: JobId) -> bool:
        return job_id in self._young or job_id in self._old

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def __bool__(self) -> bool:
        return bool(self._young or self._old)

    def ids(self) -> list[JobId]:
        """All ids, without order. For the simulator."""
        return sorted({*self._old, *self._young})

    def is_acked(self, job_id: JobId) -> bool:
        """Is it known that this job is over because it is acknowledged?"""
        return self._young.get(job_id, False) or self._old.get(job_id, False)

    def bury(self, job_id: JobId, *, is_acked: bool = True) -> None:
        """This job is over, wherever there may be copies of it."""
        self._young[job_id] = is_acked or self.is_acked(job_id)
        if len(self._young) >= self.generation:
            self._old, self._young = self._young, {}

    def forget_all(self) -> None:
        """Forget all ids."""
        self._old, self._young = {}, {}
