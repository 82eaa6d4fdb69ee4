"""Whoever waits for a job that ended without a result is told, while other results keep coming."""

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
import trio
import trio.testing

from disque_trio.client.command import Command
from disque_trio.client.nodes import Nodes, NoNodeError
from disque_trio.client.records import Job
from disque_trio.worker.codec import Part
from disque_trio.worker.ends import Found, Watched
from disque_trio.worker.exceptions import NoResultError
from disque_trio.worker.results import Results

ROUND_TRIP_S = 0.002
EACH_S = 0.001
"""A result comes so often: some are always queued, or delivered and not yet acknowledged."""


class Node:
    """Has a queue of results, to which one is added each millisecond."""

    def __init__(self) -> None:
        self.nodes = Nodes([])
        self.queued: list[Job] = []
        self.leased: list[Job] = []
        self.count = 0

    async def work(self) -> None:
        while True:
            await trio.sleep(EACH_S)
            self.count += 1
            self.tell(f"other-{self.count}")

    def tell(self, key: str) -> None:
        body = json.dumps({"key": key, "value": 1}).encode()
        self.queued.append(Job(f"D-{key}", "results", body))

    async def getjob(self, _: str, *, count: int, timeout: float) -> list[Job]:
        with trio.move_on_after(timeout):
            while not self.queued:
                await trio.sleep(EACH_S)
        taken, self.queued = self.queued[:count], self.queued[count:]
        self.leased += taken
        await trio.sleep(ROUND_TRIP_S)
        return taken

    async def ackjob(self, *jobs: Job) -> int:
        await trio.sleep(ROUND_TRIP_S)
        self.leased = [job for job in self.leased if job not in jobs]
        return len(jobs)

    async def run(self, command: Command[Any]) -> object:
        """What it keeps is asked for."""
        if command.name == "GETJOB":
            return await self.getjob("", count=int(command.words[-3]), timeout=command.wait_s)
        raise NoNodeError("no node could run the command")

    async def waitjob(self, *_: str, **__: float) -> object:
        return "acked"

    async def jobs_in(self, _: object, __: str, peek: int = 0) -> Found:
        await trio.sleep(ROUND_TRIP_S)
        peeked = self.queued[:peek]
        count = len(self.queued) - len(peeked) + len(self.leased)
        return Found(count, up_s=1e6, refused_at=0, peeked=peeked)


async def _look(_: object, watched: Sequence[Watched]) -> None:
    """The job `D-ended` has ended."""
    for each in watched:
        each.end = "acked" if each.id == "D-ended" else None


def _read(part: Part) -> Any:
    return json.loads(bytes(part))


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    return trio.testing.MockClock(autojump_threshold=0)


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Node:
    node = Node()
    monkeypatch.setattr("disque_trio.worker.results.look", _look)
    monkeypatch.setattr("disque_trio.worker.results.jobs_in", node.jobs_in)
    return node


async def test_who_waits_for_a_job_without_a_result_is_told_within_a_second(
    node: Node, autojump_clock: trio.testing.MockClock
) -> None:
    results = Results(node)  # type: ignore[arg-type]
    async with trio.open_nursery() as tasks:
        tasks.start_soon(node.work)
        began = trio.current_time()
        with pytest.raises(NoResultError):
            await results.wait("ended", _read, "D-ended", 60)
        assert trio.current_time() - began < 1.0
        before = node.count
        await results.wait(f"other-{before + 10}", _read, "D-other", 60)  # and reading goes on
        assert node.count < before + 50
        tasks.cancel_scope.cancel()


async def test_a_result_that_is_still_queued_then_is_returned(
    node: Node, autojump_clock: trio.testing.MockClock
) -> None:
    results = Results(node)  # type: ignore[arg-type]

    async def tell_late() -> None:
        while not results._is_held_up:
            await trio.sleep(EACH_S)
        await trio.sleep(0.05)
        node.tell("ended")

    async with trio.open_nursery() as tasks:
        tasks.start_soon(node.work)
        tasks.start_soon(tell_late)
        assert await results.wait("ended", _read, "D-ended", math.inf) == 1
        tasks.cancel_scope.cancel()
