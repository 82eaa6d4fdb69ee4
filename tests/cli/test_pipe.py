import os
import threading
from pathlib import Path

import pytest

from disque_trio.cli import main
from disque_trio.statemachine.base import Status
from tests.client.fakenode import fake_node


def piped(data: bytes, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    path = tmp_path / "input"
    path.write_bytes(data)
    with path.open("r") as source:
        monkeypatch.setattr("sys.stdin", source)
        return main(["-p", str(port), "--pipe"])


def test_requests_go_as_they_are_and_replies_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = b"ADDJOB q one 0\r\n*4\r\n$6\r\nADDJOB\r\n$1\r\nq\r\n$3\r\ntwo\r\n$1\r\n0\r\n"
    with fake_node({b"ADDJOB": [Status(b"D-1")]}) as node:
        code = piped(data, node.port, tmp_path, monkeypatch)

    assert (code, capsys.readouterr()) == (0, ("", "errors: 0, replies: 2\n"))
    assert node.requests[:2] == [[b"ADDJOB", b"q", b"one", b"0"], [b"ADDJOB", b"q", b"two", b"0"]]


def test_an_error_among_the_replies_is_shown_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_node({}) as node:
        code = piped(b"PING\r\nNOPE\r\nPING\r\n", node.port, tmp_path, monkeypatch)

    assert code == 1
    assert capsys.readouterr().err == "ERR unknown command 'NOPE'\nerrors: 1, replies: 3\n"


def test_a_last_line_without_end_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_node({}) as node:
        code = piped(b"PING", node.port, tmp_path, monkeypatch)

    assert (code, capsys.readouterr().err) == (0, "errors: 0, replies: 1\n")


def test_more_than_the_sockets_hold_goes_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    request = b"*2\r\n$4\r\nPING\r\n$50000\r\n" + b"x" * 50000 + b"\r\n"
    with fake_node({}) as node:
        code = piped(request * 400, node.port, tmp_path, monkeypatch)

    assert (code, capsys.readouterr().err) == (0, "errors: 0, replies: 400\n")


def test_a_slow_source_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read_end, write_end = os.pipe()
    asked = threading.Event()

    def write() -> None:
        os.write(write_end, b"FIRST\r\n")
        asked.wait()
        os.write(write_end, b"PING\r\n")
        os.close(write_end)

    def first() -> bytes:
        asked.set()
        return b"+one\r\n"

    writer = threading.Thread(target=write)
    writer.start()
    with fake_node({b"FIRST": first}) as node, os.fdopen(read_end) as source:
        monkeypatch.setattr("sys.stdin", source)
        code = main(["-p", str(node.port), "--pipe"])
    writer.join()

    assert (code, capsys.readouterr().err) == (0, "errors: 0, replies: 2\n")


def test_a_node_that_hangs_up_ends_the_transfer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_node({b"NOPE": None}) as node:
        code = piped(b"NOPE\r\n", node.port, tmp_path, monkeypatch)

    assert code == 1
    assert "Lost the connection" in capsys.readouterr().err
