"""`disque-trio up` as a process."""

import re
import signal
import socket
import urllib.request
from pathlib import Path

import pytest

from tests.cluster.processes import WEB_OFFSET, free_port
from tests.serving.process import Talk, run, running


def test_a_cluster_comes_up_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    port = free_port(2)
    with running(tmp_path, "up", "--port", str(port)) as process:
        process.says("3 nodes joined")
        lines = process.text().splitlines()
        for number, line in enumerate(lines[:3]):
            assert re.fullmatch(
                rf"node {number + 1} +127\.0\.0\.1:{port + number} +[0-9a-f]{{40}}", line
            )
        with Talk(port) as talk:
            answer = talk.ask("ADDJOB q body 5000 REPLICATE 3")
            assert answer.startswith(b"+D-")
        with Talk(port + 2) as talk:
            assert answer[1:41] in talk.ask(f"SHOW {answer[1:41].decode()}")

        process.signal(signal.SIGINT)

        assert process.ends() == 0
        assert "Traceback" not in process.text()
    assert [path.name for path in tmp_path.iterdir()] == [process.output.name]


def test_each_node_has_a_web_port(tmp_path: Path) -> None:
    port, web_port = free_port(1), free_port(1)
    with running(
        tmp_path, "up", "--nodes", "2", "-p", str(port), "--web-port", str(web_port)
    ) as process:
        process.says(f"Console: http://127.0.0.1:{web_port}/")
        for number in range(2):
            with urllib.request.urlopen(f"http://127.0.0.1:{web_port + number}/readyz") as answer:
                assert b"1 of 1 other node can be reached" in answer.read()

        process.signal(signal.SIGINT)

        assert process.ends() == 0


def test_a_web_port_that_is_taken_is_done_without_unless_it_was_asked_for(tmp_path: Path) -> None:
    with socket.socket() as taken:
        port = free_port(2)
        taken.bind(("127.0.0.1", port + WEB_OFFSET))
        taken.listen()
        with running(tmp_path, "up", "--nodes", "1", "-p", str(port)) as process:
            process.says("Ctrl-C ends it.")
            assert "http" not in process.text()
            process.signal(signal.SIGINT)
            assert process.ends() == 0
        status, output = run(tmp_path, "up", "-p", str(port), "--web-port", str(port + WEB_OFFSET))

    assert status == 1
    assert output.endswith("stop that, or choose another port with --web-port\n")


def test_a_single_node_is_a_cluster_too(tmp_path: Path) -> None:
    with running(tmp_path, "up", "--nodes", "1", "-p", str(free_port())) as process:
        process.says("Ctrl-C ends it.")

        process.signal(signal.SIGTERM)

        assert process.ends() == 0


@pytest.mark.slow
def test_identities_last_with_a_directory(tmp_path: Path) -> None:
    port = free_port(1)
    names = []
    for _ in range(2):
        with running(tmp_path, "up", "--nodes", "2", "--port", str(port), "--dir", "d") as process:
            process.says("2 nodes joined")
            names.append(re.findall("[0-9a-f]{40}", process.text()))
            process.signal(signal.SIGINT)
            assert process.ends() == 0
    assert names[0] == names[1]
    assert (tmp_path / "d" / str(port + 1) / "nodes.conf").exists()


def test_one_node_may_be_shut_down(tmp_path: Path) -> None:
    port = free_port(1)
    with running(tmp_path, "up", "--nodes", "2", "--port", str(port)) as process:
        process.says("2 nodes joined")
        with Talk(port) as talk:
            assert talk.ask("SHUTDOWN") == b""
        with Talk(port + 1) as talk:
            assert talk.ask("PING") == b"+PONG\r\n"
            assert talk.ask("DEBUG RESTART").startswith(b"-ERR")
            assert talk.ask("SHUTDOWN") == b""

        assert process.ends() == 0


def test_a_port_in_use_is_named_with_advice(tmp_path: Path) -> None:
    with socket.socket() as taken:
        port = free_port(2)
        taken.bind(("127.0.0.1", port + 1))
        taken.listen()
        status, output = run(tmp_path, "up", "--port", str(port))

    assert status == 1
    assert output == (
        f"disque-trio up: cannot listen on 127.0.0.1 port {port + 1}: Address already in use; "
        "another process uses it: stop that, or choose another port with --port\n"
    )


def test_ports_that_are_too_high_are_refused(tmp_path: Path) -> None:
    status, output = run(tmp_path, "up", "--port", "55534")

    assert status == 1
    assert "ports 55534 to 55536 are too high" in output


def test_a_directory_that_cannot_be_made_is_named_with_advice(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    port = free_port(2)

    status, output = run(tmp_path, "up", "--port", str(port), "--dir", str(tmp_path / "file"))

    assert status == 1
    assert output == (
        f"disque-trio up: cannot make the directory {tmp_path}/file/{port}: Not a directory; "
        "choose another with --dir\n"
    )
