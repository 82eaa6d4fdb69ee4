"""The end of a journal's file: what counts as synced."""

import errno
import os
import tempfile
import threading
import time
from typing import NoReturn

import attrs
import pytest
import trio
from outcome import Outcome, Value
from trio.testing import MockClock

from disque_trio.statemachine.config import Config
from disque_trio.storage import disk_thread
from disque_trio.storage.append import STALL_S
from disque_trio.storage.disk_thread import CAREFUL_S, SLOW_S, SLOW_WRITE_S, OwnThread
from disque_trio.storage.journal_file import JournalDisk
from tests.node.world import MemoryClient, World, until
from tests.storage.journals import ADD, ALWAYS, EVERYSEC, MISCONF, NO, STALLED, add, alive, started

LATE_S = 2 * SLOW_WRITE_S
LOOP = threading.main_thread().name


async def always_since_a_sync(nursery: trio.Nursery) -> tuple[World, MemoryClient, set[bytes]]:
    """The policy has changed from everysec to always during a sync of this job."""
    world = await started(nursery, EVERYSEC)
    client = world.client()
    jobs = {await add(client)}
    world.disk.latency = 0.8
    await until(world.journal.end.syncing.locked)
    world.disk.latency = 0.1
    await client.ask("CONFIG", "SET", "appendfsync", "always")
    return world, client, jobs


