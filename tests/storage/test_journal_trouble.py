"""A node whose disk fails or hangs: nothing is lost, and no client waits for ever."""

import tempfile
import threading

import attrs
import pytest
import trio
from trio.testing import MockClock

from disque_trio.statemachine.chores import Shutdown
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.knobs import Knobs
from disque_trio.statemachine.records import LoadJob
from disque_trio.storage.append import STALL_S
from disque_trio.storage.journal import CRON_S
from disque_trio.storage.journal_file import JournalDisk
from disque_trio.storage.tasks import Tasks
from disque_trio.wire.journal import Reader
from tests.node.world import MemoryClient, World, until
from tests.storage.disks import read
from tests.storage.journals import (
    ADD,
    ALWAYS,
    EVERYSEC,
    IO_ERROR,
    MISCONF,
    NO,
    NO_SPACE,
    STALLED,
    add,
    alive,
    broken,
    started,
)


async def test_on_a_full_disk_writes_are_refused_and_nothing_is_confirmed(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    client, reader = world.client(), world.client()
    kept = await add(client)
    world.disk.room = len(world.disk.content) + 10

    assert await client.ask("ADDJOB", "q", "x", "0", "REPLICATE", "1") == NO_SPACE
    assert await client.ask("GETJOB", "FROM", "q") == NO_SPACE
    assert await client.ask("PING") == NO_SPACE
    assert await reader.ask("QLEN", "q") == b":2\r\n"
    assert b"aof_last_write_status:err" in await reader.ask("INFO", "persistence")
    (record,) = read(world.disk.durable)
    assert isinstance(record, LoadJob)
    assert record.copy.id == kept


async def test_when_there_is_room_again_everything_is_written_and_well(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    client = world.client()
    world.disk.room = len(world.disk.content)
    assert await client.ask("ADDJOB", "q", "x", "0", "REPLICATE", "1") == NO_SPACE

    world.disk.room = 1 << 20
    await trio.sleep(1.5)

    assert await client.ask("PING") == b"+PONG\r\n"
    await add(client)
    assert len(read(world.disk.durable)) == 2
    assert "the journal can be written again" in world.log.events()


@pytest.mark.parametrize("config", [EVERYSEC, NO], ids=["everysec", "no"])
async def test_a_write_that_fails_at_once_is_answered_likewise(
    nursery: trio.Nursery, autojump_clock: MockClock, config: Config
) -> None:
    world = await started(nursery, config)
    client, waiting = world.client(), world.client()
    waiting.send(b"GETJOB FROM other\r\n")
    await trio.sleep(0.1)
    world.disk.write_error = broken()

    assert await client.ask("ADDJOB", "q", "x", "0", "REPLICATE", "1") == IO_ERROR
    await waiting.expect(IO_ERROR)

    world.disk.write_error = None
    await trio.sleep(1.5)
    assert await client.ask("QLEN", "q") == b":1\r\n"
    assert len(read(world.disk.durable)) == 1


async def test_after_a_sync_that_failed_everything_since_the_last_one_is_written_again(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, EVERYSEC)
    client = world.client()
    jobs = [await add(client) for _ in range(3)]
    world.disk.sync_error = broken()
    await trio.sleep(1.2)
    assert await client.ask("PING") == IO_ERROR
    assert world.disk.file is not None
    # What failed to be synced may be anything by now.
    world.disk.file.data[len(world.disk.durable) :] = bytes(1000)

    world.disk.sync_error = None
    await trio.sleep(1.2)

    assert await client.ask("PING") == b"+PONG\r\n"
    records = Reader().feed(world.disk.durable)
    assert [record.copy.id for record in records if isinstance(record, LoadJob)] == jobs


async def test_a_disk_that_does_not_answer_is_trouble_until_it_does(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    client = world.client()
    world.disk.latency = STALL_S * 3
    client.send(b"ADDJOB q x 0 REPLICATE 1\r\n")

    await until(lambda: bool(client.read), seconds=STALL_S + 2)
    assert client.read == MISCONF % b"no answer from the disk"
    client.read = b""
    world.disk.latency = 0

    await trio.sleep(STALL_S * 3)
    assert await client.ask("PING") == b"+PONG\r\n"
    assert len(read(world.disk.durable)) == 1


@pytest.mark.slow
async def test_a_producer_that_never_waits_fills_no_memory(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    world.node.state.knobs = Knobs(waiting_bytes=10_000)
    world.disk.latency = 5
    client = world.client()
    client.send(b"ADDJOB q x 0 REPLICATE 1\r\n" * 1000)

    await trio.sleep(4)
    assert len(world.node.state.jobs) < 1000
    assert client.is_held

    await until(lambda: client.read.count(b"\r\n") == 1000, seconds=300)
    assert not client.is_held


async def test_in_trouble_every_client_is_answered_however_much_waits(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, ALWAYS)
    world.node.state.knobs = Knobs(waiting_bytes=100)
    client = world.client()
    world.disk.room = len(world.disk.content)
    assert await client.ask("ADDJOB", "q", "x" * 500, "0", "REPLICATE", "1") == NO_SPACE
    assert world.journal.end.waiting > 100

    assert await client.ask("PING") == NO_SPACE
    assert await client.ask("QLEN", "q") == b":1\r\n"


async def test_what_only_the_new_file_has_is_confirmed_once_its_name_will_last(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, ALWAYS)
    first, second = world.client(), world.client()
    world.disk.latency = 1
    await world.client().ask("BGREWRITEAOF")
    start = trio.current_time()
    await trio.sleep_until(start + 0.5)
    first.send(ADD)  # Written until 1.5: only then can the new file take over.
    await trio.sleep_until(start + 1.2)
    second.send(ADD)  # Goes to the new file, which is complete at 2.5, and renamed at 3.5.
    await trio.sleep_until(start + 3.9)
    assert "the journal has been rewritten" in world.log.events()
    assert first.read.startswith(b"+D-")
    assert second.read == b""

    world.disk.settle_error = broken()
    await until(lambda: bool(second.read))
    assert second.read == IO_ERROR

    world.disk.settle_error = None
    world.disk.latency = 0
    await trio.sleep(3)
    assert await first.ask("PING") != IO_ERROR
    assert len(alive(world.disk.durable)) == 2


async def test_after_a_shutdown_that_failed_late_the_node_writes_to_the_new_file(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, ALWAYS)
    client = world.client()
    jobs = {await add(client)}
    old = world.disk.file
    world.disk.settle_error = broken()

    assert await client.ask("SHUTDOWN", "REWRITE-AOF") == (
        b"-ERR Errors trying to SHUTDOWN. Check logs.\r\n"
    )
    assert await client.ask("PING") == IO_ERROR
    assert old is not None
    assert old.is_closed
    assert world.disk.file is not old

    world.disk.settle_error = None
    await trio.sleep(1.5)
    jobs.add(await add(client))
    assert alive(world.disk.durable) == jobs


async def sync_hangs_for_a_while(world: World, client: MemoryClient) -> None:
    """A sync takes twice `STALL_S`, and is trouble after once as long."""
    world.disk.latency = STALL_S * 2
    await until(world.journal.end.syncing.locked)
    world.disk.latency = 0

    await trio.sleep(STALL_S + 2)
    assert await client.ask("PING") == STALLED

    await trio.sleep(STALL_S)
    assert await client.ask("PING") == b"+PONG\r\n"


async def test_a_sync_that_hangs_is_trouble_until_it_ends(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, EVERYSEC)
    client = world.client()
    job = await add(client)
    await sync_hangs_for_a_while(world, client)
    assert alive(world.disk.durable) == {job}


async def test_a_rewrite_that_hangs_at_its_end_is_trouble_until_it_ends(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, ALWAYS)
    client = world.client()
    world.disk.latency = 0.5
    await client.ask("BGREWRITEAOF")
    await trio.sleep(0.3)
    await sync_hangs_for_a_while(world, client)
    assert "the journal has been rewritten" in world.log.events()


@pytest.mark.parametrize("policy", ["everysec", "no"])
async def test_what_is_held_for_a_slow_sync_fills_no_memory(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
    policy: str,
) -> None:
    world = await started(nursery, EVERYSEC)
    world.node.state.knobs = Knobs(unsynced_bytes=10_000, waiting_bytes=5_000)
    client, other = world.client(), world.client()
    await add(client)
    world.disk.latency = 5
    await until(world.journal.end.syncing.locked)
    world.disk.latency = 0.01

    client.send(ADD * 1000)
    await trio.sleep(2)
    assert len(world.node.state.jobs) < 1000
    assert client.is_held
    state = world.node.state
    state.config = attrs.evolve(state.config, appendfsync=policy)

    await until(lambda: client.read.count(b"\r\n") == 1000, seconds=100)
    assert await other.ask("PING") == b"+PONG\r\n"


async def test_a_sync_that_is_needed_again_meanwhile_follows_at_once(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    """everything, seed 4139."""
    world = await started(nursery, EVERYSEC)
    world.node.state.knobs = Knobs(unsynced_bytes=10_000)
    client, end = world.client(), world.journal.end
    await add(client)
    world.disk.latency = 3
    await until(end.syncing.locked)
    world.disk.latency = 0.01
    client.send(ADD * 1000)
    await until(lambda: end.must_sync)
    assert end.syncing.locked()

    await until(lambda: not end.syncing.locked())
    await until(lambda: not end.must_sync, seconds=CRON_S / 2)


async def test_a_journal_may_be_turned_off_in_trouble(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, ALWAYS)
    client = world.client()
    job = await add(client)
    file = world.disk.file
    world.disk.write_error = broken()
    assert await client.ask("ADDJOB", "q", "x", "0", "REPLICATE", "1") == IO_ERROR

    assert await client.ask("CONFIG", "SET", "appendonly", "no") == b"+OK\r\n"
    await trio.sleep(2.5)

    assert await client.ask("PING") == b"+PONG\r\n"
    await add(client)
    assert file is not None
    assert file.is_closed
    assert alive(world.disk.durable) == {job}
    assert "the journal lacks records that could not be written" in world.log.events()


async def test_a_node_ends_even_if_the_disk_never_answers(autojump_clock: MockClock) -> None:
    world = World(ALWAYS)

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            await nursery.start(world.node.run)
            world.disk.latency = 1e6
            world.client().send(ADD)
            await trio.sleep(0.1)
            world.node.stop(Shutdown(), "SIGTERM")

    assert "the disk does not answer: exiting without closing the journal" in world.log.events()


async def test_a_node_ends_in_order_though_its_file_cannot_be_closed(
    autojump_clock: MockClock,
) -> None:
    world = World(ALWAYS)

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            await nursery.start(world.node.run)
            world.client().send(ADD)
            await trio.sleep(0.1)
            world.disk.close_error = broken()
            world.node.stop(Shutdown(), "SIGTERM")

    assert world.disk.file is not None
    assert world.disk.file.is_closed


def test_a_thread_that_never_ends_does_not_hold_up_the_end() -> None:
    with tempfile.TemporaryDirectory() as path:
        disk, gate = JournalDisk(f"{path}/disque.aof"), threading.Event()
        tasks, ended = Tasks(), list[bool]()

        async def wait() -> None:
            with tasks.move_on_after(0.05) as scope:
                await tasks.on(disk.thread, gate.wait)
            ended.append(scope.was_cut)

        tasks.start(wait())
        tasks.run(0)
        assert tasks.due == 50
        tasks.run(50)
        gate.set()

    assert ended == [True]
