import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from disque_trio.cli.completion import Commands, hint


def completed(line: str) -> list[str]:
    """The lines that Tab offers."""
    found = Commands().get_completions(Document(line), CompleteEvent())
    return [line[: len(line) + one.start_position] + one.text for one in found]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("ADDJ", ["ADDJOB"]),
        ("addj", ["addjob"]),
        ("q", ["qlen", "qpeek", "qstat", "qscan", "queue"]),
        ("ex", ["exit"]),
        ("3 PIN", ["3 PING"]),
        ("help sho", ["help show"]),
        (
            "JSCAN ",
            [
                "JSCAN COUNT", "JSCAN BUSYLOOP", "JSCAN QUEUE", "JSCAN STATE", "JSCAN GROUP",
                "JSCAN KEY", "JSCAN ERROR", "JSCAN BODY", "JSCAN OLDER", "JSCAN YOUNGER",
                "JSCAN REPLY",
            ],
        ),
        ("getjob nohang f", ["getjob nohang from"]),
        ("ADDJOB q 'a b' 0 R", ["ADDJOB q 'a b' 0 REPLICATE", "ADDJOB q 'a b' 0 RETRY"]),
        ("ADDJOB q ", []),
        ("CLUSTER R", ["CLUSTER RESET"]),
        ("CLUSTER RESET H", ["CLUSTER RESET HARD"]),
        ("CONFIG GET maxc", ["CONFIG GET maxclients"]),
        ("PAUSE q o", ["PAUSE q out"]),
        ("UNKNOWN ", []),
        ("ADDJOB q \"A", []),
    ],
)  # fmt: skip
def test_tab_offers_what_may_come_next(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


def test_tab_on_an_empty_line_offers_everything() -> None:
    assert {"ADDJOB", "SHUTDOWN", "help", "exit"} <= set(completed(""))


def test_a_command_is_offered_with_its_summary() -> None:
    (found,) = Commands().get_completions(Document("QLE"), CompleteEvent())

    assert found.display_meta_text == "Return the length of a queue on this node."


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("", ""),
        ("ADDJ", ""),
        ("QPEEK", " queue count"),
        ("QPEEK ", "queue count"),
        ("QPEEK q", " count"),
        ("qpeek q ", "count"),
        ("QPEEK q 5", ""),
        ("2 QLEN ", "queue"),
        ("SLOWLOG ", "GET [n] | LEN | RESET"),
        ("SLOWLOG GET ", "[n]"),
        ("QLEN 'a", ""),
        ("connect ", "host port"),
    ],
)
def test_a_hint_shows_what_may_follow(line: str, text: str) -> None:
    assert hint(line) == text
