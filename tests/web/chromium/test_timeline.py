from pathlib import Path
from typing import Final

import attrs
import pytest

from tests.sim.picture.examples import Example
from tests.web.chromium import scene, story
from tests.web.chromium.devtools import Tab
from tests.web.chromium.fake import Fake, Said
from tests.web.chromium.test_pages import opened

JOB: Final = f"#/job/{scene.JOB}"
OTHER_JOB: Final = f"#/job/{scene.jobs(1, 'queued')[0]['id']}"
COUNT: Final = "document.querySelector('.timeline .count').innerText"
NOW: Final = "document.querySelector('.timeline .now').innerText"
PRESSED: Final = (
    "[...document.querySelectorAll('.timeline .caption [aria-pressed=true]')]"
    ".map((button) => button.innerText)"
)


def tell(fake: Fake, answer: Said) -> None:
    fake.topics = {**fake.topics, "job-timeline": lambda _args: answer}


async def test_lanes_and_events_have_names(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, JOB, "What happened")

    names = await tab.names()
    lanes = ["checkout@web2", "n1", "n2", "n3", story.OTHER, story.WORKER]
    assert [name for role, name in names if role == "listitem" and name in lanes] == lanes
    assert ("image", "0.421700 s · n1 serves the job to mailer-2@web1") in names
    assert ("image", "60.424900 s · n1 queues the job (retry)") in names
    assert ("button", "60.516800 n2 receives WORKING from n1") in names
    assert ("slider", "event") in names
    assert not [role for role, name in names if role in {"button", "slider"} and not name]


async def test_a_trace_says_why_it_is_and_how_clocks_were_set_right(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, JOB)

    await tab.has(
        "Traced since it failed or was requeued. Time 0 is 2026-09-21 14:13:20 UTC."
        " n2: clock corrected by −12 ± 3 ms"
    )


async def test_keys_step_through_the_events(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, JOB, "event 23 of 23")

    for key, place in (("ArrowLeft", 22), ("Home", 1), ("ArrowRight", 2), ("End", 23)):
        await tab.press(key)
        assert await tab.run(COUNT) == f"event {place} of 23", key
    await tab.press("t", "c")
    assert await tab.run(PRESSED) == ["causes only", "true time"]
    assert await tab.run("document.querySelectorAll('.timeline .dim').length") > 0
    await tab.press("t", "c")
    assert await tab.run(PRESSED) == []
    wide = "document.querySelector('.timeline svg').width.baseVal.value"
    before = await tab.run(wide)
    await tab.press("+")
    assert await tab.run(wide) > before
    await tab.press("2")
    await tab.has("Who sees whom")


async def test_an_event_is_chosen_where_it_is_listed_and_where_it_is_drawn(
    tab: Tab, fake: Fake
) -> None:
    await opened(tab, fake, JOB, "event 23 of 23")

    await tab.click(".events button", "n1 queues the job (retry)")
    assert await tab.run(NOW) == "60.424900 s n1 queues the job (retry)"
    await tab.run(
        "document.querySelector('.mark[aria-label*=\"serves the job to mailer-2\"]')"
        ".dispatchEvent(new MouseEvent('click', { bubbles: true }))"
    )
    assert await tab.run(NOW) == "0.421700 s n1 serves the job to mailer-2@web1"
    cards = "[...document.querySelectorAll('.moment .node')].map((node) => node.innerText)"
    assert await tab.run(cards) == ["n1\nheld", "n2\nheld", "n3\nno record"]


@pytest.mark.slow
async def test_the_playhead_goes_along_at_the_end_and_stays_elsewhere(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, JOB, "event 23 of 23")
    rows = story.ended(scene.JOB)

    tell(fake, story.told(scene.JOB, rows[:-2]))
    await fake.push("job-timeline")
    await tab.has("event 27 of 27", "acked")
    await tab.press("ArrowLeft")
    said = await tab.run(NOW)
    tell(fake, story.told(scene.JOB, rows))
    await fake.push("job-timeline")
    await tab.has("event 26 of 29")

    assert await tab.run(NOW) == said


