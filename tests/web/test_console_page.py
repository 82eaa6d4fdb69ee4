"""docs/console.md names what the pages have."""

import re
from pathlib import Path
from typing import Final

import pytest

from disque_trio.observe.operations import OPERATIONS

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "console.md").read_text()
STATIC: Final = ROOT / "disque_trio" / "web" / "static"


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def operations() -> list[tuple[str, str]]:
    """The letter and the label of each."""
    return sorted({(each.letter, each.label) for each in OPERATIONS.values()})


@pytest.mark.parametrize(("letter", "label"), operations())
def test_each_operation_is_explained_beside_its_key(letter: str, label: str) -> None:
    rows = [row.split("|")[1:3] for row in section("Operations").splitlines() if row[:2] == "| "]
    keys = [keys for labels, keys in rows if label in labels.strip().split(", ")]

    assert keys, "the label has a row"
    assert any(letter in each.split() for each in keys)


def test_each_page_of_the_bar_has_its_row() -> None:
    names = re.findall(r'^  name: "(\w+)",$', "\n".join(
        (STATIC / f"{name}.js").read_text()
        for name in (
            *("overview", "cluster", "queues", "jobs", "workers", "dead", "later"),
            *("replay", "sandbox"),
        )
    ), re.MULTILINE)  # fmt: skip
    rows = re.findall(r"^\| (\d) \| (\w+) \|", section("Pages"), re.MULTILINE)

    assert rows == [(str(n), name) for n, name in enumerate(names, 1)]


def test_each_key_of_the_help_is_in_the_table() -> None:
    text = (STATIC / "keys.js").read_text().partition("const HELP = [")[2].partition("];")[0]
    told = set(re.findall(r"`([^`]+)`", section("Keys")))

    for keys in re.findall(r'\["([^"]+)",', text):
        wanted = {keys} if keys == "Ctrl K" else set(keys.split()) - {"–", "…", "P", "D"}
        assert wanted <= told


@pytest.mark.parametrize("name", ["replay", "sandbox"])
def test_each_key_of_a_page_is_in_its_table(name: str) -> None:
    text = (STATIC / f"{name}.js").read_text().partition("const HELP = [")[2].partition("\n];")[0]
    told = set(re.findall(r"`([^`]+)`", section(name.title())))
    keys = {key for keys in re.findall(r'\["([^"]+)",', text) for key in keys.split()}

    assert len(keys) > 8
    assert keys <= told
