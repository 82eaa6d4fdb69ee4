"""A new file, written under a temporary name and renamed once it is on the disk."""

import contextlib
import os
import shutil
from types import TracebackType

from disque_trio.system import sync_directory
from disque_trio.terminal.options import UsageError

_BUFFER = 1 << 20


class Target:
    """`with Target(path) as target`: the file is complete on success, and absent on failure. Of a
    symbolic link it is what the link points to."""

    def __init__(self, path: str, like: os.stat_result) -> None:
        self.path = path
        self.size = 0
        self._place = os.path.realpath(path)
        self._new = f"{self._place}.new"
        self._like = like
        try:
            self._file = open(self._new, "wb", buffering=_BUFFER)  # noqa: SIM115
        except OSError as error:
            raise UsageError(f"cannot write {self._new}: {error.strerror}") from None

    def write(self, data: bytes) -> None:
        """Append to it."""
        self.size += len(data)
        try:
            self._file.write(data)
        except OSError as error:
            raise self._refused(error) from None

    def __enter__(self) -> "Target":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._finish()
        except OSError as wrong:
            raise self._refused(wrong) from None
        finally:
            # After a full disk, closing tries to write the rest once more, and fails.
            with contextlib.suppress(OSError):
                self._file.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._new)

    def _refused(self, error: OSError) -> UsageError:
        return UsageError(f"cannot write {self.path}: {error.strerror}; nothing was changed")

    def _finish(self) -> None:
        self._file.flush()
        descriptor = self._file.fileno()
        os.fchmod(descriptor, self._like.st_mode & 0o777)
        # A file repaired by root must still belong to the node's user.
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, self._like.st_uid, self._like.st_gid)
        os.fsync(descriptor)
        os.rename(self._new, self._place)
        sync_directory(os.path.dirname(self._place))


def keep(path: str) -> str:
    """Keep a file that is about to be replaced under a second name, which is returned. Of a
    symbolic link it is what the link points to."""
    path = os.path.realpath(path)
    number = 0
    while True:
        name = f"{path}.before-repair" + (f".{number}" if number else "")
        try:
            os.link(path, name)
        except FileExistsError:
            number += 1
        except OSError:
            # A file system without links, such as FAT.
            shutil.copy2(path, name)
            return name
        else:
            return name
