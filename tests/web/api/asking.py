"""A program that asks the API of a console on the loopback."""

import json
from typing import Any

import attrs
import trio

from disque_trio.web.api.routes import PREFIX
from tests.web.asking import Answer
from tests.web.browser import Console, console


@attrs.frozen
class Program:
    """It sends JSON, and its headers with each request."""

    here: Console
    headers: tuple[str, ...] = ()

    async def ask(self, path: str, *headers: str, method: str = "GET", body: bytes = b"") -> Answer:
        return await self.here.ask(PREFIX + path, *self.headers, *headers, method=method, body=body)

    async def get(self, path: str, status: int = 200) -> Any:
        return told(await self.ask(path), status)

    async def post(self, path: str, given: Any = None, status: int = 200) -> Any:
        body = b"" if given is None else json.dumps(given).encode()
        kind = "Content-Type: application/json"
        return told(await self.ask(path, kind, method="POST", body=body), status)

    async def add(self, queue: str = "mail", **given: Any) -> str:
        fields = {"body": "hello", "replicate": 1, **given}
        id: str = (await self.post(f"/queues/{queue}/jobs", fields, 201))["id"]
        return id

    async def lease(self, *queues: str, **given: Any) -> list[dict[str, Any]]:
        fields = {"queues": queues or ["mail"], **given}
        jobs: list[dict[str, Any]] = (await self.post("/jobs/lease", fields))["jobs"]
        return jobs


def told(answer: Answer, status: int = 200) -> Any:
    """What it says; it must have this status, and of an error the right form."""
    assert answer.status == status, answer.body
    is_error = status >= 400
    kind = "application/problem+json" if is_error else "application/json"
    assert answer.headers["content-type"] == kind
    data = json.loads(answer.body)
    if is_error:
        assert {"type", "title", "status", "code"} <= data.keys()
        assert data["detail"]
        assert data["advice"]
        assert data["status"] == status
    return data


async def program(nursery: trio.Nursery, count: int = 1, **directives: Any) -> Program:
    """That of a cluster whose nodes have consoles."""
    return Program(await console(nursery, count, **directives))
