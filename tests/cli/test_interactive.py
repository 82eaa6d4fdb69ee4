import io
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from disque_trio.cli.formats import for_people
from disque_trio.cli.interactive import Prompt, history, history_path, is_secret
from disque_trio.cli.session import Session
from disque_trio.client.address import Address
from disque_trio.client.connection import Connection
from disque_trio.statemachine.base import OK, Failure
from tests.client.fakenode import FakeNode, fake_node, press_ctrl_c

CTRL_C = "\x03"
CTRL_D = "\x04"
PASTE = "\x1b[200~{}\x1b[201~"


@attrs.define(eq=False)
class Desk:
    """A user's keyboard, screen and home."""

    keys: PipeInput
    home: Path
    capsys: pytest.CaptureFixture[str]
    passwords: list[str] = attrs.Factory(list)

    def run(self, port: int, typed: str) -> tuple[str, str]:
        """Type all that; what appeared on standard output and standard error."""
        self.keys.send_text(typed)
        session = Session(Connection(Address(port=port)), for_people, sys.stdout.buffer)
        try:
            Prompt(session, self._password, {"XDG_STATE_HOME": str(self.home)}).run()
        finally:
            session.connection.close()
        return self.capsys.readouterr()

    def _password(self, _prompt: str) -> str:
        if not self.passwords:
            raise EOFError
        return self.passwords.pop()


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        yield Desk(keys, tmp_path, capsys)


@pytest.mark.parametrize("end", ["exit\r", "quit\r", "QUIT now\r", CTRL_D])
def test_lines_are_carried_out_until_the_user_leaves(desk: Desk, end: str) -> None:
    with fake_node({}) as node:
        shown = desk.run(node.port, f'PING\rping "a\\x00"\r\r{end}')

    assert shown == ('PONG\n"a\\x00"\n', "")
    assert node.requests == [[b"PING"], [b"ping", b"a\0"]]


def test_errors_and_unbalanced_quotes_are_shown_and_the_prompt_goes_on(desk: Desk) -> None:
    with fake_node({}) as node:
        out, err = desk.run(node.port, "NOPE\rPING 'a\rPING\rexit\r")

    assert out == "(error) ERR unknown command 'NOPE'\nPONG\n"
    assert err == "Invalid argument(s): close every quote, and put a space after it.\n"


def test_a_number_in_front_repeats(desk: Desk) -> None:
    with fake_node({}) as node:
        out, _ = desk.run(node.port, "3 PING\rexit\r")

    assert out == "PONG\n" * 3


def test_ctrl_c_throws_the_line_away(desk: Desk) -> None:
    with fake_node({}) as node:
        desk.run(node.port, f"SHUTDOWN{CTRL_C}PING\rexit\r")

    assert node.requests == [[b"PING"]]


def test_lines_of_a_paste_are_carried_out_each(desk: Desk) -> None:
    with fake_node({}) as node:
        desk.run(node.port, PASTE.format("PING a\nPING b\nexit\nPING c") + "\r")

    assert node.requests == [[b"PING", b"a"], [b"PING", b"b"]]


def test_without_a_node_the_prompt_says_so_and_connects_when_it_comes(desk: Desk) -> None:
    with fake_node({}) as node:
        port = node.port
    node = FakeNode({}, port=port)

    def start(_prompt: str) -> str:
        node.start()
        return "sesame"

    desk.keys.send_text("PING\rauth\rPING\rexit\r")
    session = Session(Connection(Address(port=port)), for_people, sys.stdout.buffer)
    Prompt(session, start, {"XDG_STATE_HOME": str(desk.home)}).run()
    session.connection.close()
    node.stop()

    out, err = desk.capsys.readouterr()
    assert err.count(f"Could not connect to Disque at 127.0.0.1:{port}: Connection refused") == 2
    assert out.endswith("PONG\n")


def test_the_prompt_names_the_node_or_says_that_there_is_none() -> None:
    with fake_node({}) as node:
        connection = Connection(Address(port=node.port))
        prompt = Prompt(Session(connection, for_people, io.BytesIO()))
        before = prompt.text()
        connection.ready()
        meanwhile = prompt.text()
        connection.close()

    assert (before, meanwhile) == ("not connected> ", f"127.0.0.1:{node.port}> ")


