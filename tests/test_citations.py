"""What the code and the pages cite is in the repository (CONTRIBUTING.md, "House rules")."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.trees import HOME

FILES: Final = ("*.py", "*.md", "*.toml", "*.js", "*.conf", "Makefile", "deploy/*")
ORIGINAL: Final = HOME / "docs/original.md"
_NUMBERS: Final = r"\d+(?:\.\d+)?(?:(?:, | and | to )\d+(?:\.\d+)?)*"
SECTION: Final = re.compile(rf"\boriginal ({_NUMBERS})(?![-\w])")
DEFECT: Final = re.compile(rf"(original, )?\bdefects? ({_NUMBERS})")
DECISION: Final = re.compile(r"\bdecision (\d+)\b")
PAGE: Final = re.compile(r'\b((?:docs/[\w/-]+|CONTRIBUTING)\.md)(?:\]\([^)]*\))?(?:, "([^"]+)")?')
FILE: Final = re.compile(
    r"(?<![\w/.-])((?:tests|scenarios|disque_trio|benchmarks)/[\w/-]+\.(?:py|md))\b"
)
OUTSIDE: Final = re.compile(
    r"\breference \d|\b\w+-study\b|\bARCHITECTURE\b|\bdisque-behaviour\b|\.\./shared\b"
)
"""Sources that are not part of the repository."""


def tracked() -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *FILES]
    names = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=True).stdout
    paths = [HOME / name for name in names.splitlines()]
    # This file has citations that are wrong on purpose.
    return [path for path in paths if path.is_file() and path != Path(__file__)]


@cache
def names(page: Path) -> set[str]:
    """What can be cited of a page: headings, terms in bold, first cells of tables."""
    text = page.read_text("utf-8")
    found = re.findall(r"^#+ (.*)$|\*\*(.+?)\.?\*\*|^\| (.+?)(?: \(\d+\))? \|", text, re.MULTILINE)
    return {"".join(each).replace("`", "") for each in found}


@cache
def sections() -> set[str]:
    """The numbers of the sections of the page about the original."""
    headings = re.findall(r"^##+ (\d+(?:\.\d+)?)\.? ", ORIGINAL.read_text("utf-8"), re.MULTILINE)
    return set(headings)


@cache
def defects() -> set[str]:
    page = ORIGINAL.read_text("utf-8")
    listed = page.partition("\n### 8.2 ")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| (\d+) \|", listed, re.MULTILINE))


def citations(text: str, is_original: bool = False) -> Iterator[tuple[str, bool]]:
    """Each citation, and whether what it cites is there."""
    # A citation may go on in the next line, with the sign of a comment before it.
    text = re.sub(r"\s*\n\s*(?:#|//)?\s*", " ", text)
    for found in SECTION.finditer(text):
        yield found[0], set(re.findall(r"\d+(?:\.\d+)?", found[1])) <= sections()
    for found in DEFECT.finditer(text):
        is_named = is_original or found[1] is not None
        yield found[0], is_named and set(re.findall(r"\d+", found[2])) <= defects()
    for found in DECISION.finditer(text):
        yield found[0], any(HOME.glob(f"docs/decisions/{int(found[1]):04}-*.md"))
    for found in PAGE.finditer(text):
        page = HOME / found[1]
        yield found[0], page.is_file() and (found[2] is None or found[2] in names(page))
    for found in FILE.finditer(text):
        yield found[0], (HOME / found[1]).is_file()
    for found in OUTSIDE.finditer(text):
        yield found[0], False


def broken(text: str) -> list[str]:
    return [citation for citation, is_there in citations(text) if not is_there]


def test_every_citation_leads_to_what_it_names() -> None:
    found = {
        path.relative_to(HOME): list(citations(path.read_text("utf-8"), path == ORIGINAL))
        for path in tracked()
    }
    lost = {
        path: [each for each, is_there in list_ if not is_there] for path, list_ in found.items()
    }

    assert {path: list_ for path, list_ in lost.items() if list_} == {}
    assert sum(map(len, found.values())) > 300


def test_the_page_about_the_original_has_its_sections_and_defects() -> None:
    assert {"1", "6.3", "8.2"} <= sections()
    assert defects() == {str(number) for number in range(1, 35)}


@pytest.mark.parametrize(
    "text",
    [
        "Taken in (original 6.12).",
        "Taken in (original 6.3, 6.12).",
        "Taken in (original\n    6.12).",
        "# Not so here (original,\n# defect 35).",
        "Not so here (original, defects 3 and 35).",
        "Not so here (defect 3).",
        "See why (decision 999).",
        "See docs/nowhere.md.",
        'See docs/bus.md, "Confederation".',
        'See [the bus](docs/bus.md), and ([docs/bus.md](docs/bus.md), "Confederation").',
        "As in tests/test_nothing.py.",
        "As in (reference 6.3).",
        "As in (simulation-study 4.1).",
        "As in (ARCHITECTURE, decision 1).",
    ],
)
def test_a_citation_of_what_is_not_there_is_found(text: str) -> None:
    assert len(broken(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Taken in (original 5.2 to 5.4), and (original 6.3, docs/memory.md).",
        "Not so here (original, defects 3\n    and 34), but in original nodes of 1.0-rc1.",
        "See why (decision 3).",
        'See docs/bus.md, "Federation".',
        'See docs/differences.md, "Importers\n    and holders".',
        "As in tests/test_citations.py.",
    ],
)
def test_a_citation_of_what_is_there_is_no_mistake(text: str) -> None:
    assert broken(text) == []
    assert list(citations(text))
