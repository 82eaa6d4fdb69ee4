"""A real process whose memory is out, or whose event loop is dead."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.processes import eventually, free_port
from tests.cluster.talk import Client, RefusedError, connection

LIMIT_KIB = 300 << 10
UNDER_LIMIT = ("sh", "-c", f'ulimit -v {LIMIT_KIB} && exec "$@"', "sh")
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


@pytest.mark.sample(2)
@pytest.mark.parametrize("options", [(), ("--appendonly", "yes")])
def test_out_of_memory_is_answered_and_the_node_goes_on(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    port = free_port()
    command = ["server", "--port", str(port), "--bind", "127.0.0.1", "--maxmemory", "4gb"]
    output = tmp_path / "output"
    with open(output, "wb") as file:
        process = subprocess.Popen(
            [*UNDER_LIMIT, sys.executable, "-m", "disque_trio", *command, *options],
            cwd=tmp_path, stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        eventually(lambda: "node started" in output.read_text(), 120, "the node has started")
        with connection(port) as client:
            _fill(client, b"x" * 20_000)
            assert client.number("PURGE", "q") > 100
            eventually(lambda: _takes(client, b"small"), 60, "the node takes jobs again")
        assert "jobs are refused until the system gives the process more" in output.read_text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, output.read_text()
    finally:
        process.kill()
        process.wait()


def _fill(client: Client, body: bytes) -> None:
    """Add jobs until one is refused."""
    while _takes(client, body):
        pass


def _takes(client: Client, body: bytes) -> bool:
    try:
        client.add("q", body)
    except RefusedError as error:
        return "the system refuses" not in str(error)
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
