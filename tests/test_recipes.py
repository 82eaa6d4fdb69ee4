"""The recipes: what the page shows is what a node answers."""

import re
from pathlib import Path
from typing import Final

import pytest

from disque_trio.cli.formats import for_people
from disque_trio.statemachine.base import Reply, Status
from disque_trio.wire.words import split
from tests.rig import Rig

PAGE: Final = Path(__file__).parent.parent / "docs" / "recipes.md"
LATER: Final = re.compile(r"\((\d+) s later\)")
SECTIONS: Final = dict(
    section.split("\n", 1) for section in PAGE.read_text("utf-8").split("\n## ")[1:]
)


@pytest.mark.parametrize("title", SECTIONS)
def test_a_node_answers_as_the_recipe_shows(title: str) -> None:
    rig = Rig()
    job = ""
    for line, shown in conversation(SECTIONS[title]):
        if later := LATER.fullmatch(line):
            rig.advance(int(later[1]) * 1000)
            continue
        words = split(line.removeprefix("> ").replace("$1", job).encode())
        reply = rig.ask(*words)
        job = added(reply) or job
        said = for_people(words, reply).decode(errors="replace").replace("\r\n", "\n")
        assert re.fullmatch(pattern(shown), said, re.DOTALL), (line, said)


def conversation(text: str) -> list[tuple[str, str]]:
    """What is typed, or how much later it is, and what is shown then."""
    found: list[tuple[str, str]] = []
    for line in text.split("\n"):
        if not line.startswith("    "):
            continue
        if line[4:6] == "> " or LATER.fullmatch(line[4:]):
            found.append((line[4:], ""))
        else:
            typed, shown = found[-1]
            found[-1] = typed, f"{shown}\n{line[4:]}".strip("\n")
    return found


def pattern(shown: str) -> str:
    """`…` stands for anything."""
    return re.escape(shown).replace("…", ".*")


def added(reply: Reply) -> str:
    """The id that ADDJOB has answered."""
    return reply.text.decode() if isinstance(reply, Status) and reply.text[:2] == b"D-" else ""


def test_each_recipe_is_in_the_table_at_the_top() -> None:
    links = re.findall(r"\(#([\w-]+)\)", PAGE.read_text("utf-8").split("\n## ")[0])

    assert sorted(links) == sorted(
        re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in SECTIONS
    )
