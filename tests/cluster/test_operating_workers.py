"""`disque-trio workers`, and `App.admin`: workers at one node, who are asked for at another."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from disque_trio.client import Client
from disque_trio.worker import App
from disque_trio.worker.driver import Worker
from disque_trio.worker.engine.records import Queue, Settings
from disque_trio.worker.operating.notes import CONTROL, NOTE_TTL_S, WORKERS
from disque_trio.worker.operating.registry import Registrar
from disque_trio.worker.statuses import CLEAN
from tests.cluster.commands import ran
from tests.cluster.processes import SOON_S, Cluster, Server, becomes, eventually
from tests.cluster.test_python_clients import url
from tests.cluster.workers.shop import Shop, opened
from tests.worker.playing import Doing

DISQUE_TRIO: Final = (sys.executable, "-m", "disque_trio")


@pytest.fixture
def shop(pair: Cluster, tmp_path: Path) -> Iterator[Shop]:
    with opened(pair[0], tmp_path) as found:
        yield found


def workers(server: Server, *words: str, status: int = 0, is_json: bool = True) -> Any:
    """What the command says, as JSON or as text."""
    ended = ran("workers", *words, "--url", url(server), *["--json"] * is_json)
    assert ended.status == status, ended.errors
    return json.loads(ended.output) if is_json else ended.said


def states(server: Server, name: str) -> list[str]:
    """Of the workers with this name; none before they are there."""
    return [each["state"] for each in workers(server, "list") if each["name"] == name]


@pytest.mark.slow
def test_workers_are_listed_and_shown_from_any_node(shop: Shop, pair: Cluster) -> None:
    worker = shop.start("shop", "--name", "ada", "-c", "3")
    shop.add("letter", 600)
    shop.says("begin letter")
    becomes(lambda: states(pair[1], "ada"), ["running"], SOON_S, "it is listed")
    [told] = workers(pair[1], "show", "a?a")
    eventually(lambda: workers(pair[1], "show", "ada")[0]["jobs"], 2 * SOON_S, "its job is told")

    assert (told["pid"], told["slots"], told["app"]) == (worker.pid, 3, "shop")
    assert told["queues"] == [shop.queue]
    said = workers(pair[1], "list", is_json=False)
    rows = [line.split() for line in said.splitlines()]
    assert rows[0][:2] == ["NAME", "STATE"]
    [row] = [row for row in rows if row[:2] == ["ada", "running"]]
    assert told["node_name"] in {server.id[:8] for server in pair.servers} & set(row)
    said = workers(pair[1], "show", "ada", is_json=False)
    assert f"note  {shop.queue}" in said


@pytest.mark.slow
def test_a_quiet_worker_takes_no_jobs_until_it_resumes(shop: Shop, pair: Cluster) -> None:
    shop.start("shop", "--name", "bob")
    becomes(lambda: states(pair[1], "bob"), ["running"], SOON_S, "it is listed")

    [answer] = workers(pair[1], "quiet", "bob")["details"]
    assert (answer["name"], answer["state"], answer["error"]) == ("bob", "quiet", "")
    becomes(lambda: states(pair[1], "bob"), ["quiet"], SOON_S, "the list says so")
    shop.add("letter")
    shop.start("shop", "--name", "eve", "--burst")
    shop.says("end letter")
    assert workers(pair[0], "resume", "bob", is_json=False) == "bob: resume; 0 jobs running\n"
    shop.add("card")
    shop.says("end card")


@pytest.mark.slow
def test_a_worker_that_is_told_to_stop_lets_its_job_end_and_leaves_the_list(
    shop: Shop, pair: Cluster
) -> None:
    worker = shop.start("shop", "--name", "cat")
    becomes(lambda: states(pair[1], "cat"), ["running"], SOON_S, "it is listed")
    shop.add("letter", 4)
    shop.says("begin letter")

    [answer] = workers(pair[1], "stop", "cat", "--yes")["details"]

    assert answer["error"] == ""
    assert shop.ends(worker) == CLEAN
    assert shop.said() == ["begin letter", "end letter"]
    assert states(pair[1], "cat") == []


@pytest.mark.slow
def test_a_dump_says_where_a_job_waits(shop: Shop, pair: Cluster) -> None:
    shop.start("shop", "--name", "dan")
    becomes(lambda: states(pair[1], "dan"), ["running"], SOON_S, "it is listed")
    shop.add("letter", 600)
    shop.says("begin letter")

    said = workers(pair[1], "dump", "dan", is_json=False)

    assert "await anyio.sleep(seconds)" in said


@pytest.mark.slow
def test_a_name_that_nobody_has_is_told_with_those_that_there_are(
    shop: Shop, pair: Cluster
) -> None:
    shop.start("shop", "--name", "fay")
    becomes(lambda: states(pair[1], "fay"), ["running"], SOON_S, "it is listed")

    said = workers(pair[1], "stop", "fey", "--yes", status=1, is_json=False)

    assert "disque-trio workers: no worker has the name fey; there are " in said
    assert "fay" in said


@pytest.mark.slow
def test_a_note_of_a_killed_worker_ends_by_itself_and_it_obeys_no_more(
    shop: Shop, pair: Cluster
) -> None:
    worker = shop.start("shop", "--name", "gus")
    becomes(lambda: states(pair[1], "gus"), ["running"], SOON_S, "it is listed")
    worker.send_signal(signal.SIGKILL)
    worker.wait()

    [answer] = workers(pair[1], "quiet", "gus", "--timeout", "0.5", status=1)["details"]
    assert answer["error"] == "no answer in time"
    notes = pair[0].client.call("QPEEK", WORKERS, "100")
    assert isinstance(notes, list)
    for note in notes:
        assert isinstance(note, list)
        shown = pair[0].client.call("SHOW", note[1])  # type: ignore[arg-type]
        assert isinstance(shown, list)
        facts = dict(zip(shown[::2], shown[1::2], strict=True))
        left = facts[b"ttl"]
        assert isinstance(left, int)
        assert (left <= NOTE_TTL_S, facts[b"retry"], facts[b"repl"]) == (True, 0, 1)


def test_a_worker_may_stay_out(shop: Shop, pair: Cluster) -> None:
    shop.start("shop", "--name", "hal", "--no-control")
    shop.add("letter")
    shop.says("end letter")

    assert states(pair[1], "hal") == []


def test_no_node_is_an_error_in_one_line() -> None:
    ended = subprocess.run(
        [*DISQUE_TRIO, "workers", "list"],
        env={**os.environ, "DISQUE_URL": "disque://127.0.0.1:1"},
        capture_output=True,
        check=False,
    )

    assert ended.returncode == 1
    assert ended.stderr.startswith(b"disque-trio workers: ")
    assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize("kind", ["trio", "asyncio"])
def test_nothing_grows_while_a_worker_tells_what_it_does(server: Server, kind: str) -> None:
    async def told() -> None:
        app: App[None] = App(url(server))
        cluster = app.cluster
        settings = Settings(nodes=tuple(map(str, cluster.seeds)), queues=(Queue(name=b"none"),))
        worker = Worker(settings=settings, handler=Doing(), cluster=cluster, name="ivy")
        with anyio.fail_after(SOON_S):
            async with app, Client(url(server)) as client, anyio.create_task_group() as tasks:
                await tasks.start(worker.run)
                registrar = Registrar(worker=worker, client=app.client, every_s=0.001)
                async with anyio.create_task_group() as registering:
                    registering.start_soon(registrar.run)
                    seen: set[str] = set()
                    while len(seen) < 30:
                        jobs = await client.qpeek(WORKERS, 100)
                        assert len(jobs) <= 2
                        seen |= {job.id for job in jobs}
                    [found] = (await app.admin.workers()).items
                    assert (found.report.name, found.state) == ("ivy", "running")
                    assert found.control.startswith(f"{CONTROL}ivy.")
                    registering.cancel_scope.cancel()
                assert await client.qlen(WORKERS) == 0
                worker.stop()

    anyio.run(told, backend=kind)
