import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from disque_trio.cli import main
from disque_trio.statemachine.base import OK, Failure, Reply, Status
from tests.client.fakenode import Answer, fake_node, press_ctrl_c

JOB: Reply = [[b"q", b"D-1", b"hello"]]


@pytest.fixture(autouse=True)
def _no_password_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISQUE_AUTH", raising=False)
    monkeypatch.delenv("DISQUE_URL", raising=False)


def give(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@attrs.define(eq=False)
class Screen:
    """Standard output, and somebody who acts on what appears there."""

    sight: bytes
    act: Callable[[], object]
    shown: bytes = b""
    has_acted: bool = False

    @property
    def buffer(self) -> "Screen":
        return self

    def isatty(self) -> bool:
        return False

    def flush(self) -> None:
        if self.sight in self.shown and not self.has_acted:
            self.has_acted = True
            self.act()

    def write(self, data: bytes) -> None:
        self.shown += data


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ([], "q\nD-1\nhello\n"),
        (["--raw"], "q\nD-1\nhello\n"),
        (["--no-raw"], '1) 1) "q"\n   2) "D-1"\n   3) "hello"\n'),
        (["--json"], '[["q","D-1","hello"]]\n'),
    ],
)
def test_one_command_prints_its_reply_and_succeeds(
    options: list[str], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_node({b"GETJOB": [JOB]}) as node:
        code = main(["-p", str(node.port), *options, "getjob", "FROM", "q"])

    assert (code, capsys.readouterr().out) == (0, shown)
    assert node.requests == [[b"getjob", b"FROM", b"q"]]


def test_an_error_reply_is_printed_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node({}) as node:
        code = main(["-p", str(node.port), "--no-raw", "NOPE"])

    assert (code, capsys.readouterr().out) == (1, "(error) ERR unknown command 'NOPE'\n")


def test_a_node_that_hangs_is_given_up_after_the_wait_of_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_node({b"PING": b"", b"GETJOB": b""}) as node:
        start = ["-p", str(node.port), "--reply-timeout", "0.2"]
        for words in (["PING"], ["GETJOB", "TIMEOUT", "100", "FROM", "q"]):
            assert main([*start, *words]) == 1
            assert "(no answer in time)" in capsys.readouterr().err


def test_where_nobody_listens_the_message_says_where_and_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_node({}) as node:
        pass
    code = main(["-p", str(node.port), "PING"])

    assert code == 1
    assert capsys.readouterr().err == (
        f"Could not connect to Disque at 127.0.0.1:{node.port}: Connection refused. "
        "Check that a node is running there: `disque-trio server` starts one, and -h and -p "
        "select another.\n"
    )


def test_a_host_without_address_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["-h", "no..host", "PING"])

    assert code == 1
    assert "no..host:7711" in capsys.readouterr().err


def test_a_missing_socket_file_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code = main(["-s", str(tmp_path / "none.sock"), "PING"])

    assert code == 1
    assert (
        "No such file or directory. Check that the node's configuration has `unixsocket"
        in capsys.readouterr().err
    )


def test_a_node_that_hangs_up_instead_of_answering_leaves_the_outcome_open(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_node({b"ADDJOB": None}) as node:
        code = main(["-p", str(node.port), "ADDJOB", "q", "b", "0"])

    assert code == 1
    assert "it is unknown whether the command was carried out" in capsys.readouterr().err
    assert len(node.requests) == 1


def test_what_is_no_resp_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node({b"INFO": b"HTTP/1.1 400 Bad Request\r\n\r\n"}) as node:
        code = main(["-p", str(node.port), "INFO"])

    assert code == 1
    assert "does not use Disque's protocol" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["SHUTDOWN"], ["debug", "RESTART", "100"]])
