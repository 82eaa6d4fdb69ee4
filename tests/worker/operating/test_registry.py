"""A worker's notes of itself, with a client that the test plays."""

import time
from collections.abc import Sequence
from typing import Any, cast

import anyio
import attrs
import pytest

from disque_trio.client.address import Address, Cluster
from disque_trio.client.command import Command
from disque_trio.worker.cron.schedule import Schedule
from disque_trio.worker.cron.ticks import Calendar, Every
from disque_trio.worker.driver import Worker
from disque_trio.worker.engine.records import Queue, Settings
from disque_trio.worker.operating.notes import read_note
from disque_trio.worker.operating.registry import Registrar
from tests.worker.playing import KINDS, Doing


@attrs.define(eq=False)
class Interrupting:
    """A client whose user is cancelled while the first note is on its way."""

    scope: anyio.CancelScope
    asked: list[tuple[bytes, ...]] = attrs.Factory(list)

    async def getjob(self, *_: Any, **__: Any) -> list[Any]:
        await anyio.sleep_forever()
        raise AssertionError

    async def run_all(self, asked: Sequence[Command[Any]]) -> list[Any]:
        self.asked += [command.words for command in asked]
        self.scope.cancel()
        await anyio.lowlevel.checkpoint()
        return ["D-note" for _ in asked]


@pytest.mark.parametrize("kind", KINDS)
def test_a_note_says_when_the_schedules_that_a_worker_keeps_are_due_next(kind: str) -> None:
    settings = Settings(nodes=(str(Address()),), queues=(Queue(name=b"none"),))
    worker = Worker(settings=settings, handler=Doing(), cluster=Cluster([Address()]))
    schedules = [
        Schedule(name="beat", ticks=Every(3600)),
        Schedule(name="sweep", ticks=Calendar("30 2 * * *", "Europe/Berlin")),
    ]

    async def told() -> bytes:
        client = Interrupting(anyio.CancelScope())
        registrar = Registrar(worker=worker, client=cast("Any", client), schedules=schedules)
        with client.scope:
            await registrar.run()
        return client.asked[0][2]

    before = time.time()
    beat, sweep = read_note(anyio.run(told, backend=kind)).schedules

    assert (beat.name, beat.when, sweep.name, sweep.when) == (
        "beat", "every 3600 s", "sweep", "30 2 * * * Europe/Berlin",
    )  # fmt: skip
    assert before < beat.next <= before + 3602
    assert beat.next % 3600 == 0
    assert sweep.next % 3600 == 1800


@pytest.mark.parametrize("kind", KINDS)
def test_a_note_that_was_on_its_way_is_taken_away_too(kind: str) -> None:
    settings = Settings(nodes=(str(Address()),), queues=(Queue(name=b"none"),))
    worker = Worker(settings=settings, handler=Doing(), cluster=Cluster([Address()]))

    async def told() -> list[tuple[bytes, ...]]:
        client = Interrupting(anyio.CancelScope())
        with client.scope:
            await Registrar(worker=worker, client=cast("Any", client)).run()
        return client.asked

    added, removed = anyio.run(told, backend=kind)

    assert added[0] == b"ADDJOB"
    assert removed == (b"FASTACK", b"D-note")
