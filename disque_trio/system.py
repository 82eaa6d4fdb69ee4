"""Differences between operating systems. Where only Linux has a function there is a fallback;
tests, which run on Linux, hide the function to test it.
"""

import contextlib
import errno
import fcntl
import os
import resource
import socket
import sys
from typing import Final

import attrs

_SYNC_WHOLE: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)
"""macOS: fsync(2) leaves the data in the drive's cache, this does not."""
_CANNOT: Final = (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY)
"""Errors of file systems that do not support it."""
_PAGE: Final = resource.getpagesize()
_MAX_KEEPALIVE_S: Final = 32_767
"""The longest that Linux accepts."""
_IDLE: Final[int | None] = getattr(socket, "TCP_KEEPIDLE", getattr(socket, "TCP_KEEPALIVE", None))
"""macOS has the second name."""
_INTERVAL: Final[int | None] = getattr(socket, "TCP_KEEPINTVL", None)
_COUNT: Final[int | None] = getattr(socket, "TCP_KEEPCNT", None)
NOTSENT_LOWAT: Final = 0x201 if sys.platform == "darwin" else 25
"""socket.TCP_NOTSENT_LOWAT, which Python has from 3.12 on."""


# Disks.

FILE_MODE: Final = 0o640
"""Of the files that a node makes: they have bodies of jobs and names of queues in them."""


def private(path: str, flags: int) -> int:
    """For `open`: files that this makes have `FILE_MODE`."""
    return os.open(path, flags, FILE_MODE)


def tighten(descriptor: int) -> None:
    """Take the rights beyond `FILE_MODE` from a file that exists, where it is ours."""
    mode = os.fstat(descriptor).st_mode & 0o777
    if mode & ~FILE_MODE:
        with contextlib.suppress(OSError):
            os.fchmod(descriptor, mode & FILE_MODE)


def sync_data(descriptor: int) -> None:
    """Return once a file's data is on the disk. Raises OSError."""
    if _SYNC_WHOLE is not None:
        try:
            fcntl.fcntl(descriptor, _SYNC_WHOLE)
        except OSError as error:
            if error.errno not in _CANNOT:
                raise
        else:
            return
    getattr(os, "fdatasync", os.fsync)(descriptor)


def sync_directory(path: str) -> None:
    """Make the creation, renaming or removal of files in it durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Memory.


def peak_rss_bytes() -> int:
    """The largest resident size of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def rss_bytes(statm: str = "/proc/self/statm") -> int:
    """The resident size of this process; without /proc, the largest one so far."""
    return present_rss_bytes(statm) or peak_rss_bytes()


def present_rss_bytes(statm: str = "/proc/self/statm") -> int:
    """The resident size of this process; 0 without /proc."""
    try:
        with open(statm, "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


@attrs.frozen
class MemoryLimit:
    """The least memory that something allows to this process, and what does."""

    size: int
    source: str
    """`machine`, `container` or `ulimit`."""


def memory_limit(root: str = "/") -> MemoryLimit | None:
    """The lowest limit there is: of the machine, of the container (cgroup version 1 or 2), or of
    `ulimit -v` and `-d`. None where nothing is known of any."""
    limits = [MemoryLimit(size, "container") for size in _limits_of_cgroups(root)]
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft, _ = resource.getrlimit(kind)
        if 0 < soft < sys.maxsize:
            limits.append(MemoryLimit(soft, "ulimit"))
    with contextlib.suppress(ValueError, OSError):
        limits.append(MemoryLimit(os.sysconf("SC_PHYS_PAGES") * _PAGE, "machine"))
    return min(limits, key=lambda limit: limit.size, default=None)


def _limits_of_cgroups(root: str) -> list[int]:
    """Of the group of this process, and of all around it."""
    found: list[int] = []
    for line in _read(os.path.join(root, "proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            top, name = os.path.join(root, "sys/fs/cgroup"), "memory.max"
        elif "memory" in controllers.split(","):
            top, name = os.path.join(root, "sys/fs/cgroup/memory"), "memory.limit_in_bytes"
        else:
            continue
        # In a container the path may be that of the host, and only the top be there.
        groups = [part for part in path.split("/") if part]
        for depth in range(len(groups) + 1):
            text = _read(os.path.join(top, *groups[:depth], name)).strip()
            if text.isdigit():
                found.append(int(text))
    return found


def boot_id(path: str = "/proc/sys/kernel/random/boot_id") -> str:
    """What Linux draws as it starts; empty where there is none."""
    return _read(path).strip()


def _read(path: str) -> str:
    """The text of a file that need not exist."""
    try:
        with open(path, "rb") as file:
            return file.read().decode("latin-1")
    except OSError:
        return ""


# Sockets.


def keep_alive(sock: socket.socket, seconds: int) -> None:
    """Let the kernel probe a silent peer after `seconds`, and give it up after twice as long.

    0 is never. Where the system does not allow a choice, its own times apply. Raises OSError.
    """
    if not seconds:
        return
    seconds = min(seconds, _MAX_KEEPALIVE_S)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((_IDLE, seconds), (_INTERVAL, max(1, seconds // 3)), (_COUNT, 3)):
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def non_blocking(family: int, kind: int = socket.SOCK_STREAM, protocol: int = 0) -> socket.socket:
    """A socket that never waits. Raises OSError."""
    sock = socket.socket(family, kind, protocol)
    sock.setblocking(False)
    return sock


def shares_ports_evenly() -> bool:
    """Does the kernel spread the connections to a port over all sockets that share it?

    With SO_REUSEPORT Linux does; on macOS and the BSDs the last one gets all.
    """
    return sys.platform == "linux"


def unwritable(file: str) -> str:
    """Why a file cannot be written or created; empty if it can."""
    directory = os.path.dirname(file) or "."
    if os.path.isdir(file):
        return "it is a directory"
    if os.path.exists(file):
        return "" if os.access(file, os.W_OK) else "this user may not write to it"
    if not os.path.isdir(directory):
        return f"the directory {directory} does not exist"
    if not os.access(directory, os.W_OK | os.X_OK):
        return f"this user may not write to {directory}"
    return ""
