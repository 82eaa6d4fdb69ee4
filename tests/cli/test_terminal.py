"""The whole program on a terminal of its own."""

import contextlib
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from tests.client.fakenode import fake_node

# The first terminal that the leader of a session opens is the one whose Ctrl-C reaches it.
PROGRAM: Final = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
terminal = os.open(sys.argv[1], os.O_RDWR)
for stream in range(3):
    os.dup2(terminal, stream)
from disque_trio.cli import main
sys.exit(main(sys.argv[2:]))
"""


@attrs.define(eq=False)
class Terminal:
    """What a person sees and types."""

    fd: int
    program: subprocess.Popen[bytes]
    _seen: str = ""

    def shows(self, text: str) -> None:
        """Wait until the text appears behind what was waited for before."""
        while text not in self._seen:
            self._seen += os.read(self.fd, 65536).decode()
        self._seen = self._seen.partition(text)[2]

    def types(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def interrupts(self, shown: str) -> None:
        """Type Ctrl-C until the text appears. Python cannot tell of a signal that comes just before
        it begins to wait for the node, until the next one comes."""
        is_over = False
        while not is_over:
            self.types("\x03")
            self.shows("^C")
            while shown not in self._seen and select.select([self.fd], [], [], 2)[0]:
                self._seen += os.read(self.fd, 65536).decode()
            is_over = shown in self._seen
        self.shows(shown)


@contextlib.contextmanager
def terminal(home: Path, *options: str) -> Iterator[Terminal]:
    ours, theirs = os.openpty()
    environment = {**os.environ, "XDG_STATE_HOME": str(home), "PROMPT_TOOLKIT_NO_CPR": "1"}
    environment |= {"TERM": "xterm", "DISQUE_AUTH": "", "NO_COLOR": ""}
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, os.ttyname(theirs), *options],
        env=environment,
        start_new_session=True,
    )
    try:
        yield Terminal(ours, program)
    finally:
        program.kill()
        program.wait()
        os.close(theirs)
        os.close(ours)


def test_a_session_from_the_prompt_to_ctrl_d(tmp_path: Path) -> None:
    is_waiting = threading.Event()

    def getjob() -> bytes:
        is_waiting.set()
        return b""

    with (
        fake_node({b"QLEN": [7], b"GETJOB": getjob}) as node,
        terminal(tmp_path, "-p", str(node.port)) as screen,
    ):
        prompt = f"127.0.0.1:{node.port}>"
        screen.shows(prompt)
        screen.types("qle\t")
        screen.shows("queue")  # The hint, which a whole command brings.
        screen.types(" mails\r")
        screen.shows("(integer) 7")
        screen.types("NOPE\r")
        screen.shows("\x1b[31m(error) ERR unknown command 'NOPE'\x1b[0m")
        screen.types("GETJOB FROM q\r")
        is_waiting.wait()
        screen.interrupts(prompt)
        screen.types("\x04")

        assert screen.program.wait() == 0
    assert [b"qlen", b"mails"] in node.requests
