"""The trace file of a live node. Trouble with it ends the trace, not the node."""

import os
import stat
from collections.abc import Callable
from typing import Final

from disque_trio.tracing.jsonlines import line_of
from disque_trio.tracing.rows import Row

_BLOCK: Final = 1 << 16


class TraceFileError(Exception):
    """The file cannot be written to."""


class TraceFile:
    """Appends rows a batch at a time: one write into the page cache, without a sync.

    After the first failure nothing more is written, since a history with a gap proves nothing, and
    `tell` is called. Raises `TraceFileError` if the file cannot be opened.
    """

    def __init__(self, path: str, tell: Callable[[str], None]) -> None:
        self._tell = tell
        try:
            self._file: int | None = _open(path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise TraceFileError(f"cannot write the trace file '{path}': {reason}") from None

    def write(self, rows: list[Row]) -> None:
        """Add the rows to the file."""
        if self._file is None:
            return
        data = b"".join([line_of(row) for row in rows])
        try:
            written = os.write(self._file, data)
        except OSError as error:
            self._fail(error.strerror or str(error))
        else:
            if written < len(data):
                self._fail("the disk is full")

    def _fail(self, reason: str) -> None:
        self.close()
        self._tell(reason)

    def close(self) -> None:
        """Write no more."""
        if self._file is not None:
            file, self._file = self._file, None
            os.close(file)


def _open(path: str) -> int:
    """The file, readable by its owner only, since it has jobs in it."""
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
