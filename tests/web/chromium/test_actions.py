import pytest

from tests.web.chromium import scene
from tests.web.chromium.devtools import Tab
from tests.web.chromium.fake import VERBS, Fake
from tests.web.chromium.test_pages import opened

DEEDS = [
    ("pause", "#/queue/mail", "P"),
    ("pause", "#/queue/mail", "I"),
    ("pause", "#/queue/mail", "B"),
    ("purge", "#/queue/mail", "D"),
    ("enqueue-queue", "#/queue/mail", "Q"),
    ("redrive", "#/queue/mail", "R"),
    ("enqueue", f"#/job/{scene.JOB}", "Q"),
    ("nack", f"#/job/{scene.JOB}", "N"),
    ("ack", f"#/job/{scene.JOB}", "A"),
    ("deljob", f"#/job/{scene.JOB}", "D"),
    ("trace", f"#/job/{scene.jobs(1, 'queued')[0]['id']}", "T"),
    ("leave", "#/cluster", "jL"),
    ("forget", "#/cluster", "jF"),
    ("meet", "#/cluster", "M"),
    ("quiet", "#/workers", "jQ"),
    ("resume", "#/workers", "jS"),
    ("kick", "#/workers", "kK"),
]
"""Verb, page and keys."""


def test_every_action_is_tried() -> None:
    assert {verb for verb, _, _ in DEEDS} == set(VERBS)


@pytest.mark.parametrize(("verb", "page", "keys"), DEEDS)
async def test_every_action_tells_its_plan_and_its_outcome(
    tab: Tab, fake: Fake, verb: str, page: str, keys: str
) -> None:
    fake.plans = {verb: {"says": [f"what {verb} would do"], "token": "t"}}
    await opened(tab, fake, page)
    if verb == "trace":  # the job of this page is at no node, so it has no table
        await tab.has("It is not traced")
    else:
        await tab.until("document.querySelector('tbody tr td:not(.empty)')")

    await tab.press(*keys)
    if verb == "meet":
        await tab.has("Address and port")
        await tab.press(*"10.0.0.7:7711", "Enter")
    elif verb == "redrive":
        await tab.has("Jobs a second")
        await tab.press("Enter")
    await tab.has(f"what {verb} would do")
    assert len(fake.done(verb)) == 1
    assert not [said for said in fake.asked if "token" in said]
    await tab.until("document.querySelector('dialog .main')")
    await tab.press("Enter")

    await tab.has(f"{scene.N1}: out", f"{scene.N3}: not reached")
    assert [said["token"] for said in fake.asked if "token" in said] == ["t"]


async def test_an_action_shows_its_plan_first_and_then_each_node(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/queue/mail", "Oldest (10)")

    await tab.click("h1 ~ .tools button", "Stop deliveries")
    await tab.has("Stop deliveries: mail", "a restart forgets it")
    assert fake.done("pause") == [{"queue": "mail", "mode": "out"}]
    assert [said for said in fake.asked if "token" in said] == []

    await tab.press("Enter")
    await tab.has(f"{scene.N1}: out", f"{scene.N3}: not reached")
    [carried] = [said for said in fake.asked if "token" in said]
    assert carried["token"] == "t1"
    bad = await tab.text(".outcome .bad")
    assert "7713: not reached" in bad
    await tab.press("Enter")
    await tab.until("!document.querySelector('dialog').open")


async def test_an_action_that_cannot_be_undone_asks_for_a_word(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/queues", "mail")

    await tab.press("j", "D")
    await tab.has("41,209 jobs end", "To go on, type mail")
    await tab.press(*"mai", "Enter")
    assert await tab.run("document.querySelector('dialog .main').disabled")
    assert not [said for said in fake.asked if "token" in said]
    await tab.press("l", "Enter")
    await tab.has("not reached")
    assert [said["token"] for said in fake.asked if "token" in said] == ["t2"]


async def test_a_refusal_is_told(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, f"#/job/{scene.JOB}", "mail")

    await tab.press("Q")

    await tab.has("the job is done")
    assert not [said for said in fake.asked if "token" in said]


async def test_an_action_goes_to_all_rows_that_are_chosen(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/queues", "mail")

    await tab.press("j", "x", "j", "x")
    await tab.has("2 chosen")
    await tab.press(".")
    await tab.has("Stop both ways")
    await tab.press("P")
    await tab.has("Stop deliveries: 2 chosen")
    await tab.until("document.querySelector('dialog .main')?.innerText === 'Stop deliveries'")
    await tab.press("Enter")
    await tab.until("document.querySelectorAll('ul.outcome').length === 2")
    assert [args["queue"] for args in fake.done("pause")] == ["mail", "sms"]


async def test_a_form_asks_for_what_an_action_has_to_know(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/dead", "no such user")

    await tab.click(".groups button", "Redrive")
    await tab.has("At most, of 1,100 (1 to try)")
    await tab.run("document.querySelector('[name=limit]').select()")
    await tab.press(*"20", "Enter")
    await tab.has("1 of 1,100 dead jobs is queued again")

    assert fake.done("redrive") == [{"queue": "mail", "limit": 20, "rate": 50}]


async def test_a_client_is_kicked_from_its_row(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/workers", "checkout")

    await tab.run("[...document.querySelectorAll('button.more')].at(-1).click()")
    await tab.press("K")
    await tab.has("the connection of 10.0.0.9:53012 ends")

    assert fake.done("kick") == [{"node": scene.N1, "client": 43}]


async def test_a_reader_sees_no_action(tab: Tab, fake: Fake) -> None:
    fake.hello |= {"role": "reader", "verbs": []}

    await opened(tab, fake, "#/queues", "mail", "read only")
    await tab.press("j", ".", "D")

    assert await tab.run("document.querySelectorAll('button.more').length") == 0
    assert not await tab.run("document.querySelector('dialog').open")
