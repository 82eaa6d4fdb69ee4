"""A worker's notes of itself, with a client that the test plays."""

from collections.abc import Sequence
from typing import Any, cast

import anyio
import attrs
import pytest

from disque_trio.client.address import Address, Cluster
from disque_trio.client.command import Command
from disque_trio.worker.engine.records import Queue, Settings
from disque_trio.worker.operating.registry import Registrar
from disque_trio.worker.running import Worker
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
    assert removed == (b"DELJOB", b"D-note")
