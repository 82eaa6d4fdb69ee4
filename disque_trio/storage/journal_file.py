"""The journal on disk: a locked file, appended to, and replaced as a whole by a rewrite.

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
        """Is it the file at its path? It may have been renamed over between open and lock."""
        try:
            with self._descriptor as descriptor:
                return os.path.samestat(os.fstat(descriptor), os.stat(self.path))
        except FileNotFoundError:
            return False

    def read(self, offset: int, count: int) -> bytes:
        """Up to so many bytes; none at the end."""
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
        """Return once everything is on the disk."""
        with self._descriptor as descriptor:
            system.sync_data(descriptor)

    def rewind(self, size: int) -> None:
        """Overwrite from here on with the same bytes: a crash meanwhile loses nothing."""
        self.size = size

    def cut(self, size: int) -> None:
        """Keep so many bytes from the start."""
        with self._descriptor as descriptor:
            os.ftruncate(descriptor, size)
        self.size = self._end = size

    def loss(self) -> str:
        """What another process has done to it: `removed`, `replaced`, `truncated`; or empty."""
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
        """Close it, which releases the lock, once no thread is in one of the other methods."""
        self._descriptor.close()


class JournalDisk:
    """The `JournalStore` on disk."""

    def __init__(self, path: str) -> None:
        # Absolute: CONFIG SET dir must not move the node away from its jobs. A symbolic link stays
        # one: a rewrite replaces what it points to.
        self.path = os.path.realpath(path)
        self.name = self.path
        """Absolute, since errors are read far from the node's directory."""
        self._new_path = f"{self.path}.new"
        self.thread = OwnThread()

    def exists(self) -> bool:
        """Is there a journal?"""
        return os.path.exists(self.path)

    def open(self) -> DiskFile:
        """The journal, created if it does not exist; or a `JournalError`.

        Removes the file of a rewrite that never ended, which may be as large.
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
        """An empty, locked file beside it; one that was given up is removed."""
        self._remove_new()
        return DiskFile(self._new_path, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def replace(self, new: JournalFile) -> None:
        """Rename it over the journal."""
        assert isinstance(new, DiskFile)
        if not new.is_current():
            # A rewrite that was given up has gone on since, and its file has this name.
            raise OSError(errno.ESTALE, "another file has taken the place of the new journal")
        os.rename(self._new_path, self.path)
        new.path = self.path

    def set_aside(self) -> None:
        """Rename the file that has taken its place to `.found`, unless a node has it open."""
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
        """Remove it."""
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
        """What Linux draws as it starts."""
        return system.boot_id()
