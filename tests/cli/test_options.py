import sys
from typing import Any

import pytest

from disque_trio.__main__ import main as run_any
from disque_trio.cli import PROGRAM
from disque_trio.cli.options import Options
from disque_trio.client.address import Address, Cluster, Tls
from disque_trio.statemachine.base import OK
from disque_trio.terminal.options import UsageError, parse
from tests.client.fakenode import fake_node


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


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("queues list -p 7711", "unrecognized arguments: -p 7711; give --url instead"),
        ("jobs list --port 7711", "unrecognized arguments: --port 7711; give --url instead"),
        ("top --host h", "unrecognized arguments: --host h; give --url instead"),
        ("queues show -lead", "put -- before a name that starts with a dash: -- -lead"),
        ("queues limit --rate=3", "the following arguments are required: QUEUE\n"),
        ("queues show --json", "the following arguments are required: QUEUE\n"),
    ],
)
def test_what_other_commands_would_take_is_refused_with_advice(
    line: str, told: str, capsys: Any
) -> None:
    with pytest.raises(SystemExit) as stop:
        sys.exit(run_any(line.split()))

    assert stop.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "sent"), [("disque://{}", b"from-env"), ("disque://:url@{}", b"url")]
)
def test_commands_of_a_cluster_take_the_password_of_the_environment(
    url: str, sent: bytes, monkeypatch: Any
) -> None:
    monkeypatch.setenv("DISQUE_AUTH", "from-env")
    with fake_node({b"AUTH": [OK]}) as node:
        run_any(["nodes", "list", "--url", url.format(f"127.0.0.1:{node.port}")])

    assert [words[1] for words in node.requests if words[0] == b"AUTH"][:1] == [sent]


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
        ("-n 0 PING", "-n; Disque has queues instead of databases"),
        ("--raw --json PING", "not allowed with"),
        ("-x", "need a command"),
        ("-X TAG", "need a command"),
        ("-X TAG PING", "the command has no argument TAG"),
        ("-x -X TAG PING TAG", "not allowed with"),
        ("--pipe PING", "give no command"),
        ("--cacert ca.crt PING", "need --tls"),
        ("--insecure PING", "need --tls"),
        ("--tls --key me.key PING", "--key needs --cert"),
    ],
)
def test_a_command_line_without_sense_ends_with_2(
    line: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        parsed(line)

    assert stop.value.code == 2
    assert complaint in capsys.readouterr().err


PLAIN = Address(host="h", port=7)


@pytest.mark.parametrize(
    ("line", "url", "cluster"),
    [
        ("--url disque://:pw@h:7,g", "", Cluster([PLAIN, Address(host="g")], b"pw")),
        ("", "disque://:pw@h:7", Cluster([PLAIN], b"pw")),
        ("--url disque://h:7", "disque://:pw@g", Cluster([PLAIN])),
        ("-a own", "disque://:pw@h:7", Cluster([PLAIN], b"own")),
        ("-h h -p 7", "disque://:pw@g", Cluster([PLAIN])),
        ("-s /run/d", "disque://:pw@g", Cluster([Address(path="/run/d")])),
        ("--url disque+unix:///run/d", "", Cluster([Address(path="/run/d")])),
        ("--url disques://h:7", "", Cluster([Address(host="h", port=7, tls=Tls())])),
    ],
)
def test_a_url_names_the_nodes_as_for_other_commands(
    line: str, url: str, cluster: Cluster, monkeypatch: Any
) -> None:
    monkeypatch.setenv("DISQUE_URL", url)
    options = parsed(line)

    assert (options.address, options.password) == (cluster.seeds[0], cluster.password)
    if options.socket is None:
        assert options.cluster == cluster


@pytest.mark.parametrize("other", ["-h h", "-p 7", "--tls", "-s /run/d"])
def test_a_url_excludes_other_names_of_a_node(other: str, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        parsed(f"--url disque://h {other} PING")

    assert "--url cannot be combined" in capsys.readouterr().err


def test_a_wrong_url_of_the_environment_is_reported_with_its_origin(monkeypatch: Any) -> None:
    monkeypatch.setenv("DISQUE_URL", "redis://h")

    with pytest.raises(
        UsageError, match=r"DISQUE_URL: 'redis://h' is not the address of a cluster"
    ):
        parsed("PING").cluster  # noqa: B018
