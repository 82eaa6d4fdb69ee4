"""Jobs that kill their workers, among jobs that do not: none of those dies."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.cluster.processes import Fleet, Server
from tests.cluster.workers.shop import Shop, opened

SOURCE = """\
import os, signal
import anyio
from disque_trio.worker import App

app = App(queue="q", lease=30)

@app.task(name="kill")
async def kill(seconds):
    await anyio.sleep(seconds)
    os.kill(os.getpid(), signal.SIGKILL)

@app.task(name="work")
async def work(seconds):
    await anyio.sleep(seconds)
"""


class Workers:
    """Keeps processes running, as a supervisor does, and kills some."""

    def __init__(self, shop: Shop, count: int, options: list[str]) -> None:
        self.shop, self.options, self.restarts = shop, options, 0
        self._processes = [self._start() for _ in range(count)]

    def _start(self) -> "subprocess.Popen[bytes]":
        return self.shop.start("killers", *self.options)

    def look(self) -> None:
        """Replace those that have ended."""
        for index, process in enumerate(self._processes):
            if process.poll() is not None:
                self.restarts += 1
                self._processes[index] = self._start()

    def kill(self, rng: random.Random) -> None:
        """One of them dies of something else than a job."""
        rng.choice(self._processes).send_signal(signal.SIGKILL)


def added(server: Server, count: int, killers: int, rng: random.Random) -> dict[bytes, str]:
    """Jobs in a random order, and what they do."""
    names = ["work"] * count + ["kill"] * killers
    rng.shuffle(names)
    found = {}
    for name in names:
        seconds = rng.choice([0, 0.01, 0.1, 1.5 if name == "kill" else 0.5])
        body = f'{{"task":"{name}","args":[{seconds}]}}'
        found[server.client.add("q", body, "RETRY", 30)] = name
    return found


def played(
    fleet: Fleet, directory: Path, counts: tuple[int, int], rounds: int, *options: str
) -> str:
    """Run them, with a process killed in each round, until all have ended; figures."""
    rng = random.Random(20)
    server = fleet.server("--tied-grace", "200")
    (directory / "killers.py").write_text(SOURCE)
    began = time.monotonic()
    left = added(server, *counts, rng)
    again = Counter[int]()
    with opened(server, directory) as shop:
        workers = Workers(shop, 2, list(options))
        next_kill = time.monotonic() + 2
        while left:
            workers.look()
            if rounds and time.monotonic() > next_kill:
                workers.kill(rng)
                rounds, next_kill = rounds - 1, time.monotonic() + 3
            for id in [id for id, name in left.items() if has_ended(server, id, name, again)]:
                del left[id]
            time.sleep(0.2)
    took = time.monotonic() - began
    return f"{counts} with {options}: {took:.0f} s, {workers.restarts} restarts, {dict(again)}"


def has_ended(server: Server, id: bytes, name: str, again: Counter[int]) -> bool:
    """Is it done, or is a killer dead?"""
    shown = server.client.show(id)
    if not shown:
        assert name == "work", f"{id!r} kills its worker, and is done"
        return True
    if shown["state"] == b"dead":
        reason = str(shown.get("reason"))
        assert name == "kill", f"an innocent job is dead: {reason}"
        assert "killed its worker 3 times while running alone" in reason
        return True
    if name == "work":
        again[int(str(shown["additional-deliveries"]))] += 1
    return False


@pytest.mark.slow
@pytest.mark.parametrize("options", [("-c", "10"), ("-c", "1", "--prefetch", "30")])
def test_nobody_dies_of_a_job_that_kills_its_worker(
    fleet: Fleet, tmp_path: Path, options: tuple[str, ...]
) -> None:
    played(fleet, tmp_path, (60, 1), 1, *options)


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("options", [("-c", "10"), ("-c", "2", "--prefetch", "200")])
def test_nobody_dies_in_ten_rounds_of_kills(
    fleet: Fleet, tmp_path: Path, options: tuple[str, ...]
) -> None:
    sys.stdout.write(f"\n{played(fleet, tmp_path, (1_000, 5), 10, *options)}\n")