async def test_what_is_hidden_stays_hidden_when_more_happens(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, JOB, "event 23 of 23")
    labels = (
        "[...document.querySelectorAll('.timeline text.arrow')].map((text) => text.textContent)"
    )

    await tab.click(".filters button", "WILLQUEUE")
    tell(fake, story.told(scene.JOB, story.ended(scene.JOB)))
    await fake.push("job-timeline")
    await tab.has("event 29 of 29")

    found = await tab.run(labels)
    assert "SETACK" in found
    assert "WILLQUEUE" not in found


async def test_a_job_that_is_not_traced_says_so_and_can_be(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, OTHER_JOB, "It is not traced")

    await tab.click(".card-head button", "Trace on")
    await tab.has("3 nodes record the events of the job, for one hour")
    [asked] = fake.done("jobs trace")
    assert asked == {"id": OTHER_JOB.removeprefix("#/job/")}
    await tab.press("Enter")
    await tab.until("document.querySelector('.outcome')")


async def test_a_trace_that_has_ended_or_has_gaps_says_so(tab: Tab, fake: Fake) -> None:
    answer = story.told(scene.JOB, story.rows(scene.JOB))
    nodes = [{**node, "on": False, "omitted": 17 * n} for n, node in enumerate(answer["nodes"])]
    tell(fake, {**answer, "nodes": nodes})
    fake.unreached = {scene.N3: "no answer within 1 s"}

    await opened(tab, fake, JOB)

    await tab.has("51 events were dropped", "The trace has ended", "Trace on")
    await tab.has("No answer from n3: no answer within 1 s. The figures below exclude it.")


async def test_a_job_that_has_gone_still_has_its_trace(tab: Tab, fake: Fake) -> None:
    id = OTHER_JOB.removeprefix("#/job/")
    tell(fake, story.told(id, story.ended(id)))

    await opened(tab, fake, OTHER_JOB, "No node that answers has this job.", "event 29 of 29")


async def test_a_server_that_knows_no_traces_is_not_asked(tab: Tab, fake: Fake) -> None:
    fake.topics = {name: topic for name, topic in fake.topics.items() if name != "job-timeline"}

    await opened(tab, fake, JOB, "What it survives")

    assert "What happened" not in await tab.text()
    assert set(fake.subscribed()) == {"overview", "job"}


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "name",
    [
        scene.NASTY,
        scene.RIGHT_TO_LEFT,
        scene.LONG,
        "\x00\n\r\u2028",
        "\xad\u061c\u3164\ufe00\U000e0041",
        "a\u0301\u0301\u0301\u0301\u20dd",
    ],
)
async def test_names_are_shown_as_what_they_are(tab: Tab, fake: Fake, name: str) -> None:
    rows = [
        attrs.evolve(row, client=name if row.client else "", detail=f"body={name}")
        for row in story.rows(scene.JOB, queue=name, worker=name)
    ]
    tell(fake, story.told(scene.JOB, rows))

    await opened(tab, fake, JOB, "event 23 of 23")

    lane = await tab.run("document.querySelector('.gutter .agent').getAttribute('aria-label')")
    shown = {"\u202e": "\\u202e", "\u2066": "\\u2066", "\x00": "\\x00", "\n": "\\x0a"}
    shown |= {"\r": "\\x0d", "\u2028": "\\u2028", "\xad": "\\xad", "\u20dd": "\\u20dd"}
    shown |= {each: f"\\u{ord(each):04x}" for each in "\u061c\u3164\ufe00"}
    shown |= {"\U000e0041": "\\U000e0041"}
    assert lane == "".join(shown.get(sign, sign) for sign in name)
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert await tab.run(wide) == 0


@pytest.mark.slow
async def test_fifty_thousand_rows_are_drawn_as_far_as_they_are_in_sight(
    tab: Tab, fake: Fake
) -> None:
    tell(fake, story.told(scene.JOB, story.many(scene.JOB, 50_000)))
    drawn = "document.querySelectorAll('.timeline svg *').length"

    await opened(tab, fake, JOB, "event 50000 of 50000")
    assert 50 < await tab.run(drawn) < 3000
    await tab.press("t")
    await tab.until(f"({PRESSED}).includes('true time')")
    assert 50 < await tab.run(drawn) < 9000
    await tab.press("t", "Home")
    await tab.until("document.querySelector('.timeline .scroll').scrollLeft < 1000")
    await tab.has("event 1 of 50000")
    await tab.until("document.querySelector('.mark[aria-label^=\"0.000\"]')")

    assert 50 < await tab.run(drawn) < 3000


