from typing import Final

import pytest

from tests.web.chromium.devtools import Tab
from tests.web.chromium.fake import Fake
from tests.web.chromium.test_pages import each_page, opened

LEAST: Final = 4.5
# Each text with its colour, on what is behind it: colours as the browser has worked them out.
CONTRASTS: Final = """
(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const over = ([r, g, b, a], under) =>
    [r, g, b].map((c, n) => (c * a + under[n] * (255 - a)) / 255);
  const behind = (node) => {
    if (!node) return [255, 255, 255];
    const own = rgba(getComputedStyle(node).backgroundColor);
    return own[3] === 255 ? own.slice(0, 3) : over(own, behind(node.parentElement));
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((c) => {
      const part = c / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = {};
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility()) continue;
    if (node.closest(".unseen, noscript, svg")) continue;
    const under = behind(node);
    const style = getComputedStyle(node);
    const own = rgba(node.ownerSVGElement ? style.fill : style.color);
    const [a, b] = [light(over(own, under)), light(under)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const name = `${node.localName}.${node.className} ${walker.currentNode.data.slice(0, 30)}`;
    found[name] = Math.min(found[name] ?? 99, Math.round(ratio * 100) / 100);
  }
  return found;
})()
"""


async def use(tab: Tab, **features: str) -> None:
    """What the system is set to."""
    listed = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
    await tab.ask("Emulation.setEmulatedMedia", features=listed)


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_every_text_stands_out(tab: Tab, fake: Fake, theme: str) -> None:
    await use(tab, prefers_color_scheme=theme, prefers_reduced_motion="reduce")

    async for title in each_page(tab, fake):
        await tab.press("j", "x")
        found = await tab.run(CONTRASTS)
        assert len(found) > 20
        assert {name: ratio for name, ratio in found.items() if ratio < LEAST} == {}, title
    await opened(tab, fake, "#/later", "Later")
    for key, text in (("?", "the pages of the bar"), (".", "Run now")):
        await tab.press("j", key)
        await tab.has(text)
        found = await tab.run(CONTRASTS)
        assert {name: ratio for name, ratio in found.items() if ratio < LEAST} == {}, key
        await tab.press("Escape")
        await tab.until("!document.querySelector('dialog').open")


async def test_the_system_chooses_the_theme_until_somebody_does(tab: Tab, fake: Fake) -> None:
    await use(tab, prefers_color_scheme="dark")
    await opened(tab, fake)
    assert await tab.run("document.documentElement.dataset.theme") == "dark"

    await tab.press("d")
    await tab.open("about:blank")
    await opened(tab, fake)

    assert await tab.run("document.documentElement.dataset.theme") == "light"


async def test_nothing_moves_where_that_is_not_wanted(tab: Tab, fake: Fake) -> None:
    await use(tab, prefers_reduced_motion="reduce")

    await opened(tab, fake)

    moving = (
        "[...document.querySelectorAll('*')].filter((node) =>"
        " getComputedStyle(node).transitionDuration !== '0s').length"
    )
    assert await tab.run(moving) == 0


async def test_a_narrow_screen_is_no_wider_than_it_is(tab: Tab, fake: Fake) -> None:
    await tab.ask(
        "Emulation.setDeviceMetricsOverride",
        width=480,
        height=800,
        deviceScaleFactor=1,
        mobile=False,
    )

    async for title in each_page(tab, fake):
        assert await tab.run("document.documentElement.scrollWidth") <= 480, title


async def test_the_bar_has_room_for_what_it_says(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake)

    await tab.press(" ")
    await tab.has("frozen at")

    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert await tab.run(wide) == 0
