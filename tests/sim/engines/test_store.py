"""The disk of a simulated node: what is left of writes when a process or the power ends."""

import random

import attrs
import pytest
from outcome import Error, Outcome

from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.store import WRITE, DiskStore, SimFile
from disque_trio.sim.model.disk import Disk

SYNC = 5_000


@attrs.define(eq=False)
class Life:
    """A process that has begun to write to its journal, and to sync that."""

    disk: Disk
    engine: Engine
    store: DiskStore
    file: SimFile
    outcomes: list[Outcome[object]] = attrs.Factory(list)

    def run(self, until: int) -> None:
        """Let so much time pass."""
        self.engine.run(until)
        self.store.thread.collect()


@pytest.fixture
def life() -> Life:
    """It writes as a flush and a rewrite do."""
    disk = Disk(random.Random(1), (SYNC, SYNC))
    engine = Engine(0)
    store = DiskStore(engine, disk)
    made = Life(disk, engine, store, store.open())
    file = made.file
    store.thread.beside(file.append, (b"data",), made.outcomes.append, sync=file.sync)
    return made


def test_what_is_written_outlives_the_process_before_it_is_synced(life: Life) -> None:
    life.run(WRITE)
    life.store.thread.end()
    life.run(2 * SYNC)

    assert bytes(life.disk.file.data) == b"data"
    assert bytes(life.disk.file.durable) == b""
    assert life.outcomes == []


def test_a_process_that_ends_before_has_written_nothing(life: Life) -> None:
    life.store.thread.end()
    life.run(2 * SYNC)

    assert bytes(life.disk.file.data) == b""


def test_a_power_cut_may_lose_it_until_it_is_synced(life: Life) -> None:
    life.run(WRITE)
    kept = set()
    for seed in range(20):
        disk = Disk(random.Random(seed), (SYNC, SYNC))
        disk.file = attrs.evolve(
            life.disk.file, data=bytearray(b"data"), durable=bytearray(),
            writes=list(life.disk.file.writes),
        )  # fmt: skip
        disk.lose_power()
        kept.add(bytes(disk.file.data))
    life.run(WRITE + SYNC)

    life.disk.lose_power()

    assert {b"", b"data"} < kept
    assert bytes(life.disk.file.data) == b"data"
    assert [outcome.unwrap() for outcome in life.outcomes] == [None]


def test_a_disk_that_breaks_between_the_two_fails_the_sync(life: Life) -> None:
    life.run(WRITE)
    life.disk.is_broken = True
    life.run(WRITE + SYNC)

    [outcome] = life.outcomes
    assert isinstance(outcome, Error)
    assert bytes(life.disk.file.data) == b"data"


def test_a_write_that_fails_is_not_synced(life: Life) -> None:
    life.disk.is_full = True
    life.run(WRITE)

    [outcome] = life.outcomes
    assert isinstance(outcome, Error)


def test_what_hangs_goes_on_when_the_disk_answers(life: Life) -> None:
    life.disk.is_stalled = True
    life.run(10 * SYNC)
    assert bytes(life.disk.file.data) == b""
    life.disk.is_stalled = False
    life.run(20 * SYNC)

    assert bytes(life.disk.file.durable) == b"data"
    assert len(life.outcomes) == 1
