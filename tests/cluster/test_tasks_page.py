"""The page on tasks: its examples run with a node and with a worker."""

import ast
import re
import sys
import types
from collections.abc import Iterator
from inspect import iscoroutine
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from disque_trio.worker import App
from disque_trio.worker.options import JobOptions, TaskOptions
from tests.cluster.processes import Fleet

PAGE: Final = Path("docs/worker.md").read_text("utf-8")
BLOCKS: Final = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def shop() -> Iterator[dict[str, Any]]:
    """The module that the examples are in."""
    module = types.ModuleType("shop")
    sys.modules["shop"] = module
    yield module.__dict__
    del sys.modules["shop"]


async def run(example: str, shop: dict[str, Any], port: int) -> None:
    source = example.replace("127.0.0.1:7711", f"127.0.0.1:{port}")
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    told = eval(compile(source, "docs/worker.md", "exec", flags=flags), shop)
    if iscoroutine(told):
        await told


@pytest.mark.sample(2)
@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_the_examples_run(
    backend: str, fleet: Fleet, shop: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    async def read() -> None:
        server = fleet.server()
        with anyio.fail_after(120):
            await run(BLOCKS[0], shop, server.port)
            async with shop["app"]:
                for example in BLOCKS[1:]:
                    await run(example, shop, server.port)
                await work()

    async def work() -> None:
        app = shop["app"]
        await app.client.addjob("raw", b"12345")
        await app.client.addjob("legacy", b'{"class":"HardJob","args":["bob",5],"jid":"b4a5"}')
        await shop["send_digest"].enqueue("left")
        dead = await shop["send_digest"].enqueue("nobody")
        await shop["cut"].enqueue("a.mp4")
        await shop["make_report"].enqueue("x")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shop["main"])
            while not await is_done(app):
                await anyio.sleep(0.05)
            tasks.cancel_scope.cancel()
        assert (await app.client.show(dead.id)).more["reason"] == b"no address"

    async def is_done(app: App[None]) -> bool:
        stats = [await app.client.qstat(queue) for queue in app.queues]
        return all(each is not None and not each.length and not each.leased for each in stats)

    anyio.run(read, backend=backend)
    told = capsys.readouterr().out.splitlines()
    assert {"welcome, ada@example.org", "hello, bob@example.org", "hello, user299@example.org"} < {
        *told
    }
    assert "5" in told
    assert len(shop["results"]) == 300


def test_each_option_of_a_job_or_a_task_is_in_the_table() -> None:
    [table] = re.findall(r"\| option \| of \| default \| meaning \|\n(.*?)\n\n", PAGE, re.DOTALL)
    rows = [row.split("|")[1:3] for row in table.splitlines()[1:]]
    of = {name.strip(" `"): level.split(", ") for name, level in rows}

    assert {name for name, levels in of.items() if "job" in " ".join(levels)} == {
        *JobOptions.__annotations__
    }
    for name in TaskOptions.__annotations__:
        assert name in of or f"`{name}`" in PAGE, name
