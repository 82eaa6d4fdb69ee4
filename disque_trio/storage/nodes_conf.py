"""nodes.conf on disk: read at the start, replaced at every change, locked while the node runs.

The lock is the same as the original's, on the file itself, so that nodes of either kind exclude
each other. A new version is written beside the old one, locked, and renamed over it: a process that
opens the file always finds a complete and locked one.
"""

import contextlib
import fcntl
import os
import stat
import threading

from disque_trio.statemachine.cluster import HostName, Peer
from disque_trio.statemachine.limit import Setting
from disque_trio.statemachine.nodesfile import (
    NodesFileError,
    parse_hosts,
    parse_limits,
    parse_nodes,
)
from disque_trio.storage.disk_thread import OwnThread
from disque_trio.system import FILE_MODE, sync_directory, tighten


class NodesConfError(Exception):
    """The node cannot start with this file: the reason, and advice."""


class NodesConf:
    """The `NodesStore` on disk."""

    def __init__(self, path: str) -> None:
        # Absolute: CONFIG SET dir must not move the node away from its identity. A symbolic link is
        # preserved.
        self.path = os.path.realpath(path)
        self.thread = OwnThread()
        self.names: list[HostName] = []
        self.limits: list[tuple[bytes, Setting]] = []
        """The host names (`names`) and the limits of queues in the loaded file."""
        self._locked: int | None = _open_locked(self.path)
        """The descriptor of the locked file; None after `close`."""
        self._swapping = threading.Lock()

    def load(self) -> tuple[Peer, list[Peer]] | None:
        """This node and the others as last saved; None for a new node."""
        try:
            with open(self.path, "rb") as file:
                text = file.read()
            self.names, self.limits = parse_hosts(text), parse_limits(text)
            return parse_nodes(text) if text.strip() else None
        except OSError as error:
            raise NodesConfError(f"cannot read {self.path}: {error.strerror}") from None
        except NodesFileError as error:
            raise NodesConfError(
                f"{self.path}: {error}; repair the file, or move it away to start as a new node"
            ) from None

    def save(self, text: bytes) -> None:
        """Replace the file atomically and durably: a crash leaves the old version or the new one;
        after this has returned, the new one. Raises OSError."""
        new = f"{self.path}.new"
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _write_all(descriptor, text)
            os.fsync(descriptor)
            os.rename(new, self.path)
        except BaseException:
            os.close(descriptor)
            with contextlib.suppress(OSError):
                os.unlink(new)
            raise
        with self._swapping:
            old = descriptor
            if self._locked is not None:
                old, self._locked = self._locked, descriptor
        os.close(old)
        sync_directory(os.path.dirname(self.path))

    def close(self) -> None:
        """Release the lock."""
        with self._swapping:
            old, self._locked = self._locked, None
        if old is not None:
            os.close(old)


class NoNodesConf:
    """The `NodesStore` of a node that is never restarted."""

    def __init__(self) -> None:
        self.thread = OwnThread()
        self.names: list[HostName] = []
        self.limits: list[tuple[bytes, Setting]] = []

    def save(self, text: bytes) -> None:
        """Save nothing."""


def _open_locked(path: str) -> int:
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE)
        except OSError as error:
            raise NodesConfError(f"cannot open {path}: {error.strerror}") from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise NodesConfError(f"{path} is not a regular file")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            tighten(descriptor)
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except FileNotFoundError:
            pass
        except OSError as error:
            os.close(descriptor)
            raise NodesConfError(_refusal(path, error)) from None
        # The file was replaced between open and lock: open the new one.
        os.close(descriptor)


def _refusal(path: str, error: OSError) -> str:
    if isinstance(error, BlockingIOError):
        return (
            f"{path} is in use by another node; give each node a directory of its own with "
            "'dir', or a file of its own with 'cluster-config-file'"
        )
    return f"cannot lock {path}: {error.strerror}"


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
