"""The trace file of a live node. A write error ends the trace, not the node.

A full file is rotated (`rotation`). Each file has rows of one `trace-file-sample`, which its first
line contains (`sampling`).
"""

import os
import stat
from typing import Final, Protocol

from disque_trio.statemachine.base import Millis
from disque_trio.tracing import rotation
from disque_trio.tracing.jsonlines import RowError, line_of, rows_of
from disque_trio.tracing.rows import Row
from disque_trio.tracing.sampling import heading, sample_of

_BLOCK: Final = 1 << 16
_HOUR: Final[Millis] = 3_600_000
JOB_BYTES: Final = 2 << 10
"""The size of a job in a whole trace at a single node, as measured; with replicas it is larger."""
MUCH: Final = 1 << 30
"""A warning is logged if the trace grows by more bytes than this in an hour."""


class TraceFileError(Exception):
    """The file cannot be written."""


class Warn(Protocol):
    """Logs a warning for the operator."""

    def __call__(self, event: str, **facts: object) -> None:
        """Log an event; the facts are strings and numbers."""


class TraceFile:
    """Appends rows one batch at a time: one write into the page cache, without a sync.

    After a failed write nothing more is written, because a history with a gap proves nothing. If
    the file cannot be rotated, it continues to grow, so that no row is lost. Raises
    `TraceFileError` if the file cannot be opened.
    """

    def __init__(
        self, path: str, warn: Warn, *, sample: int = 1, max_bytes: int = 0, keep: int = 1
    ) -> None:
        self._path = os.path.abspath(path)  # `dir` may change
        self._warn = warn
        self._sample = sample
        self._max_bytes = max_bytes
        """0 is unlimited."""
        self._keep = keep
        self._hour: Millis = 0
        """When the present hour began."""
        self._grown = 0
        """The number of bytes written in this hour."""
        self._is_stuck = False
        """The last rotation failed."""
        try:
            self._file: int | None = self._open_for_sample()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise TraceFileError(f"cannot write the trace file '{path}': {reason}") from None

    def write(self, rows: list[Row]) -> None:
        """Append the rows to the file."""
        data = b"".join([line_of(row) for row in rows])
        if self._file is not None and self._max_bytes and self._size + len(data) > self._max_bytes:
            self._rotate(self._file)
        if self._file is None:
            return
        if not self._size and self._sample > 1:
            data = line_of(heading(rows[0], self._sample)) + data
        self._append(self._file, data)
        self._watch(len(data), rows[-1].mono)

    def close(self) -> None:
        """Stop writing."""
        if self._file is not None:
            file, self._file = self._file, None
            os.close(file)

    def _append(self, file: int, data: bytes) -> None:
        try:
            written = os.write(file, data)
        except OSError as error:
            self._fail(error.strerror or str(error))
        else:
            self._size += written
            if written < len(data):
                self._fail("the disk is full")

    def _fail(self, reason: str) -> None:
        self.close()
        self._warn("trace ended: its file cannot be written", error=reason)

    def _watch(self, count: int, now: Millis) -> None:
        if now >= self._hour + _HOUR:
            self._hour, self._grown = now, 0
        before, self._grown = self._grown, self._grown + count
        if before < MUCH <= self._grown:
            self._warn(
                "the trace has grown fast: see 'trace-file-sample'",
                bytes=self._grown, seconds=(now - self._hour) // 1000,
            )  # fmt: skip

    # Opening and rotating.

    def _open_for_sample(self) -> int:
        """Open the existing file, or a new one if its rows are of another sample."""
        file = _open(self._path)
        size = _size_of(file)
        if size and _sample_in(file) != self._sample:
            os.close(file)
            rotation.rotate(self._path)
            rotation.remove_old(self._path, self._keep)
            file, size = _open(self._path), 0
        self._size = size
        if not stat.S_ISREG(os.fstat(file).st_mode):
            self._max_bytes = 0
        return file

    def _rotate(self, full: int) -> None:
        if not self._size:
            return
        try:
            self._file = _successor(self._path)
        except OSError as error:
            self._complain(error)
            return
        os.close(full)
        self._size = 0
        self._is_stuck = False
        try:
            rotation.remove_old(self._path, self._keep)
        except OSError as error:
            self._complain(error)

    def _complain(self, error: OSError) -> None:
        """Log a warning once for all failed attempts."""
        if not self._is_stuck:
            self._is_stuck = True
            self._warn("the trace file cannot be rotated and grows on", error=str(error))


def _successor(path: str) -> int:
    """Rotate this file and return a new one; if that fails, this file keeps its name. Raise
    OSError."""
    name = rotation.rotate(path)
    try:
        return _open(path)
    except OSError:
        os.rename(name, path)
        raise


def _open(path: str) -> int:
    """Open the file, readable only by its owner, because it contains jobs."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        if stat.S_ISREG(os.fstat(file).st_mode):
            _drop_torn_line(file)
    except OSError:
        os.close(file)
        raise
    return file


def _drop_torn_line(file: int) -> None:
    """Remove an unfinished last line, which an earlier process may have left."""
    end = os.fstat(file).st_size
    while end:
        start = max(0, end - _BLOCK)
        found = os.pread(file, end - start, start).rfind(b"\n")
        end = start + found + 1
        if found >= 0:
            break
    os.ftruncate(file, end)


def _size_of(file: int) -> int:
    return os.fstat(file).st_size


def _sample_in(file: int) -> int:
    """Return the sample in the first line of a file. Raise ValueError."""
    line = os.pread(file, _BLOCK, 0).partition(b"\n")[0] + b"\n"
    try:
        first = next(rows_of([line]))
    except RowError:
        return 1
    return sample_of(first.kind, first.detail)
