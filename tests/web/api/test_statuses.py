"""What the document says of each route, and what a server gives: statuses, and who may ask."""

import json
from collections.abc import Sequence
from typing import Any, Final

import pytest
import trio

from disque_trio.client.client import Client
from disque_trio.client.command import Command
from disque_trio.client.errors import ConnectionFailedError, LostError
from disque_trio.statemachine.base import Failure, Reply
from disque_trio.statemachine.config import Config
from disque_trio.web import http_server, users
from disque_trio.web.api.openapi import made
from disque_trio.web.api.routes import LARGE, Route
from disque_trio.web.api.table import ROUTES
from disque_trio.web.auth import WRONG_MOST
from disque_trio.web.messages import Request, Response
from disque_trio.web.roles import JOBS, MANAGE, OPERATE, ROLES, SEE
from disque_trio.web.site import Site
from disque_trio.web.source import alone
from tests.node.world import MemoryLog
from tests.web.api.asking import Program, program, told
from tests.web.api.requests import body_of, path_of
from tests.web.asking import Answer, everything, taken_apart

TOKENS: Final = {role: users.token() for role in ROLES if role}
USERS: Final[dict[str, Any]] = {
    "web_users": b"".join(
        b"%b:%b:%b\n" % (role.encode(), role.encode(), kept) for role, (_, kept) in TOKENS.items()
    )
}
BEARER: Final = {role: f"Authorization: Bearer {word}" for role, (word, _) in TOKENS.items()}
DOCUMENTED: Final = {
    each.name: set(map(int, made()["paths"][each.path][each.method.lower()]["responses"]))
    for each in ROUTES
}


async def ask(api: Program, route: Route, *headers: str, **changes: Any) -> Answer:
    """A good request, but for these changes."""
    kind = ["Content-Type: application/json"] * route.has_body
    given = {"method": route.method, "body": body_of(route), **changes}
    path = path_of(route) + given.pop("query", "")
    return await api.here.ask(path, *(headers or kind), **given)


async def raw(api: Program, route: Route, head: str, body: bytes = b"") -> Answer:
    text = f"{route.method} {path_of(route)} HTTP/1.1\r\nHost: localhost\r\n{head}"
    async with await trio.open_tcp_stream("127.0.0.1", api.here.port) as stream:
        await stream.send_all(text.encode() + body)
        with trio.fail_after(20):
            return taken_apart(await everything(stream))


def check(route: Route, answer: Answer, status: int, code: str) -> None:
    assert told(answer, status)["code"] == code, route.name
    assert status in DOCUMENTED[route.name]


async def test_each_route_refuses_what_it_documents(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    kind = "Content-Type: application/json"

    for route in ROUTES:
        check(route, await ask(api, route, query="?colour=red"), 400, "INVALID")
        check(route, await ask(api, route, method="PUT"), 405, "METHOD")
        check(route, await ask(api, route, "Host: evil.example"), 421, "HOST")
        long = f"{kind}\r\nContent-Length: {LARGE + 1}\r\n\r\n"
        check(route, await raw(api, route, long), 413, "TOOLARGE")
        check(route, await raw(api, route, f"X: {'x' * http_server.MOST_BYTES}"), 431, "HTTP")
        check(route, await raw(api, route, "Transfer-Encoding: gzip\r\n\r\n"), 501, "HTTP")
        assert (415 in DOCUMENTED[route.name]) is route.has_body
        if route.has_body:
            form = "Content-Type: application/x-www-form-urlencoded"
            check(route, await ask(api, route, form, body=b"a=b"), 415, "MEDIATYPE")


async def test_a_body_that_stalls_is_refused_as_documented(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = await program(nursery)
    monkeypatch.setattr(http_server, "BODY_S", 0.1)

    for route in {each.method: each for each in ROUTES}.values():
        head = "Content-Type: application/json\r\nContent-Length: 9\r\n\r\n"
        check(route, await raw(api, route, head, b"{"), 408, "TIMEOUT")
    assert all(408 in statuses for statuses in DOCUMENTED.values())


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        (ConnectionFailedError("it is gone"), 503),
        (LostError("it is gone"), 504),
        ("ERR words", 422),
        ("LOADING words", 503),
        ("NOAUTH words", 502),
        ("MOON words", 502),
        ("LOST words", 409),
        ("MAXLEN words", 429),
        ("NOJOB words", 404),
    ],
)
async def test_no_route_gives_a_status_that_it_does_not_document(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch, what: Exception | str, expected: int
) -> None:
    api = await program(nursery)
    found: dict[str, int] = {}

    async def refuse(_: Client, __: object, asked: Sequence[Command[Any]]) -> list[Reply]:
        await trio.lowlevel.checkpoint()
        if isinstance(what, Exception):
            raise what
        return [Failure(what.encode()) for _ in asked]

    monkeypatch.setattr(Client, "_exchange", refuse)
    for route in ROUTES:
        if expected != 409 or route.has_conflicts:  # commands that only read have no conflicts
            answer = await ask(api, route)
            found[route.name] = told(answer, answer.status) and answer.status
            assert answer.status in DOCUMENTED[route.name], route.name

    assert expected in found.values()


async def test_a_console_without_a_cluster_has_no_route() -> None:
    site = Site(alone(Config(), None, MemoryLog(), None))

    for route in ROUTES:
        head = Request(route.method.encode(), path_of(route), "127.0.0.1", {b"host": b"localhost"})
        refused = await site.begin(head)
        assert isinstance(refused, Response)
        assert (refused.status, json.loads(refused.body)["code"]) == (404, "NOCLUSTER")
        assert 404 in DOCUMENTED[route.name]


async def test_each_route_needs_its_right_and_no_other(nursery: trio.Nursery) -> None:
    api = await program(nursery, **USERS)

    for route in ROUTES:
        check(route, await ask(api, route), 401, "UNAUTHORIZED")
        for role in TOKENS:
            headers = [BEARER[role], *["Content-Type: application/json"] * route.has_body]
            answer = await ask(api, route, *headers)
            if route.right in ROLES[role]:
                assert answer.status not in (401, 403), (route.name, role)
            else:
                check(route, answer, 403, "FORBIDDEN")
                assert json.loads(answer.body)["right"] == route.right
    for _ in range(WRONG_MOST):
        await ask(api, ROUTES[0], "Authorization: Bearer wrong")
    for route in ROUTES:
        check(route, await ask(api, route, BEARER["admin"]), 429, "GUESSES")


async def test_a_port_that_only_reads_refuses_each_route_that_changes_something(
    nursery: trio.Nursery,
) -> None:
    api = await program(nursery, **USERS, web_read_only=True)

    for route in ROUTES:
        answer = await ask(api, route, BEARER["admin"])
        if route.right == SEE:
            assert answer.status not in (401, 403), route.name
        else:
            check(route, answer, 403, "READONLY")


def test_rights_follow_from_what_a_route_does() -> None:
    for route in ROUTES:
        kind = route.path.split("/")[1:3]
        by_kind = {
            ("GET", "audit"): MANAGE,
            ("POST", "jobs"): JOBS,
            ("POST", "queues"): JOBS,
            ("POST", "operations"): MANAGE if kind[-1] == "nodes" else OPERATE,
        }
        assert route.right == by_kind.get((route.method, kind[0]), SEE), route.name
