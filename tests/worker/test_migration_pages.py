"""docs/from-*.md: the programs for disque_trio are accepted, and what they add runs."""

import re
from pathlib import Path
from typing import Any, Final

import pytest

from disque_trio.testing.inline.kit import Inline
from tests.trees import HOME

PAGES: Final = sorted((HOME / "docs").glob("from-*.md"))
BLOCK: Final = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
RAN: Final = {
    "from-celery": [("mail.send", "done"), ("mail.send", "done")],
    "from-dramatiq": [("send", "done"), ("send", "done")],
    "from-rq": [("count_words", "done"), ("count_words", "done")],
    "from-sidekiq": [("hard_job", "done"), ("hard_job", "done")],
}


def told(page: Path) -> dict[str, Any]:
    """The names of the page."""
    names: dict[str, Any] = {"__name__": page.stem}
    exec(compile("".join(BLOCK.findall(page.read_text("utf-8"))), page.name, "exec"), names)
    return names


def test_each_page_is_tried() -> None:
    assert sorted(RAN) == [page.stem for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
async def test_what_a_page_adds_is_run(page: Path, disque_inline: Inline) -> None:
    names = told(page)
    names["produce"]()
    if "to_ruby" in names:
        await names["to_ruby"]()

    ran = await disque_inline.run_all(names["app"])

    assert [(each.task, each.end) for each in ran] == RAN[page.stem]
