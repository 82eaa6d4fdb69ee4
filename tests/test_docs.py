import re
import shlex
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from disque_trio import docs
from disque_trio.programs import COMMANDS
from disque_trio.sim.checkers.causes import RULES
from disque_trio.sim.checkers.duplicates import CAUSES
from disque_trio.sim.checkers.properties import PROPERTIES
from disque_trio.sim.explore import scope
from disque_trio.sim.histories.records import PROPERTIES as OF_HISTORIES
from disque_trio.statemachine.commands.info import FEATURES
from disque_trio.statemachine.commands.table import ROWS
from disque_trio.terminal.options import parse

DOCS: Final = Path(__file__).parents[1] / "docs"


def test_the_generated_parts_of_the_pages_are_current(tmp_path: Path) -> None:
    names = ["commands.md", *(name for name, _, _ in docs.TABLES)]
    for name in names:
        (tmp_path / name).write_text((DOCS / name).read_text())

    docs.main(tmp_path)

    for name in names:
        assert (tmp_path / name).read_text() == (DOCS / name).read_text(), "run `make docs`"


def test_every_command_has_its_section() -> None:
    sections = re.findall(r"^## (.*)$", docs.commands_page(), re.MULTILINE)

    assert sections == [row.name.upper() for row in ROWS]


def test_each_form_of_a_command_has_its_line() -> None:
    page = docs.commands_page()

    for line in (
        "ADDJOB queue body ms-timeout [REPLICATE n]",
        "CLUSTER FORGET id|host:port\n",
        "CLUSTER LEAVING [yes|no]\n",
        "COMMAND\n    COMMAND COUNT\n",
        "HELLO [version] ",
        "TIME\n",
    ):
        assert f"\n    {line}" in page


def test_the_page_of_info_explains_each_feature() -> None:
    [table] = re.findall(r"\| feature \| what \|\n(.*?)\n\n", docs.commands_page(), re.DOTALL)
    told = [
        name for row in table.splitlines()[1:] for name in row.split("|")[1].strip().split(", ")
    ]

    assert sorted(told) == sorted(FEATURES)


def test_the_table_of_errors_has_each_code_that_a_node_answers() -> None:
    raised = re.compile(
        r'(?:CommandError|Failure|: Final =)\(?\s*\(?\s*b"([A-Z]{3,}) (?=[A-Za-z%])'
    )
    sources = (Path(docs.__file__).parent / "statemachine").rglob("*.py")
    answered = {code for source in sources for code in raised.findall(source.read_text())}
    [table] = re.findall(r"\| code \| when \|\n(.*?)\n\n", docs.commands_page(), re.DOTALL)

    assert {"ERR", "NOREPL", "DUPLICATE", "LOST"} < answered
    assert answered - {"LIMIT", "TIMEOUT"} - set(re.findall(r"`([A-Z]+)`", table)) == set()


def examples() -> list[list[str]]:
    """Command lines of `disque-trio` that the pages show, without what a shell adds to them."""
    found = []
    for page in [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]:
        text = page.read_text().replace("\\\n", " ")
        for line in re.findall(r"^(?:    |\$ |\.venv/bin/)+disque-trio (.*)$", text, re.MULTILINE):
            words = shlex.split(re.split(r" [|<>&] |  +| \[", line)[0], comments=True)
            found.append(words)
    return found


@pytest.mark.parametrize("words", examples(), ids=" ".join)
def test_the_commands_that_the_pages_show_exist(words: list[str]) -> None:
    assert words[0] in COMMANDS or words[0].isupper() or words[0].startswith("-")
    command = COMMANDS.get(words[0])
    module = import_module("disque_trio" if command is None else command.module)
    program = getattr(module, "PROGRAM", None)
    if program is not None and "--help" not in words:
        id = "D-8177b338-LqqjKhrCd8pvOoKUXAoQsvOn-05a1"
        parse(program, "", [id if word == "ID" else word for word in words[1:]], {})


def test_the_page_of_guarantees_has_each_property_and_each_cause_once() -> None:
    page = (DOCS / "guarantees.md").read_text()
    rows = re.findall(r"^\| ([SLDW](?:\d+[a-c]?|X)) \| ([^|]*) \|", page, re.MULTILINE)
    causes = [(name, cause) for name, cause in rows if name.startswith("D")]

    assert [name for name, _ in rows if name not in CAUSES] == list(PROPERTIES)
    assert dict(causes) == CAUSES
    assert {name for name, _ in causes} == {name for name, _ in RULES} | {"D13"}


def test_the_page_of_guarantees_names_each_means_that_holds_one() -> None:
    page = (DOCS / "guarantees.md").read_text()
    cells = re.findall(r"^\| \*\*.*\| ([^|]*) \|$", page, re.MULTILINE)
    named: dict[str, set[str]] = {}
    for part in "; ".join(cells).split("; "):
        means, _, names = part.partition(": ")
        found = re.findall(r"`(\w[\w-]*)`|\b(H\d+|soak|chaos|roll)\b", names)
        named.setdefault(means, set()).update(one or other for one, other in found)
    models = [path.read_text() for path in (DOCS / "spec" / "models").glob("*.cfg")]
    promises = {name for text in models for name in _invariants(text)}

    assert named["explored"] == set(scope.shipped())
    assert named["by histories"] == set(OF_HISTORIES)
    assert named["on real nodes"] == {"soak", "chaos", "roll"}
    assert named["specified"] == promises - {"TypeOK"}


def _invariants(model: str) -> list[str]:
    return next(line for line in model.splitlines() if line.startswith("INVARIANTS")).split()[1:]
