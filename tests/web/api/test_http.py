"""What the API takes and refuses as HTTP, and from whom."""

import json
from typing import Any

import pytest
import trio

from disque_trio.web.api.routes import LARGE, PREFIX, SMALL
from disque_trio.web.auth import WRONG_MOST
from tests.web.api.asking import Program, program, told
from tests.web.asking import everything, taken_apart

JSON = "Content-Type: application/json"
SECRET: dict[str, Any] = {"requirepass": b"sesame", "web_reader_password": b"look"}
ADD = {"body": "x", "replicate": 1}


def as_(api: Program, *headers: str) -> Program:
    return Program(api.here, headers)


async def test_methods_that_are_not_served_are_named(nursery: trio.Nursery) -> None:
    api = await program(nursery)

    for method in ("POST", "PUT", "DELETE", "TRACE", "BREW"):
        answer = await api.ask("/nodes", method=method)
        assert answer.headers["allow"] == "GET, HEAD, OPTIONS"
        told(answer, 405)
    answer = await api.ask("/jobs/lease")
    assert (answer.status, answer.headers["allow"]) == (405, "POST, OPTIONS")
    options = await api.ask("/jobs", method="OPTIONS")
    assert (options.status, options.body) == (204, b"")
    assert options.headers["allow"] == "GET, POST, HEAD, OPTIONS"
    told(await api.ask("/openapi.json", method="POST"), 405)
    assert (await api.ask("/openapi.json", method="OPTIONS")).status == 204


async def test_every_path_below_api_is_of_the_api(nursery: trio.Nursery) -> None:
    api = await program(nursery)

    for path in ("/api", "/api/", "/api?x", "/api/v1", "/api/v1/", "/api/v2/nodes", "/api/v1x"):
        answer = await api.here.ask(path)
        assert told(answer, 404)["code"] == "NOPATH", path
    assert (await api.here.ask("/apiary")).headers["content-type"].startswith("text/plain")


async def test_a_target_may_name_the_host(nursery: trio.Nursery) -> None:
    api = await program(nursery)

    here = f"http://127.0.0.1:{api.here.port}{PREFIX}/operations"
    assert told(await api.here.ask(here, "Host: evil.example"))["operations"]
    for host in ("evil.example", "user@localhost", ""):
        told(await api.here.ask(f"http://{host}{PREFIX}/operations"), 421)


async def test_a_member_of_json_comes_once(nursery: trio.Nursery) -> None:
    api = await program(nursery)

    for body in (
        b'{"queues":["q"],"queues":["p"]}',
        b'{"queues":["q"],"count":{"queues":1,"queues":1}}',
    ):
        problem = told(await api.ask("/jobs/lease", JSON, method="POST", body=body), 400)
        assert (problem["code"], problem["name"]) == ("INVALID", "queues")


async def test_head_is_a_get_without_its_body(nursery: trio.Nursery) -> None:
    api = await program(nursery)

    answer = await api.ask("/operations", method="HEAD")

    assert (answer.status, answer.body) == (200, b"")
    assert int(answer.headers["content-length"]) == len((await api.ask("/operations")).body)


async def test_pages_of_other_sites_are_not_invited(nursery: trio.Nursery) -> None:
    """No CORS."""
    api = await program(nursery)

    for method in ("GET", "OPTIONS"):
        answer = await api.ask("/nodes", "Origin: http://evil.example", method=method)
        assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_a_body_must_be_json_unless_it_is_that_of_a_job(nursery: trio.Nursery) -> None:
    api = await program(nursery)

    for path, kind in (
        ("/jobs/lease", "Content-Type: text/plain"),
        ("/queues/q/jobs", "Content-Type: application/x-www-form-urlencoded"),
        ("/jobs", "X: y"),
    ):
        told(await api.ask(path, kind, method="POST", body=b"{}"), 415)
    for kind in (JSON, "Content-Type: application/octet-stream"):
        zipped = await api.ask(
            "/queues/q/jobs", kind, "Content-Encoding: gzip", method="POST", body=b"{}"
        )
        assert told(zipped, 415)["code"] == "CODING"
    for body in (b"{", b"[]", b'"x"', b'{"queues":NaN}', b"[" * 50_000, b"\xff"):
        problem = told(await api.ask("/jobs/lease", JSON, method="POST", body=body), 400)
        assert problem["code"] in ("JSON", "INVALID")
    charset = "Content-Type: Application/JSON; charset=utf-8"
    body = json.dumps(ADD).encode()
    told(await api.ask("/queues/q/jobs", charset, method="POST", body=body), 201)


async def test_values_of_wrong_kinds_are_named(nursery: trio.Nursery) -> None:
    api = await program(nursery)

    for name, value in (
        ("retry", "1"), ("retry", 1.5), ("retry", True), ("retry", 1 << 80), ("ttl", 0),
        ("body", "\ud800"), ("priority", 101), ("if_exists", "maybe"), ("sync", "automatic"),
        ("async", "yes"), ("timeout", 1e308), ("bodies", []), ("delay", -0.1), ("delay", None),
    ):  # fmt: skip
        problem = await api.post("/queues/q/jobs", {**ADD, name: value}, 400)
        assert (problem["code"], problem["name"]) == ("INVALID", name), value
    infinite = b'{"body":"x","delay":1e999}'
    told(await api.ask("/queues/q/jobs", JSON, method="POST", body=infinite), 400)
    assert (await api.post("/jobs/lease", {}, 400))["code"] == "MISSING"
    assert await api.add("q", retry=20.0, replicate=1.0)  # JSON does not distinguish 1 and 1.0


