"""What somebody who has never seen the console wants of it, by clicks on what is to be read there:
three real nodes and a worker, no key, no documentation."""

import json
from collections.abc import Iterator
from typing import Final

import attrs
import pytest

from tests.cluster.processes import SOON_S, Cluster, Fleet, eventually, free_port
from tests.cluster.workers.shop import Shop, opened
from tests.web.chromium.devtools import Tab

TASKS: Final = """\
import os
import anyio
from disque_trio.worker import App, Backoff

app = App(os.environ["DISQUE_URL"])

class CardDeclined(Exception):
    pass

@app.task(name="mail.send", queue="mail", retry=Backoff(attempts=25, base=600))
async def send(to):
    raise TimeoutError(f"smtp.example.org did not answer for {to}")

@app.task(name="cards.charge", queue="cards", retry=Backoff(attempts=1))
async def charge(customer):
    if customer == "nobody":
        raise LookupError("no such customer")
    raise CardDeclined(f"the card of {customer} was declined")

@app.task(name="video.cut", queue="video")
async def cut(name, seconds):
    await anyio.sleep(seconds)

@app.task(name="report.make", queue="reports")
async def report(day):
    pass
"""


@attrs.frozen
class Place:
    """A cluster with its worker, and the console of the first node."""

    cluster: Cluster
    shop: Shop
    address: str
    failing: str
    """The id of a job that is retried."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    fleet = Fleet(tmp_path_factory.mktemp("nodes"))
    port = free_port()
    names = [("--node-name", f"n{number}") for number in (1, 2, 3)]
    cluster = Cluster(
        [
            fleet.unstarted(*names[0], "--web-port", str(port)),
            fleet.unstarted(*names[1]),
            fleet.unstarted(*names[2]),
        ]
    )
    directory = tmp_path_factory.mktemp("shop")
    try:
        for server in cluster.servers:
            server.start()
        for server in cluster.servers:
            server.wait()
        cluster.meet()
        cluster.wait()
        with opened(cluster[0], directory) as shop:
            (directory / "tasks.py").write_text(TASKS)
            yield Place(cluster, shop, f"http://127.0.0.1:{port}/", _filled(cluster, shop))
    finally:
        fleet.close()


def _filled(cluster: Cluster, shop: Shop) -> str:
    client = cluster[0].client

    def add(queue: str, task: str, *args: object, options: tuple[str | int, ...] = ()) -> bytes:
        body = json.dumps({"task": task, "args": args})
        return client.text("ADDJOB", queue, body, 0, "RETRY", 600, *options)

    for _ in range(7):
        client.text("ADDJOB", "orders", "nobody takes these", 0, "RETRY", 600)
    failing = add("mail", "mail.send", "ada")
    for customer in ("ada", "bob", "cid", "nobody"):
        add("cards", "cards.charge", customer)
    add("video", "video.cut", "short.mp4", 0.2)
    add("video", "video.cut", "long.mp4", 3600)
    add("reports", "report.make", "x", options=("UNIQUE", "report.make:nightly", "DELAY", 3000))
    shop.start("tasks:app", "--name", "ada", "-c", "4")

    def is_done() -> bool:
        info = client.info("jobs")
        return info["dead_jobs"] == "4" and info["delayed_jobs"] == "2"

    eventually(is_done, SOON_S, f"jobs are dead and retried; log: {shop.log()}")
    return failing.decode()


ROW: Final = """(([...document.querySelectorAll('tbody tr:has(.more)')]
    .find((row) => row.innerText.includes(%s))))"""


async def begun(tab: Tab, place: Place, page: str = "") -> None:
    await tab.open(place.address)
    await tab.until("document.querySelector('.pulse.live')")
    if page:
        await tab.click("nav a", page)
        await tab.until(
            f"document.querySelector('nav [aria-current]').innerText.includes('{page}')"
        )


async def choose(tab: Tab, row: str, operation: str) -> None:
    """⋯ of a row, and what is offered there."""
    found = ROW % json.dumps(row)
    # In one step: the row that is found may be another one a moment later.
    await tab.until(f"{found} && ({found}.querySelector('.more').click(), true)")
    await tab.click("dialog button", operation)


async def typed(tab: Tab, label: str, text: str) -> None:
    field = f"document.querySelector('[aria-label={json.dumps(label)}]')"
    await tab.until(field)
    await tab.run(f"{field}.focus()")
    await tab.ask("Input.insertText", text=text)


async def carry_out(tab: Tab) -> None:
    """What the plan asks to be typed, and then the button with its name."""
    await tab.until("document.querySelector('dialog .main')")
    word = "(document.querySelector('dialog').innerText.match(/type (\\S+)/) ?? [])[1]"
    if asked := await tab.run(word):
        await tab.run("document.querySelector('dialog input').focus()")
        await tab.ask("Input.insertText", text=asked)
    await tab.until("!document.querySelector('dialog .main').disabled")
    await tab.run("document.querySelector('dialog .main').click()")
    await tab.until("document.querySelector('dialog .outcome .good')")
    await tab.press("Escape")


async def test_which_queue_is_stuck_and_why(tab: Tab, place: Place) -> None:
    await begun(tab, place, "Queues")
    await tab.click("button", "stuck: no consumers")

    await tab.until("document.querySelectorAll('tbody tr').length === 1")
    await tab.has("orders", "7", "none")


async def test_which_nodes_hold_a_job_and_what_has_happened_to_it(tab: Tab, place: Place) -> None:
    await begun(tab, place, "Jobs")
    await typed(tab, "queue", place.failing)

    await tab.until("document.querySelector('h1').innerText.startsWith('Job ')")
    await tab.has("n1", "one node is killed: not lost", "mail.send")


async def test_dead_jobs_of_one_kind_are_redriven(tab: Tab, place: Place) -> None:
    await begun(tab, place, "Dead")
    await tab.has("CardDeclined", "LookupError")
    await tab.click("tbody a", "LookupError")
    await tab.has("no such customer")
    before = place.shop.log().count("no such customer")
    await tab.click(".heading button", "Redrive all")
    await carry_out(tab)

    eventually(lambda: place.shop.log().count("no such customer") > before, SOON_S, "it runs again")


async def test_a_queue_is_paused_and_resumed(tab: Tab, place: Place) -> None:
    await begun(tab, place, "Queues")
    await tab.click("tbody a", "orders")
    await tab.click(".heading button", "Pause")
    await tab.click("dialog .main", "")
    await tab.has("at 3 nodes")
    await carry_out(tab)
    assert place.cluster[2].client.text("PAUSE", "orders", "state") != b"none"

    await tab.click(".heading button", "Resume")
    await carry_out(tab)
    assert place.cluster[2].client.text("PAUSE", "orders", "state") == b"none"


async def test_a_job_is_cancelled_by_its_key(tab: Tab, place: Place) -> None:
    await begun(tab, place, "Jobs")
    await typed(tab, "key", "report.make:nightly")
    await tab.until("document.querySelectorAll('tbody tr').length === 1")
    await tab.has("reports", "in 4")
    await tab.click("tbody a", "D-")
    await tab.until("document.querySelector('h1').innerText.startsWith('Job ')")
    await tab.click(".heading button", "Acknowledge")
    await carry_out(tab)

    assert place.cluster[0].client.call("SHOW", "KEY", "reports", "report.make:nightly") is None


async def test_the_slowest_kind_of_task(tab: Tab, place: Place) -> None:
    await begun(tab, place, "Workers")
    await tab.click("a", "Run times of tasks")

    await tab.has("p95")
    first = "document.querySelector('tbody tr')?.innerText.startsWith('video.cut')"
    await tab.until(first)


async def test_the_rates_of_the_last_hour(tab: Tab, place: Place) -> None:
    await begun(tab, place, "Overview")
    await tab.click("button", "1 h")

    await tab.has("1 h ago", "added", "delivered", "acknowledged", "refused")


async def test_the_error_of_a_job_that_is_retried(tab: Tab, place: Place) -> None:
    await begun(tab, place, "Jobs")
    await tab.click("button", "backing-off")
    await tab.has("TimeoutError: smtp.example.org did not answer for ada", "2 of 25")
    rows = "[...document.querySelectorAll('tbody tr')]"  # the filter may come a moment later
    await tab.until(f"{rows}.every((row) => row.innerText.includes('TimeoutError'))")
    await tab.click("tbody a", "D-")

    await tab.has("Traceback", "tasks.py", "smtp.example.org did not answer for ada")


async def test_nodes_are_compared(tab: Tab, place: Place) -> None:
    await begun(tab, place, "Overview")
    for name in ("n1", "n2", "n3"):
        await tab.until(ROW % json.dumps(name))
    await tab.click("nav a", "Cluster")

    await tab.has("Who sees whom", "All run version")


async def test_a_node_leaves_and_stays(tab: Tab, place: Place) -> None:
    await begun(tab, place, "Cluster")
    await choose(tab, "n3", "Leave")
    await carry_out(tab)
    await tab.until(f"{ROW % json.dumps('n3')}.innerText.includes('leaving')")

    await choose(tab, "n3", "Stay")
    await carry_out(tab)
    await tab.until(f"!{ROW % json.dumps('n3')}.innerText.includes('leaving')")


async def test_a_view_is_shared_by_its_address(tab: Tab, place: Place) -> None:
    await begun(tab, place, "Jobs")
    await tab.click("button", "dead")
    await typed(tab, "error", "CardDeclined")
    await tab.until("document.querySelectorAll('tbody tr').length === 3")
    address = await tab.run("location.href")

    await tab.open("about:blank")
    await tab.open(address)
    await tab.until("document.querySelectorAll('tbody tr').length === 3")


@pytest.mark.slow
async def test_the_worker_with_the_longest_job_is_stopped(tab: Tab, place: Place) -> None:
    await begun(tab, place, "Workers")
    await tab.click("a", "Run times of tasks")
    await tab.has("Running longest", "video.cut", "ada")
    await tab.click("nav a", "Workers")
    await tab.until("!document.body.innerText.includes('Running longest')")
    await choose(tab, "ada", "Stop")
    await carry_out(tab)

    eventually(
        lambda: "stops" in place.shop.log() or "ends" in place.shop.log(), SOON_S, "it stops"
    )