def test_a_node_that_was_told_to_end_may_hang_up(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_node({b"SHUTDOWN": None, b"DEBUG": None}) as node:
        code = main(["-p", str(node.port), *command])

    assert (code, capsys.readouterr()) == (0, ("", ""))


def test_usage_is_shown_and_wrong_usage_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "disque-trio cli ADDJOB" in capsys.readouterr().out
    assert main(["--bogus"]) == 2
    assert "--bogus" in capsys.readouterr().err


def test_help_needs_no_node(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-p", "1", "help", "qlen"]) == 0
    assert capsys.readouterr().out.startswith("QLEN queue\n")


def test_a_command_repeats(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node({}) as node:
        code = main(["-p", str(node.port), "-r", "3", "-i", "0.001", "PING"])

    assert (code, capsys.readouterr().out) == (0, "PONG\nPONG\nPONG\n")


def test_one_failure_of_many_runs_is_a_failure() -> None:
    replies: list[Answer] = [[Failure(b"ERR no")], [OK]]
    with fake_node({b"SAVE": lambda: replies.pop(0)}) as node:
        code = main(["-p", str(node.port), "-r", "2", "SAVE"])

    assert code == 1


def test_the_password_goes_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISQUE_AUTH", "sesame")
    with fake_node({b"AUTH": [OK]}) as node:
        code = main(["-p", str(node.port), "PING"])

    assert (code, capsys.readouterr()) == (0, ("PONG\n", ""))
    assert node.requests == [[b"AUTH", b"sesame"], [b"PING"]]


def test_a_refused_password_is_told_and_the_command_still_tried(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_node({b"AUTH": [Failure(b"ERR invalid password")]}) as node:
        code = main(["-p", str(node.port), "-a", "wrong", "PING"])

    assert (code, capsys.readouterr()) == (0, ("PONG\n", "AUTH failed: ERR invalid password\n"))


def test_a_missing_password_brings_advice(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node({b"QLEN": [Failure(b"NOAUTH Authentication required.")]}) as node:
        code = main(["-p", str(node.port), "QLEN", "q"])

    assert code == 1
    assert "DISQUE_AUTH" in capsys.readouterr().err


def test_standard_input_is_the_last_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, b"a\xff\n")
    with fake_node({}) as node:
        main(["-p", str(node.port), "-x", "PING"])

    assert node.requests == [[b"PING", b"a\xff\n"]]


def test_standard_input_takes_the_place_of_its_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, b"photo")
    with fake_node({b"ADDJOB": [Status(b"D-1")]}) as node:
        main(["-p", str(node.port), "-X", "BODY", "ADDJOB", "q", "BODY", "0"])

    assert node.requests == [[b"ADDJOB", b"q", b"photo", b"0"]]


def test_lines_of_a_pipe_are_commands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, b'PING\n\n2 ping "a \\x41"\nNOPE\nPING \'b\nPING last')
    with fake_node({}) as node:
        code = main(["-p", str(node.port)])

    shown = capsys.readouterr()
    assert code == 1
    assert shown.out == "PONG\na A\na A\nERR unknown command 'NOPE'\nlast\n"
    assert shown.err == "Invalid argument(s): close every quote, and put a space after it.\n"


def test_after_client_reply_off_nothing_is_waited_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, b"CLIENT REPLY OFF\nQLEN q\nclient reply on\nPING\n")
    client: list[Answer] = [b"", [OK]]
    with fake_node({b"QLEN": b"", b"CLIENT": lambda: client.pop(0)}) as node:
        code = main(["-p", str(node.port)])

    assert (code, capsys.readouterr().out) == (0, "OK\nPONG\n")


def test_client_reply_skip_silences_itself_and_the_next(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, b"CLIENT REPLY SKIP\nQLEN q\nPING\n")
    with fake_node({b"QLEN": b"", b"CLIENT": b""}) as node:
        code = main(["-p", str(node.port)])

    assert (code, capsys.readouterr().out) == (0, "PONG\n")


def test_monitor_streams_until_ctrl_c_which_is_a_good_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines: list[Reply] = [OK, Status(b'1.5 [x] "PING"'), Status(b'1.6 [x] "PING"')]
    screen = Screen(b"1.6", press_ctrl_c)
    monkeypatch.setattr(sys, "stdout", screen)
    with fake_node({b"MONITOR": lines}) as node:
        code = main(["-p", str(node.port), "monitor"])

    assert (code, screen.shown) == (0, b'OK\n1.5 [x] "PING"\n1.6 [x] "PING"\n')


def test_monitor_that_loses_the_node_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_node({b"MONITOR": [OK]}) as node:
        screen = Screen(b"OK", node.hang_up)
        monkeypatch.setattr(sys, "stdout", screen)
        code = main(["-p", str(node.port), "MONITOR"])

    assert (code, screen.shown) == (1, b"OK\n")


def test_ctrl_c_ends_a_command_that_waits(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node({b"GETJOB": press_ctrl_c}) as node:
        code = main(["-p", str(node.port), "GETJOB", "FROM", "q"])

    assert (code, capsys.readouterr()) == (130, ("", ""))


def test_ctrl_c_is_a_good_end_of_an_endless_repetition() -> None:
    with fake_node({b"QLEN": press_ctrl_c}) as node:
        code = main(["-p", str(node.port), "-r", "-1", "QLEN", "q"])

    assert code == 0


def test_the_password_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getpass", lambda _prompt: "typed")
    with fake_node({b"AUTH": [OK]}) as node:
        main(["-p", str(node.port), "--askpass", "PING"])

    assert node.requests[0] == [b"AUTH", b"typed"]


def test_a_unix_socket_serves_as_well(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with fake_node({}, path=str(tmp_path / "s")) as node:
        code = main(["-s", str(node.path), "PING"])

    assert (code, capsys.readouterr().out) == (0, "PONG\n")


def test_a_reader_that_has_seen_enough_is_no_traceback() -> None:
    program = "import sys; from disque_trio.cli import main; sys.exit(main(sys.argv[1:]))"
    read_end, write_end = os.pipe()
    os.close(read_end)
    with fake_node({}) as node:
        done = subprocess.run(
            [sys.executable, "-c", program, "-p", str(node.port), "PING"],
            stdout=write_end,
            stderr=subprocess.PIPE,
            check=False,
        )
    os.close(write_end)

    assert (done.returncode, done.stderr) == (1, b"")