def test_a_lost_connection_is_told_once_and_replaced(desk: Desk) -> None:
    with fake_node({b"GETJOB": None}) as node:
        out, err = desk.run(node.port, "GETJOB FROM q\rPING\rexit\r")

    assert out == "PONG\n"
    assert err.startswith("Lost the connection to 127.0.0.1:")


def test_ctrl_c_on_a_command_that_waits_drops_the_connection_and_goes_on(desk: Desk) -> None:
    with fake_node({b"GETJOB": press_ctrl_c}) as node:
        out, _ = desk.run(node.port, "GETJOB FROM q\rPING\rexit\r")

    assert out == "\nPONG\n"
    assert len(node.connections) == 2


def test_ctrl_c_ends_monitor_and_the_prompt_goes_on(desk: Desk) -> None:
    with fake_node({b"MONITOR": lambda: b"+OK\r\n" + press_ctrl_c()}) as node:
        out, _ = desk.run(node.port, "MONITOR\rPING\rexit\r")

    assert out.endswith("\nPONG\n")
    assert len(node.connections) == 2


def test_auth_alone_asks_for_the_password_and_remembers_it_for_the_next_connection(
    desk: Desk,
) -> None:
    desk.passwords = ["sesame"]
    with fake_node({b"AUTH": [OK], b"GETJOB": None}) as node:
        out, _ = desk.run(node.port, "AUTH\rGETJOB FROM q\rPING\rexit\r")

    assert out == "OK\nPONG\n"
    assert node.requests.count([b"AUTH", b"sesame"]) == 2


def test_no_password_is_no_auth(desk: Desk) -> None:
    with fake_node({b"AUTH": [Failure(b"ERR invalid password")]}) as node:
        desk.run(node.port, "auth\rPING\rexit\r")

    assert node.requests == [[b"PING"]]


def test_connect_moves_to_another_node(desk: Desk) -> None:
    with fake_node({}) as node, fake_node({}) as other:
        desk.run(node.port, f"connect 127.0.0.1 {other.port}\rPING\rexit\r")

    assert (node.requests, other.requests) == ([], [[b"PING"]])


def test_a_command_that_took_long_gets_its_time(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = [10.0, 11.25]
    with fake_node({}) as node:
        monkeypatch.setattr("disque_trio.cli.interactive.monotonic", lambda: times.pop(0))
        out, _ = desk.run(node.port, "PING\rexit\r")

    assert out == "PONG\n(1.25s)\n"


def test_lines_are_remembered_for_the_next_time_but_no_passwords(desk: Desk) -> None:
    with fake_node({b"AUTH": [OK], b"CONFIG": [OK]}) as node:
        desk.run(node.port, "PING\rauth sesame\rconfig set requirepass sesame\rexit\r")
        desk.run(node.port, "\x1b[A\x1b[A\rexit\r")

    file = desk.home / "disque_trio" / "history"
    assert "sesame" not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert node.requests[-1] == [b"PING"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("AUTH x", True),
        ("3 auth x", True),
        ('auth "x', True),
        ("config set REQUIREPASS x", True),
        ("HELLO 3 AUTH default x", True),
        ("2 hello 3 setname me auth default x", True),
        ("PING\nauth x", True),
        ("ADDJOB q auth 0", False),
        ("PING", False),
    ],
)
def test_lines_with_a_password_are_recognised(line: str, expected: bool) -> None:
    assert is_secret(line) is expected


def test_without_xdg_the_history_is_in_the_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")

    assert history_path({}) == Path("/home/me/.disque_trio_history")
    assert history_path({"XDG_STATE_HOME": "/s"}) == Path("/s/disque_trio/history")


def test_where_no_file_can_be_the_history_lasts_as_long_as_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    memory = history({"XDG_STATE_HOME": str(tmp_path / "file")})
    memory.append_string("PING")

    assert memory.get_strings() == ["PING"]
