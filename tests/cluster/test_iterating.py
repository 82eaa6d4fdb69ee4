"""Iterable jobs of worker processes on three nodes: stopped, and killed with a node."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from disque_trio.worker import App
from tests.cluster.processes import SOON_S, Fleet, eventually
from tests.trees import HOME

PROGRAM: Final = """\
import os
from collections.abc import AsyncIterator
import anyio
from disque_trio.worker import App, current_job

app = App(os.environ["DISQUE_URL"])

def say(*words: object) -> None:
    with open("said", "a") as file:
        print(*words, file=file)

@app.task(name="walk", queue="walks", lease=5)
async def walk(steps: int) -> AsyncIterator[int]:
    start = current_job().checkpoint or 0
    say("begin", start)
    for step in range(start, steps):
        await anyio.sleep(0.2)
        say("step", step)
        yield step + 1
    say("end", steps)
"""
STEPS: Final = 150


@pytest.mark.slow
def test_a_job_goes_on_after_its_worker_stops_and_after_worker_and_node_are_killed(
    fleet: Fleet, tmp_path: Path
) -> None:
    cluster = fleet.cluster(3)
    (tmp_path / "walks.py").write_text(PROGRAM)
    nodes = "disque://" + ",".join(f"127.0.0.1:{each.port}" for each in cluster.servers)
    environment = {"DISQUE_URL": nodes, "PYTHONPATH": str(HOME), "PATH": "/usr/bin:/bin"}
    app: App[None] = App(nodes)

    @app.task(name="walk", queue="walks", lease=5)
    async def walk(steps: int) -> None: ...

    def said(word: str) -> list[int]:
        path = tmp_path / "said"
        lines = path.read_text().splitlines() if path.exists() else []
        return [int(line.split()[1]) for line in lines if line.startswith(f"{word} ")]

    def worked(until: int) -> subprocess.Popen[bytes]:
        with open(tmp_path / "log", "ab") as log:
            command = [sys.executable, "-m", "disque_trio", "worker", "walks"]
            worker = subprocess.Popen(
                command, cwd=tmp_path, env=environment, stdout=log, stderr=log
            )
        try:
            what = (tmp_path / "log").read_text
            eventually(lambda: max(said("step"), default=0) >= until, SOON_S, f"{until}: {what()}")
        except BaseException:
            worker.kill()
            worker.wait()
            raise
        return worker

    job = walk.blocking.enqueue(STEPS)
    app.blocking.client.close()
    first = worked(40)
    first.terminate()
    assert first.wait(SOON_S) == 0
    stopped_at = max(said("step"))
    second = worked(90)
    assert said("begin") == [0, stopped_at + 1]
    second.kill()
    second.wait()
    cluster[0].kill()
    third = worked(STEPS - 1)
    eventually(lambda: said("end") == [STEPS], SOON_S, "it ends")
    third.kill()
    third.wait()

    assert set(said("step")) == set(range(STEPS))
    assert len(said("begin")) == 3
    assert said("begin")[2] >= 50, "the checkpoint of the killed worker is some seconds old"
    assert job.id
