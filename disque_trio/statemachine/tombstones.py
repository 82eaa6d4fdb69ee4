"""Tombstones: ids of ended jobs, so that a late copy does not add one of them again.

A job that was collected or deleted everywhere leaves no record. A REPLJOB or YOURJOBS that arrives
later would add it as a new job, which would be delivered. So a node keeps the ids of the latest
ended jobs, and answers nodes that still have a copy with SETACK.
"""

import attrs

from disque_trio.statemachine.base import JobId
from disque_trio.statemachine.knobs import DEFAULTS


@attrs.define(eq=False)
class Tombstones:
    """The ids of the latest ended jobs: at least `generation`, once there were as many.

    An id is never reused, so ids are dropped only to bound the memory.
    """

    generation: int = DEFAULTS.tombstones
    """How many ids a generation has. At most two generations are kept: about ten megabytes."""
    _young: dict[JobId, bool] = attrs.Factory(dict)
    """The value is true if the job was acknowledged; otherwise its ADDJOB may have failed."""
    _old: dict[JobId, bool] = attrs.Factory(dict)

    def __contains__(self, job_id: JobId) -> bool:
        return job_id in self._young or job_id in self._old

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def __bool__(self) -> bool:
        return bool(self._young or self._old)

    def ids(self) -> list[JobId]:
        """All ids, sorted. For the simulator."""
        return sorted({*self._old, *self._young})

    def is_acked(self, job_id: JobId) -> bool:
        """Has this job certainly ended by an acknowledgement?"""
        return self._young.get(job_id, False) or self._old.get(job_id, False)

    def bury(self, job_id: JobId, *, is_acked: bool = True) -> None:
        """Add the id of a job that has ended everywhere."""
        self._young[job_id] = is_acked or self.is_acked(job_id)
        if len(self._young) >= self.generation:
            self._old, self._young = self._young, {}

    def forget_all(self) -> None:
        """Drop all ids."""
        self._old, self._young = {}, {}
