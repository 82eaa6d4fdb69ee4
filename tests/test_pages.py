"""The Markdown pages of the repository: links lead somewhere, and the index names every page."""

import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from disque_trio import client, testing, worker

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"


def tracked() -> list[Path]:
    """The pages that git knows or would add, so that no environment's own pages are among them."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in sorted(names.split()) if (ROOT / name).exists()]


@cache
def tokens(page: Path) -> list[Token]:
    return MarkdownIt().enable("table").parse(page.read_text("utf-8"))


def links(page: Path) -> list[str]:
    """What the page links to and shows, without addresses of other sites."""
    inner = [child for token in tokens(page) for child in token.children or ()]
    found = [str(each.attrs.get("href", each.attrs.get("src", ""))) for each in inner]
    return [each for each in found if each and not re.match(r"[a-z]+:", each)]


def anchors(page: Path) -> set[str]:
    """The anchors of the page's headings, as GitHub makes them."""
    found: Counter[str] = Counter()
    names = set()
    for before, token in zip(tokens(page), tokens(page)[1:], strict=False):
        if before.type == "heading_open":
            text = "".join(child.content for child in token.children or ())
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            names.add(f"{slug}-{found[slug]}" if found[slug] else slug)
            found[slug] += 1
    return names


def listed(page: Path) -> list[str]:
    """The pages beside or below this one to which it links, in order."""
    folder = page.parent
    targets = [(folder / each.partition("#")[0]).resolve() for each in links(page)]
    inside = [each for each in targets if each.is_relative_to(folder) and each.suffix == ".md"]
    return [str(each.relative_to(folder)) for each in dict.fromkeys(inside)]


def nav() -> list[str]:
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    return re.findall(r"^ +- (?:.*: )?(\S+\.md)$", text.partition("\nnav:\n")[2], re.MULTILINE)


@pytest.mark.parametrize("page", tracked(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_to_a_heading(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page

        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("folder", [DOCS, DOCS / "decisions"], ids=lambda folder: folder.name)
def test_the_index_of_a_folder_lists_every_page(folder: Path) -> None:
    pages = {path.name for path in folder.glob("*.md")} - {"index.md"}

    assert set(listed(folder / "index.md")) & pages == pages


def test_the_site_has_the_pages_in_the_order_of_the_indexes() -> None:
    """The first link to a page in the index may be in its text; decisions have an index of their
    own."""
    tables = {name for name in listed(DOCS / "index.md") if not name.startswith("decisions/0")}

    assert nav()[0] == "index.md"
    assert sorted(nav()[1:]) == sorted(tables)


def test_each_decision_has_a_number_of_its_own() -> None:
    """There may be gaps: numbers are given to changes before they are whole."""
    numbers = [path.name[:4] for path in (DOCS / "decisions").glob("*.md") if path.stem != "index"]

    assert all(each.isdigit() for each in numbers)
    assert len(set(numbers)) == len(numbers)


def test_an_anchor_is_what_github_makes_of_a_heading(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Over, *and* `over`: 1 & 2\n\n## Again\n\n## Again\n\n```\n# no heading\n```\n"
    )

    assert anchors(page) == {"over-and-over-1--2", "again", "again-1"}


def test_what_stands_in_code_is_no_link(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("`[a](b)` and [c](d#e) and [f](https://g)\n\n    [h](i)\n\n![j](k.svg)\n")

    assert links(page) == ["d#e", "k.svg"]


def test_the_page_of_the_python_reference_has_every_name_that_programs_import() -> None:
    named = re.findall(r"^::: (\S+)$", (DOCS / "api.md").read_text("utf-8"), re.MULTILINE)

    packages = [client, worker, testing]
    assert sorted(named) == sorted(
        f"{each.__name__}.{name}" for each in packages for name in each.__all__
    )
