"""Every page, judged by axe-core (https://github.com/dequelabs/axe-core)."""

from functools import cache
from typing import Any

import pytest

from tests.cluster import nodejs
from tests.web.chromium import consoles, devtools
from tests.web.chromium.devtools import Tab
from tests.web.chromium.fake import Fake
from tests.web.chromium.test_looks import use
from tests.web.chromium.test_pages import each_page, opened

pytestmark = pytest.mark.skipif(not nodejs.IS_THERE, reason="needs node and npm for axe-core")
SIZES = pytest.mark.parametrize(
    ("width", "theme"),
    [(390, "light"), (1024, "dark"), (1440, "light"), (1440, "dark")],
)


@cache
def axe() -> str:
    """Its source, as one script."""
    return (nodejs.modules() / "axe-core" / "axe.min.js").read_text()


async def violations(tab: Tab) -> list[Any]:
    """Rules that the page breaks, WCAG 2.2 AA and best practices, with the elements."""
    if not await tab.run("Boolean(globalThis.axe)"):
        await tab.run(f"{axe()}; 0")
    found: list[Any] = await tab.run(
        "axe.run(document, {resultTypes: ['violations']}).then(({violations}) =>"
        " violations.map(({id, nodes}) => [id, nodes.map(({html}) => html.slice(0, 200))]))"
    )
    return found


async def sized(tab: Tab, width: int, theme: str) -> None:
    await use(tab, prefers_color_scheme=theme, prefers_reduced_motion="reduce")
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    await tab.ask("Emulation.setDeviceMetricsOverride", **size)


@pytest.mark.sample(4)
@SIZES
async def test_no_page_breaks_a_rule(tab: Tab, fake: Fake, width: int, theme: str) -> None:
    await sized(tab, width, theme)

    async for title in each_page(tab, fake):
        await tab.press("j")
        assert await violations(tab) == [], title


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_no_dialog_breaks_a_rule(tab: Tab, fake: Fake, theme: str) -> None:
    await sized(tab, 1024, theme)
    fake.plans["queues purge"] = {"says": ["9 jobs end"], "confirm": "mail", "token": "t"}

    await opened(tab, fake, "#/queues", "mail")
    for keys, text in (
        ("?", "the pages of the menu"),
        (".", "Add a job"),
        ("A", "body of the job"),
        ("jD", "To confirm, type"),
    ):
        await tab.press(*keys)
        await tab.has(text)
        assert await violations(tab) == [], text
        await tab.press("Escape")
        await tab.until("!document.querySelector('dialog').open")


@pytest.mark.sample(2)
@pytest.mark.parametrize("argument", ["sandbox", "scenario"])
async def test_no_page_about_a_run_breaks_a_rule(tab: Tab, argument: str) -> None:
    of_run = ("--scenario", "scenarios/swizzle.toml", "--seed", "7")
    async with consoles.serving(*(("--sandbox",) if argument == "sandbox" else of_run)) as served:
        await tab.open(served.address)
        await tab.until("document.querySelector('h1')")

        assert await violations(tab) == []


async def test_the_form_to_log_in_breaks_no_rule(browser: str) -> None:
    async with (
        consoles.serving("--sandbox", requirepass=b"hush") as served,
        devtools.tab(browser) as page,
    ):
        await page.open(served.address)
        await page.until("document.querySelector('[type=password]')")

        assert await violations(page) == []


async def test_a_page_that_breaks_a_rule_is_found(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake)
    await tab.run("void document.querySelector('#page').append(document.createElement('img'))")
    await tab.run("void (document.querySelector('h1').style.color = '#ccc')")

    assert {"image-alt", "color-contrast"} <= {rule for rule, _ in await violations(tab)}