async def test_what_is_synced_stays_so_when_the_policy_changes_during_a_sync(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world, client, jobs = await always_since_a_sync(nursery)
    end = world.journal.end
    jobs.add(await add(client, "y" * 300))
    assert end.syncing.locked()
    assert alive(world.disk.durable) == jobs
    await until(lambda: not end.syncing.locked())

    world.disk.sync_error = OSError(errno.EIO, os.strerror(errno.EIO))
    answer = await client.ask("ADDJOB", "q", "z", "0", "REPLICATE", "1")
    assert answer == MISCONF % b"Input/output error"
    world.disk.sync_error = None
    await trio.sleep(2)

    assert jobs < alive(world.disk.durable)


async def test_what_is_written_after_the_policy_has_changed_twice_is_still_to_be_synced(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world, client, jobs = await always_since_a_sync(nursery)
    end = world.journal.end
    jobs.add(await add(client))
    await client.ask("CONFIG", "SET", "appendfsync", "everysec")
    jobs.add(await add(client))
    assert end.syncing.locked()
    await until(lambda: not end.syncing.locked())
    # Whether the sync under way has included the last one is unknown.
    assert world.disk.file is not None
    syncs = world.disk.file.syncs

    await trio.sleep(2)

    assert world.disk.file.syncs == syncs + 1
    assert alive(world.disk.durable) == jobs


async def test_what_is_held_for_a_sync_is_bounded_by_maxmemory_and_counts(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, Config(appendonly=True, maxmemory=4 << 20))
    client = world.client()
    end = world.journal.end
    world.disk.latency = 0.01
    state = world.node.state

    client.send(b"ADDJOB q %b 0 REPLICATE 1\r\n" % (b"x" * 1000) * 1000)
    await trio.sleep(0.005)
    assert end.held > 4 << 17
    assert client.session.has_requests
    assert state.facts.traffic.journal == end.held

    # Syncs come as they are needed, and not once a second.
    await until(lambda: client.read.count(b"\r\n") == 1000, seconds=0.5)
    await until(lambda: state.facts.traffic.journal == 0)
    assert len(alive(world.disk.durable)) == 1000


@pytest.mark.parametrize("config", [EVERYSEC, NO, ALWAYS], ids=["everysec", "no", "always"])
async def test_a_write_that_hangs_holds_up_neither_the_loop_nor_the_heartbeat(
    nursery: trio.Nursery, autojump_clock: MockClock, config: Config
) -> None:
    world = await started(nursery, config)
    client, other = world.client(), world.client()
    await add(client)
    world.disk.latency = 1e6

    client.send(ADD)
    await trio.sleep(STALL_S / 2)
    assert len(world.node.state.jobs) == 2  # It has been carried out, and is not answered.
    assert client.read == b""
    await until(lambda: bool(client.read))

    assert client.read == STALLED
    assert await other.ask("QLEN", "q") == b":2\r\n"
    assert b"aof_last_write_status:err" in await other.ask("INFO", "persistence")


async def test_what_comes_while_a_group_is_written_goes_with_the_next_one(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, NO)
    file = world.disk.file
    assert file is not None
    before = file.appends
    clients = [world.client() for _ in range(5)]
    world.disk.latency = 1
    for client in clients:
        client.send(ADD)
        await trio.sleep(0.1)

    await until(lambda: bool(clients[0].read))
    assert not clients[1].read
    await until(lambda: all(client.read for client in clients), seconds=1.1)
    assert file.appends == before + 2


async def test_a_thread_that_hangs_is_left_to_itself_when_the_journal_is_turned_off() -> None:
    with tempfile.TemporaryDirectory() as path:
        disk, gate = JournalDisk(f"{path}/disque.aof"), threading.Event()
        outcomes: list[str] = []
        disk.thread.start(gate.wait, (), lambda _: outcomes.append("hung"))
        disk.thread.abandon()
        disk.thread.start(lambda: None, (), lambda error: outcomes.append(str(error)))
        with trio.fail_after(60):
            while not outcomes:
                await trio.sleep(0.01)
                disk.thread.collect()
        gate.set()
        disk.thread.abandon()

    assert outcomes == ["None"]


def _where(thread: OwnThread, found: list[str]) -> None:
    """Note which thread writes next."""

    def act() -> None:
        found.append(threading.current_thread().name)

    thread.start(act, (), lambda _: None, wait_s=60)


def _slow(thread: OwnThread) -> None:
    """Two writes by the loop take long."""
    for _ in range(2):
        thread.start(time.sleep, (LATE_S,), lambda _: None, wait_s=60)


@attrs.define
class Clock:
    """Of the thread's measurements, so that a busy machine does not count as a slow disk."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def write(self, thread: OwnThread, seconds: float) -> None:
        """A write that takes so long."""
        thread.start(self._wait, (seconds,), lambda _: None, wait_s=60)

    def _wait(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(disk_thread, "monotonic", clock)
    return clock


@pytest.mark.parametrize(
    ("writes", "writer"),
    [
        ([], LOOP),
        ([LATE_S], LOOP),
        ([LATE_S, 0.0, LATE_S], LOOP),
        ([LATE_S, LATE_S], "journal"),
        ([2 * SLOW_S], "journal"),
    ],
)
def test_the_loop_writes_unless_two_writes_in_a_row_or_a_long_one_show_a_slow_disk(
    clock: Clock, writes: list[float], writer: str
) -> None:
    thread, found = OwnThread(), list[str]()
    for seconds in writes:
        clock.write(thread, seconds)

    _where(thread, found)
    clock.now += CAREFUL_S
    _where(thread, found)
    thread.abandon()

    assert found == [writer, LOOP]
    assert not thread.pending


def test_the_thread_writes_while_a_sync_is_under_way_and_after_a_slow_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(disk_thread, "SLOW_S", 0.0)
    thread, found, gate, rung = OwnThread(), list[str](), threading.Event(), threading.Event()
    thread.wake = rung.set
    thread.beside(gate.wait, (), lambda _: None)

    _where(thread, found)
    gate.set()
    assert rung.wait(60)
    thread.collect()
    assert not thread.pending
    _where(thread, found)
    thread.abandon()

    assert found == ["journal", "journal"]


def test_the_loop_does_the_work_while_the_system_grants_no_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(trio.lowlevel, "start_thread_soon", refuse)
    thread, found = OwnThread(), list[str]()
    outcomes: list[Outcome[str]] = []

    thread.start(lambda: found.append(threading.current_thread().name), (), lambda _: None)
    thread.beside(lambda: threading.current_thread().name, (), outcomes.append)
    assert not outcomes, "it is collected as from a thread"
    thread.collect()
    monkeypatch.undo()
    thread.start(lambda: found.append(threading.current_thread().name), (), lambda _: None)
    thread.start(lambda: None, (), lambda _: None, wait_s=60)
    thread.abandon()

    assert outcomes == [Value(LOOP)]
    assert found == [LOOP, "journal"]


def test_the_loop_that_waits_for_the_thread_is_told_at_once_and_not_woken() -> None:
    thread, woken = OwnThread(), threading.Event()
    outcomes: list[OSError | None] = []
    thread.wake = woken.set
    _slow(thread)

    thread.start(time.sleep, (0.01,), outcomes.append, wait_s=60)
    thread.abandon()

    assert outcomes == [None]
    assert not woken.is_set()


def test_a_loop_that_has_waited_long_enough_is_woken_when_the_thread_has_finished() -> None:
    thread, gate, woken = OwnThread(), threading.Event(), threading.Event()
    thread.wake = woken.set
    outcomes: list[OSError | None] = []
    _slow(thread)

    thread.start(gate.wait, (), outcomes.append, wait_s=0.001)

    assert not outcomes
    gate.set()
    assert woken.wait(60)
    thread.collect()
    thread.abandon()

    assert outcomes == [None]


async def test_what_a_write_in_the_thread_meets_is_told_in_the_loop() -> None:
    rung = threading.Event()
    with tempfile.TemporaryDirectory() as path:
        disk = JournalDisk(f"{path}/disque.aof")
        disk.thread.wake = rung.set
        outcomes: list[OSError | None] = []
        file = disk.open()
        file.close()
        disk.thread.start(file.append, (b"x",), outcomes.append)
        await trio.to_thread.run_sync(rung.wait, 60)
        assert not outcomes
        disk.thread.collect()
        disk.thread.abandon()

    (error,) = outcomes
    assert error is not None
    assert error.errno == errno.EBADF


def _exhausted() -> None:
    raise MemoryError


def test_a_write_for_which_there_is_no_memory_fails_and_the_next_one_is_tried() -> None:
    thread = OwnThread()
    outcomes: list[OSError | None] = []
    for _ in "in the loop", "in the thread":
        for act in (_exhausted, bool):
            thread.start(act, (), outcomes.append, wait_s=60)
        _slow(thread)
    thread.abandon()

    failed, tried = outcomes[:2]
    assert [str(each) for each in outcomes[2:]] == [str(failed), str(tried)]
    assert failed is not None
    assert failed.errno == errno.ENOMEM
    assert tried is None
