"""A file descriptor that several threads use: it is closed when the last of them has finished with
it.

Otherwise, a system call that has the number but has not begun would operate on the next file with
that number.
"""

import errno
import os
import threading

import attrs


@attrs.define(eq=False)
class Descriptor:
    """A context manager that returns the number, which is valid until the exit. Raises OSError
    (EBADF) after `close`."""

    _number: int
    _users: int = 0
    _is_closed: bool = False
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def __enter__(self) -> int:
        with self._lock:
            if self._is_closed:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            self._users += 1
        return self._number

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            is_last = self._is_closed and not self._users
        if is_last:
            os.close(self._number)

    def close(self) -> None:
        """Prevent further entries, and close the descriptor when no thread uses it."""
        with self._lock:
            is_last = not (self._is_closed or self._users)
            self._is_closed = True
        if is_last:
            os.close(self._number)
