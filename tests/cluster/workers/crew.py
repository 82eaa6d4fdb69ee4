"""Worker processes of a test: what they have done, and their end."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import attrs

from tests.cluster.processes import SOON_S, Server, eventually, postponed_interrupts
from tests.cluster.talk import LOOPBACK

PROGRAM: Final = (sys.executable, "-m", "tests.cluster.workers.program")


@attrs.define(eq=False)
class Crew:
    """Workers that write to one log. They end with the `with` block."""

    directory: Path
    queue: str
    servers: Sequence[Server]
    workers: list[subprocess.Popen[bytes]] = attrs.Factory(list)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self.workers:
            worker.kill()
            worker.wait()
        if kind is None:
            assert "Traceback" not in self.output()

    def start(self, name: str, loop: str = "trio") -> subprocess.Popen[bytes]:
        """A worker that obeys signals."""
        nodes = ",".join(f"{LOOPBACK}:{server.port}" for server in self.servers)
        command = [*PROGRAM, name, loop, self.queue, str(self.log), f"disque://{nodes}"]
        path = self.directory / f"output-{len(self.workers)}"
        with open(path, "ab") as output, postponed_interrupts():
            worker = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
            self.workers.append(worker)
        eventually(lambda: "takes jobs" in path.read_text(), SOON_S, f"{name} runs")
        return worker

    def stop(self, worker: subprocess.Popen[bytes]) -> int:
        """SIGTERM; how it has ended."""
        worker.send_signal(signal.SIGTERM)
        return worker.wait(SOON_S)

    @property
    def log(self) -> Path:
        """What the workers have told."""
        return self.directory / "log"

    def output(self) -> str:
        """What they have logged."""
        paths = sorted(self.directory.glob("output-*"))
        return "".join(path.read_text(errors="replace") for path in paths)

    def lines(self) -> list[str]:
        """What they have told, in order."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    def has_said(self, line: str, times: int = 1) -> None:
        """Wait for it."""
        eventually(
            lambda: self.lines().count(line) >= times, SOON_S, f"{line!r}; output: {self.output()}"
        )

    def runs(self, body: str) -> Counter[str]:
        """Which worker has begun this job how often."""
        return Counter(
            line.split()[0] for line in self.lines() if line.partition(" begin ")[2] == body
        )

    def done(self) -> set[str]:
        """The bodies of jobs that have been done."""
        return {line.partition(" end ")[2] for line in self.lines() if " end " in line}


def stands(worker: subprocess.Popen[bytes]) -> None:
    """SIGSTOP, and wait until it stands still."""
    os.kill(worker.pid, signal.SIGSTOP)
    stat = Path(f"/proc/{worker.pid}/stat")
    eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", SOON_S, "it stops")
