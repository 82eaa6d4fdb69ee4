"""Names that others chose, narrow screens, titles, links, and what is read aloud."""

from typing import Any

import pytest

from tests.web.chromium import consoles, scene
from tests.web.chromium.devtools import Tab
from tests.web.chromium.fake import Fake, Said
from tests.web.chromium.test_pages import PAGES, each_page, opened

ARABIC = "بريد"
FINDING = {"level": "warn", "link": "#/queues"}


def telling(fake: Fake, *texts: str, **others: Any) -> None:
    """The overview has these findings."""
    rows = [{**FINDING, "text": text} for text in texts]
    fake.topics = {
        **fake.topics,
        "overview": lambda args: {**scene.overview(args), "findings": rows, **others},
    }


async def wide(tab: Tab, width: int) -> None:
    await tab.ask(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=844,
        deviceScaleFactor=1,
        mobile=False,
    )


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", [ARABIC, f"{ARABIC} {ARABIC}", f'a" {ARABIC}', "x\u202egnp.exe"])
async def test_a_name_does_not_turn_the_sentence_round(tab: Tab, fake: Fake, name: str) -> None:
    telling(fake, f'queue "{name}": 66 jobs, the oldest waits for 14 min')

    await opened(tab, fake, "", "66 jobs")

    left = """(() => {
      const line = document.querySelector(".findings li");
      const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
      const at = (words) => {
        walker.currentNode = line;
        while (walker.nextNode()) {
          const node = walker.currentNode, from = node.data.indexOf(words);
          if (from < 0) continue;
          const range = document.createRange();
          range.setStart(node, from);
          range.setEnd(node, from + words.length);
          return range.getBoundingClientRect().left;
        }
      };
      return [at("queue"), at(": 66"), at("66 jobs"), at("the oldest"), at("14 min")];
    })()"""
    found = await tab.run(left)
    assert None not in found
    assert found == sorted(found)
    assert "\u202e" not in await tab.text()


async def test_a_long_name_hides_no_figure(tab: Tab, fake: Fake) -> None:
    telling(fake, f'queue "{"x" * 300}": 66 jobs')

    await opened(tab, fake, "", "66 jobs")

    line = "document.querySelector('.findings li')"
    assert await tab.run(f"{line}.getBoundingClientRect().height") < 60
    wide = "[...document.querySelectorAll('*')].filter((each) =>"
    wide += " each.getBoundingClientRect().right > innerWidth).map((each) => each.className)"
    assert await tab.run(wide) == []


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["x\u202egnp.exe", ARABIC, "x" * 300, " ", "two  spaces", "é"])
async def test_a_name_that_cannot_be_typed_is_not_asked_for(
    tab: Tab, fake: Fake, name: str
) -> None:
    fake.plans["queues purge"] = {"says": ["9 jobs end"], "confirm": name, "token": "t"}
    await opened(tab, fake, "#/queue/mail", "Oldest (10)")

    await tab.press("D")
    await tab.has("To confirm, type purge")
    await tab.press(*"purge", "Enter")

    await tab.has("not reached")
    assert [said["token"] for said in fake.asked if "token" in said] == ["t"]


async def test_names_of_spaces_can_be_seen_and_told_apart(tab: Tab, fake: Fake) -> None:
    rows = [scene.queue_row(name, 9) for name in (" ", "mail", "mail ")]
    told: Said = {"total": 3, "page": 0, "pages": 1, "rows": rows}
    fake.topics = {**fake.topics, "queues": lambda _args: told}

    await opened(tab, fake, "#/queues")

    links = "[...document.querySelectorAll('tbody th a')].map((link) => link.innerText)"
    assert await tab.run(links) == ["␣", "mail", "mail␣"]


