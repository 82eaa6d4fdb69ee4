"""Real nodes: processes of `disque-trio server`, one after the other, at one address.

A process is always ended by its id. Linux also ends it if our own process ends first.
"""

import ctypes
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Final

from disque_trio.sim.engines.tcp.addresses import NodeAddresses

_PR_SET_PDEATHSIG: Final = 1
PATIENCE_S: Final = 10.0
"""How long the kernel may take to end a process."""
TRACE: Final = "trace.jsonl"
_NODES_CONF: Final = "nodes.conf"


class NodeProcess:
    """The processes of one node."""

    def __init__(
        self,
        directory: Path,
        addresses: NodeAddresses,
        number: int,
        options: tuple[tuple[str, str], ...],
    ) -> None:
        self.directory = directory / f"n{number}"
        self.directory.mkdir(parents=True)
        where = {
            "port": str(addresses.port),
            "bind": addresses.own(number),
            "dir": str(self.directory),
            "trace-file": TRACE,
            "trace-file-max-bytes": "0",  # it is read while it grows
        }
        self._command = [sys.executable, "-m", "disque_trio", "server"]
        for name, value in (*options, *where.items()):
            self._command += [f"--{name}", *value.split()]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def trace(self) -> Path:
        """The trace file of all its lives."""
        return self.directory / TRACE

    @property
    def log(self) -> str:
        """The text of its log."""
        return (self.directory / "log").read_text(errors="replace")

    @property
    def has_ended_by_itself(self) -> bool:
        """Was it started, and did it end without `kill`?"""
        return self._process is not None and self._process.poll() is not None

    @property
    def is_running(self) -> bool:
        """Does its process run?"""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start a process with the present nodes.conf."""
        with open(self.directory / "log", "ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                # There are no threads here.
                preexec_fn=partial(die_with_parent, os.getpid()),  # noqa: PLW1509
            )

    def kill(self) -> None:
        """Send SIGKILL, and wait until the process has ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_S)
            self._process = None

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._signal(signal.SIGTERM)

    def freeze(self) -> None:
        """Send SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Send SIGCONT."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    # Its nodes.conf.

    def introduce(self, table: bytes) -> None:
        """Write its nodes.conf."""
        (self.directory / _NODES_CONF).write_bytes(table)

    def forget(self) -> None:
        """Remove its nodes.conf."""
        (self.directory / _NODES_CONF).unlink(missing_ok=True)


def die_with_parent(parent: int) -> None:
    """In a new process: make the kernel kill it when its parent ends, for whatever reason.

    It ends at once if the parent, whose pid is given, has already ended. Only on Linux.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
