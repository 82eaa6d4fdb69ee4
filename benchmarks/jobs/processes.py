"""Processes of workers and producers: started in a library's environment, ended by their ids."""

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from benchmarks import meters
from benchmarks.contenders import ROOT
from benchmarks.jobs import handlers
from benchmarks.jobs.libraries import Library, Shape
from benchmarks.tool import BenchmarkError
from tests.cluster.processes import postponed_interrupts

_REPLY_S: Final = 60.0
_END_S: Final = 10.0


@attrs.frozen
class Surroundings:
    """What the processes of a sample share."""

    library: Library
    port: int
    """The broker's."""
    directory: Path
    lease_s: int | None = None

    @property
    def tally_path(self) -> Path:
        """The file in which runs are counted."""
        return self.directory / "tally"

    def start(self, words: Sequence[str], log: Path, *, is_asked: bool) -> subprocess.Popen[bytes]:
        """A process of the library."""
        pipe = subprocess.PIPE if is_asked else None
        with log.open("ab") as errors, postponed_interrupts():
            return subprocess.Popen(
                [str(self.library.python), "-m", self.library.module, *words],
                stdin=pipe or subprocess.DEVNULL,
                stdout=pipe or errors,
                stderr=errors,
                cwd=self.directory,
                env=self._environment(),
            )

    def _environment(self) -> dict[str, str]:
        return {
            **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
            "PYTHONPATH": str(ROOT),
            "PYTHONSAFEPATH": "1",
            handlers.URL: self.library.url(self.port),
            handlers.TALLY: str(self.tally_path),
            handlers.LEASE: "" if self.lease_s is None else str(self.lease_s),
        }


@contextlib.contextmanager
def working(around: Surroundings, shape: Shape) -> Iterator["Worker"]:
    """A worker, which is ended in any case."""
    worker = Worker(around, shape)
    try:
        yield worker
    finally:
        worker.kill()


class Worker:
    """A worker with all its processes."""

    def __init__(self, around: Surroundings, shape: Shape) -> None:
        self._around = around
        self._words = ["worker", "--kind", shape.kind, "--concurrency", str(shape.concurrency)]
        self._log = around.directory / "worker.log"
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return self._around.start(self._words, self._log, is_asked=False)

    def cpu_s(self) -> float:
        """CPU seconds of its processes, ended ones included."""
        return sum(map(_cpu_s, meters.family(self._process.pid)))

    def has_ended(self) -> bool:
        """Has it ended by itself?"""
        return self._process.poll() is not None

    def restart(self) -> None:
        """Start one that has ended, as a supervisor does."""
        self._process = self._start()

    def kill(self) -> None:
        """kill -9 to all its processes, at once."""
        _kill(self._process)

    def log(self) -> str:
        """The end of what it wrote."""
        return self._log.read_text("utf-8", "replace")[-1500:]


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process that we have started, and its descendants."""
    if process.poll() is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGSTOP)  # it shall start no more of them meanwhile
    for pid in meters.family(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait(_END_S)


def _cpu_s(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:
        return 0.0  # it has ended since, and its parent knows what it used
    return stat_ticks(text) / os.sysconf("SC_CLK_TCK")


def stat_ticks(text: str) -> int:
    """Ticks of a process and of its ended children, by the text of its `stat`."""
    _, _, fields = text.rpartition(")")
    return sum(map(int, fields.split()[11:15]))


@contextlib.contextmanager
def producing(around: Surroundings) -> Iterator["Producer"]:
    """A producer, which is ended in any case."""
    log = around.directory / "producer.log"
    process = around.start(["produce"], log, is_asked=True)
    try:
        producer = Producer(process, log)
        producer.answer()
        yield producer
    finally:
        _kill(process)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


@attrs.frozen
class Producer:
    """A process that adds jobs as it is told (`peers.producing`)."""

    _process: subprocess.Popen[bytes]
    _log: Path

    def add(self, first: int, count: int, pause_s: float = 0, payload: int = 0) -> dict[str, float]:
        """Add jobs as quickly as the library can. Returns `seconds` and `cpu`."""
        order = {"first": first, "count": count, "pause": pause_s, "payload": payload}
        return self._ask(order)

    def add_one_by_one(self, first: int, count: int, gap_s: float) -> list[tuple[float, float]]:
        """When each call began, and how long it took."""
        order = {"first": first, "count": count, "pause": 0, "payload": 0, "gap": gap_s}
        return [(began, took) for began, took in self._ask(order)["calls"]]

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """The next line that it says. BenchmarkError if none comes."""
        out = self._process.stdout
        assert out is not None
        deadline = time.monotonic() + _REPLY_S
        while not select.select([out], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise BenchmarkError(f"the producer said nothing for {_REPLY_S:g} s")
        line = out.readline()
        if not line:
            raise BenchmarkError(f"the producer has ended: {self._log.read_text('utf-8')[-1500:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer
