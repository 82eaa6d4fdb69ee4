"""A result of real processes, read by another one after producer, worker and a node were killed."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.processes import SOON_S, Cluster, Fleet, Server, eventually
from tests.trees import HOME

PROGRAM: Final = """\
import asyncio, os, signal, sys
from disque_trio.worker import App

app: App[None] = App(os.environ["DISQUE_URL"], replicate=3)

@app.task(name="count", queue="pages", result_ttl=600)
async def count(text: str) -> int:
    return len(text.split())

@app.task(name="label", queue="pages", result_ttl=600)
async def label(words: int) -> str:
    return f"{words} words"

async def produce() -> None:
    async with app:
        job = await (count.call("to be or not") | label.partial()).enqueue()
        print(job.id, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

async def read(id: str) -> None:
    async with app:
        print(await app.result(id, 30))

if __name__ == "__main__":
    asyncio.run(produce() if sys.argv[1] == "produce" else read(sys.argv[2]))
"""


class Place:
    """Where the program is, and the nodes that it uses."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        (directory / "pages.py").write_text(PROGRAM)
        self.cluster, self.directory = cluster, directory
        nodes = ",".join(f"127.0.0.1:{each.port}" for each in cluster.servers)
        self.environment = {**os.environ, "DISQUE_URL": f"disque://{nodes}"} | {
            "PYTHONPATH": f"{directory}:{HOME}"
        }

    def run(self, *words: str) -> tuple[int, str]:
        """How the program ends, and what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "pages", *words], cwd=self.directory, env=self.environment,
            stdout=subprocess.PIPE, text=True, check=False, timeout=SOON_S,
        )  # fmt: skip
        return done.returncode, done.stdout.strip()

    @contextlib.contextmanager
    def worker(self) -> Iterator[None]:
        """A worker process, killed at the end."""
        command = [sys.executable, "-m", "disque_trio", "worker", "pages"]
        with open(self.directory / "log", "wb") as log:
            worker = subprocess.Popen(
                command, cwd=self.directory, env=self.environment, stdout=log, stderr=log
            )
        try:
            yield
        finally:
            worker.kill()
            worker.wait()

    def keeps(self, server: Server, id: str) -> bool:
        """Does this node keep the result, of a chain of all its steps?"""
        shown = server.client.call("SHOW", id)
        if not isinstance(shown, list) or b"result" not in shown:
            return False
        kept = json.loads(bytes(shown[shown.index(b"result") + 1]))  # type: ignore[arg-type]
        return "next" not in kept or self.keeps(server, kept["next"])


@pytest.mark.slow
@pytest.mark.parametrize("killed", range(3))
def test_a_result_outlives_its_producer_its_worker_and_any_one_node(
    fleet: Fleet, tmp_path: Path, killed: int
) -> None:
    place = Place(fleet.cluster(3), tmp_path)
    status, id = place.run("produce")
    assert status == -signal.SIGKILL
    with place.worker():
        log = (tmp_path / "log").read_text
        for server in place.cluster.servers:
            eventually(partial(place.keeps, server, id), SOON_S, f"{server.port}: {log()}")

    place.cluster[killed].kill()

    assert place.run("read", id) == (0, "4 words")
    assert place.run("read", id) == (0, "4 words")