async def test_large_bodies_are_refused_before_they_are_sent(nursery: trio.Nursery) -> None:
    api = await program(nursery)

    async def sent(path: str, head: str, body: bytes) -> int:
        text = f"POST {PREFIX}{path} HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\n{head}\r\n\r\n"
        async with await trio.open_tcp_stream("127.0.0.1", api.here.port) as stream:
            with trio.fail_after(20):
                await stream.send_all(text.encode() + body)
                return taken_apart(await everything(stream)).status

    assert await sent("/queues/q/jobs", f"Content-Length: {LARGE + 1}", b"") == 413
    assert await sent("/jobs/lease", f"Content-Length: {SMALL + 1}", b"") == 413
    chunk = b"%x\r\n%b\r\n" % (SMALL + 1, b" " * (SMALL + 1))
    assert await sent("/jobs/lease", "Transfer-Encoding: chunked", chunk) == 413
    large = json.dumps({**ADD, "body": "x" * (LARGE - 100)}).encode()
    told(await api.ask("/queues/q/jobs", JSON, method="POST", body=large), 201)


async def test_strangers_send_no_bodies(nursery: trio.Nursery) -> None:
    api = await program(nursery, **SECRET)
    head = f"POST {PREFIX}/jobs HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\nContent-Length: 99999\r\n"

    async with await trio.open_tcp_stream("127.0.0.1", api.here.port) as stream:
        await stream.send_all(head.encode() + b"Expect: 100-continue\r\n\r\n")
        with trio.fail_after(20):
            answer = taken_apart(await everything(stream))

    assert answer.status == 401


async def test_a_password_is_needed(nursery: trio.Nursery) -> None:
    api = await program(nursery, **SECRET)

    answer = await api.ask("/nodes")
    assert told(answer, 401)["code"] == "UNAUTHORIZED"
    assert answer.headers["www-authenticate"].startswith("Bearer")
    told(await api.ask("/nothing"), 401)
    told(await api.ask("/openapi.json"), 401)
    assert (await as_(api, "Authorization: Bearer sesame").get("/nodes"))["nodes"]
    assert (await as_(api, "Authorization: Bearer sesame").get("/openapi.json"))["paths"]


async def test_guesses_are_limited(nursery: trio.Nursery) -> None:
    api = await program(nursery, **SECRET)

    for number in range(WRONG_MOST - 1):
        told(await api.ask("/nodes", f"Authorization: Bearer guess{number}"), 401)
    answer = await api.ask("/nodes", "Authorization: Bearer guess")
    assert (told(answer, 429)["code"], answer.headers["retry-after"]) == ("GUESSES", "60")
    told(await api.ask("/nodes", "Authorization: Bearer sesame"), 429)


async def test_a_reader_sees_and_changes_nothing(nursery: trio.Nursery) -> None:
    api = as_(await program(nursery, **SECRET), "Authorization: Bearer look")

    assert (await api.get("/operations"))["operations"] == []
    for path in ("/queues/q/jobs", "/jobs", "/jobs/lease", "/operations/queues/pause"):
        assert (await api.post(path, {}, 403))["code"] == "FORBIDDEN"


async def test_a_port_that_only_reads_does_so_for_everybody(nursery: trio.Nursery) -> None:
    api = await program(nursery, web_read_only=True)

    assert (await api.get("/nodes"))["nodes"]
    for path in ("/queues/q/jobs", "/operations/queues/pause"):
        assert (await api.post(path, {}, 403))["code"] == "READONLY"


@pytest.mark.parametrize("has_password", [True, False])
async def test_a_page_of_another_site_changes_nothing(
    nursery: trio.Nursery, has_password: bool
) -> None:
    api = await program(nursery, **(SECRET if has_password else {}))
    headers = []
    if has_password:
        name, cookie = await api.here.cookie("sesame")
        headers = [f"{name}: {cookie}"]
    body = json.dumps(ADD).encode()

    async def post(*more: str) -> int:
        answer = await api.ask(
            "/queues/q/jobs", JSON, *headers, *more, method="POST", body=body
        )  # fmt: skip
        return answer.status

    assert await post("Origin: http://evil.example") == 403
    assert await post("Origin: null") == 403
    assert await post("Sec-Fetch-Site: cross-site") == 403
    assert await post("Sec-Fetch-Site: same-site") == 403
    assert await post("Sec-Fetch-Site: same-origin") == 201
    assert await post(f"Origin: {api.here.origin}") == 201
    # A session that no browser vouches for does not do; without any there is none to be abused.
    assert await post() == (403 if has_password else 201)
    if has_password:
        assert await post("Authorization: Bearer sesame") == 201


async def test_a_name_that_leads_here_by_dns_rebinding_is_refused(nursery: trio.Nursery) -> None:
    api = await program(nursery)

    for host in ("evil.example", "127.0.0.1.nip.io"):
        told(await api.ask("/nodes", f"Host: {host}"), 421)


async def test_one_connection_serves_many_requests(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    get = f"GET {PREFIX}/{{}} HTTP/1.1\r\nHost: localhost\r\n{{}}\r\n"
    last = get.format("operations", "Connection: close\r\n")

    async with await trio.open_tcp_stream("127.0.0.1", api.here.port) as stream:
        await stream.send_all((get.format("none", "") + get.format("operations", "")).encode())
        await stream.send_all(last.encode())
        with trio.fail_after(20):
            data = await everything(stream)

    assert (data.count(b"HTTP/1.1 404"), data.count(b"HTTP/1.1 200")) == (1, 2)
