import json
import time
from collections.abc import AsyncIterator
from typing import Final

import pytest

from tests.web.chromium import scene
from tests.web.chromium.devtools import Tab
from tests.web.chromium.fake import Fake, Said

PAGES: Final = {
    "": "Overview",
    "#/cluster": "Cluster",
    "#/queues": "Queues",
    "#/queue/mail": "Queue mail",
    f"#/job/{scene.JOB}": f"Job {scene.JOB}",
    "#/jobs": "Jobs",
    "#/workers": "Workers",
    "#/tasks": "Tasks",
    "#/flows": "Flows",
    f"#/flow/{scene.FLOW}": f"Flow {scene.FLOW}",
    "#/dead": "Dead jobs",
    "#/later": "Later",
    "#/audit": "Audit log",
}


async def opened(tab: Tab, fake: Fake, hash_: str = "", *texts: str) -> None:
    await tab.open(fake.address + hash_)
    await tab.until("document.querySelector('.pulse.live')")
    await tab.has(*texts)
    await tab.until("!document.body.innerText.includes('Asking the nodes')")


async def each_page(tab: Tab, fake: Fake) -> AsyncIterator[str]:
    """One after the other, until its answer is shown: the titles."""
    await opened(tab, fake)
    for hash_, title in PAGES.items():
        await tab.run(f"location.hash = {json.dumps(hash_ or '#/overview')}")
        await tab.until(f"document.querySelector('h1').textContent === {json.dumps(title)}")
        await tab.until("!document.body.innerText.includes('Asking the nodes')")
        yield title


@pytest.mark.slow
async def test_every_page_has_its_heading_and_names_for_all_that_can_be_used(
    tab: Tab, fake: Fake
) -> None:
    async for title in each_page(tab, fake):
        names = await tab.names()
        assert ("heading", title) in names
        assert ("navigation", "Pages") in names
        used = {"button", "link", "textbox", "searchbox", "table", "combobox", "columnheader"}
        empty = [role for role, name in names if role in used - {"columnheader"} and not name]
        assert empty == [], title


async def test_the_overview_tells_what_is_wrong_first(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "", "n3: no answer for 12 s", "2 of 3 nodes answer", "1 d 1 h")

    assert await tab.run("document.querySelector('.findings li').className") == "bad"
    assert await tab.text("#said") == (
        'n3: no answer for 12 s. queue "mail": 41,209 jobs, the oldest 14 min old;'
        " it has no consumers"
    )
    await tab.click(".findings a", "mail")
    await tab.has("Queue mail")


async def test_a_finding_offers_the_operation_that_fits(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "", "start workers for these jobs, or purge the queue")

    await tab.click(".findings .remedy button", "Purge")

    await tab.has("Purge: mail")


