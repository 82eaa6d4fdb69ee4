"""`disque-trio` as a process of its own, watched through its output."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs

from tests.cluster.processes import eventually, free_port

WITHIN_S = 120.0


@attrs.define
class Process:
    """A running command; its output goes to a file."""

    popen: subprocess.Popen[bytes]
    output: Path

    def text(self) -> str:
        """What it has said so far."""
        return self.output.read_text()

    def says(self, words: str) -> None:
        """Wait until it says this. Fails at once, with all that it has said, if it has failed."""
        eventually(
            lambda: words in self.text() or self.popen.poll(),
            WITHIN_S,
            f"the output contains {words!r}",
        )
        assert words in (text := self.text()), f"it ended with {self.popen.poll()}: {text}"

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.popen.send_signal(number)

    def ends(self) -> int:
        """Its exit status, once it has ended."""
        return self.popen.wait(WITHIN_S)


@contextlib.contextmanager
def running(directory: Path, *arguments: str) -> Iterator[Process]:
    """Run `disque-trio ARGUMENTS` in `directory`, and kill it in the end if it still runs."""
    output = directory / f"output-{len(list(directory.iterdir()))}"
    environment = {**os.environ, "COLUMNS": "120", "PYTHONUNBUFFERED": "1"}
    with open(output, "wb") as file:
        popen = subprocess.Popen(
            [sys.executable, "-m", "disque_trio", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=environment,
        )
    try:
        yield Process(popen, output)
    finally:
        if popen.poll() is None:
            popen.kill()
        popen.wait()


@contextlib.contextmanager
def server(
    directory: Path, *options: str, port: int = 0, first: str = ""
) -> Iterator[tuple[Process, int]]:
    """A node that has started, and its port."""
    port = port or free_port()
    place = ("--bind", "127.0.0.1", "--port", str(port))
    words = ("server", first, *place, *options) if first else ("server", *place, *options)
    with running(directory, *words) as process:
        process.says("node started")
        yield process, port


def run(directory: Path, *arguments: str) -> tuple[int, str]:
    """Exit status and output of a command that ends by itself."""
    with running(directory, *arguments) as process:
        return process.ends(), process.text()


class Talk:
    """A plain socket to a node."""

    def __init__(self, place: int | str) -> None:
        if isinstance(place, int):
            self.socket = socket.create_connection(("127.0.0.1", place), WITHIN_S)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(WITHIN_S)
            self.socket.connect(place)

    def __enter__(self) -> "Talk":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, request: str) -> bytes:
        """One inline request and what comes back at once; nothing at the end."""
        self.socket.sendall(request.encode() + b"\r\n")
        return self.socket.recv(1 << 20)
