import pytest

from disque_trio.cli.manual import page
from disque_trio.statemachine.commands.table import BY_NAME, ROWS


def test_help_lists_every_command_and_the_words_of_the_prompt() -> None:
    lines = page([]).split("\n")

    listed = {line.split()[0] for line in lines if line.startswith("  ")}
    assert listed == {row.name.upper() for row in ROWS} | {"help", "connect", "clear", "exit"}


@pytest.mark.parametrize(
    ("topic", "first"),
    [
        (b"qlen", "QLEN queue"),
        (b"time", "TIME"),
        (
            b"getjob",
            f"GETJOB {BY_NAME['getjob'].usage}",
        ),
        (b"connect", "connect host port"),
    ],
)
def test_help_on_a_command_begins_with_its_usage(topic: bytes, first: str) -> None:
    usage, summary = page([topic]).split("\n")[:2]

    assert usage == first
    assert summary.endswith(".")


def test_help_on_a_command_of_several_forms_has_a_line_for_each() -> None:
    assert page([b"slowlog"]).split("\n")[:3] == [
        "SLOWLOG GET [n]",
        "SLOWLOG LEN",
        "SLOWLOG RESET",
    ]


def test_help_on_a_command_explains_its_options_in_columns() -> None:
    lines = page([b"getjob"]).split("\n")

    assert any(
        line.split() == ["COUNT", "n", "1", "take", "up", "to", "n", "jobs"] for line in lines
    )
    assert "    > GETJOB NOHANG FROM mails" not in lines
    assert " > GETJOB NOHANG FROM mails" in lines


@pytest.mark.parametrize(
    ("topic", "text"),
    [
        (b"adjob", "There is no command ADJOB. Did you mean ADDJOB?"),
        (b"\xff", "There is no command \ufffd. `help` lists them all."),
    ],
)
def test_help_on_what_is_no_command_says_so(topic: bytes, text: str) -> None:
    assert page([topic]) == text
