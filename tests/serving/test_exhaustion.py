"""A real process whose memory is out, or whose event loop is dead."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.processes import eventually, free_port
from tests.cluster.talk import RefusedError, connection

LIMIT_KIB = 400 << 10
UNDER_LIMIT = ("sh", "-c", f'ulimit -v {LIMIT_KIB} && exec "$@"', "sh")
BODY = b"x" * 100_000
DEAF = """
import signal, sys, time, trio
from disque_trio.serving import process
process.DEAF_S = 0.2

async def main():
    process.on_signals(lambda name: None)
    print("ready", flush=True)
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass

trio.run(main)
"""


def test_out_of_memory_is_answered_or_ends_the_process_with_a_line(tmp_path: Path) -> None:
    port = free_port()
    command = ["server", "--port", str(port), "--bind", "127.0.0.1", "--maxmemory", "4gb"]
    output = tmp_path / "output"
    with open(output, "wb") as file:
        process = subprocess.Popen(
            [*UNDER_LIMIT, sys.executable, "-m", "disque_trio", *command],
            cwd=tmp_path, stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        eventually(lambda: "node started" in output.read_text(), 120, "the node has started")
        ended = _fill(port)
        if ended:
            assert process.wait(60) == 1
            assert output.read_text().count("out of memory: this process ends") == 1
        else:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


def _fill(port: int) -> bool:
    """Add jobs until one is refused; True if the node has ended instead."""
    try:
        with connection(port) as client:
            while True:
                client.add("q", BODY)
    except RefusedError as error:
        return not str(error).startswith("OOM ")
    except (OSError, EOFError, AssertionError):
        return True


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
def test_a_second_sigterm_ends_a_process_whose_event_loop_is_dead(first: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", DEAF], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"

        os.kill(process.pid, first)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        os.kill(process.pid, signal.SIGTERM)

        assert process.wait(60) == 1
