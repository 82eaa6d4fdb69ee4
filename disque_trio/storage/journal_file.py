"""The journal on disk: a locked file, to which records are appended, and which a rewrite replaces.

The lock is on the file itself, and a new version is locked before it is renamed over the old one:
a process that opens the file always finds a complete and locked one.
"""

import contextlib
import errno
import fcntl
import os

from disque_trio import system
from disque_trio.ports import JournalError, JournalFile
from disque_trio.storage.descriptor import Descriptor
from disque_trio.storage.disk_thread import OwnThread


class DiskFile:
    """A `JournalFile` on disk."""

    def __init__(self, path: str, flags: int) -> None:
        self.path = path
        number = os.open(path, flags | os.O_CLOEXEC, system.FILE_MODE)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(number)
            raise
        system.tighten(number)
        self._descriptor = Descriptor(number)
        self.size = self._end = os.fstat(number).st_size

    def is_current(self) -> bool:
        """Is this the file at its path? Another file may have been renamed over it between open and
        lock."""
        try:
            with self._descriptor as descriptor:
                return os.path.samestat(os.fstat(descriptor), os.stat(self.path))
        except FileNotFoundError:
            return False

    def read(self, offset: int, count: int) -> bytes:
        """Up to `count` bytes at `offset`; empty at the end."""
        with self._descriptor as descriptor:
            return os.pread(descriptor, count, offset)

    def append(self, data: bytes) -> None:
        """Write at the end; a partial write is truncated, or overwritten later."""
        at, rest = self.size, memoryview(data)
        end = max(self._end, at)
        with self._descriptor as descriptor:
            try:
                while rest:
                    written = os.pwrite(descriptor, rest, at)
                    at, rest = at + written, rest[written:]
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, end)
                raise
        self.size = at
        self._end = max(at, end)

    def sync(self) -> None:
        """Sync the file's data."""
        with self._descriptor as descriptor:
            system.sync_data(descriptor)

    def rewind(self, size: int) -> None:
        """Set the offset of the next write. The caller overwrites the same bytes, so a crash
        meanwhile loses nothing."""
        self.size = size

    def cut(self, size: int) -> None:
        """Truncate the file to `size` bytes."""
        with self._descriptor as descriptor:
            os.ftruncate(descriptor, size)
        self.size = self._end = size

    def loss(self) -> str:
        """What another process has done to the file: `removed`, `replaced` or `truncated`; empty if
        nothing."""
        size = self.size
        with self._descriptor as descriptor:
            mine = os.fstat(descriptor)
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return "removed"
        if not os.path.samestat(mine, found):
            return "replaced"
        return "truncated" if mine.st_size < size else ""

    def close(self) -> None:
        """Close the file, which releases the lock, once no thread runs another method."""
        self._descriptor.close()


class JournalDisk:
    """The `JournalStore` on disk."""

    def __init__(self, path: str) -> None:
        # Absolute: CONFIG SET dir must not move the node away from its jobs. A symbolic link is
        # preserved: a rewrite replaces its target.
        self.path = os.path.realpath(path)
        self.name = self.path
        """Absolute, because errors are read outside the node's directory."""
        self._new_path = f"{self.path}.new"
        self.thread = OwnThread()

    def exists(self) -> bool:
        """Is there a journal?"""
        return os.path.exists(self.path)

    def open(self) -> DiskFile:
        """Open the journal, created if it does not exist. Raises JournalError.

        Removes the file of an incomplete rewrite, which may be as large.
        """
        try:
            while True:
                is_new = not self.exists()
                file = DiskFile(self.path, os.O_RDWR | os.O_CREAT)
                if file.is_current():
                    self._remove_new()
                    if is_new:
                        self.settle()
                    return file
                file.close()
        except BlockingIOError:
            raise JournalError(
                f"{self.path} is in use by another node; give each node a directory of its own "
                "with 'dir', or a file of its own with 'appendfilename'"
            ) from None
        except OSError as error:
            raise JournalError(f"cannot open {self.path}: {error.strerror}") from None

    def begin(self) -> DiskFile:
        """Create an empty, locked file beside the journal. Removes that of an abandoned rewrite."""
        self._remove_new()
        return DiskFile(self._new_path, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def replace(self, new: JournalFile) -> None:
        """Rename the new file over the journal."""
        assert isinstance(new, DiskFile)
        if not new.is_current():
            # An abandoned rewrite has continued, and its file has this name.
            raise OSError(errno.ESTALE, "another file has replaced the new journal")
        os.rename(self._new_path, self.path)
        new.path = self.path

    def set_aside(self) -> None:
        """Rename the foreign file in the journal's place to `.found`. Raises JournalError if a node
        has it open."""
        try:
            found = DiskFile(self.path, os.O_RDWR)
        except BlockingIOError:
            raise JournalError(f"{self.path} is in use by another node") from None
        except FileNotFoundError:
            return
        os.rename(self.path, f"{self.path}.found")
        found.close()

    def settle(self) -> None:
        """Sync the directory."""
        system.sync_directory(os.path.dirname(self.path))

    def discard(self, new: JournalFile) -> None:
        """Remove and close a new file."""
        with contextlib.suppress(OSError):
            self._remove_new()
        new.close()

    def _remove_new(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._new_path)

    def salt(self) -> int:
        """32 random bits."""
        return int.from_bytes(os.urandom(4), "little")

    def boot(self) -> str:
        """The boot ID of Linux."""
        return system.boot_id()
