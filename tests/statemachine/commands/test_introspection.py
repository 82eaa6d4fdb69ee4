import pytest

from disque_trio.statemachine.base import Failure, Reply, Status
from tests.rig import Rig

READONLY, WRITE, DENYOOM, LOADING, FAST = [
    Status(flag) for flag in (b"readonly", b"write", b"denyoom", b"loading", b"fast")
]


def test_command_tells_of_every_command() -> None:
    rig = Rig()

    rows = rig.ask("COMMAND")

    assert isinstance(rows, list)
    assert len(rows) == rig.ask("COMMAND", "count") == 32
    assert [b"command", 0, [READONLY, LOADING], 0, 0, 0] in rows


def test_command_info_tells_of_those_named() -> None:
    assert Rig().ask("COMMAND", "info", "AddJob", "nosuchthing", b"\xff", "qlen") == [
        [b"addjob", -4, [WRITE, DENYOOM, FAST], 0, 0, 0],
        None,
        None,
        [b"qlen", 2, [READONLY, FAST], 0, 0, 0],
    ]


def test_command_info_without_names_is_empty() -> None:
    assert Rig().ask("COMMAND", "INFO") == []


@pytest.mark.parametrize("words", [("DOCS",), ("COUNT", "x"), ("",)], ids=str)
def test_other_subcommands_are_refused(words: tuple[str, ...]) -> None:
    reply: Reply = Failure(b"ERR Unknown subcommand or wrong number of arguments.")

    assert Rig().ask("COMMAND", *words) == reply
