"""redis-cli in each of its modes."""

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs
import pytest

from tests.cluster.processes import SOON_S, Server
from tests.cluster.talk import LOOPBACK

pytestmark = pytest.mark.skipif(
    shutil.which("redis-cli") is None,
    reason="redis-cli is not installed (Debian has it in redis-tools)",
)
ID: Final = r"D-[0-9a-f]{8}-\S{24}-[0-9a-f]{4}"


@attrs.frozen
class Cli:
    """redis-cli and the node that it talks to."""

    server: Server

    def command(self, *words: str) -> list[str]:
        """The command line."""
        return ["redis-cli", "-h", LOOPBACK, "-p", str(self.server.port), *words]

    def run(self, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            self.command(*words),
            input=given,
            capture_output=True,
            text=True,
            timeout=SOON_S,
            check=False,
        )

    def out(self, *words: str, given: str = "") -> str:
        """What it prints, both ways."""
        done = self.run(*words, given=given)
        return done.stdout + done.stderr

    def watch(self, *words: str, until: str) -> str:
        """Run what does not end by itself until it has printed that."""
        with subprocess.Popen(
            self.command(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        ) as process:
            try:
                assert process.stdout is not None
                return _read(process.stdout.fileno(), until)
            finally:
                process.kill()


def _read(descriptor: int, until: str) -> str:
    """What comes until the pattern has; fails if it does not come."""
    seen = ""
    deadline = time.monotonic() + SOON_S
    while not re.search(until, seen):
        ready, _, _ = select.select([descriptor], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"no {until!r} in {seen!r}"
        seen += os.read(descriptor, 1 << 16).decode()
    return seen


@pytest.fixture
def cli(server: Server) -> Cli:
    return Cli(server)


@pytest.mark.parametrize("version", [(), ("-3",)], ids=["version 2", "version 3"])
def test_a_job_goes_round(cli: Cli, version: tuple[str, ...]) -> None:
    job = cli.out(*version, "ADDJOB", "cli:round", "body", "0").strip()
    assert re.fullmatch(ID, job)
    assert cli.out(*version, "GETJOB", "FROM", "cli:round") == f"cli:round\n{job}\nbody\n"
    assert cli.out(*version, "ACKJOB", job) == "1\n"


def test_all_forms_of_output(cli: Cli) -> None:
    words = ("QPEEK", "cli:forms", "1")
    job = cli.out("ADDJOB", "cli:forms", "bo\tdy", "0").strip()

    assert cli.out("--raw", *words) == f"cli:forms\n{job}\nbo\tdy\n"
    assert cli.out("--no-raw", *words) == (f'1) 1) "cli:forms"\n   2) "{job}"\n   3) "bo\\tdy"\n')
    assert cli.out("--csv", *words) == f'"cli:forms","{job}","bo\\tdy"\n'
    assert cli.out("--json", *words) == f'[["cli:forms","{job}","bo\\tdy"]]\n'
    assert cli.out("--json", "HELLO", "3").startswith('{"server":"disque","version":')
    assert cli.out("--json", "COMMAND", "INFO", "qlen") == (
        '[["qlen",2,["readonly","fast"],0,0,0,[],[],[],[]]]\n'
    )


def test_a_pipe_ends(cli: Cli) -> None:
    done = cli.run("--pipe", given="ADDJOB cli:pipe a 0\r\nADDJOB cli:pipe b 0\r\nNOSUCH\r\n")

    assert "errors: 1, replies: 3" in done.stdout
    assert cli.out("QLEN", "cli:pipe") == "2\n"


def test_requests_line_by_line_and_again_and_again(cli: Cli) -> None:
    assert cli.out(given="PING\nQLEN cli:lines\n").split() == ["PONG", "0"]
    assert cli.out("-r", "3", "-i", "0.01", "PING").split() == ["PONG"] * 3
    assert re.fullmatch(f"{ID}\n", cli.out("-X", "BODY", "ADDJOB", "cli:x", "BODY", "0", given="b"))


def test_nothing_of_a_transaction_is_executed(cli: Cli) -> None:
    said = cli.out(given="MULTI\nADDJOB cli:multi body 0\nEXEC\nQLEN cli:multi\n").split("\n\n")

    assert [text.split()[0] for text in said] == ["ERR", "ERR", "EXECABORT", "0"]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--scan",), "there are no keys here; QSCAN goes through the queues"),
        (("--bigkeys",), "this is a job queue without keys"),
        (("--memkeys",), "this is a job queue without keys"),
        (("--hotkeys",), "this is a job queue without keys"),
        (("-n", "1", "PING"), "there is database 0 alone, not '1'"),
        (("SUBSCRIBE", "news"), "there are no channels here"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_not_there_is_a_clear_error(cli: Cli, words: tuple[str, ...], what: str) -> None:
    assert what in cli.out(*words)


def test_scripts_are_a_clear_error(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "script.lua"
    script.write_text("return 1")

    assert "there are no scripts here" in cli.out("--eval", str(script))


@pytest.mark.slow
def test_it_measures_and_watches(cli: Cli) -> None:
    assert re.search(r"^\d+ \d+ \d", cli.watch("--latency", "--raw", "-i", "0.1", until=r"\n"))
    assert cli.watch("--stat", "-i", "0.1", until=r"(?m)^\d+ .*\d+\s*\n")
    assert cli.watch("MONITOR", until="OK") == "OK\n"


@contextmanager
def terminal(command: list[str], home: Path) -> Iterator[int]:
    """A program on a wide terminal; the descriptor of its terminal."""
    process, mine = pty.fork()
    if not process:  # pragma: no cover
        os.environ |= {"TERM": "xterm", "HOME": str(home)}
        os.execvp(command[0], command)
    try:
        fcntl.ioctl(mine, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 250, 0, 0))
        yield mine
    finally:
        os.close(mine)  # hangs up
        os.waitpid(process, 0)


def test_the_prompt_shows_the_arguments_while_one_types(cli: Cli, tmp_path: Path) -> None:
    with terminal(cli.command(), tmp_path) as screen:
        _read(screen, "> ")
        os.write(screen, b"addjob q b 0 ")
        _read(screen, r"addjob q b 0 \x1b\S+\[REPLICATE n\] \[SYNC n\|AUTO\] \[DELAY sec\]")
        os.write(screen, b"\x15client setinfo ")
        _read(screen, r"client setinfo \x1b\S+mLIB-NAME\|LIB-VER value\x1b")
        os.write(screen, b"\x15help getjob\r")
        _read(screen, r"Take jobs from queues; waits if there are none")
