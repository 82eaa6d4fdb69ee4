"""Worker processes of the command line, with an app whose tasks write down what they do."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from tests.cluster.processes import SOON_S, Server, eventually, postponed_interrupts
from tests.cluster.test_python_clients import url

SHOP: Final = """\
import os
import anyio
from disque_trio.worker import App

app = App()

@app.task(name="note", queue=os.environ["SHOP"])
async def note(text, seconds=0):
    say(f"begin {text}")
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        say(f"cancelled {text}")
        raise
    say(f"end {text}")

def say(line):
    with open("said", "a") as file:
        file.write(f"{line}\\n")
"""


@attrs.define(eq=False)
class Shop:
    """A directory with an app whose tasks write down what they do."""

    server: Server
    directory: Path
    started: list[subprocess.Popen[bytes]] = attrs.Factory(list)

    @property
    def queue(self) -> str:
        return self.directory.name

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        """A worker, in a process group as a shell makes it."""
        return self.run([sys.executable, "-m", "disque_trio", "worker", *options])

    def run(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "DISQUE_URL": url(self.server), "SHOP": self.queue}
        with open(self.directory / "log", "ab") as log, postponed_interrupts():
            worker = subprocess.Popen(
                command,
                cwd=self.directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            self.started.append(worker)
        return worker

    def add(self, *args: object) -> None:
        """Add a job."""
        self.server.client.add(self.queue, json.dumps({"task": "note", "args": args}))

    def said(self) -> list[str]:
        path = self.directory / "said"
        return path.read_text().splitlines() if path.exists() else []

    def says(self, line: str) -> None:
        """Wait until a task has written it."""
        eventually(lambda: line in self.said(), SOON_S, f"{line!r}; log: {self.log()}")

    def log(self) -> str:
        path = self.directory / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def pids(self, count: int) -> list[int]:
        """The processes that have begun to work, once there are so many."""

        def found() -> list[int]:
            log = self.log()
            pids = [int(each) for each in re.findall(r" process (\d+) of ", log)]
            return pids if len(pids) >= count and log.count(" INFO takes jobs of ") >= count else []

        return eventually(found, SOON_S, f"{count} workers work")

    def ends(self, worker: subprocess.Popen[bytes]) -> int:
        """Wait for it; its exit status."""
        return worker.wait(SOON_S)


@contextmanager
def opened(server: Server, directory: Path) -> Iterator[Shop]:
    """Its workers end with the block."""
    (directory / "shop.py").write_text(SHOP)
    found = Shop(server, directory)
    try:
        yield found
    finally:
        for worker in found.started:
            worker.kill()  # children notice
            worker.wait()
