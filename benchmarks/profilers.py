"""py-spy on the nodes of a subject: samples which function runs, many times a second.

Only threads that hold the interpreter's lock are sampled. Others wait, or are in the kernel: a node
that has been woken and waits for a core would otherwise seem to run where it sleeps.
"""

import collections
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import attrs

from benchmarks.tool import BenchmarkError
from tests.cluster.processes import postponed_interrupts

TOOL: Final = "py-spy"
HOW_TO_INSTALL: Final = (
    f"{TOOL} is not there: pip install 'disque-trio[profile]', or 'make profile'"
)
_A_SECOND: Final = 250
_READY: Final = "Sampling process"
_PATIENCE_S: Final = 30
_FRAME: Final = re.compile(r"(?P<name>.+) \((?P<file>[^()]+):\d+\)")
_TICKS: Final = slice(11, 13)
"""The fields of /proc/PID/stat, after the name, with the user and system time of a process
(proc(5))."""


@attrs.frozen
class Frame:
    """A function."""

    name: str
    file: str
    """In the package such as ``statemachine/timers.py``; elsewhere as py-spy shows it."""


@attrs.define(eq=False)
class Profilers:
    """A profiler for each process, from `begin` to `end`."""

    counts: collections.Counter[Frame] = attrs.Factory(collections.Counter)
    """How many samples have the function on top of the stack."""
    user: int = 0
    kernel: int = 0
    """Ticks of the processes in each mode."""
    _directory: Path = attrs.field(factory=lambda: Path(tempfile.mkdtemp(prefix="profilers-")))
    _running: "list[subprocess.Popen[str]]" = attrs.Factory(list)
    _pids: Sequence[int] = ()
    _before: tuple[int, int] = (0, 0)

    def begin(self, pids: Sequence[int]) -> None:
        """Start sampling these processes."""
        self._pids = pids
        for pid in pids:
            with postponed_interrupts():
                self._running.append(self._start(pid))
        for profiler in self._running:
            _await(profiler)
        self._before = _ticks(pids)

    def _start(self, pid: int) -> "subprocess.Popen[str]":
        what = ("record", "--gil", "--function", "--format", "raw", "--rate", str(_A_SECOND))
        where = ("--output", str(self._file(pid)), "--pid", str(pid))
        return subprocess.Popen(
            [path(), *what, *where], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def _file(self, pid: int) -> Path:
        return self._directory / str(pid)

    def end(self) -> None:
        """Stop sampling, and count."""
        user, kernel = _ticks(self._pids)
        self.user += user - self._before[0]
        self.kernel += kernel - self._before[1]
        for profiler in self._running:
            profiler.send_signal(signal.SIGINT)
        for pid, profiler in zip(self._pids, self._running, strict=True):
            said, _ = profiler.communicate(timeout=_PATIENCE_S)
            if not self._file(pid).exists():
                raise BenchmarkError(f"{TOOL} has seen nothing: {said.strip()[-300:]}")
            self.counts += tally(self._file(pid).read_text("utf-8").splitlines())
        self._running.clear()

    def close(self) -> None:
        """End the profilers and remove their files, in any case."""
        for profiler in self._running:
            profiler.kill()
            profiler.communicate()
        shutil.rmtree(self._directory)


def path() -> str:
    """The path of py-spy: beside this Python, or on PATH."""
    beside = Path(sys.executable).with_name(TOOL)
    found = str(beside) if beside.exists() else shutil.which(TOOL)
    if found is None:
        raise BenchmarkError(HOW_TO_INSTALL)
    return found


def _await(profiler: "subprocess.Popen[str]") -> None:
    """Wait until it samples."""
    assert profiler.stdout is not None, "it was started with a pipe"
    said = []
    for line in profiler.stdout:
        said.append(line)
        if _READY in line:
            return
    raise BenchmarkError(f"{TOOL} may not look at a node: {''.join(said).strip()[-300:]}")


def _ticks(pids: Iterable[int]) -> tuple[int, int]:
    user = kernel = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        in_user, in_kernel = map(int, fields[_TICKS])
        user += in_user
        kernel += in_kernel
    return user, kernel


def tally(stacks: Iterable[str]) -> collections.Counter[Frame]:
    """Count samples by the function on top. Each line has a stack, callers first, and a number."""
    counts: collections.Counter[Frame] = collections.Counter()
    for line in stacks:
        stack, _, number = line.rpartition(" ")
        found = _FRAME.fullmatch(stack.rpartition(";")[2])
        if found:
            _, _, file = found["file"].rpartition("disque_trio/")
            counts[Frame(found["name"], file)] += int(number)
    return counts
