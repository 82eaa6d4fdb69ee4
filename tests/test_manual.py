"""The manual: every command and option is explained, and its examples work as shown."""

import re
from itertools import pairwise
from typing import Final

import pytest

from disque_trio import manual
from disque_trio.cli.formats import for_people
from disque_trio.statemachine.base import Reply, Status
from disque_trio.statemachine.commands.rows import Command
from disque_trio.statemachine.commands.table import ROWS
from disque_trio.wire.words import split
from tests.rig import Rig

every_command: Final = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


@every_command
def test_every_word_that_is_to_be_typed_is_explained(row: Command) -> None:
    text = manual.text(row.name)

    for word in re.findall(r"\b[A-Z-]{2,}\b", row.usage):
        assert word in text, word


@every_command
def test_conversations_come_true(row: Command) -> None:
    rig = Rig()
    job = b""
    for typed, shown in _conversation(manual.text(row.name)):
        reply = rig.ask(*split(typed.replace("$1", job.decode()).encode()))
        job = _id(reply) or job
        said = for_people(split(typed.encode()), reply).decode(errors="replace")
        assert re.fullmatch(_pattern(shown), said.replace("\r\n", "\n"), re.DOTALL), (typed, said)


def _conversation(text: str) -> list[tuple[str, str]]:
    """What is typed, and what is shown then."""
    lines = [line[4:] for line in text.split("\n") if line.startswith("    ")]
    asked = [at for at, line in enumerate(lines) if line.startswith("> ")]
    return [
        (lines[at][2:], "\n".join(lines[at + 1 : end]))
        for at, end in pairwise([*asked, len(lines)])
    ]


def _pattern(shown: str) -> str:
    return re.escape(shown).replace("\\\n…", "…").replace("…", ".*")


def _id(reply: Reply) -> bytes | None:
    return reply.text if isinstance(reply, Status) and reply.text.startswith(b"D-") else None
