"""What the pages show, for programs."""

from urllib.parse import quote

import trio

from disque_trio.observe.observer import TOPICS
from disque_trio.web.api import reading
from disque_trio.worker import App
from tests.web.api.asking import Program, program


async def flow(api: Program) -> str:
    """A flow of two members that wait for a worker."""
    app = App[None](api.here.client.url)

    @app.task(name="send", queue="mail")
    async def send() -> None: ...

    found = app.flow()
    found.add(send.call(), after=[found.add(send.call())])
    async with app:
        return (await found.enqueue()).id


async def test_a_flow_has_its_members(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    id = await flow(api)

    [row] = (await api.get("/flows"))["flows"]
    assert (row["id"], row["size"], row["counts"]) == (id, 2, {"pending": 2})
    members = (await api.get(f"/flows/{id}"))["members"]
    assert [each["after"] for each in members] == [[], [[0, 0]]]
    assert (await api.get(f"/flows/{await api.add()}", 404))["code"] == "NOFLOW"
    cancelled = await api.post("/operations/flows/cancel", {"arguments": {"id": id}, "sure": True})
    assert cancelled["says"] == ["the flow is cancelled"]


async def test_each_page_is_a_resource(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    id = await api.add()

    assert (await api.get("/overview"))["totals"]["queued"] == 1
    assert (await api.get("/findings"))["findings"]
    assert [each["state"] for each in (await api.get("/nodes"))["nodes"]] == ["up"]
    assert (await api.get("/queues/mail"))["oldest"][0]["id"] == id
    assert (await api.get(f"/jobs/{id}"))["summary"]["state"] == "queued"
    assert (await api.get(f"/jobs/{id}/timeline"))["id"] == id
    assert (await api.get("/dead"))["groups"] == []
    assert (await api.get("/workers"))["workers"] == []
    assert (await api.get("/tasks"))["tasks"] == []
    assert (await api.get("/schedules"))["schedules"] == []
    assert (await api.get("/delayed"))["jobs"] == []
    assert (await api.get("/history?span=day"))["period"] == 300


async def test_no_topic_of_the_pages_is_missing(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    asked: list[str] = []
    here = api.here
    ids = {"/flows/{id}": await flow(api), "": await api.add()}

    for route in reading.ROUTES:
        id = ids.get(route.path, ids[""])
        path = route.path.replace("{id}", id).replace("{queue}", "mail")
        asked.append(route.path.strip("/").partition("/")[0])
        assert (await here.ask(f"/api/v1{path}")).status == 200, path

    covered = {"queue", "job", "job-timeline", "cluster", "later", "flow"}  # under other names
    assert set(TOPICS) - covered <= set(asked)


async def test_queues_come_in_pages(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    many = [{"queue": f"q{number:03}", "body": "x", "replicate": 1} for number in range(150)]
    await api.post("/jobs", {"jobs": many})
    await api.get("/overview")

    with trio.fail_after(20):  # the console counts queues in the background
        while (first := await api.get("/queues?sort=name&desc=false"))["total"] < 150:
            await trio.sleep(0.05)
    second = await api.get(f"/queues?sort=name&desc=false&cursor={first['next']}")

    names = [each["name"] for each in first["queues"] + second["queues"]]
    assert sorted(names) == [each["queue"] for each in many]
    assert second["next"] is None


async def test_jobs_come_in_pages_in_the_order_of_adding(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    ids = [await api.add() for _ in range(5)]
    found: list[str] = []
    cursor: str | None = ""

    while cursor is not None:
        more = f"&cursor={cursor}" if cursor else ""
        page = await api.get(f"/jobs?limit=2&queue=mail{more}")
        assert len(page["jobs"]) <= 2
        found += [each["id"] for each in page["jobs"]]
        cursor = page["next"]

    assert found == ids


async def test_jobs_of_one_millisecond_and_ended_ones_come_in_pages_without_a_gap(
    nursery: trio.Nursery,
) -> None:
    api = await program(nursery)
    given = {"jobs": [{"queue": "mail", "body": "x", "replicate": 1} for _ in range(60)]}
    added = await api.post("/jobs", given)
    ids = [each["id"] for each in added["jobs"]]

    async def listed(state: str) -> list[str]:
        found, more = [], ""
        while True:
            page = await api.get(f"/jobs?limit=7&queue=mail&state={state}{more}")
            found += [each["id"] for each in page["jobs"]]
            if page["next"] is None:
                return found
            more = f"&cursor={page['next']}"

    assert await listed("queued") == ids
    every = {"filter": {"queue": "mail"}, "sure": True}
    assert (await api.post("/operations/jobs/acknowledge", every))["count"] == len(ids)
    assert sorted(await listed("ended")) == sorted(ids)


async def test_a_page_whose_last_job_has_ended_is_continued_from_its_millisecond() -> None:
    rows = [{"id": id, "added_ms": at, "ended_ms": None} for id, at in (("c", 1), ("a", 2))]

    assert reading._behind(rows, 1, "b") == rows
    assert reading._behind(rows, 1, "c") == reading._behind(rows, 2, "b") == rows[1:]


async def test_jobs_are_searched_as_on_the_page(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    await api.add(body="one")
    late = await api.add(body="two", delay=60)

    assert [each["id"] for each in (await api.get("/jobs?text=two"))["jobs"]] == [late]
    assert [each["id"] for each in (await api.get("/jobs?state=delayed"))["jobs"]] == [late]
    assert (await api.get("/jobs?state=delayed&text=one"))["jobs"] == []


async def test_a_queue_may_have_any_name(nursery: trio.Nursery) -> None:
    api = await program(nursery)

    for name in ("a/b", "ä ö", "%41", "?#", "+", "a b"):
        await api.add(quote(name, safe=""))
        found = await api.get(f"/queues/{quote(name, safe='')}")
        assert found["queue"]["name"] == name


async def test_a_queue_whose_name_is_not_utf8_can_be_used_by_every_route(
    nursery: trio.Nursery,
) -> None:
    api, coded = await program(nursery), {"queue_b64": "/wA="}
    await api.add("%ff%00")
    await api.post("/jobs", {"jobs": [{**coded, "body": "x", "replicate": 1}]})

    assert (await api.get("/queues/%ff%00"))["queue"]["name_b64"] == "/wA="
    assert len((await api.get("/jobs?queue=%ff%00"))["jobs"]) == 2
    await api.post("/operations/queues/resume", {"arguments": coded})
    many = {"filter": coded, "plan": True}
    assert (await api.post("/operations/jobs/acknowledge", many))["says"][0].endswith("2 jobs")
    found = await api.post("/jobs/lease", {"queues_b64": ["/wA="], "count": 2})
    assert [each["queue_b64"] for each in found["jobs"]] == ["/wA=", "/wA="]
    for wrong in ({"queues_b64": ["?"]}, {"queues_b64": [""]}, {"queues": ["\udcff"]}):
        assert (await api.post("/jobs/lease", wrong, 400))["code"] == "INVALID"


async def test_what_does_not_exist_is_not_found(nursery: trio.Nursery) -> None:
    api = await program(nursery)

    gone = "D-8177b338-LqqjKhrCd8pvOoKUXAoQsvOn-05a1"
    for path, code in (
        ("/queues/none", "NOQUEUE"),
        (f"/jobs/{gone}", "NOJOB"),
        (f"/flows/{gone}", "NOFLOW"),
        ("/nothing", "NOPATH"),
        ("/queues/", "NOPATH"),
    ):
        problem = await api.get(path, 404)
        assert problem["code"] == code
        assert problem["advice"]


async def test_an_id_that_is_none_is_invalid(nursery: trio.Nursery) -> None:
    api = await program(nursery)

    for path in ("/jobs/nope", "/jobs/D-1/timeline", "/flows/x%2Fy"):
        problem = await api.get(path, 400)
        assert (problem["code"], problem["name"]) == ("INVALID", "id")
        assert "the id of a job" in problem["advice"]
    assert (await api.post("/jobs/nope/ack", status=400))["name"] == "id"


async def test_a_mistake_names_the_value_and_what_it_must_be(nursery: trio.Nursery) -> None:
    api = await program(nursery)

    for query, name, value in (
        ("limit=0", "limit", 0),
        ("limit=many", "limit", "many"),
        ("state=lost", "state", "lost"),
        ("older=-1", "older", -1),
        ("colour=red", "colour", "red"),
        ("text=", "text", ""),
        ("limit=1&state=dead&limit=1", "limit", "1"),
        ("queue=a&queue=b", "queue", "b"),
        ("queue=100%", "queue", "100%"),
        ("text=%4", "text", "%4"),
    ):
        problem = await api.get(f"/jobs?{query}", 400)
        assert (problem["code"], problem["name"], problem["value"]) == ("INVALID", name, value)
        assert problem["advice"]
    assert (await api.get("/queues/100%zz", 400))["name"] == "queue"
    for cursor in ("x", "W10", "MQ", "e30", "WzEsMl0", "%ff"):
        status = 400 if cursor == "%ff" else 422
        await api.get(f"/jobs?cursor={cursor}", status)


async def test_fields_that_the_document_promises_are_there(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    await api.add()
    await api.get("/overview")

    [job] = (await api.get("/jobs"))["jobs"]
    [node] = (await api.get("/nodes"))["nodes"]
    [queue] = (await api.get("/queues"))["queues"]

    for row, schema in ((job, reading.JOB), (node, reading.NODE), (queue, reading.QUEUE_ROW)):
        assert set(schema["required"]) <= row.keys()


async def test_a_job_has_the_result_that_nodes_keep_when_it_is_gone_too(
    nursery: trio.Nursery,
) -> None:
    api = await program(nursery)
    id = await api.add()
    assert (await api.get(f"/jobs/{id}"))["result"] is None

    await api.post(f"/jobs/{id}/ack", {"result": '{"pages": 3}', "keep": 60})

    found = await api.get(f"/jobs/{id}")
    assert (found["summary"]["state"], found["copies"]) == ("ended", [])
    kept = found["result"]
    assert (kept["body"], kept["body_b64"], kept["bytes"]) == ('{"pages": 3}', None, 12)
    assert 50 < kept["left_s"] <= 60
    assert abs(kept["at_ms"] - found["summary"]["ended_ms"]) < 1000
