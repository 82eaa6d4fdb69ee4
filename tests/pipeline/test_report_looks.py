"""The report in a browser: at three widths, in light and in dark."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import pytest

from disque_trio.pipeline.report import page
from tests.pipeline.test_report import SEEDS, TOLD
from tests.web.chromium import devtools
from tests.web.chromium.test_looks import CONTRASTS, LEAST, use

_WITH_CHARTS: Final = CONTRASTS.replace(", svg", "")
_OUTSIDE: Final = """
[...document.querySelectorAll("svg text, figcaption, p, h1, h2, .figures div")]
  .filter((node) => {
    const own = node.getBoundingClientRect();
    const room = node.closest("section, header").getBoundingClientRect();
    return own.left < room.left || own.right > room.right;
  })
  .map((node) => node.textContent)
"""
_LONG: Final = "a-scenario-with-quite-a-long-name"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address."""
    if devtools.CHROMIUM is None:
        pytest.skip("needs Chromium: `apt-get install chromium`")
    with devtools.chromium(tmp_path_factory.mktemp("chromium")) as address:
        yield address


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with all its parts, a policy that forbids all scripts and loads, and long names."""
    nights = [
        {
            **SEEDS,
            "scenario": name,
            "sweep": str(night),
            "failed": night,
            "since": SEEDS["since"] + night,
        }
        for night in range(9)
        for name in ("calm", _LONG)
    ]
    stages = [*TOLD.stages, {**TOLD.stages[0], "scenario": _LONG}]
    violations = [
        {
            "property": "S3",
            "scenario": _LONG,
            "runs": 1,
            "times": 2,
            "seed": 3,
            "text": "lost " * 30,
        }
    ]
    told = attrs.evolve(TOLD, seeds=nights, stages=stages, violations=violations)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    html = page.render(told, lambda *_: f"disque-trio sim run scenarios/{_LONG}.toml --seed 7")
    head = f'<head><meta http-equiv="Content-Security-Policy" content="{policy}">'
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(html.replace("<head>", head), "utf-8")
    return path


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 900, 1600])
async def test_everything_can_be_read(browser: str, written: Path, width: int, theme: str) -> None:
    async with devtools.tab(browser, width=width) as tab:
        await use(tab, prefers_color_scheme=theme)
        await tab.open(written.as_uri())
        await tab.run("document.querySelectorAll('details').forEach((each) => each.open = true)")

        found = await tab.run(_WITH_CHARTS)
        pictures = [name for role, name in await tab.names() if role in {"img", "image"}]

        assert len(found) > 100
        assert {name: ratio for name, ratio in found.items() if ratio < LEAST} == {}
        assert await tab.run("document.documentElement.scrollWidth <= innerWidth")
        assert await tab.run(_OUTSIDE) == []
        assert len(pictures) == await tab.run("document.querySelectorAll('svg').length") > 5
        assert all(pictures), "each picture has a name"
        assert tab.errors == []


_TOPS: Final = """
[...document.querySelectorAll("section:has(.plots > :only-child)")]
  .map((node) => node.getBoundingClientRect().top)
"""
_SCROLLING: Final = """
[...document.querySelectorAll(".wide")].filter((node) => node.scrollWidth > node.clientWidth)
  .map((node) => getComputedStyle(node).backgroundImage.split("gradient").length - 1)
"""


@pytest.mark.parametrize(("width", "rows"), [(1440, 1), (390, 2)])
async def test_narrow_parts_share_a_row_where_there_is_room(
    browser: str, written: Path, width: int, rows: int
) -> None:
    async with devtools.tab(browser, width=width) as tab:
        await tab.open(written.as_uri())

        tops = await tab.run(_TOPS)
        assert (len(tops), len(set(tops))) == (2, rows)
        shadows = await tab.run(_SCROLLING)
        # Two shadows, and what covers them at the ends.
        assert set(shadows) == ({4} if width < 1000 else set())
        assert await tab.run("document.querySelector('h1').textContent") == "<lake>"
