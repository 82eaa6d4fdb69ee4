"""A disk that hangs while nodes.conf is written: a named pipe that nobody reads stands for it."""

import os
import signal
from pathlib import Path

from tests.cluster.processes import eventually
from tests.serving.process import WITHIN_S, Talk, server


def test_the_node_serves_others_until_the_disk_answers(tmp_path: Path) -> None:
    with server(tmp_path) as (_, port), Talk(port) as operator, Talk(port) as client:
        os.mkfifo(tmp_path / "nodes.conf.new")
        operator.socket.sendall(b"CLUSTER LEAVING yes\r\n")
        eventually(
            lambda: client.ask("CLUSTER LEAVING") == b"+yes\r\n", WITHIN_S, "the node has it"
        )
        assert client.ask("PING") == b"+PONG\r\n"
        assert b"leaving" not in (tmp_path / "nodes.conf").read_bytes()

        # Whoever reads the pipe lets the write go on; a pipe cannot be synced, so it fails.
        os.close(os.open(tmp_path / "nodes.conf.new", os.O_RDONLY))

        assert operator.socket.recv(100) == b"+OK\r\n"
        eventually(
            lambda: b"myself,leaving" in (tmp_path / "nodes.conf").read_bytes(),
            WITHIN_S,
            "nodes.conf is written again",
        )


def test_sigterm_ends_a_node_whose_disk_hangs(tmp_path: Path) -> None:
    with server(tmp_path) as (process, port), Talk(port) as operator, Talk(port) as client:
        os.mkfifo(tmp_path / "nodes.conf.new")
        operator.socket.sendall(b"CLUSTER LEAVING yes\r\n")
        eventually(
            lambda: client.ask("CLUSTER LEAVING") == b"+yes\r\n", WITHIN_S, "the node has it"
        )

        process.signal(signal.SIGTERM)

        assert process.ends() == 0
