"""The resident size is measured, and what has been freed goes back to the system: when that is
worth it, and never often."""

import subprocess
import sys
from typing import NoReturn

import attrs
import pytest
import trio
import trio.testing

from disque_trio.serving import memory_trimming
from disque_trio.serving.memory_trimming import (
    LEAST_SURPLUS,
    LOOK_EVERY_S,
    LOOK_OFTEN_S,
    MOST_PAUSE_S,
    STACK_BYTES,
    Trimmer,
    malloc_trim,
    trimmer_for,
)
from disque_trio.statemachine import pressure
from tests.node.world import MemoryLog, World

MB = 1 << 20
GROWN = """
import threading
from disque_trio.serving.memory_trimming import bound_threads

def address_space() -> int:
    (line,) = [line for line in open("/proc/self/status") if line.startswith("VmSize")]
    return int(line.split()[1]) << 10

bound_threads()
before, gate = address_space(), threading.Barrier(5)

def allocate() -> None:
    kept = [bytes(100) for _ in range(1000)]
    gate.wait()
    gate.wait()

for _ in range(4):
    threading.Thread(target=allocate).start()
gate.wait()
print(address_space() - before)
gate.wait()
"""


class Heap:
    """A process that takes so much, of which so much is accounted, and so much cannot go back."""

    def __init__(self, rss: int, used: int, stuck: int = 0, limit: int = 1 << 50) -> None:
        self.rss = rss
        self.used = used
        self.stuck = stuck
        self.trims = 0
        self.log = MemoryLog([])
        self.told: list[int] = []
        self.trimmer = Trimmer(
            lambda: self.used,
            self.log,
            limit=lambda: limit,
            notify=self.told.append,
            rss=lambda: self.rss,
            trim=self.trim,
        )

    def trim(self) -> None:
        self.trims += 1
        self.rss = min(self.rss, self.used + self.stuck)


async def test_what_a_drained_backlog_leaves_is_given_back() -> None:
    heap = Heap(rss=300 * MB, used=40 * MB)

    await heap.trimmer.look()

    assert heap.rss == 40 * MB
    assert heap.trims == 1


async def test_it_is_given_back_though_the_system_grants_no_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(*_: object, **__: object) -> NoReturn:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(trio.to_thread, "run_sync", refuse)
    heap = Heap(rss=300 * MB, used=40 * MB)

    await heap.trimmer.look()

    assert heap.rss == 40 * MB


async def test_a_little_or_what_the_account_may_be_wrong_by_is_left_alone() -> None:
    for rss, used in ((40 * MB + LEAST_SURPLUS - 1, 40 * MB), (1100 * MB, 1000 * MB)):
        heap = Heap(rss, used)

        await heap.trimmer.look()

        assert heap.trims == 0


async def test_of_a_large_process_no_more_than_a_quarter_of_a_gigabyte_is_left() -> None:
    heap = Heap(rss=20_000 * MB, used=19_700 * MB)

    await heap.trimmer.look()

    assert heap.trims == 1


async def look_for(heap: Heap, clock: trio.testing.MockClock, seconds: float) -> None:
    """As `attend` does. The clock stands still while a thread works."""
    for _ in range(int(seconds / LOOK_EVERY_S)):
        clock.jump(LOOK_EVERY_S)
        await heap.trimmer.look()


async def test_what_cannot_be_given_back_is_tried_ever_more_rarely(
    mock_clock: trio.testing.MockClock,
) -> None:
    heap = Heap(rss=300 * MB, used=40 * MB, stuck=200 * MB)

    await look_for(heap, mock_clock, 3600)

    assert 2 <= heap.trims < 11 + 3600 / MOST_PAUSE_S


async def test_after_that_a_new_surplus_is_given_back_too(
    mock_clock: trio.testing.MockClock,
) -> None:
    heap = Heap(rss=300 * MB, used=40 * MB, stuck=200 * MB)
    await look_for(heap, mock_clock, 20)
    heap.rss, heap.used, heap.stuck = 400 * MB, 40 * MB, 0

    await look_for(heap, mock_clock, MOST_PAUSE_S)

    assert heap.rss == 40 * MB


async def test_what_cannot_be_given_back_puts_nothing_else_off(
    mock_clock: trio.testing.MockClock,
) -> None:
    heap = Heap(rss=300 * MB, used=40 * MB, stuck=200 * MB)
    await look_for(heap, mock_clock, 3600)
    before = heap.trims
    heap.rss += 50 * MB

    await look_for(heap, mock_clock, LOOK_EVERY_S)

    assert heap.rss == 240 * MB
    assert heap.trims == before + 1


async def test_near_the_limit_even_a_little_is_given_back(
    mock_clock: trio.testing.MockClock,
) -> None:
    heap = Heap(rss=159 * MB, used=150 * MB, limit=160 * MB)

    await look_for(heap, mock_clock, LOOK_EVERY_S)

    assert heap.rss == 150 * MB


async def test_the_node_is_told_what_is_left_after_a_trim() -> None:
    heap = Heap(rss=300 * MB, used=40 * MB, stuck=100 * MB)

    await heap.trimmer.look()

    assert heap.told == [140 * MB]


@pytest.mark.parametrize(
    ("rss", "every"), [(70 * MB, LOOK_EVERY_S), (90 * MB, LOOK_OFTEN_S)], ids=["far", "near"]
)
async def test_near_the_limit_it_looks_often(
    autojump_clock: trio.testing.MockClock, rss: int, every: float
) -> None:
    heap = Heap(rss=rss, used=rss, limit=100 * MB)

    with trio.move_on_after(10 - every / 2):
        await heap.trimmer.attend()

    assert abs(len(heap.told) - 10 / every) <= 1


async def test_a_process_that_has_grown_beyond_its_limit_refuses_jobs() -> None:
    world = World()
    state = world.node.state
    trimmer = trimmer_for(state, world.log, "win32")
    assert trimmer is not None
    limit = attrs.evolve(state.config, maxmemory=1 << 20)

    state.config = limit
    await trimmer.look()

    assert state.memory.surplus > 0
    assert pressure.level(state) == pressure.WANT


async def test_the_account_is_the_present_one_though_the_machine_has_not_looked() -> None:
    state = World().node.state
    before = pressure.used(state)

    state.facts.traffic.unread = 50 * MB

    assert pressure.used(state) == before
    assert pressure.weighed(state) >= before + 50 * MB


async def test_where_the_allocator_cannot_do_it_it_only_measures() -> None:
    heap = Heap(rss=300 * MB, used=40 * MB)
    trimmer = Trimmer(
        lambda: 0,
        heap.log,
        limit=lambda: MB,
        notify=heap.told.append,
        rss=lambda: heap.rss,
        trim=None,
    )

    await trimmer.look()

    assert heap.told == [300 * MB]


async def test_where_the_present_size_is_not_known_nothing_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    monkeypatch.setattr(memory_trimming, "present_rss_bytes", lambda: 0)

    assert trimmer_for(world.node.state, world.log) is None


@pytest.mark.skipif(malloc_trim() is None, reason="only glibc has a heap for each thread")
def test_threads_take_little_of_the_address_space() -> None:
    grown = subprocess.run(
        [sys.executable, "-c", GROWN], capture_output=True, text=True, check=True, timeout=60
    ).stdout

    assert int(grown) < 4 * STACK_BYTES + 16 * MB
