"""A person breaks a simulated cluster by hand."""

from collections.abc import AsyncIterator

import pytest

from disque_trio.sim.sandbox.sandbox import Sandbox
from disque_trio.web import sandbox as rooms
from tests.web.chromium.consoles import Served, serving
from tests.web.chromium.devtools import Tab
from tests.web.chromium.test_looks import CONTRASTS, LEAST, use

SECOND = 1_000_000
NODE = "document.querySelectorAll('[aria-label=\"Nodes\"] tbody tr')[%d].innerText"


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving("--sandbox", "--seed", "7") as there:
        yield there


async def at(tab: Tab, served: Served, seconds: float) -> None:
    """Time goes on as fast as it can, and stands still then."""
    box = served.sandbox.box
    box.run_to(int(seconds * SECOND))
    await tab.has(f"{box.now / SECOND:.6f} s")


async def click(tab: Tab, label: str) -> None:
    """On a node of the picture."""
    find = f"document.querySelector('.disc[aria-label^=\"{label}:\"]')"
    await tab.until(find)
    await tab.run(f"{find}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")


async def test_a_cluster_is_cut_and_killed_and_healed_and_the_job_comes_again(
    tab: Tab, served: Served
) -> None:
    await tab.open(served.address)
    await tab.has("3 simulated nodes, seed 7", "time is stopped", "No operation yet.")
    assert await tab.run("location.hash") == "#/sandbox"

    await tab.click("#add button")
    await tab.has("a job to n1, queue mail REPLICATE 2 RETRY 5")
    await at(tab, served, 1)
    await tab.has("hello 1", "queued", "1 confirmed")
    await tab.click("#take button")
    await tab.has("a job of queue mail is taken at n1")
    await at(tab, served, 2)
    await tab.has("hello 1 from n1", "Acknowledge", "1×")

    await click(tab, "n1")
    await tab.click("button", "Cut n1 | n2 n3")
    await tab.has("cut: n1 | n2 n3, since 2.000 s")
    await tab.until("document.querySelectorAll('.sandbox-map .link.cut').length === 2")
    await tab.click("tr:first-child button", "Kill")
    await tab.has("n1 is killed, since 2.000 s")
    await tab.until(f"({NODE % 0}).includes('down')")

    await at(tab, served, 12)
    await tab.click("button", "Heal all")
    await tab.has("None of yours.")
    await tab.run("document.querySelector('#take [name=node]').value = 'n2'")
    await tab.click("#take button")
    await tab.has("a job of queue mail is taken at n2")
    await at(tab, served, 25)
    await tab.has("redelivered", "2×")
    await tab.until("document.querySelectorAll('.timeline .lifelines text').length > 3")
    await tab.click("li:last-child button", "Acknowledge")
    await tab.click("button", "Finish")
    await tab.has("PASS", "of the whole run", "Redeliveries: 1", "it is finished")

    await tab.click("button", "Kill")
    await tab.has("it is finished: begin anew")
    done = served.sandbox.box
    other = Sandbox(seed=7)
    other.repeat([{"at": each.at, "name": each.name, **each.args} for each in done.done])
    assert other.digest == done.digest
    await tab.has(f"digest {done.digest[:12]}")


@pytest.mark.slow
async def test_keys_do_what_buttons_do(tab: Tab, served: Served) -> None:
    await tab.open(served.address)
    await tab.has("No operation yet.")

    await tab.press("j", "j", "K")
    await tab.has("n2 is killed")
    await tab.press("R", "P")
    await tab.has("n2 is paused, since")
    await tab.press("P", "S", "W", "L")
    await tab.has("n2 resumes", "slow 200 ms", "clock +1 h", "n2 announces that it leaves")
    await tab.press("H")
    await tab.has("None of yours.")
    await tab.press("x", "C")
    await tab.has("cut: n2 | n1 n3, since")
    await tab.press("A", "T")
    await tab.has("a job of queue mail is taken at n2")
    await tab.press("ArrowRight")
    await tab.until("!document.querySelector('.sandbox-time').innerText.startsWith('0.000000 ')")
    await tab.press("v")
    await tab.has("no guarantee is violated so far")
    await tab.press("?")
    await tab.has("run and stop time", "the pages of the menu")
    await tab.press("Escape", " ")
    await tab.has("time runs ×1")
    await tab.press("+")
    await tab.has("time runs ×2")
    await tab.press(" ")
    await tab.has("time is stopped")
    await tab.press("F")
    await tab.has("PASS")
    await tab.press("B")
    await tab.has("The run is discarded, in all browsers")
    await tab.run("document.querySelector('dialog [name=nodes]').value = '5'")
    await tab.press("Enter")
    await tab.has("5 simulated nodes", "No operation yet.")


async def test_a_worker_is_added_and_removed_and_one_link_is_cut_one_way(
    tab: Tab, served: Served
) -> None:
    await tab.open(served.address)
    await tab.click("#add-worker button")
    await tab.has("w1 at n1: mail, 0.2 s each, acknowledges")
    await tab.click("button", "Remove")
    await tab.has("w1 exits")
    await tab.click("button", "Cut one way")
    await tab.has("n1 → n2 is cut, one way, since 0.000 s")
    await tab.until(
        "document.querySelector('.link.one-way title').textContent === 'n1 → n2 is cut'"
    )
    await tab.run("document.querySelector('#add [name=replicate]').value = ''")
    await tab.run("document.querySelector('#add [name=queue]').value = '</script>\\u202e'")
    await tab.click("#add button")
    await tab.has(r"queue </script>\u202e RETRY 5")