async def test_the_matrix_shows_who_sees_whom(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/cluster", "n3: failed for n1, suspect for n2")

    rows = await tab.run(
        "[...document.querySelectorAll('.matrix tbody tr')].map((row) =>"
        " [...row.cells].map((cell) => cell.textContent))"
    )
    assert rows == [
        ["n1", "·", "●up", "✖failed"],
        ["n2", "●up", "·", "◐suspect"],
        ["n3", "?unknown", "?unknown", "·"],
    ]


async def test_nodes_that_did_not_answer_are_named(tab: Tab, fake: Fake) -> None:
    fake.unreached = {scene.N3: "no answer within 1 s"}

    await opened(tab, fake, "#/queues")

    await tab.has(
        "No answer from n3: no answer within 1 s. Its queues count with their last figures"
    )


async def test_totals_say_which_nodes_they_lack(tab: Tab, fake: Fake) -> None:
    fake.unreached = {scene.N3: "no answer within 1 s"}
    overview = scene.overview({}) | {"uncounted": [scene.N3]}
    fake.topics = {**fake.topics, "overview": lambda _args: overview}

    await opened(tab, fake, "", "n3: no answer within 1 s. Its queues have not been counted")

    await tab.has("queued\n≥41,377\nof 2 of 3 nodes", "delayed\n≥3,802\nof 2 of 3 nodes")


async def test_a_page_of_queues_has_a_hundred_rows_of_a_hundred_thousand(
    tab: Tab, fake: Fake
) -> None:
    await opened(tab, fake, "#/queues", "100,000 queues", "1–100 of 100,000")

    assert await tab.run("document.querySelectorAll('tbody tr').length") == 100
    await tab.click("nav.pager button", "Next")
    await tab.has("101–200 of 100,000", "thumbnails-00120")
    assert fake.subscribed()["queues"]["page"] == 1
    assert await tab.run("document.querySelectorAll('tbody tr').length") == 100


async def test_queues_are_sorted_and_found_by_the_server(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/queues")

    await tab.click("button.sort", "oldest")
    await tab.until("document.querySelector('th[aria-sort=descending]').innerText === 'oldest ↓'")
    assert fake.subscribed()["queues"]["sort"] == "age"
    await tab.click("button.sort", "oldest")
    await tab.until("document.querySelector('th[aria-sort=ascending]').innerText === 'oldest ↑'")
    assert fake.subscribed()["queues"]["desc"] is False
    await tab.click(".segments button", "paused")
    await tab.press("/", *"sm")
    await tab.until("document.querySelectorAll('tbody tr').length === 1")
    asked = fake.subscribed()["queues"]
    assert asked == {"sort": "age", "desc": False, "match": "sm", "only": "paused", "page": 0}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", [scene.NASTY, scene.RIGHT_TO_LEFT, scene.LONG])
async def test_a_hostile_name_is_only_text(tab: Tab, fake: Fake, name: str) -> None:
    await opened(tab, fake, "#/queues", "mail")

    row = [row["name"] for row in scene.FIRST].index(name)
    await tab.run(f"document.querySelectorAll('tbody tr a')[{row}].click()")
    await tab.until("document.querySelector('h1 .kind')?.innerText === 'Queue '")
    assert fake.subscribed()["queue"]["name"] == name
    await tab.has("Oldest (10)")
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert await tab.run(wide)
    assert "\u202e" not in await tab.text()


async def test_a_name_that_is_no_utf_8_goes_back_as_its_bytes(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/queues", "\\xff\\xfe\\x00queue")

    await tab.click("tbody tr a", "\\xff")
    await tab.has("Queue \\xff\\xfe\\x00queue", "Oldest (10)")
    assert fake.subscribed()["queue"] == {"name_b64": "//4AcXVldWU=", "bodies": False}
    fake.plans["queues purge"] = {"says": ["14 jobs end"], "token": "t"}
    await tab.press("D")
    await tab.has("14 jobs end")
    assert fake.done("queues purge") == [{"queue_b64": "//4AcXVldWU="}]


async def test_zones_are_shown_of_nodes_and_of_the_holders_of_a_job(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/cluster", "Who sees whom")
    await tab.has("west")

    await tab.run(f"location.hash = '#/job/{scene.JOB}'")

    await tab.has("confirmed by 1 of 2 nodes; the others follow or are re-created")
    await tab.has("its copy is in zone east")
    await tab.has("the first in zone west")
    await tab.has("none yet")


async def test_a_queue_that_is_not_counted_yet_is_opened_by_its_name(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/queues", "mail")

    await tab.press("/", *"rare")
    await tab.has("No queue that was counted so far.")
    await tab.click("td a", "Open the queue rare")

    await tab.has("Queue rare", "Oldest (10)")


async def test_bodies_are_shown_when_they_are_asked_for(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/queue/mail", "Oldest (10)")

    assert "ann@example.org" not in await tab.text()
    await tab.click("button", "bodies")
    await tab.has("ann@example.org")


async def test_a_job_is_found_by_its_id(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/job", "where its replicas are")

    await tab.press("/", *"D-none", "Enter")
    await tab.has("No node that answers has this job.")
    await tab.run(f"location.hash = '#/job/{scene.JOB}'")
    await tab.has("survives the loss of any one node")
    assert '"to": "ann@example.org"' in await tab.text("pre")


async def test_what_is_not_known_is_a_dash(tab: Tab, fake: Fake) -> None:
    nothing = dict.fromkeys(scene.overview({})["totals"])
    bare: Said = {"node": scene.N1, "id": "", "name": "", "state": "loading", "why": ""}
    fake.topics = {
        **fake.topics,
        "overview": lambda _args: {
            "findings": [],
            "totals": nothing,
            "nodes": [bare],
            "series": None,
        },
    }

    await opened(tab, fake, "", "No problem is known.", "—\nqueued", "loading")

    assert not {"NaN", "undefined", "null"} & set((await tab.text()).split())


async def test_pages_of_topics_that_the_server_does_not_have_are_left_out(
    tab: Tab, fake: Fake
) -> None:
    fake.hello |= {"topics": ["overview", "queues"], "replay": True}

    await opened(tab, fake)

    assert await tab.run("[...document.querySelectorAll('nav li')].map((li) => li.innerText)") == [
        *("1\nOverview\n1", "3\nQueues", "8\nReplay")
    ]


async def test_a_queue_whose_workers_are_all_busy_is_not_one_that_nobody_takes(
    tab: Tab, fake: Fake
) -> None:
    rows = [
        scene.queue_row("served", 10, takers=0),
        scene.queue_row("stuck", 10, takers=0, served=False),
        scene.queue_row("stopped", 10, takers=0, paused={scene.N2: "out"}),
    ]
    page = {"rows": rows, "total": 3, "page": 0, "pages": 1}
    fake.topics = {**fake.topics, "queues": lambda _args: page}
    await opened(tab, fake, "#/queues", "served", "stuck")

    words = "[...document.querySelectorAll('tbody tr')].map((row) => row.innerText.match"
    assert await tab.run(f"{words}(/busy|none/)?.[0])") == ["busy", "none", "none"]


async def test_the_slowest_tasks_and_who_runs_the_slowest_jobs(tab: Tab, fake: Fake) -> None:
    await opened(tab, fake, "#/workers", "Run times of tasks")
    await tab.click("a", "Run times of tasks")
    await tab.has("5 min 12 s", "12 ms", "12 (1 %)", "runs for", "28 min", "mailer-7@web3")

    names = "[...document.querySelectorAll('tbody')][0].innerText.match(/^[a-z.]+/gm)"
    assert await tab.run(names) == ["video.cut", "mail.send", "noop"]
    await tab.click("th button", "task")
    await tab.until(f"({names})[0] === 'mail.send'")
    await tab.press("j", "Enter")
    await tab.until("location.hash === '#/jobs?task=mail.send'")


async def test_what_no_node_answers_is_not_absent(tab: Tab, fake: Fake) -> None:
    fake.unreached = {scene.N3: "no answer within 1 s"}
    fake.topics = {
        **fake.topics,
        "workers": lambda _args: {"workers": [], "clients": [], "clients_total": 0},
        "tasks": lambda _args: {"window_s": 600, "tasks": [], "running": []},
    }

    for page, absent in (("workers", "0 live workers"), ("tasks", "No job is running")):
        await opened(tab, fake, f"#/{page}", "Unknown: no answer from n3.")
        assert absent not in await tab.text("main")


async def test_what_lacks_a_node_is_no_whole(tab: Tab, fake: Fake) -> None:
    fake.unreached = {scene.N3: "no answer within 1 s"}
    none = {"total": 0, "seen": 0, "is_cut": False, "queues": [], "groups": [], "more": 0}
    fake.topics = {
        **fake.topics,
        "dead": lambda _args: none,
        "jobs": lambda _args: {"jobs": [], "is_cut": False},
        "later": lambda _args: {"delayed": [], "delayed_total": 0, "schedules": []},
        "queue": lambda args: {**scene.queue(args), "queue": None},
    }

    for page, absent in (
        ("dead", "No job is dead"),
        ("jobs", "No job matches"),
        ("later", "No job is delayed"),
        ("queue/gone", "No node has a queue"),
    ):
        await opened(tab, fake, f"#/{page}", "Unknown: no answer from n3.")
        assert absent not in await tab.text("main")
    await opened(tab, fake, "#/later", "≥0 delayed jobs")


async def test_a_name_that_is_no_text_keeps_its_bytes_in_every_link(tab: Tab, fake: Fake) -> None:
    row = {
        **scene.queue({"name": "x", "bodies": False})["queue"],
        "name": "\\xff",
        "name_b64": "/w==",
        "dead": 2,
    }
    facts = {"queue": "\\xff", "queue_b64": "/w=="}
    job = scene.job({"id": scene.JOB})
    fake.topics = {
        **fake.topics,
        "queue": lambda args: {**scene.queue(args), "queue": row},
        "job": lambda _args: {**job, "facts": {**job["facts"], **facts}},
    }

    await opened(tab, fake, "#/queue?b64=%2Fw%3D%3D", "\\xff")
    links = "[...document.querySelectorAll('main a')].map((a) => a.getAttribute('href'))"
    assert "#/dead?queue_b64=%2Fw%3D%3D" in await tab.run(links)
    await opened(tab, fake, "#/dead?queue_b64=%2Fw%3D%3D", "only \\xff")
    assert fake.subscribed()["dead"] == {"queue_b64": "/w=="}
    await opened(tab, fake, f"#/job/{scene.JOB}", "\\xff")
    assert "#/queue?b64=%2Fw%3D%3D" in await tab.run(links)
    assert "queue b64" not in await tab.text("main")
    await tab.press("u")
    await tab.until("location.hash === '#/queue?b64=%2Fw%3D%3D'")


async def test_clocks_are_compared_with_each_other_and_not_with_the_consoles(
    tab: Tab, fake: Fake
) -> None:
    clocks = {scene.N1: 90_000, scene.N2: 90_003, scene.N3: 180_003}
    nodes = [{**each, "state": "up", "clock_ms": clocks[each["node"]]} for each in scene.nodes()]
    fake.topics = {**fake.topics, "cluster": lambda args: {**scene.cluster(args), "nodes": nodes}}

    await opened(tab, fake, "#/cluster", "−3 ms", "0 ms", "▲ +1 min 30 s")


async def test_without_an_answer_each_node_is_named_once(tab: Tab, fake: Fake) -> None:
    why = "no answer for 21 s: no answer within 1 s"
    silent = [each | {"state": "silent", "why": why} for each in scene.nodes()]
    overview = scene.overview({}) | {"nodes": silent}
    fake.topics = {**fake.topics, "overview": lambda _args: overview}
    topics = ("jobs", "workers", "tasks", "later")
    fake.errors |= dict.fromkeys(topics, f"no node could run the command: {why}; {why}; {why}")

    for page in topics:
        await opened(tab, fake, f"#/{page}", f"No answer from n1: {why}")
        lines = await tab.run(
            "[...document.querySelectorAll('main .findings .bad')].map((li) => li.innerText)"
        )
        assert [line.split("No answer ")[1] for line in lines] == [
            f"from {name}: {why}" for name in ("n1", "n2", "n3")
        ]
        assert "no node could run the command" not in await tab.text("main")


async def test_jobs_of_a_task_without_runs_are_counted_as_they_are(tab: Tab, fake: Fake) -> None:
    [slow, *_] = scene.tasks({})["tasks"]
    first = {**slow, "runs": 0, "running": 2, "longest_s": 60.0, "p95_s": None}
    fake.topics = {**fake.topics, "tasks": lambda args: {**scene.tasks(args), "tasks": [first]}}

    await opened(tab, fake, "#/tasks", "Run times")

    cell = "document.querySelector('tbody [data-label=running]').textContent"
    assert await tab.run(cell) == "2"


async def test_a_chart_has_what_nodes_kept_of_the_time_when_nobody_looked(
    tab: Tab, fake: Fake
) -> None:
    now = time.time()
    seen = [now - 200, now - 199, now - 1, now]
    live = {name: [5.0] * 4 for name in ("added_s", "delivered_s", "acked_s", "queued")}
    fake.topics = {
        **fake.topics,
        "overview": lambda args: {**scene.overview(args), "series": {"at": seen, **live}},
    }

    await opened(tab, fake, "", "Queued")

    await tab.until("(document.querySelector('path.line.queued')?.getAttribute('d') ?? '')")
    chart = "[...document.querySelectorAll('.plot path.line.queued')].at(-1).getAttribute('d')"
    await tab.until(f"({chart}.match(/M/g) ?? []).length === 1")


async def test_a_first_run_that_is_long_makes_its_task_the_slowest(tab: Tab, fake: Fake) -> None:
    [slow, *others] = scene.tasks({})["tasks"]
    times = dict.fromkeys(("mean_s", "p50_s", "p95_s", "p99_s"))
    first = {**slow, **times, "task": "first", "runs": 0, "longest_s": 13_000.0}
    again = {**slow, "p95_s": 2.0, "task": "again", "longest_s": 9_000.0}
    told = {**scene.tasks({}), "tasks": [*others, again, first]}
    fake.topics = {**fake.topics, "tasks": lambda _args: told}

    await opened(tab, fake, "#/tasks", "first", "≥ 3 h 36 min", "4, for 2 h 30 min")

    names = "[...document.querySelectorAll('tbody')][0].innerText.match(/^[a-z.]+/gm)"
    assert (await tab.run(names))[:2] == ["first", "again"]


async def test_pages_are_drawn_while_the_overview_has_no_answer(tab: Tab, fake: Fake) -> None:
    fake.errors["overview"] = "no node has told it yet"

    await tab.open(fake.address + "#/queues")
    await tab.has("41,209", "webhooks/outgoing?x=1#top")
    await tab.run("location.hash = '#/overview'")
    await tab.has("no node has told it yet")
