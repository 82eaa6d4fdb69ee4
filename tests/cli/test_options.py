from typing import Any

import pytest

from disque_trio.cli import PROGRAM
from disque_trio.cli.options import Options
from disque_trio.client.address import Address
from disque_trio.terminal.options import parse


def parsed(line: str | list[str]) -> Options:
    words = line.split() if isinstance(line, str) else line
    options: Options = parse(PROGRAM, "disque-trio cli", words, {}).options
    return options


def test_without_options_the_node_is_on_this_machine_at_the_usual_port() -> None:
    options = parsed("")

    assert options.address == Address(host="127.0.0.1", port=7711)
    assert options.command == []
    assert (options.form, options.repeat, options.password) == ("", 1, None)


def test_options_have_long_names_too() -> None:
    long = parsed("--host there --port 7712 --password x PING")

    assert long == parsed("-h there -p 7712 -a x PING")
    assert parsed("--socket /run/disque.sock PING") == parsed("-s /run/disque.sock PING")


def test_options_end_where_the_command_begins() -> None:
    options = parsed("-h ::1 -p 7712 --json QPEEK --raw -5 -x")

    assert options.address == Address(host="::1", port=7712)
    assert options.form == "json"
    assert options.command == [b"QPEEK", b"--raw", b"-5", b"-x"]
    assert not options.last_from_stdin


def test_two_dashes_let_a_command_begin_with_one() -> None:
    assert parsed("-p 1 -- -weird").command == [b"-weird"]


def test_arguments_that_are_no_utf8_keep_their_bytes() -> None:
    assert parsed(["PING", "\udcff"]).command == [b"PING", b"\xff"]


@pytest.mark.parametrize(
    ("line", "environment", "password"),
    [
        ("", {"DISQUE_AUTH": "from-env"}, b"from-env"),
        ("-a given", {"DISQUE_AUTH": "from-env"}, b"given"),
        ("", {"DISQUE_AUTH": ""}, None),
    ],
)
def test_the_password_comes_from_the_option_or_else_the_environment(
    line: str, environment: dict[str, str], password: bytes | None, monkeypatch: Any
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert parsed(line).password == password


@pytest.mark.parametrize(("line", "has_color"), [("", True), ("--no-color", False)])
def test_colors_can_be_declined(line: str, has_color: bool) -> None:
    assert parsed(line).has_color is has_color


def test_repetition_may_have_no_end() -> None:
    options = parsed("-r -1 -i 0.5 QLEN q")

    assert (options.repeat, options.interval_s) == (-1, 0.5)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("-p 0", "'0' is not a port"),
        ("-p x", "'x' is not a port"),
        ("-r 0 PING", "'0' is not a number of times"),
        ("-r -2 PING", "'-2' is not a number of times"),
        ("-i -1 PING", "'-1' is not a number of seconds"),
        ("-i nan PING", "'nan' is not a number of seconds"),
        ("--bogus", "unrecognized arguments: --bogus; --help lists the options"),
        ("--hots x PING", "unrecognized arguments: --hots; did you mean --host?"),
        ("--pass x PING", "unrecognized arguments: --pass; did you mean --password?"),
        ("-n 0 PING", "-n; there are no databases, only queues"),
        ("--raw --json PING", "not allowed with"),
        ("-x", "need a command"),
        ("-X TAG", "need a command"),
        ("-X TAG PING", "no argument of the command reads TAG"),
        ("-x -X TAG PING TAG", "not allowed with"),
        ("--pipe PING", "give none"),
        ("--cacert ca.crt PING", "need --tls"),
        ("--insecure PING", "need --tls"),
        ("--tls --key me.key PING", "give --cert too"),
    ],
)
def test_a_command_line_without_sense_ends_with_2(
    line: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        parsed(line)

    assert stop.value.code == 2
    assert complaint in capsys.readouterr().err