async def test_two_browsers_share_it_and_a_reader_only_looks(browser: str, tab: Tab) -> None:
    async with serving("--sandbox", web_read_only=True) as served:
        await tab.open(served.address)
        await tab.has("No operation yet.", "read only")
        assert (
            await tab.run("document.querySelectorAll('#page form, .operations button').length") == 0
        )
        served.sandbox.do({"operation": "kill", "node": "n3"})
        await tab.has("n3 is killed, since")
        await tab.press("j", "K", "F")
        await tab.run(
            "new Promise((done) => import('/static/app.js').then(({ app }) =>"
            " app.link.plan('steer', { operation: 'heal' }).catch(({ message }) => done(message))))"
            ".then((says) => { document.title = says; })"
        )
        assert await tab.run("document.title") == "this console only reads"
        assert [each.words for each in served.sandbox.box.done] == ["n3 is killed"]


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_every_text_of_it_stands_out(tab: Tab, served: Served, theme: str) -> None:
    await use(tab, prefers_color_scheme=theme, prefers_reduced_motion="reduce")
    await tab.open(served.address)
    await tab.has("No operation yet.")
    await tab.press("A", "C", "K", "j", "x", "C", "T")
    await tab.has("a job of queue mail is taken")
    await at(tab, served, 3)
    await tab.press("v")
    await tab.has("so far", "What happened")
    await tab.until("document.querySelector('.timeline .lifelines text')")

    found = await tab.run(CONTRASTS)

    assert len(found) > 60
    assert {name: ratio for name, ratio in found.items() if ratio < LEAST} == {}
    assert await tab.run("document.documentElement.scrollWidth") <= 1360


@pytest.mark.slow
async def test_a_narrow_screen_has_room_for_it(tab: Tab, served: Served) -> None:
    await tab.ask(
        "Emulation.setDeviceMetricsOverride",
        width=480, height=800, deviceScaleFactor=1, mobile=False,
    )  # fmt: skip
    await tab.open(served.address)
    await tab.has("No operation yet.")
    await tab.press("A")
    await tab.has("a job to n1")
    await at(tab, served, 1)
    await tab.has("hello 1")

    assert await tab.run("document.documentElement.scrollWidth") <= 480


@pytest.mark.slow
@pytest.mark.pure
async def test_what_fails_is_told_and_it_can_be_begun_anew(tab: Tab, served: Served) -> None:
    def broken(*_args: object) -> None:
        raise KeyError("of a test")

    await tab.open(served.address)
    await tab.has("No operation yet.")
    served.sandbox.box.run_to = broken

    await tab.press(" ")
    await tab.has("the simulator has failed, see the log: KeyError: 'of a test'")
    await tab.press("B")
    await tab.has("The run is discarded, in all browsers")
    await tab.press("Enter")
    await tab.has("time is stopped", "No operation yet.")


@pytest.mark.slow
@pytest.mark.pure
async def test_rows_that_come_in_many_answers_are_all_drawn(
    tab: Tab, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "PIECE", 20)
    served.sandbox.do({"operation": "add", "node": "n1"})
    served.sandbox.box.run_to(30 * SECOND)
    served.sandbox.do({"operation": "kill", "node": "n3"})

    await tab.open(served.address)
    await tab.has("n3 is killed, since 30.000 s")
    await tab.until("document.querySelectorAll('.timeline .lifelines text').length > 3")

    assert not served.sandbox._rows(len(served.sandbox._slices))["slices"]
    assert len(served.sandbox._slices) > 5


@pytest.mark.slow
async def test_rows_that_do_not_come_are_asked_for_again_but_not_at_once(
    tab: Tab, served: Served
) -> None:
    await tab.open(served.address)
    await tab.has("No operation yet.")
    await tab.run("window.kept = fetch, window.asked = [], 0")
    fails = "() => { asked.push(performance.now()); return Promise.reject(Error('of a test')); }"
    await tab.run(f"window.fetch = {fails}, 0")

    served.sandbox.do({"operation": "add", "node": "n1"})
    await tab.until("asked.length > 2")

    assert await tab.run("asked[2] - asked[0]") > 900
    await tab.run("window.fetch = kept, 0")
    await tab.until("document.querySelectorAll('.timeline .lifelines text').length > 3")


async def test_a_first_time_user_is_led_through_a_redelivery(tab: Tab, served: Served) -> None:
    await tab.open(served.address)
    await tab.has("First steps", "No operation yet.", "Idle time is compressed")

    for label, result in (
        ("Add a job", "hello 1"),
        ("Take it", "hello 1 from n1"),
        ("Kill n1", "n1 is killed"),
    ):
        await tab.click("#tour button", label)
        await tab.has(result, "time runs")
    await tab.has("✓ Kill the node", "After RETRY")
    served.sandbox.box.run_to(served.sandbox.box.now + 12 * SECOND)
    await tab.run("document.querySelector('#take [name=node]').value = 'n2'")
    await tab.click("#take button")
    await tab.has("✓ Watch.", "judges the whole run")

    await tab.click("#tour button", "Hide")
    await tab.until("!document.querySelector('#tour')")
    await tab.open("about:blank")
    await tab.open(served.address)
    await tab.click("button", "Show the first steps")
    await tab.has("First steps")
