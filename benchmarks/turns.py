"""A node that measures its turns: `python -m benchmarks.turns FILE server …`.

A turn lasts from the end of one wait for I/O to the beginning of the next; what arrives meanwhile
waits. At SIGUSR1 the turns since the signal before, in milliseconds, are in FILE, a line each.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, Final

import attrs
import trio
import trio.abc

from disque_trio.__main__ import main
from tests.cluster.processes import Server

_WRITTEN_S: Final = 10.0
_run: Final = trio.run


@attrs.define(eq=False)
class Turns(trio.abc.Instrument):
    """Notes how long each turn lasts."""

    file: Path
    _began: float = 0.0
    _ms: list[float] = attrs.Factory(list)

    def after_io_wait(self, timeout: float) -> None:  # noqa: ARG002 - Trio's own signature
        """A turn begins."""
        self._began = time.perf_counter()

    def before_io_wait(self, timeout: float) -> None:  # noqa: ARG002
        """It ends."""
        self._ms.append((time.perf_counter() - self._began) * 1000)

    def write(self, *_signal: object) -> None:
        """Whole or not at all, so that a reader need not guess."""
        text, self._ms = "\n".join(f"{ms:.3f}" for ms in self._ms), []
        part = self.file.with_suffix(".part")
        part.write_text(text)
        part.replace(self.file)


def read(server: Server, file: Path) -> list[float]:
    """The turns of a node since they were read last, in milliseconds."""
    file.unlink(missing_ok=True)
    os.kill(server.pid, signal.SIGUSR1)
    deadline = time.monotonic() + _WRITTEN_S
    while not file.exists():
        assert time.monotonic() < deadline, "the node has not written its turns"
        time.sleep(0.01)
    return [float(line) for line in file.read_text().splitlines()]


def _measured(turns: Turns) -> None:
    def run(*args: Any, instruments: Any = (), **options: Any) -> Any:
        return _run(*args, instruments=[*instruments, turns], **options)

    trio.run = run  # type: ignore[assignment]
    signal.signal(signal.SIGUSR1, turns.write)


if __name__ == "__main__":
    _measured(Turns(Path(sys.argv[1])))
    sys.argv[:2] = ["disque-trio"]
    sys.exit(main())
