"""Bodies on disk: the `spill-directory` (docs/memory.md).

Bodies are appended to segments, which are unlinked files: they disappear with the process, and two
nodes may share a directory. Nothing here is durable; durability is the journal's task. A body
refers to its segment. A segment's file is closed, which frees its space, with the last reference by
a job, a message or an unsent reply.

Writes reach the page cache, some megabytes at a time; reads are one `pread` each. A CRC-32C
precedes each body: a damaged body counts as unreadable, and is never delivered.
"""

import os
import struct
import tempfile
import weakref
from collections.abc import Sequence
from typing import Final

import google_crc32c

from disque_trio.ports import Log, Spill
from disque_trio.statemachine.base import Millis, Now, Spilled
from disque_trio.statemachine.machine import Machine

SEGMENT_BYTES: Final = 64 << 20
"""The maximum size of a segment, or 1/`PARTS` of all spilled bytes if that is more, so that there
are always few files."""
PARTS: Final = 32
QUIET: Final[Millis] = 10_000
_CHECKSUM: Final = struct.Struct("<I")


class SpillError(Exception):
    """The directory cannot be used."""


class Segment:
    """One file, `size` bytes long. It is closed with the last body that refers to it."""

    __slots__ = ("__weakref__", "fd", "size")

    def __init__(self, directory: str) -> None:
        with tempfile.TemporaryFile(dir=directory) as file:
            self.fd = os.dup(file.fileno())
        self.size = 0

    def __del__(self) -> None:
        if hasattr(self, "fd"):
            os.close(self.fd)

    def append(self, data: bytes) -> int:
        """Write at the end. Returns the offset. On OSError, `size` is unchanged."""
        start = self.size
        with memoryview(data) as view:
            done = 0
            while done < len(view):
                done += os.pwrite(self.fd, view[done:], start + done)
        self.size += len(data)
        return start


class OnDisk(Spilled):
    """A body in a segment."""

    __slots__ = ("_offset", "_segment")

    def __init__(self, segment: Segment, offset: int, length: int) -> None:
        self.length = length
        self._segment = segment
        self._offset = offset

    def __bytes__(self) -> bytes:
        data = os.pread(self._segment.fd, _CHECKSUM.size + self.length, self._offset)
        if len(data) != _CHECKSUM.size + self.length:
            raise OSError("the file is shorter than it was")
        body = data[_CHECKSUM.size :]
        if _check(body) != data[: _CHECKSUM.size]:
            raise OSError("its content has changed since it was written")
        return body


def _check(body: bytes) -> bytes:
    return _CHECKSUM.pack(google_crc32c.value(body))


class SpillFiles:
    """The segments of one node: the `Spill` on disk."""

    def __init__(self, directory: str) -> None:
        """Raises SpillError if files cannot be created in the directory."""
        self._directory = directory
        self._all: weakref.WeakSet[Segment] = weakref.WeakSet()
        try:
            self._current = self._new()
        except OSError as error:
            raise SpillError(
                f"spill-directory '{directory}' cannot be used: {error.strerror or error};"
                " set a directory in which the server may create files"
            ) from None

    def write(self, bodies: Sequence[bytes]) -> list[Spilled]:
        """Write bodies in order, and return their placeholders. On OSError, none of them is
        spilled."""
        if self._current.size >= max(SEGMENT_BYTES, self.file_bytes // PARTS):
            self._current = self._new()
        segment = self._current
        offset = segment.append(b"".join(part for body in bodies for part in (_check(body), body)))
        places: list[Spilled] = []
        for body in bodies:
            places.append(OnDisk(segment, offset, len(body)))
            offset += _CHECKSUM.size + len(body)
        return places

    @property
    def file_bytes(self) -> int:
        """The space used on disk, in bytes."""
        return sum(segment.size for segment in self._all)

    def _new(self) -> Segment:
        segment = Segment(self._directory)
        self._all.add(segment)
        return segment


class Spiller:
    """Spills bodies between batches, if the machine has too many in memory."""

    def __init__(self, machine: Machine, spill: Spill, log: Log | None = None) -> None:
        self._machine = machine
        self._memory = machine.state.memory
        self._spill = spill
        self._log = log
        self._warned = -QUIET

    def settle(self, now: Now) -> None:
        """Spill bodies if `Memory.held` exceeds `spill_above`."""
        if self._memory.held <= self._memory.spill_above:
            return
        jobs = self._machine.overflow()
        if not jobs:
            return
        try:
            bodies = self._spill.write([bytes(job.body or b"") for job in jobs])
        except OSError as error:
            self._machine.spilled(jobs, ())
            if self._log is not None and now.mono - self._warned >= QUIET:
                self._warned = now.mono
                reason = error.strerror or str(error)
                self._log.warning("cannot write bodies to disk: they stay in memory", error=reason)
        else:
            self._machine.spilled(jobs, bodies)
