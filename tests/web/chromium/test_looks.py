from typing import Final

import pytest

from tests.web.chromium import scene
from tests.web.chromium.devtools import Tab
from tests.web.chromium.fake import Fake, Said
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


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_every_text_stands_out(tab: Tab, fake: Fake, theme: str) -> None:
    await use(tab, prefers_color_scheme=theme, prefers_reduced_motion="reduce")

    async for title in each_page(tab, fake):
        await tab.press("j", "x")
        found = await tab.run(CONTRASTS)
        assert len(found) > 20
        assert {name: ratio for name, ratio in found.items() if ratio < LEAST} == {}, title
    await opened(tab, fake, "#/later", "Later")
    for key, text in (("?", "the pages of the menu"), (".", "Run now")):
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
    await tab.has("paused at")

    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert await tab.run(wide) == 0


async def sized(tab: Tab, width: int) -> None:
    size = {"width": width, "height": 860, "deviceScaleFactor": 1, "mobile": False}
    await tab.ask("Emulation.setDeviceMetricsOverride", **size)


def with_keys(state: str) -> Said:
    key = "01a222a0-5af9-7c1e-8b7d-3c9a1f30c2aa:4"
    jobs = [scene.found(n, state, key=key, group="a tenant with a name") for n in range(3)]
    return {"jobs": jobs, "is_cut": False}


async def test_keys_of_jobs_leave_room_for_who_has_them_and_since_when(
    tab: Tab, fake: Fake
) -> None:
    await sized(tab, 1440)
    fake.topics = {**fake.topics, "jobs": lambda _args: with_keys("running")}
    await opened(tab, fake, "#/jobs", "mailer-7")

    covered = (
        "(() => {const head = [...document.querySelectorAll('thead th')];"
        " const right = (label) => head.find((each) => each.innerText === label)"
        ".getBoundingClientRect().right;"
        " return [right('added'), head.at(-1).getBoundingClientRect().left];})()"
    )
    added, actions = await tab.run(covered)
    assert added <= actions


@pytest.mark.sample(2)
@pytest.mark.parametrize("width", [1024, 1440])
async def test_the_state_of_a_job_is_on_one_line(tab: Tab, fake: Fake, width: int) -> None:
    await sized(tab, width)
    fake.topics = {**fake.topics, "jobs": lambda _args: with_keys("backing-off")}
    await opened(tab, fake, "#/jobs", "backing-off")

    high = "[...document.querySelectorAll('td .badge')].map((each) => each.offsetHeight)"
    assert max(await tab.run(high)) <= 22


@pytest.mark.sample(2)
@pytest.mark.parametrize("width", [390, 1440])
async def test_boxes_of_a_flow_have_room_for_their_words(tab: Tab, fake: Fake, width: int) -> None:
    await sized(tab, width)
    await opened(tab, fake, f"#/flow/{scene.FLOW}", "297 of 570 done")

    cut = (
        "[...document.querySelectorAll('.flow-box')].filter((box) =>"
        " box.scrollHeight > box.clientHeight"
        " || [...box.children].some((each) => each.scrollHeight > each.clientHeight + 1"
        " && !each.matches('svg, .unseen'))).length"
    )
    assert await tab.run(cut) == 0


async def test_the_whole_bar_is_in_sight_on_a_phone(tab: Tab, fake: Fake) -> None:
    await sized(tab, 390)

    await opened(tab, fake, "#/queues", "mail")

    rights = (
        "[...document.querySelectorAll('#bar .tools :is(select, button)')].map((each) =>"
        " [each.ariaLabel ?? each.innerText.trim(), each.getBoundingClientRect().right])"
    )
    shown = {name for name, right in await tab.run(rights) if 0 < right <= 390}
    assert {"Refresh interval", "Pause", "Go to", "Link", "Dark", "Keys"} <= shown


async def test_the_name_of_a_queue_has_the_room_of_its_table(tab: Tab, fake: Fake) -> None:
    await sized(tab, 1024)
    name = "invoices-of-the-month-of-may"
    rows = [scene.queue_row(name, 20), scene.queue_row("orders", 0, paused={scene.N1: "all"})]
    page = {"rows": rows, "total": 2, "page": 0, "pages": 1}
    fake.topics = {**fake.topics, "queues": lambda _args: page}
    await opened(tab, fake, "#/queues", name)

    cut = (
        "[...document.querySelectorAll('tbody .name')]"
        ".filter((each) => each.scrollWidth > each.clientWidth)"
    )
    assert await tab.run(f"{cut}.length") == 0
    badge = "document.querySelector('tbody tr:nth-child(2) th .badge').innerText"
    assert await tab.run(badge) == "paused both ways at 1 of 3"


async def test_a_long_error_is_whole_in_its_row(tab: Tab, fake: Fake) -> None:
    await sized(tab, 1024)
    message = "[Errno 28] No space left on device: '/var/backups/today.tar.gz'"
    error = {"kind": "OSError", "message": message, "place": "app.py:3"}
    jobs = [scene.found(n, "backing-off", error=error) for n in range(3)]
    fake.topics = {**fake.topics, "jobs": lambda _args: {"jobs": jobs, "is_cut": False}}
    await opened(tab, fake, "#/jobs", "OSError")

    words = "document.querySelector('.wrapped .name')"
    assert await tab.run(f"{words}.scrollHeight - {words}.clientHeight") <= 1
    assert await tab.run(f"{words}.title") == f"OSError: {message} (app.py:3)"


async def test_cards_of_a_phone_show_whole_outcomes_and_errors(tab: Tab, fake: Fake) -> None:
    await sized(tab, 390)
    error = {"kind": "TimeoutError", "message": "smtp.example.org did not answer for ann@example"}
    jobs = [scene.found(n, "backing-off", error=error | {"place": ""}) for n in range(3)]
    fake.topics = {**fake.topics, "jobs": lambda _args: {"jobs": jobs, "is_cut": False}}
    await opened(tab, fake, "#/jobs", "smtp.example.org")

    cut = (
        "[...document.querySelectorAll('td .name')].filter((name) =>"
        " name.scrollWidth > name.clientWidth || name.scrollHeight > name.clientHeight + 1)"
        ".map((name) => name.innerText)"
    )
    assert await tab.run(cut) == []
