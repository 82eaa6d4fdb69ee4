from tests.web.chromium import scene
from tests.web.chromium.devtools import Tab
from tests.web.chromium.fake import Fake
from tests.web.chromium.test_pages import opened

CURRENT = "document.querySelector('tr[aria-current] th')?.innerText"


async def test_digits_open_the_pages(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake)

    for key, heading in zip(
        "2345671",
        ("Cluster", "Queues", "Jobs", "Workers", "Dead jobs", "Later", "Overview"),
        strict=True,
    ):
        await tab.press(key)
        await tab.until(f"document.querySelector('h1').innerText === '{heading}'")
        assert await tab.run("document.querySelector('nav [aria-current] kbd').innerText") == key


async def test_a_row_is_walked_to_opened_and_left(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/queues")

    await tab.press("j", "j", "ArrowDown", "k")
    assert await tab.run(CURRENT) == "sms"
    assert await tab.run("document.activeElement.getAttribute('aria-current')") == "true"
    await tab.press("Enter")
    await tab.has("Queue sms", "Oldest (10)")
    await tab.press("j", "Enter")
    await tab.until("document.querySelector('h1').innerText.startsWith('Job')")
    await tab.press("u")
    await tab.until("document.querySelector('h1').innerText === 'Jobs'")


async def test_one_level_up_from_a_job_is_its_queue(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, f"#/job/{scene.JOB}")

    await tab.press("u")

    await tab.has("Queue mail")


async def test_brackets_turn_pages(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/queues", "1–100")

    await tab.press("]")
    await tab.has("101–200")
    await tab.press("]")
    await tab.has("201–300")
    await tab.press("[")
    await tab.has("101–200")


async def test_space_freezes_what_is_shown(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake)

    await tab.press(" ")
    await tab.has("paused at")
    await tab.run("new Promise((done) => setTimeout(done, 0))")
    assert fake.subscribed() == {}
    await tab.press(" ")
    await tab.has("live")
    await tab.until("!document.body.innerText.includes('paused at')")
    assert set(fake.subscribed()) == {"history", "overview"}


async def test_the_palette_goes_to_any_queue(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake)

    await tab.press("k", ctrl=True)
    await tab.press(*"sm")
    await tab.until("document.querySelector('#hits li').innerText.startsWith('queue\\nsms')")
    await tab.press("Enter")

    await tab.has("Queue sms")
    assert set(fake.subscribed()) == {"overview", "queue"}


async def test_keys_are_listed_and_escape_closes_the_list(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake)

    await tab.press("?")
    await tab.has("pause and resume the display")
    await tab.press("Escape")
    await tab.until("!document.querySelector('dialog').open")
    await tab.press("3")
    await tab.has("Queues")


async def test_what_is_typed_into_a_field_is_no_key(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/queues")

    await tab.press("/", *"2d")
    assert await tab.run("document.querySelector('#find').value") == "2d"
    assert await tab.run("location.hash.startsWith('#/queues')")
    await tab.press("Escape", "2")
    await tab.has("Who sees whom")