@pytest.mark.slow
async def test_the_way_of_a_job_is_saved_as_a_picture(tab: Tab, fake: Fake, tmp_path: Path) -> None:
    rows = [attrs.evolve(row, detail=scene.NASTY) for row in story.rows(scene.JOB)]
    tell(fake, story.told(scene.JOB, rows))
    await opened(tab, fake, JOB, "event 23 of 23")
    await tab.ask("Page.setDownloadBehavior", behavior="deny")

    await tab.run(
        "{ const make = URL.createObjectURL; URL.createObjectURL = (blob) => {"
        " blob.text().then((text) => { window.saved = text; }); return make(blob); }; }"
    )
    await tab.click("button", "Save as picture")
    await tab.until("window.saved")
    file = tmp_path / "job.html"
    file.write_text(await tab.run("window.saved"))
    await tab.open(f"file://{file}")

    await tab.has("Job J1", scene.JOB, "event 21 of 23")
    await tab.press("Home")
    await tab.has("event 1 of 23", f"n1 sends REPLJOB J1 to n2 — {scene.NASTY}")


async def test_a_planned_retry_is_no_duplicate(tab: Tab, fake: Fake) -> None:
    again = [
        attrs.evolve(row, cause="nack") if (row.kind, row.cause) == ("queue", "retry") else row
        for row in story.rows(scene.JOB)
    ]
    tell(fake, story.told(scene.JOB, again))

    await opened(tab, fake, JOB, "What happened")
    await tab.until("document.querySelector('.timeline .label')")

    labels = "[...document.querySelectorAll('.timeline .label')].map((each) => each.textContent)"
    assert "retry" in await tab.run(labels)
    assert "duplicate" not in await tab.text(".jobline")


async def test_a_snooze_is_drawn_as_one(tab: Tab, fake: Fake) -> None:
    rows = story.rows(scene.JOB)
    at = next(n for n, row in enumerate(rows) if (row.kind, row.cause) == ("queue", "retry"))
    put_off = attrs.evolve(
        rows[at], kind="postpone", cause="release", detail="wait=60000 snoozes=1"
    )
    heard = attrs.evolve(put_off, node="n2", cause="postponed")
    again = attrs.evolve(rows[at], cause="backed-off")
    tell(fake, story.told(scene.JOB, [*rows[:at], put_off, heard, again, *rows[at + 1 :]]))

    await opened(tab, fake, JOB, "What happened")
    await tab.until("document.querySelector('.timeline .label')")

    labels = "[...document.querySelectorAll('.timeline .label')].map((each) => each.textContent)"
    assert {"snoozed", "queued: snooze over"} <= set(await tab.run(labels))
    assert not {"retry", "duplicate", "backs off"} & set(await tab.run(labels))
    names = [name for _, name in await tab.names()]
    assert any("n1 snoozes the job, as its worker asks" in name for name in names)
    assert any("n1 queues the job: its snooze is over" in name for name in names)


async def test_renewals_of_a_lease_are_folded(tab: Tab, fake: Fake) -> None:
    rows = story.rows(scene.JOB)
    example = Example(time=rows[-1].time, rows=list(rows), refs=1000)
    for _ in range(40):
        example.recv(700, example.send(12_000_000, "n1", "n2", "working", scene.JOB))
    tell(fake, story.told(scene.JOB, example.rows))

    await opened(tab, fake, JOB, "What happened")
    await tab.until("document.querySelector('.timeline .arrow')")

    arrows = "[...document.querySelectorAll('.timeline .arrow')].map((each) => each.textContent)"
    names = [name for name in await tab.run(arrows) if name.startswith("WORKING")]
    assert len(names) <= 4
    assert any("more before" in name for name in names)


async def test_names_of_messages_have_their_meaning(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, JOB, "What happened", "WILLQUEUE")

    chip = "[...document.querySelectorAll('.timeline button')]"
    chip += ".find((each) => each.innerText.includes('WILLQUEUE'))"
    await tab.run(f"{chip}.focus({{ focusVisible: true }})")
    assert "enqueue" in await tab.run(f"getComputedStyle({chip}, '::after').content")
