"""FastAPI and Starlette: requests add jobs, and a worker may run beside them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import trio

from disque_trio.client import NoNodeError
from disque_trio.contrib.starlette import is_ready, lifespan
from disque_trio.testing.inline.kit import Inline
from disque_trio.testing.server.kit import Server
from disque_trio.worker import App

fastapi = pytest.importorskip("fastapi")


async def request(web: Any, path: str, method: str = "POST") -> tuple[int, bytes]:
    """What an ASGI application answers."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method}
    where = {"path": path, "raw_path": path.encode(), "query_string": b"", "root_path": ""}
    await web({**scope, **where, "scheme": "http", "headers": []}, receive, send)
    return sent[0]["status"], sent[1]["body"]


def shop(done: list[str], **options: Any) -> tuple[App[None], Any]:
    tasks = App()

    @tasks.task(name="greet", queue="mail")
    async def greet(name: str) -> None:
        done.append(name)

    web = fastapi.FastAPI(lifespan=lifespan(tasks, **options))

    async def post(name: str) -> dict[str, str]:
        return {"job": (await greet.enqueue(name)).id}

    web.post("/greet/{name}")(post)
    return tasks, web


async def test_a_request_adds_a_job(disque_inline: Inline) -> None:
    done: list[str] = []
    tasks, web = shop(done)

    async with web.router.lifespan_context(web):
        status, body = await request(web, "/greet/ada")
        assert await is_ready(tasks)

    assert (status, b"D-" in body) == (200, True)
    disque_inline.assert_enqueued(tasks.tasks["greet"], args=("ada",))


async def test_a_lifespan_of_the_users_begins_when_jobs_can_be_added(
    disque_inline: Inline,
) -> None:
    @asynccontextmanager
    async def mine(_: Any) -> AsyncIterator[dict[str, str]]:
        await tasks.tasks["greet"].enqueue("at the start")
        yield {"mine": "state"}

    tasks, web = shop([], inner=mine)
    async with web.router.lifespan_context(web) as state:
        assert state == {"mine": "state"}

    disque_inline.assert_enqueued(tasks.tasks["greet"], args=("at the start",))


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_worker_in_the_same_process_runs_them_and_stops_with_the_server(
    backend: str, disque_server: Server
) -> None:
    done: list[str] = []
    tasks, web = shop(done, worker=True)
    tasks.use(disque_server.url)

    async def story() -> None:
        async with web.router.lifespan_context(web):
            await request(web, "/greet/ada")
            with anyio.fail_after(20):
                while not done:
                    await anyio.sleep(0.01)

    anyio.run(story, backend=backend)
    assert done == ["ada"]


def test_the_worker_adds_the_ticks_of_schedules(disque_server: Server) -> None:
    done: list[str] = []
    tasks, web = shop(done, worker=True)
    tasks.use(disque_server.url)

    async def story() -> None:
        async with web.router.lifespan_context(web):
            await tasks.schedules.add("s", tasks.tasks["greet"].call("ada"), every=1)
            with anyio.fail_after(60):
                while not done:
                    await anyio.sleep(0.01)

    anyio.run(story, backend="trio")


async def test_without_a_node_the_request_fails_and_the_readiness_page_says_no() -> None:
    with trio.socket.socket() as taken:  # bound, and nobody listens
        await taken.bind(("127.0.0.1", 0))
        tasks, web = shop([])
        tasks.use(f"disque://127.0.0.1:{taken.getsockname()[1]}")
        async with web.router.lifespan_context(web):
            assert not await is_ready(tasks)
            with pytest.raises(NoNodeError):
                await request(web, "/greet/ada")
