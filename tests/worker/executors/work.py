"""Functions that processes of a worker import."""

import os
import signal
import sys
import threading
import time
from functools import wraps
from pathlib import Path
from typing import Any

from disque_trio.worker import App


def add(left: int, right: int = 0) -> int:
    """A sum."""
    return left + right


def pid() -> int:
    """Which process it is."""
    return os.getpid()


def fail() -> None:
    """Raises an error that cannot be made from its arguments."""
    raise OddError(1, 2)


def fail_badly() -> None:
    """Raises an error that cannot be pickled."""

    class LocalError(Exception):
        pass

    raise LocalError("nobody finds me")


def return_badly() -> Any:
    """Returns what cannot be pickled."""
    return lambda: None


def die() -> None:
    """Is killed."""
    os.kill(os.getpid(), signal.SIGKILL)


def leave() -> None:
    """Ends its process at once."""
    os._exit(5)


def fail_with(error: BaseException) -> None:
    """Raises this."""
    raise error


def fork_and_return() -> int:
    """Forks, and goes on as two processes."""
    os.fork()
    return os.getpid()


def fork_and_leave() -> int:
    """Forks; the new process ends by `sys.exit`. Its status."""
    pid = os.fork()
    if not pid:
        sys.exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def fork_and_fail() -> int:
    """Forks; the new process raises an error. Its status."""
    pid = os.fork()
    if not pid:
        raise ValueError("in a fork")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class OwnBaseError(BaseException):
    """Not below Exception."""


class Unreadable:
    """Ends the process that reads it, it thinks."""

    def __getstate__(self) -> dict[str, int]:
        return {"n": 1}

    def __setstate__(self, _: object) -> None:
        raise SystemExit(3)


def linger(path: str) -> None:
    """Goes on for long, and tells when it has begun and when it is ended."""
    try:
        Path(path).write_text("begun")  # inside: its reader ends this process at once
        time.sleep(600)
    finally:
        Path(path).write_text("ended")


def defy(path: str) -> None:
    """Does not end at SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(path).write_text("begun")
    time.sleep(600)


def die_and_leave_behind(path: str) -> None:
    """Is killed, and leaves a process with all its open files. Its number is in the file."""
    _leave_behind(path)
    die()


def leave_behind_and_die_idle(path: str) -> None:
    """Returns; its process is killed a moment later, and leaves another one behind."""
    _leave_behind(path)
    threading.Thread(target=_die_soon).start()


def _leave_behind(path: str) -> None:
    pid = os.fork()
    if not pid:
        time.sleep(600)
    Path(path).write_text(str(pid))


def _die_soon() -> None:
    time.sleep(0.05)
    die()


class OddError(Exception):
    """Has other arguments than it keeps."""

    def __init__(self, left: int, right: int) -> None:
        super().__init__(f"{left} and {right}")
        self.right = right


def _doubled(fn: Any) -> Any:
    @wraps(fn)
    def wrapper(*args: Any) -> Any:
        return 2 * fn(*args)

    return wrapper


def plain_seven() -> int:
    """Seven."""
    return 7


seven = _doubled(plain_seven)
seven.__wrapped__.__qualname__ = "seven"


@App().task(name="eight")
@_doubled
def eight() -> int:
    """Eight, doubled."""
    return 8
