"""Real nodes for a test: one, then three, which end whatever happens."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio
import pytest

from disque_trio.client import BlockingClient
from disque_trio.testing.server.kit import Server
from disque_trio.worker import App

WITHIN_S: Final = 60.0

app = App[None]("disque://192.0.2.1:1")  # nobody answers there
seen: list[str] = []


@app.task(name="mail.send", queue="mail", result_ttl=60)
async def send(to: str) -> int:
    seen.append(to)
    return len(to)


@pytest.fixture(scope="module")
def disque_nodes() -> int:
    """Of this module."""
    return 3


@pytest.mark.parametrize("kind", ["trio", "asyncio"])
def test_a_worker_runs_jobs_of_an_app_that_names_other_nodes(
    kind: str, disque_server: Server
) -> None:
    async def story() -> None:
        async with app, disque_server.worker(app):
            job = await send.using(replicate=3).enqueue("ada")
            assert await job.result(WITHIN_S) == 3

    anyio.run(story, backend=kind)


@pytest.mark.parametrize("kind", ["trio", "asyncio"])
def test_a_worker_adds_the_ticks_of_schedules(kind: str, disque_server: Server) -> None:
    shop, ran = App[None](), list[str]()

    @shop.task(name="tick")
    async def tick() -> None:
        ran.append("tick")

    async def story() -> None:
        async with shop:
            await shop.schedules.add("each second", tick, every=1)
            with anyio.fail_after(WITHIN_S):
                async with disque_server.worker(shop):
                    while not ran:
                        await anyio.sleep(0.01)

    anyio.run(story, backend=kind)


def test_there_are_as_many_nodes_as_the_module_asks_for(disque_server: Server) -> None:
    assert disque_server.url.count(",") == 2
    with BlockingClient(disque_server.cluster) as client:
        for address in disque_server.cluster.seeds:
            connection = client.connect(address)
            connection.send([b"CLUSTER", b"NODES"])
            told = connection.receive()
            assert isinstance(told, bytes)
            assert told.count(b"connected") == 3


@pytest.mark.parametrize("turn", [1, 2])
def test_each_test_begins_without_jobs(turn: int, disque_server: Server) -> None:
    with BlockingClient(disque_server.url) as client:
        assert client.qlen("mail") == 0
        send.blocking.enqueue("ada")
        send.using(delay=600).blocking.enqueue("bob")
        client.getjob("mail")
        app.blocking.client.close()


@pytest.mark.parametrize("turn", [1, 2])
def test_each_test_begins_without_limits(turn: int, disque_server: Server) -> None:
    with BlockingClient(disque_server.url) as client:
        assert client.queue_info("mail").limits is None
        client.limit_queue("mail", concurrency=1)


def test_what_is_there_is_run_by_a_worker_that_ends(disque_server: Server) -> None:
    seen.clear()
    for name in ("ada", "bob"):
        send.blocking.enqueue(name)
    send.using(delay=600).blocking.enqueue("eve")
    app.blocking.client.close()

    disque_server.run_all_blocking(app)

    assert sorted(seen) == ["ada", "bob"]


HANGS: Final = """
import os, signal, time

# It is ignored in what a shell has started in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)

def test_it(disque_server):
    open("url", "w").write(disque_server.url)
    os.replace("url", "known")
    time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_the_nodes_end_with_the_tests_however_these_end(
    number: signal.Signals, tmp_path: Path
) -> None:
    (tmp_path / "test_it.py").write_text(HANGS)
    words = ("-m", "pytest", "-p", "disque_trio.testing.plugin", "-p", "no:cacheprovider")
    with subprocess.Popen(
        (sys.executable, *words, "test_it.py"),
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as tests:
        eventually((tmp_path / "known").exists)
        url = (tmp_path / "known").read_text()
        assert answers(url)
        os.kill(tests.pid, number)
        tests.wait()
    eventually(lambda: not answers(url))


def eventually(condition: Callable[[], bool]) -> None:
    """Wait for it."""
    until = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def answers(url: str) -> bool:
    """Does a node listen there?"""
    with BlockingClient(url) as client:
        try:
            client.qlen("q")
        except Exception:
            return False
    return True
