"""Producers and workers without a Redis client."""

import base64
import json
from typing import Any
from urllib.parse import quote

import attrs
import pytest
import trio

from disque_trio.client import BlockingClient
from disque_trio.statemachine import joboptions
from disque_trio.web.api import api as api_module
from disque_trio.web.api import jobs as api_jobs
from disque_trio.web.api.routes import PREFIX
from tests.web.api.asking import program, told
from tests.web.asking import everything


async def test_a_job_is_added_taken_and_acknowledged(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    id = await api.add(body="ä", retry=60)

    [job] = await api.lease()

    assert (job["id"], job["queue"], job["body"], job["attempt"]) == (id, "mail", "ä", 1)
    assert 0 < job["lease_s"] <= 60
    assert await api.post(f"/jobs/{job['delivery']}/ack") == {"count": 1}
    ended = await api.get(f"/jobs/{id}")
    assert (ended["summary"]["state"], ended["summary"]["outcome"]) == ("ended", "acknowledged")
    assert (ended["body"], ended["copies"]) == ("ä", [])


async def test_a_queue_with_a_long_name_can_be_used_by_every_route(nursery: trio.Nursery) -> None:
    api, name = await program(nursery), "q" * 1024
    await api.post(f"/queues/{name}/jobs", {"body": "x", "replicate": 1}, 201)

    assert (await api.get(f"/jobs?queue={name}"))["jobs"][0]["queue"] == name
    await api.post("/operations/queues/resume", {"arguments": {"queue": name}})
    found = await api.post("/jobs/lease", {"queues": [name]})

    assert [each["queue"] for each in found["jobs"]] == [name]


async def test_a_body_is_text_or_base64_or_the_body_of_the_request(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    data = bytes(range(256))
    coded = base64.b64encode(data).decode()

    await api.post("/queues/mail/jobs", {"body_b64": coded, "replicate": 1}, 201)
    raw = await api.ask(
        "/queues/mail/jobs?replicate=1", "Content-Type: application/octet-stream", method="POST",
        body=data,
    )  # fmt: skip
    told(raw, 201)

    assert [each["body_b64"] for each in await api.lease(count=2)] == [coded, coded]
    for wrong in ({}, {"body": "x", "body_b64": ""}, {"body": 1}, {"body_b64": "?"}):
        await api.post("/queues/mail/jobs", wrong, 400)


async def test_every_option_of_addjob_is_a_field(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    given: dict[str, Any] = {
        "replicate": 1, "sync": 1, "delay": 30.5, "retry": 20, "ttl": 600, "maxlen": 10,
        "priority": 7, "group": "acme", "limit": 3, "unique": "k", "keep": 60,
        "if_exists": "reject", "backoff": 2.5, "max_backoff": 60,
    }  # fmt: skip
    fields = {each.name for each in api_jobs.OPTIONS}
    assert fields == {each.name.removeprefix("is_") for each in joboptions.OPTIONS}
    assert fields == {*given, "async"}

    facts = (await api.get(f"/jobs/{await api.add(**given)}"))["facts"]

    assert facts["delay_s"] in (30, 31)
    assert (facts["retry_s"], facts["priority"], facts["key"]) == (20, 7, "k")
    assert (facts["limit"], facts["backoff"], facts["max-backoff"]) == (3, 2500, 60_000)
    assert (facts["keep"], facts["group"]) == (60_000, "acme")
    given_async: dict[str, Any] = {"async": True, "replicate": 1}
    await api.add(**given_async)
    query = "&".join(f"{name}={value}" for name, value in given.items() if name != "unique")
    raw = ("Content-Type: text/plain",)
    path = f"/queues/other/jobs?unique=z&{query}"
    assert (await api.ask(path, *raw, method="POST", body=b"x")).status == 201


async def test_several_jobs_succeed_or_fail_on_their_own(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    some = [
        {"queue": "a", "body": "1", "replicate": 1, "unique": "k", "if_exists": "reject"},
        {"queue": "a", "body": "2", "replicate": 1, "unique": "k", "if_exists": "reject"},
        {"queue": "b", "body_b64": "AA==", "replicate": 1},
    ]

    done = await api.post("/jobs", {"jobs": some})

    first, second, third = done["jobs"]
    assert done["failed"] == 1
    assert first["id"][:2] == third["id"][:2] == "D-"
    assert (second["problem"]["status"], second["problem"]["id"]) == (409, first["id"])
    wrong = await api.post("/jobs", {"jobs": [some[0], {"queue": "a", "body": 3}]}, 400)
    assert wrong["name"] == "jobs[1].body"
    assert (await api.post("/jobs", {"jobs": [{"body": "x"}]}, 400))["name"] == "jobs[0].queue"


async def test_a_key_that_is_taken_is_a_conflict(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    id = await api.add(unique="k")

    assert await api.add(unique="k") == id
    given = {"body": "x", "replicate": 1, "unique": "k", "if_exists": "reject"}
    problem = await api.post("/queues/mail/jobs", given, 409)

    assert (problem["code"], problem["id"], problem["state"]) == ("DUPLICATE", id, "queued")


async def test_errors_of_the_node_have_statuses(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    await api.add()

    def add(**given: object) -> dict[str, object]:
        return {"body": "x", "replicate": 1, **given}

    path = "/queues/mail/jobs"
    few = await api.ask(
        path, "Content-Type: application/json", method="POST",
        body=json.dumps(add(replicate=3)).encode(),
    )  # fmt: skip
    assert (told(few, 503)["code"], few.headers["retry-after"]) == ("NOREPL", "1")
    assert (await api.post(path, add(maxlen=1), 429))["code"] == "MAXLEN"
    assert (await api.post(path, add(limit=2, retry=0), 422))["code"] == "ERR"
    await api.post("/operations/queues/pause", {"arguments": {"queue": "mail", "side": "in"}})
    assert (await api.post(path, add(), 503))["code"] == "PAUSED"
    gone = "D-8177b338-LqqjKhrCd8pvOoKUXAoQsvOn-05a1"
    assert (await api.post(f"/jobs/{gone}/working", status=404))["code"] == "NOJOB"
    assert (await api.post(f"/jobs/{gone}@x/working", status=422))["code"] == "BADTOKEN"


async def test_a_job_that_failed_is_given_back_with_its_error(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    id = await api.add()
    [job] = await api.lease()

    given = {"error": "ValueError: no", "delay": 30}
    assert await api.post(f"/jobs/{job['delivery']}/nack", given) == {"count": 1}

    row = (await api.get(f"/jobs/{id}"))["summary"]
    assert (row["state"], row["error"]["kind"], row["attempt"]) == ("backing-off", "ValueError", 2)


async def test_a_job_is_buried_with_a_reason(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    await api.add()
    [job] = await api.lease()

    await api.post("/jobs/nack", {"jobs": [job["delivery"]], "dead": "no such address"})

    assert (await api.get("/dead"))["total"] == 1


async def test_a_job_that_was_not_begun_is_released(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    await api.add()
    [job] = await api.lease()

    assert await api.post(f"/jobs/{job['delivery']}/release") == {"count": 1}

    [again] = await api.lease(timeout=5)
    assert (again["id"], again["attempt"], again["nacks"]) == (job["id"], 1, 0)


async def test_a_lease_is_renewed_by_its_token_only(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    await api.add(retry=300)
    [job] = await api.lease()

    assert await api.post(f"/jobs/{job['delivery']}/working") == {"lease_s": 300}
    await api.post(f"/jobs/{job['delivery']}/nack", {})
    [other] = await api.lease(timeout=5)

    assert (await api.post(f"/jobs/{job['delivery']}/working", status=409))["code"] == "LOST"
    assert await api.post(f"/jobs/{other['delivery']}/working") == {"lease_s": 300}
    escaped = quote(other["delivery"], safe="")
    assert await api.post(f"/jobs/{escaped}/ack") == {"count": 1}


async def test_another_node_may_be_told_what_became_of_a_job(nursery: trio.Nursery) -> None:
    """As behind a load balancer. By the token it asks the node that delivered the job."""
    api = await program(nursery, 2)
    port = api.here.nodes[1].state.config.web_port
    other = attrs.evolve(api, here=attrs.evolve(api.here, port=port))
    ids = [await api.add(replicate=2, retry=300) for _ in range(3)]
    first, second, third = await api.lease(count=3)

    assert await other.post(f"/jobs/{first['delivery']}/working") == {"lease_s": 300}
    assert await other.post(f"/jobs/{first['delivery']}/ack") == {"count": 1}
    assert await other.post(f"/jobs/{second['delivery']}/nack", {"delay": 60}) == {"count": 1}
    assert await other.post("/jobs/release", {"jobs": [third["delivery"]]}) == {"count": 1}

    [again] = await other.lease(timeout=20)
    assert (again["id"], again["attempt"]) == (ids[2], 1)


async def test_the_first_queue_is_preferred(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    await api.add("low")
    await api.add("high")

    assert [each["queue"] for each in await api.lease("high", "low", count=2)] == ["high", "low"]


async def test_a_lease_waits_for_a_job(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    found = []

    async def take() -> None:
        found.extend(await api.lease(timeout=20))

    assert await api.lease(timeout=0.05) == []
    async with trio.open_nursery() as waiting:
        waiting.start_soon(take)
        await _until_somebody_waits(api.here.nodes[0].state.config.port)
        id = await api.add()

    assert [each["id"] for each in found] == [id]


async def test_a_worker_that_hangs_up_while_it_waits_gets_no_job(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    port = api.here.nodes[0].state.config.port
    body = json.dumps({"queues": ["mail"], "timeout": 30}).encode()

    async with await trio.open_tcp_stream("127.0.0.1", api.here.port) as stream:
        await stream.send_all(_head(api.here.port, body) + body)
        await _until_somebody_waits(port)
    with trio.fail_after(20):
        while await _waiters(port):
            await trio.sleep(0.01)
    id = await api.add()

    [job] = await api.lease(timeout=5)
    assert (job["id"], job["attempt"], job["additional_deliveries"]) == (id, 1, 0)


async def test_jobs_that_cannot_be_sent_are_released(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is gone when the answer is ready."""
    api = await program(nursery)
    id = await api.add(retry=300)
    body = json.dumps({"queues": ["mail"]}).encode()
    original = api_jobs._leased
    async with await trio.open_tcp_stream("127.0.0.1", api.here.port) as stream:

        def leased(job: object) -> object:
            stream.socket.shutdown(trio.socket.SHUT_RDWR)
            return original(job)  # type: ignore[arg-type]

        monkeypatch.setattr(api_jobs, "_leased", leased)
        await stream.send_all(_head(api.here.port, body) + body)
        with trio.fail_after(20):
            await everything(stream)
    monkeypatch.undo()

    with trio.fail_after(20):
        while (await api.get(f"/jobs/{id}"))["summary"]["state"] != "queued":
            await trio.sleep(0.01)


async def test_jobs_of_a_worker_that_hangs_up_while_they_are_written_down_are_released(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large bodies are encoded in turns, between which the end of the connection is noticed."""
    monkeypatch.setattr("disque_trio.web.pieces.PIECE", 1000)
    api = await program(nursery)
    ids = [await api.add(body="x" * 2000, retry=300) for _ in range(20)]
    port = api.here.port
    body = json.dumps({"queues": ["mail"], "count": 20}).encode()
    original = api_jobs._leased
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:

        def leased(job: Any) -> Any:
            if job.id == ids[-1]:
                stream.socket.shutdown(trio.socket.SHUT_RDWR)
            return original(job)

        with monkeypatch.context() as patch:
            patch.setattr(api_jobs, "_leased", leased)
            await stream.send_all(_head(port, body) + body)
            with trio.fail_after(20):
                await everything(stream)

    with trio.fail_after(20):
        while (await api.get("/queues/mail"))["queue"]["jobs"] < len(ids):
            await trio.sleep(0.01)


async def test_waiting_workers_take_no_places_of_others(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disque_trio.web.http_server.MOST_OF_ONE", 2)
    monkeypatch.setattr(api_module, "WAITING", 4)
    api = await program(nursery)
    port = api.here.nodes[0].state.config.port

    async def take() -> None:
        await api.lease(timeout=30)

    async with trio.open_nursery() as waiting:
        for number in range(4):
            waiting.start_soon(take)
            await _until_somebody_waits(port, number + 1)
        assert (await api.get("/nodes"))["nodes"]
        assert (await api.post("/jobs/lease", {"queues": ["q"]}, 503))["code"] == "BUSY"
        waiting.cancel_scope.cancel()


async def test_the_next_request_may_come_while_one_waits(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    body = json.dumps({"queues": ["mail"], "timeout": 0.3}).encode()
    last = f"GET {PREFIX}/nodes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()

    async with await trio.open_tcp_stream("127.0.0.1", api.here.port) as stream:
        await stream.send_all(_head(api.here.port, body) + body + last)
        with trio.fail_after(20):
            data = await everything(stream)

    assert data.count(b"HTTP/1.1 200") == 2
    assert b'"jobs":[]' in data
    assert b'"nodes":[' in data


def _head(port: int, body: bytes) -> bytes:
    return (
        f"POST {PREFIX}/jobs/lease HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()


async def _waiters(port: int) -> int:
    """Clients that wait in GETJOB."""

    def ask() -> int:
        with BlockingClient(f"disque://127.0.0.1:{port}") as client:
            return int(client.info("clients")["blocked_clients"])

    return await trio.to_thread.run_sync(ask)


async def _until_somebody_waits(port: int, count: int = 1) -> None:
    with trio.fail_after(20):
        while await _waiters(port) < count:
            await trio.sleep(0.01)
