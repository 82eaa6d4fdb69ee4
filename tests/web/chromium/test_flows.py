"""A flow: its members as a graph, what needs somebody, and what can be done about it."""

import json
from itertools import pairwise
from typing import Any, Final

import pytest

from tests.web.chromium import scene
from tests.web.chromium.devtools import Tab
from tests.web.chromium.fake import Fake
from tests.web.chromium.test_pages import opened

PAGE: Final = f"#/flow/{scene.FLOW}"
BOXES: Final = r"""
[...document.querySelectorAll('.flow-box')].map((box) => {
  const {left, top, right} = box.getBoundingClientRect();
  return {
    task: box.querySelector('.flow-task').innerText.replace(/\s+/g, ' ').trim(),
    state: box.querySelector('.flow-state').innerText.trim(),
    left, top, right,
  };
})
"""


async def boxes(tab: Tab) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = await tab.run(BOXES)
    return found


async def look_at(tab: Tab, task: str) -> None:
    """By keyboard: the focus is on the first box of this task."""
    await tab.run(
        "[...document.querySelectorAll('.flow-box')]"
        f".find((box) => box.innerText.includes({json.dumps(task)})).focus()"
    )


async def test_parents_are_to_the_left_of_their_children(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, PAGE, "297 of 570 done")

    left = {each["task"]: each["left"] for each in await boxes(tab)}

    assert left["film.cut"] < left["film.sound"] == left["film.encode × 560"]
    assert left["film.sound"] < left["film.title"] == left["film.measure"]
    assert left["film.measure"] < left["film.check"] < left["film.publish"]


async def test_boxes_do_not_cover_each_other(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, PAGE, "297 of 570 done")

    shown = await boxes(tab)

    places = sorted((each["left"], each["top"]) for each in shown)
    assert all(one[0] < other[0] or other[1] - one[1] > 60 for one, other in pairwise(places))


async def test_many_members_of_one_task_are_one_box_with_numbers(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, PAGE, "297 of 570 done")

    shown = await boxes(tab)

    assert len(shown) == 11
    [folded] = [each for each in shown if "×" in each["task"]]
    assert (folded["task"], folded["state"]) == (
        "film.encode × 560",
        "✖ 1 dead, 296 of 560 done",
    )


async def test_a_state_is_told_by_a_sign_and_words_beside_its_colour(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, PAGE, "297 of 570 done")

    states = {each["task"]: each["state"] for each in await boxes(tab)}

    assert states["film.cut"] == "✓ done"
    assert states["film.sound"] == "► running for 12 s"
    assert states["film.check"] == "○ waiting for parents"
    await tab.has("✖ 1 dead", "◔ 220 queued", "○ 9 waiting for parents", "⊘ 1 cancelled")


@pytest.mark.slow
async def test_the_focus_shows_the_last_error_of_a_box(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, PAGE, "297 of 570 done")

    await look_at(tab, "film.encode")

    await tab.until("document.querySelector('.flow-note').innerText.includes('CodecError')")
    assert "1 backing off" in await tab.text(".flow-note")
    [name] = [name for role, name in await tab.names() if "film.encode × 560" in name]
    assert "last error: CodecError: no frame at 12:07" in name


@pytest.mark.slow
async def test_a_box_of_many_lists_its_members_those_that_need_somebody_first(
    tab: Tab, fake: Fake
) -> None:
    await opened(tab, fake, PAGE, "the first 100 of 570")

    await tab.click(".flow-box", "film.encode")

    await tab.has("Members: film.encode", "the first 100 of 560")
    first = await tab.text("tbody tr")
    assert "dead" in first
    assert "CodecError" in first
    await tab.click(".card-head button", "All members")
    await tab.has("the first 100 of 570")


async def test_a_state_chooses_the_members_that_are_listed(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, PAGE, "the first 100 of 570")

    await tab.click(".flow-progress button", "cancelled")

    await tab.has("Members: cancelled", "1 member")
    assert await tab.run("location.hash") == f"{PAGE}?state=cancelled"


async def test_a_member_leads_to_its_job_and_a_job_to_its_flow(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, f"#/job/{scene.JOB}", "D-5a1f30c2-Rmxvd0")
    await tab.click("dd a", "D-5a1f30c2-Rmxvd0")
    await tab.has("297 of 570 done")

    await tab.click(".flow-box", "film.sound")

    await tab.until(f"location.hash === '#/job/{scene.flow_members()[1]['id']}'")


async def test_dead_members_are_redriven_with_a_plan(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, PAGE, "297 of 570 done")

    await tab.click("h1 ~ .tools button", "Redrive dead members")

    await tab.has("enqueued with all their attempts: 1 film.encode")
    assert fake.done("flows retry") == [{"id": scene.FLOW}]
    assert not [said for said in fake.asked if "token" in said]


async def test_a_flow_that_is_over_offers_nothing(tab: Tab, fake: Fake) -> None:
    over = {**scene.flow({"id": scene.FLOW}), "state": "done", "counts": {"done": 570}}
    over |= {"coordinator": None}
    fake.topics = {**fake.topics, "flow": lambda _args: over}
    await opened(tab, fake, PAGE, "570 of 570 done", "it has ended")

    assert await tab.run("document.querySelectorAll('h1 ~ .tools button').length") == 0


async def test_a_flow_that_no_node_has_says_what_nodes_remember(tab: Tab, fake: Fake) -> None:
    gone = {"id": scene.FLOW, "found": False, "why": "it is over"}
    fake.topics = {**fake.topics, "flow": lambda _args: gone}

    await opened(tab, fake, PAGE, "it is over. The job that has added its members")


async def test_flows_are_listed_with_what_is_not_done(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/jobs", "Flows")

    await tab.click(".heading a", "Flows")

    await tab.has("3 flows", "2 dead", "1 flow is not listed: codecs of its app have encoded it")
    await tab.press("j", "Enter")
    await tab.has("297 of 570 done")
