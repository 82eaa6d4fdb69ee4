"""Counts the runs of each job in a file that all worker processes map into memory.

A handler knows the number of its job. A lost job has no run that ended, and one that ran twice has
two of them: both are exact, whatever a library says about its queues.
"""

import mmap
import struct
import time
from pathlib import Path
from typing import Final, Self

_STAMP: Final = struct.Struct("=q")
_MOST: Final = 255
"""Runs are counted in a byte."""


class Tally:
    """Of each job, by number: runs that began, runs that ended, when it began the last time."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self.jobs = len(self._map) // (2 + _STAMP.size)
        self._stamps = 2 * self.jobs

    @classmethod
    def create(cls, path: Path, jobs: int) -> Self:
        """A new file for so many jobs."""
        path.write_bytes(bytes(jobs * (2 + _STAMP.size)))
        return cls(path)

    def close(self) -> None:
        """Unmap it."""
        self._map.close()

    # For handlers.

    def begin(self, number: int) -> None:
        """A run of this job begins."""
        data = self._map
        data[number] = min(data[number] + 1, _MOST)
        _STAMP.pack_into(data, self._stamps + number * _STAMP.size, time.monotonic_ns())

    def end(self, number: int) -> None:
        """A run of this job has ended."""
        at = self.jobs + number
        self._map[at] = min(self._map[at] + 1, _MOST)

    # For who looks on.

    def runs(self) -> bytes:
        """How often each job has ended."""
        return self._map[self.jobs : 2 * self.jobs]

    def done(self) -> int:
        """Jobs that have ended at least once."""
        return self.jobs - self.lost()

    def lost(self) -> int:
        """Jobs of which no run has ended."""
        return self.runs().count(0)

    def twice(self) -> int:
        """Jobs of which more than one run has ended."""
        runs = self.runs()
        return self.jobs - runs.count(0) - runs.count(1)

    def begun_s(self) -> list[float]:
        """When each job began the last time, by the monotonic clock; 0 if it did not."""
        return [ns / 1e9 for (ns,) in _STAMP.iter_unpack(self._map[self._stamps :])]