async def test_the_live_region_speaks_when_the_set_of_findings_changes(
    tab: Tab, fake: Fake
) -> None:
    telling(fake, "n2: no answer for 3 s", 'queue "orders1": 3 jobs')
    await opened(tab, fake, "", "no answer for 3 s")
    spoken = "(globalThis.spoken ??= [])"
    await tab.run(
        f"new MutationObserver(() => {spoken}.push(said.innerText)).observe(said,"
        " {childList: true, characterData: true, subtree: true}), 0"
    )

    for texts in (
        ("n2: no answer for 4 s", 'queue "orders1": 3 jobs'),
        ('queue "orders1": 5 jobs', "n2: no answer for 5 s"),
        ('queue "orders2": 5 jobs', "n2: no answer for 6 s"),
    ):
        telling(fake, *texts)
        await fake.push("overview")
        await tab.has(texts[0])

    assert await tab.run(f"{spoken}") == ['queue "orders2": 5 jobs. n2: no answer for 6 s']


async def test_the_live_region_speaks_names_as_they_are_shown(tab: Tab, fake: Fake) -> None:
    telling(fake, 'queue "mail ": 3 jobs', 'queue "\u202e": 5 jobs')
    await opened(tab, fake, "", "3 jobs")

    assert await tab.text("#said") == 'queue "mail␣": 3 jobs. queue "\\u202e": 5 jobs'


async def test_titles_name_the_thing(tab: Tab, fake: Fake) -> None:
    titles = [await tab.run("document.title") async for _ in each_page(tab, fake)]

    assert len(set(titles)) == len(PAGES)
    assert "mail · Queue · prod · disque" in titles
    assert any(title.startswith(scene.JOB) for title in titles)


@pytest.mark.sample(3)
@pytest.mark.parametrize("width", [390, 1024, 1440])
async def test_operations_are_reached_on_every_screen(tab: Tab, fake: Fake, width: int) -> None:
    await wide(tab, width)

    async for title in each_page(tab, fake):
        assert await tab.run("document.documentElement.scrollWidth") <= width, title
        tabs = "document.querySelector('#bar nav a[aria-current]').getBoundingClientRect()"
        assert await tab.run(f"{tabs}.left >= 0 && {tabs}.right <= innerWidth"), title
        hidden = "[...document.querySelectorAll('button.more, #page .badge')].filter((each) => {"
        hidden += " const box = each.getBoundingClientRect();"
        hidden += " return box.left < 0 || box.right > innerWidth; }).map((each) => each.outerHTML)"
        assert await tab.run(hidden) == [], title
        cut = "[...document.querySelectorAll('.table:not(.matrix)')]"
        cut += ".filter((each) => each.scrollWidth > each.clientWidth + 1)"
        assert await tab.run(f"{cut}.map((each) => each.ariaLabel)") == [], title


async def test_a_column_without_room_goes_with_its_heading(tab: Tab, fake: Fake) -> None:
    await wide(tab, 1024)

    await opened(tab, fake, "#/jobs", "mail.send")

    shown = "[...document.querySelectorAll('#page table tr')].slice(0, 2).map((row) =>"
    shown += " [...row.cells].filter((each) => each.getClientRects().length).length)"
    heading, row = await tab.run(shown)
    assert heading == row


async def test_on_a_narrow_screen_each_figure_of_a_row_has_its_label(tab: Tab, fake: Fake) -> None:
    await wide(tab, 390)

    await opened(tab, fake, "#/queues", "mail")

    cut = "[...document.querySelectorAll('tbody td')].filter((cell) =>"
    cut += " cell.getBoundingClientRect().right > innerWidth).length"
    assert await tab.run(cut) == 0
    label = "getComputedStyle(document.querySelector('tbody td'), '::before').content"
    assert "jobs" in await tab.run(label)


async def test_ages_are_by_the_clock_of_the_cluster(tab: Tab, fake: Fake) -> None:
    hour = 3_600_000
    telling(fake, "x", now_ms=scene.now_ms() + hour)
    row = scene.jobs(1, "queued")[0] | {"added_ms": scene.now_ms() + hour - 120_000}
    told = scene.queue({"name": "mail", "bodies": False}) | {"oldest": [row]}
    fake.topics = {**fake.topics, "queue": lambda _args: told}

    await opened(tab, fake, "#/queue/mail", "2 min ago")


