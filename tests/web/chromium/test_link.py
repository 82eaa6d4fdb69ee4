import pytest

from tests.web.chromium import scene
from tests.web.chromium.devtools import Tab
from tests.web.chromium.fake import Fake, Said
from tests.web.chromium.test_pages import opened


async def test_a_lost_connection_is_told_and_comes_back(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/queues", "mail")

    fake.is_away = True
    await fake.hang_up()
    await tab.has("Not connected since", "The display is from that time.", "mail")
    fake.is_away = False
    fake.topics = {**fake.topics, "queues": lambda args: {**scene.queues(args), "total": 99}}
    await tab.click("button", "Try now")
    await tab.has("99 queues", "live")

    await tab.until("!document.querySelector('.lost')")
    assert set(fake.subscribed()) == {"overview", "queues"}
    # Chromium itself writes down that a handshake has failed.
    assert all("WebSocket connection" in error for error in tab.errors)
    tab.errors.clear()


async def test_it_is_tried_again_without_a_hand(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/later", "report")

    await fake.hang_up()

    await tab.until("document.querySelector('.pulse.away')")
    await tab.until("document.querySelector('.pulse.live')")
    await tab.has("report")


async def test_an_action_that_loses_its_connection_does_not_tell_a_lie(
    tab: Tab, fake: Fake
) -> None:
    await opened(tab, fake, "#/queue/mail", "Oldest (10)")
    await tab.press("P", "Enter")
    await tab.has("a restart forgets it")

    await fake.hang_up()
    await tab.until("document.querySelector('.pulse.away')")
    await tab.press("Enter")

    await tab.has("The server is not connected.")


async def test_what_is_new_is_shown_and_focus_stays(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/queues", "mail")
    await tab.press("j", "j")

    def turned(args: Said) -> Said:
        data = scene.queues(args)
        return {**data, "rows": [scene.queue_row("fresh", 99_999), *reversed(data["rows"][:50])]}

    fake.topics = {**fake.topics, "queues": turned}
    await fake.push("queues")
    await tab.has("99,999")

    assert await tab.run("document.activeElement.cells[0].innerText") == "sms"
    assert await tab.run("document.querySelectorAll('tbody tr').length") == 51


async def heard_all(tab: Tab) -> None:
    """The server has heard everything that the page has said so far: frames come in order."""
    await tab.run(
        "import('/static/app.js').then(({ app }) => app.link.plan('none', {})).catch(() => 0)"
    )


async def test_a_hidden_tab_asks_for_nothing(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/queues", "mail")
    hide = (
        "Object.defineProperty(document, 'hidden', {{ configurable: true, get: () => {} }});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )

    await tab.run(hide.format("true"))
    await heard_all(tab)
    assert fake.subscribed() == {}

    await tab.run(hide.format("false"))
    await heard_all(tab)
    assert set(fake.subscribed()) == {"overview", "queues"}


@pytest.mark.slow
async def test_a_page_that_stalled_shows_the_newest_when_it_goes_on(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/queues", "mail")
    busy = "const until = performance.now() + 1000; while (performance.now() < until);"
    await tab.run(f"setTimeout(() => {{ {busy} }}, 0)")

    for total in range(100_001, 100_301):

        def counted(args: Said, total: int = total) -> Said:
            return {**scene.queues(args), "total": total}

        fake.topics = {**fake.topics, "queues": counted}
        await fake.push("queues")

    await tab.has("100,300 queues", "live")
