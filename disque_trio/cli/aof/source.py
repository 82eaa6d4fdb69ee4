"""The file that a command is given: opened, locked if it is to change, read with progress."""

import contextlib
import fcntl
import gc
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

from rich.progress import wrap_file

from disque_trio.cli.aof import report
from disque_trio.statemachine.records import Record
from disque_trio.terminal.options import UsageError
from disque_trio.wire.journal import Reader

_CHUNK = 1 << 20
_LONG = 16 << 20
"""Files of this many bytes take long enough for a progress bar."""


class Source:
    """One file, open for reading as often as wanted, up to where it ended when it was opened."""

    def __init__(self, path: str, *, is_exclusive: bool = False) -> None:
        self.path = path
        try:
            self._file = open(path, "rb")  # noqa: SIM115
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from None
        self.status = os.fstat(self._file.fileno())
        if not stat.S_ISREG(self.status.st_mode):
            self.close()
            raise UsageError(f"{path} is not a regular file")
        self.is_held = not self._lock()
        """A running node holds it."""
        if self.is_held and is_exclusive:
            self.close()
            raise UsageError(f"{path}: a running node uses it; stop the node first")
        if not is_exclusive:
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    @property
    def size(self) -> int:
        """Its length when it was opened: a node that holds it may have appended since."""
        return self.status.st_size

    @property
    def descriptor(self) -> int:
        """The open file."""
        return self._file.fileno()

    def read(self, reader: Reader, doing: str) -> Iterator[list[Record]]:
        """The records, in batches. `doing` stands beside the progress bar, such as "checking"."""
        self._file.seek(0)
        left = self.size
        with contextlib.ExitStack() as stack:
            if gc.isenabled():
                # Records form no cycles, and searching for cycles doubles the time.
                gc.disable()
                stack.callback(gc.enable)
            file: BinaryIO = self._file
            if left >= _LONG:
                bar = wrap_file(
                    self._file, left, description=doing, console=report.errors(), transient=True
                )
                file = stack.enter_context(bar)
            while left and (chunk := file.read(min(_CHUNK, left))):
                left -= len(chunk)
                yield reader.feed(chunk)

    def close(self) -> None:
        """Close the file, which releases the lock."""
        self._file.close()

    def _lock(self) -> bool:
        """Lock the file; False if a node has it: nodes hold an exclusive lock while they run."""
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