async def test_a_link_is_copied_or_shown(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/queue/mail", "Oldest (10)")
    await tab.run("navigator.clipboard.writeText = () => Promise.reject(new Error('no'))")

    await tab.click("#bar button", "Link")

    await tab.has("Address of this view")
    address = await tab.run("document.querySelector('dialog input').value")
    assert address == f"{fake.address}#/queue/mail"


async def test_a_login_leads_to_where_one_wanted_to_go(tab: Tab) -> None:
    async with consoles.serving("--sandbox", requirepass=b"hush") as served:
        await tab.open(f"{served.address}#/sandbox?x=1")
        await tab.until("document.querySelector('[type=password]')")
        await tab.run("document.querySelector('[type=password]').value = 'wrong'")
        await tab.click("button", "Log in")
        await tab.has("this is not the password")
        tab.errors.clear()  # of the answer 401
        await tab.run("document.querySelector('[type=password]').value = 'hush'")
        await tab.click("button", "Log in")
        await tab.until("document.querySelector('.pulse.live')")

        assert await tab.run("location.href") == f"{served.address}#/sandbox?x=1"
        await tab.has("Log out")


async def test_figures_that_nobody_told_are_no_zeros(tab: Tab, fake: Fake) -> None:
    totals = {**scene.overview({})["totals"], "delayed": None}
    telling(fake, "x", totals=totals, is_counting=True)

    await opened(tab, fake, "", "delayed\n—", "still counting")


@pytest.mark.slow
async def test_a_filter_is_saved_by_a_name_in_this_browser(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/jobs?state=dead&task=mail", "Jobs")
    names = "[...document.querySelectorAll('.views a')].map((each) => each.innerText)"

    await tab.click("button", "Save view")
    await tab.press(*"x\u202ey")
    await tab.press("Enter")
    await tab.until("document.querySelector('.views a')")
    assert await tab.run(names) == ["x\\u202ey"]
    await tab.open("about:blank")
    await opened(tab, fake, "#/jobs", "Jobs")
    await tab.click(".views a", "x")
    await tab.until("location.hash === '#/jobs?state=dead&task=mail'")
    assert not await tab.run("document.body.innerText.includes('Save view')")
    await tab.run("location.hash = '#/workers'")
    await tab.press("k", ctrl=True)
    await tab.has("Go to")
    await tab.press(*"x")
    await tab.has("view")
    await tab.press("Enter")
    await tab.until("location.hash === '#/jobs?state=dead&task=mail'")

    await tab.click(".views button", "✕")
    await tab.until("!document.querySelector('.views a')")
    await tab.has("Save view")


@pytest.mark.slow
async def test_what_is_no_view_in_the_storage_is_dropped(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake)
    for kept in ('{"a": 1}', "no JSON", '[{"name": "x", "hash": "javascript:alert(1)"}, 7, null]'):
        await tab.run(f"void localStorage.setItem('disque.views', {kept!r})")
        await opened(tab, fake, "#/queues", "mail")
        assert await tab.run("document.querySelectorAll('.views a').length") == 0


async def test_on_a_narrow_screen_each_queue_with_dead_jobs_has_its_name(
    tab: Tab, fake: Fake
) -> None:
    await wide(tab, 390)

    await opened(tab, fake, "#/dead", "By queue")

    widths = "[...document.querySelectorAll('.reasons a')].map((each) => each.offsetWidth)"
    assert min(await tab.run(widths)) > 15


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_a_table_that_scrolls_has_a_shadow_at_the_edge_beyond_which_there_is_more(
    tab: Tab, fake: Fake, theme: str
) -> None:
    shade = [{"name": "prefers-color-scheme", "value": theme}]
    await tab.ask("Emulation.setEmulatedMedia", features=shade)
    opacity = "getComputedStyle(document.querySelector('td.actions'), '::before').opacity"
    frame = "new Promise(requestAnimationFrame)"

    await wide(tab, 700)
    await opened(tab, fake, "#/queues", "mail")
    assert float(await tab.run(f"{frame}.then(() => {opacity})")) == 1
    await tab.run("document.querySelector('.table').scrollTo(9999, 0)")
    assert float(await tab.run(f"{frame}.then(() => {frame}).then(() => {opacity})")) < 0.1
    await wide(tab, 1600)
    await opened(tab, fake, "#/queues", "mail")
    assert float(await tab.run(f"{frame}.then(() => {opacity})")) == 0, "nothing is cut"
