"""Jobs by filters, what can be done to all that fit, dead jobs by error, and the time of charts."""

import json

from tests.web.chromium import scene
from tests.web.chromium.devtools import Tab
from tests.web.chromium.fake import Fake
from tests.web.chromium.test_pages import opened

ROWS = "document.querySelectorAll('tbody tr').length"


async def test_filters_are_in_the_address_and_combine(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/jobs?queue=mail", "24 jobs")

    await tab.click(".segments button", "backing-off")
    await tab.until(f"{ROWS} === 4")
    await tab.run("document.querySelector('[aria-label=task]').focus()")
    await tab.press(*"send")
    await tab.until("location.hash.includes('task=send')")

    assert fake.subscribed()["jobs"] == {"queue": "mail", "state": "backing-off", "task": "send"}
    assert await tab.run("location.hash") == "#/jobs?queue=mail&state=backing-off&task=send"
    await tab.open("about:blank")
    await opened(tab, fake, "#/jobs?queue=mail&state=backing-off&task=send", "TimeoutError")
    assert await tab.run("document.querySelector('[aria-label=task]').value") == "send"


async def test_an_operation_is_planned_for_all_that_fit(tab: Tab, fake: Fake) -> None:
    fake.plans["jobs redrive"] = {"says": ["Redrive: 4 jobs"], "token": "t"}
    await opened(tab, fake, "#/jobs?state=dead&queue=mail", "dead")

    await tab.click(".heading button", "Redrive all")
    await tab.has("Redrive: 4 jobs")

    [asked] = [said for said in fake.asked if said.get("operation") == "jobs redrive"]
    assert asked["filter"] == {"queue": "mail", "state": "dead"}


async def test_nothing_is_offered_for_all_jobs_of_a_cluster(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/jobs", "running")

    assert "Redrive all" not in await tab.text()


async def test_jobs_are_saved_as_csv_without_formulas(tab: Tab, fake: Fake) -> None:
    job = scene.found(0, "dead", queue='=1+"2"')
    fake.topics = {**fake.topics, "jobs": lambda _args: {"jobs": [job], "is_cut": False}}
    await opened(tab, fake, "#/jobs", "dead")
    await tab.run(
        "(globalThis.saved = [], URL.createObjectURL = (blob) => (saved.push(blob), '#'), 0)"
    )

    await tab.click("button", "CSV")
    await tab.click("button", "JSON")

    [csv, text] = await tab.run("Promise.all(saved.map((blob) => blob.text()))")
    assert csv.split("\r\n")[1].startswith(f'"{job["id"]}","dead","\'=1+""2""","mail.send"')
    assert json.loads(text)[0]["error"]["kind"] == "TimeoutError"


async def test_a_job_that_has_ended_shows_its_outcome_and_offers_nothing(
    tab: Tab, fake: Fake
) -> None:
    job = {
        **scene.found(0, "ended", worker="mailer"),
        "outcome": "acknowledged",
        "ended_ms": 1_795_648_512_420,
        "due_s": None,
        "since_s": None,
    }
    page = {"id": job["id"], "found": False, "summary": job, "facts": {"queue": "mail"}}
    fake.topics = {
        **fake.topics,
        "jobs": lambda _args: {"jobs": [job], "is_cut": False},
        "job": lambda _args: page,
    }
    await opened(tab, fake, "#/jobs?state=ended&queue=mail", "acknowledged", "mailer")
    shown = (await tab.text()).lower()
    assert "delivered to" in shown
    assert "redrive all" not in shown
    assert "acknowledge all" not in shown

    await tab.click("tbody th a, tbody td a", "D-")

    await tab.has("delivered to", "TimeoutError")
    assert "Requeue" not in await tab.text()


async def test_a_group_of_dead_jobs_leads_to_its_jobs(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/dead", "LookupError", "and 11 others")

    await tab.click("tbody th a", "LookupError")

    await tab.until("document.querySelector('h1').innerText === 'Jobs'")
    wanted = {"state": "dead", "queue": "mail", "task": "mail.send", "error": "LookupError"}
    assert fake.subscribed()["jobs"] == {**wanted, "place": "app/mail.py:22"}


async def test_a_group_of_dead_jobs_is_redriven(tab: Tab, fake: Fake) -> None:
    fake.plans["jobs redrive"] = {"says": ["Redrive: 1,100 jobs"], "confirm": "1100", "token": "t"}
    await opened(tab, fake, "#/dead", "LookupError")

    await tab.press("j", "R")
    await tab.has("To confirm, type 1100")

    [asked] = [said for said in fake.asked if said.get("operation") == "jobs redrive"]
    assert asked["filter"]["error"] == "LookupError"


async def test_the_page_of_a_job_says_what_failed_and_who_has_it(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, f"#/job/{scene.JOB}", "2 of 25", "TimeoutError", "app/mail.py:22")

    await tab.has("mailer-7@web3", "for 12 s")
    await tab.has("backoff\n15 s", "longest backoff\n10 min")
    names = "[...document.querySelectorAll('.heading button')].map((each) => each.innerText)"
    assert "Acknowledge" in await tab.run(names)


async def test_the_stalls_of_a_node_are_one_line(tab: Tab, fake: Fake) -> None:
    past = scene.history({"span": "hour"})
    now = past["at"][-1]
    lates = [(n * 7, scene.N2, f"{n / 10}s") for n in range(5, 25)] + [(30, scene.N1, "0.7s")]
    marks = [{"at": now - ago, "node": node, "kind": "late", "what": s} for ago, node, s in lates]
    past["marks"] = sorted(marks, key=lambda mark: mark["at"])
    fake.topics = {**fake.topics, "history": lambda _args: past}

    await opened(tab, fake, "#/overview?span=hour", "What happened")

    lines = await tab.run("[...document.querySelectorAll('.marks li')].map((li) => li.innerText)")
    assert [line.split(" ", 1)[1] for line in lines] == [
        "n2 did not run 20 times, up to 2.4 s",
        "n1 did not run for 0.7s",
    ]


async def test_to_end_jobs_has_one_name(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/jobs?key=report", "Acknowledge all")

    await tab.run(f"location.hash = '#/job/{scene.JOB}'")
    await tab.until("[...document.querySelectorAll('.heading button')].length")

    assert "Cancel" not in await tab.text("main")


async def test_charts_show_what_nodes_have_kept(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "", "5 min ago")

    await tab.click(".segments button", "1 h")
    await tab.has("1 h ago", "refused")
    samples = scene.history({"span": "hour"})["added_s"]
    known = [each for each in samples if each is not None]
    mean, total = round(sum(known) / len(known)), round(sum(known) * 10)
    await tab.has(f"added mean {mean}/s, {total:,} in all")
    axes = "[...document.querySelectorAll('.plot .top')].map((each) => each.innerText)"
    assert (await tab.run(axes))[-1] == "1 s"
    assert await tab.run("location.hash") == "#/overview?span=hour"
    titles = "[...document.querySelector('.chart').querySelectorAll('.mark title')]"
    told = await tab.run(f"{titles}.map((each) => each.textContent.split(',')[0])")
    assert told == ["n2 started", "n3 failed", "PURGE", "n2 did not run for 2.5s"]
    await tab.has("What happened", "n3 failed", "n2 did not run for 2.5s")
    pieces = await tab.run("document.querySelector('.chart .line').getAttribute('d')")
    assert pieces.count("M") == 2
    await tab.click(".segments button", "1 d")
    await tab.has("1 d ago")
    assert fake.subscribed()["history"] == {"span": "day"}
