"""The examples of the pages on workers, with a real node."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from disque_trio.client.url import parse_url
from disque_trio.worker.app import App
from disque_trio.worker.cron.known import QUEUE
from disque_trio.worker.driver import Worker
from disque_trio.worker.engine.records import Queue, Settings
from tests.cluster.processes import Server
from tests.cluster.test_python_clients import url

NIGHT = 1_795_397_410.5
"""A few seconds after 02:30 in Berlin, on 23 November 2026."""
DOCS = Path(__file__).parents[2] / "docs"


def examples(name: str, server: Server) -> dict[str, Any]:
    """What the page defines."""
    found: dict[str, Any] = {}
    page = (DOCS / name).read_text("utf-8").replace("disque://127.0.0.1:7711", url(server))
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, found)
    return found


def worked(app: App[Any], server: Server, story: Callable[[], Awaitable[None]]) -> None:
    """A worker of the app runs during the story, in the night of 23 November 2026."""

    async def held() -> None:
        with anyio.fail_after(120):
            cluster = parse_url(url(server))
            settings = Settings(
                nodes=tuple(map(str, cluster.seeds)),
                queues=tuple(Queue(name=name.encode()) for name in app.queues),
            )
            async with app.handler(now=lambda: NIGHT) as handler:
                worker = Worker(settings=settings, handler=handler, cluster=cluster)
                async with anyio.create_task_group() as tasks:
                    await tasks.start(worker.run)
                    await story()
                    worker.stop()

    anyio.run(held, backend="trio")


async def started_before(app: App[Any]) -> None:
    """A worker has run the day before, and has recorded its schedules."""
    with anyio.fail_after(120):
        async with app.handler(now=lambda: NIGHT - 86_400):
            while not (await app.client.jscan(queue=QUEUE)).items:
                await anyio.sleep(0.01)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await anyio.sleep(0.01)


def test_the_examples_of_the_clock_run(
    server: Server, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    page = examples("worker-cron.md", server)
    database, printed = page["database"], list[str]()

    def charges() -> list[Any]:
        return list(database.execute("SELECT * FROM charges"))

    async def story() -> None:
        await page["charge"].using(key="k1").enqueue("ada", 100)
        await page["charge"].using(key="k1").enqueue("ada", 100)
        await page["charge"].using(key="k2").enqueue("bob", 200)
        await until(lambda: len(charges()) == 2)
        while not "".join(printed):
            printed.append(capsys.readouterr().out)
            await anyio.sleep(0.01)

    anyio.run(started_before, page["app"], backend="trio")
    worked(page["app"], server, story)

    assert "".join(printed) == "the report of 23 November\n"
    assert sorted(charges()) == [("ada", 100), ("bob", 200)]
    database.close()


def test_the_examples_of_results_run(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    page = examples("worker-results.md", server)

    worked(page["app"], server, page["main"])
    for name in ("followed", "chained", "counted", "published"):
        worked(page["app"], server, page[name])

    printed = ["6", "ValueError: no text", "50 %: page 1 of 2", "100 %: page 2 of 2", "2"]
    printed += ["4 words on shelf b", "[1, 2]", "c without 0 of 2 pages"]
    assert capsys.readouterr().out.splitlines() == printed


def test_the_examples_of_flows_run(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    page = examples("worker-flows.md", server)
    for name in ("main", "reported"):
        worked(page["app"], server, page[name])

    whole, told = capsys.readouterr().out.splitlines()
    id, rest = whole.split(" ", 1)
    assert (rest, told) == ("done {'done': 12}", "sea.mp4: 183 s")

    async def looked() -> None:
        await page["look"](id)

    anyio.run(looked, backend="trio")
