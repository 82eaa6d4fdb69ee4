"""A run is replayed: its verdict, its faults, its events."""

from pathlib import Path

import pytest

from tests.sim.mutants import failing
from tests.sim.mutants.failing import trace
from tests.web.chromium.consoles import serving
from tests.web.chromium.devtools import Tab
from tests.web.chromium.test_looks import CONTRASTS, LEAST, use

PIN = str(Path(__file__).parents[3] / "scenarios" / "pins" / "careless-clients-2.json")
AT = "document.querySelector('.heading .note').innerText"
FINDING = "[...document.querySelectorAll('.broken')].find((each) => each.innerText.includes('%s'))"


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A trace of broken nodes."""
    return str(trace(tmp_path_factory.mktemp("failed") / "failed.jsonl"))


@pytest.mark.slow
async def test_a_failed_run_is_shown_with_its_verdict_and_a_finding_leads_to_its_moment(
    tab: Tab, failed: str
) -> None:
    async with serving("--trace", failed) as served:
        await tab.open(served.address)
        await tab.has("orphans · seed 1", "FAIL", failing.PROPERTY, f"sim replay {failed}")
        assert await tab.run("location.hash") == "#/replay"

        button = f"{FINDING % failing.PROPERTY}.querySelector('button')"
        when = (await tab.run(f"{button}.innerText")).removeprefix("go to ")
        await tab.run(f"{button}.click()")

        # The last event of the job until then.
        shown = float((await tab.run(AT)).split()[1])
        assert shown <= float(when.removesuffix(" s"))
        later = "document.querySelector('.moment .events li:last-child span').innerText"
        assert float(await tab.run(later)) >= shown
        assert await tab.run("document.querySelector('.timeline h2').innerText") == "Job J1"
        assert "Take over" not in await tab.text()


@pytest.mark.slow
async def test_keys_step_through_it(tab: Tab, failed: str) -> None:
    async with serving("--trace", failed) as served:
        await tab.open(served.address)
        await tab.has("FAIL")
        count = "document.querySelector('.player .count').innerText"
        await tab.press("Home")
        assert (await tab.run(count)).startswith("event 1 of")
        await tab.press("ArrowRight", "ArrowRight", "ArrowLeft")
        assert (await tab.run(count)).startswith("event 2 of")
        await tab.press("e")
        first = await tab.run(AT)
        await tab.press("e")
        await tab.until(f"{AT} !== {first!r}")
        await tab.press("f")
        await tab.has("crash")
        await tab.press(*"kkkj")
        await tab.until("document.querySelector('.picker [aria-current]').innerText.includes('J2')")
        await tab.press("/", *"J10")
        await tab.until("document.querySelectorAll('.picker li').length === 1")
        await tab.press("Escape", "Home", " ")
        await tab.until(
            "document.querySelector('.player [aria-pressed=true]').innerText === 'pause'"
        )
        await tab.until(f"!{count}.startsWith('event 1 of')")
        await tab.press(" ")
        await tab.until("document.querySelector('.player .buttons').innerText.includes('play')")


@pytest.mark.slow
async def test_a_pinned_plan_is_played_and_taken_over(tab: Tab) -> None:
    async with serving("--scenario", PIN) as served:
        await tab.open(served.address)
        await tab.has("careless-clients · seed 26", "PASS", "Take over from here")
        await tab.until("document.querySelector('.strip-bars')")
        await tab.press("f", "f")
        moment = float((await tab.run(AT)).split()[1])
        await tab.press("T")
        await tab.has("scenario careless-clients, seed 26")
        await tab.until(f"document.querySelector('.sandbox-time')?.innerText === '{moment:.6f} s'")
        await tab.has("time is stopped")

        assert abs(served.sandbox.box.now - moment * 1_000_000) <= 1
        await tab.press("j", "K")
        await tab.has("n1 is killed, since")
        await tab.press("8")
        await tab.has("PASS", "Take over from here")
        await tab.press("9")
        await tab.has("n1 is killed, since")


@pytest.mark.slow
async def test_a_run_with_operations_is_not_dropped_by_a_link_without_a_question(tab: Tab) -> None:
    async with serving("--scenario", PIN) as served:
        await tab.open(served.address + "#/sandbox")
        await tab.has("scenario careless-clients", "time is stopped")
        served.sandbox.do({"operation": "kill", "node": "n1"})
        await tab.has("n1 is killed, since")

        await tab.run("location.hash = '#/sandbox?at=2000000'")
        await tab.has(
            "The run is discarded, in all browsers", "the scenario is played up to 2.000 s"
        )
        await tab.press("Escape")
        await tab.until("!document.querySelector('dialog').open")
        assert (served.sandbox.epoch, await tab.run("location.hash")) == (1, "#/sandbox")

        await tab.run("location.hash = '#/sandbox?at=2000000'")
        await tab.has("the scenario is played up to 2.000 s")
        await tab.press("Enter")
        await tab.until("document.querySelector('.sandbox-time').innerText === '2.000000 s'")
        assert served.sandbox.epoch == 2


@pytest.mark.slow
async def test_a_run_whose_time_has_gone_on_is_not_dropped_by_a_link_without_a_question(
    tab: Tab,
) -> None:
    async with serving("--scenario", PIN) as served:
        await tab.open(served.address + "#/sandbox")
        await tab.has("scenario careless-clients", "time is stopped")
        served.sandbox.box.run_to(1_000_000)
        await tab.has("1.000000 s")

        await tab.run("location.hash = '#/sandbox?at=2000000'")
        await tab.has(
            "The run is discarded, in all browsers", "the scenario is played up to 2.000 s"
        )
        await tab.press("Escape")
        await tab.until("!document.querySelector('dialog').open")

        assert served.sandbox.epoch == 1


@pytest.mark.slow
async def test_without_a_scenario_such_a_link_is_refused_without_a_question(tab: Tab) -> None:
    async with serving("--sandbox") as served:
        await tab.open(served.address)
        await tab.has("3 simulated nodes", "time is stopped")
        served.sandbox.do({"operation": "kill", "node": "n1"})
        await tab.has("n1 is killed, since")

        await tab.run("location.hash = '#/sandbox?at=2000000'")
        await tab.has("there is no scenario to take over: give --scenario to the console")

        assert not await tab.run("document.querySelector('dialog').open")
        assert served.sandbox.epoch == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clipboard", "says"),
    [
        ("undefined", "selected: press Ctrl+C or ⌘C"),
        ("{ writeText: () => Promise.reject(Error('no')) }", "selected: press Ctrl+C or ⌘C"),
        ("{ writeText: (text) => { document.title = text; } }", "copied"),
    ],
)
async def test_the_picture_says_what_to_do_where_nothing_can_be_copied(
    tab: Tab, failed: str, clipboard: str, says: str
) -> None:
    async with serving("--trace", failed) as served:
        await tab.open(served.address + "replay")
        await tab.has("FAIL", "copy")
        await tab.run(f"Object.defineProperty(navigator, 'clipboard', {{ value: {clipboard} }})")

        await tab.click("button", "copy")

        await tab.has(says)
        where = "document.title" if says == "copied" else "getSelection().toString()"
        assert await tab.run(where) == f"disque-trio sim replay {failed}"


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_every_text_of_it_stands_out(tab: Tab, failed: str, theme: str) -> None:
    await use(tab, prefers_color_scheme=theme, prefers_reduced_motion="reduce")
    async with serving("--trace", failed) as served:
        await tab.open(served.address)
        await tab.has("FAIL")
        await tab.until("document.querySelector('.moment .node')")

        found = await tab.run(CONTRASTS)

        assert len(found) > 60
        assert {name: ratio for name, ratio in found.items() if ratio < LEAST} == {}
        assert await tab.run("document.documentElement.scrollWidth") <= 1360
