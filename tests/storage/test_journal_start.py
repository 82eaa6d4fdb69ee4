"""A node that begins with a journal, and one that ends with it."""

import errno

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from disque_trio import __version__
from disque_trio.statemachine.base import QUEUED
from disque_trio.statemachine.chores import Shutdown
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.extensions import Extensions
from disque_trio.statemachine.journaling import STOPPED
from disque_trio.statemachine.knobs import DEFAULTS
from disque_trio.statemachine.records import LoadJob
from disque_trio.wire.journal import Format, Reader, Writer, this
from tests.node.world import MemoryClient, World, until
from tests.rig import copy_of
from tests.storage.disks import MemoryDisk, read
from tests.storage.journals import ALWAYS, EVERYSEC, add, alive, file_of, ids, queued, started
from tests.wire.newer import KNOWN, LATER, RECORDS, WRITER

TURN = DEFAULTS.client_turn


@pytest.mark.parametrize("format_", list(Format))
async def test_jobs_come_back(
    nursery: trio.Nursery, autojump_clock: MockClock, format_: Format
) -> None:
    config = Config(appendonly=True, aof_format=format_.value)
    world = await started(nursery, config, MemoryDisk(file_of(*ids(3), format_=format_)))
    client = world.client()

    assert b"registered_jobs:3" in await client.ask("INFO", "jobs")
    job = await add(client)

    assert alive(world.disk.content) == {*ids(3), job}
    assert world.event_loop.is_bus_open


async def test_a_file_of_the_other_format_is_rewritten(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    content = file_of(*ids(3), format_=Format.DISQUE)
    world = await started(nursery, EVERYSEC, MemoryDisk(content))

    await until(lambda: "the journal has been rewritten" in world.log.events())

    assert alive(world.disk.content) == set(ids(3))
    assert not world.disk.content.startswith(b"*")


async def test_a_node_does_not_start_with_jobs_for_which_its_format_has_no_place(
    autojump_clock: MockClock,
) -> None:
    urgent = attrs.evolve(copy_of(), etime=(1 << 32) - 1, extensions=Extensions(priority=5))
    writer = Writer(Format.FRAMED)
    disk = MemoryDisk(writer.header + writer.encode(LoadJob(urgent)))

    failure = await run_to_failure(Config(appendonly=True, aof_format="disque"), disk)

    assert failure.startswith("disque.aof has jobs with extensions, such as PRIORITY")


async def test_while_loading_clients_wait_and_peers_too(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    disk = MemoryDisk(file_of(*ids(2000)))
    disk.latency = 3
    world = World(EVERYSEC, disk=disk)
    nursery.start_soon(world.node.run)
    client = world.client()

    assert await client.ask("PING") == b"-LOADING Disque is loading the dataset in memory\r\n"
    await trio.sleep(7)
    shown = await client.ask("INFO", "persistence")
    assert b"loading:1" in shown
    assert b"loading_loaded_bytes:65536\r\n" in shown
    assert not world.event_loop.is_bus_open

    await until(lambda: world.event_loop.is_bus_open)
    assert await client.ask("PING") == b"+PONG\r\n"
    assert "loading the journal" in world.log.events()


async def test_a_file_that_is_being_loaded_is_not_rewritten(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    jobs = ids(1000)
    disk = MemoryDisk(file_of(*jobs))
    before = disk.file
    disk.latency = 10.0
    world = await started(nursery, disk=disk)
    client = world.client()

    await until(lambda: len(world.node.state.jobs) == len(jobs))

    assert disk.file is before
    assert disk.new is None
    assert b"aof_last_bgrewrite_status:ok" in await client.ask("INFO", "persistence")


async def test_a_node_may_be_told_to_end_while_it_loads(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    disk = MemoryDisk(file_of(*ids(2000)))
    disk.latency = 1000
    world = World(EVERYSEC, disk=disk)

    async with trio.open_nursery() as life:
        life.start_soon(world.node.run)
        await trio.sleep(1)
        world.node.stop(Shutdown(), "SIGTERM")

    assert disk.content == file_of(*ids(2000))


async def test_a_torn_end_is_cut_and_told(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    content = file_of(*ids(3))
    world = await started(nursery, EVERYSEC, MemoryDisk(content[:-5]))

    assert alive(world.disk.content) == set(ids(2))
    assert "the journal ended within a record, which was cut off" in world.log.events()


async def run_to_failure(config: Config, disk: MemoryDisk) -> str:
    world = World(config, disk=disk)
    with trio.fail_after(10):
        await world.node.run()
    return world.node.life.failure


async def test_a_torn_end_may_be_an_error(autojump_clock: MockClock) -> None:
    config = Config(appendonly=True, aof_load_truncated=False)
    content = file_of(*ids(2))

    failure = await run_to_failure(config, MemoryDisk(content[:-1]))

    assert failure == (
        f"disque.aof ends within a record, {len(content) - len(file_of(*ids(1))) - 1} bytes "
        f"after byte {len(file_of(*ids(1)))}, and "
        "'aof-load-truncated' is no: 'disque-trio aof repair disque.aof' cuts it there"
    )


async def test_damage_is_told_with_its_place_and_what_to_do(autojump_clock: MockClock) -> None:
    content = bytearray(file_of(*ids(3)))
    content[250] ^= 1

    failure = await run_to_failure(EVERYSEC, MemoryDisk(bytes(content)))

    assert failure.startswith("disque.aof is damaged: ")
    assert " at byte " in failure
    assert "disque-trio aof check disque.aof" in failure
    assert "aof repair" in failure


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
async def test_a_newer_file_is_left_as_it_is_and_the_version_it_needs_is_named(
    autojump_clock: MockClock, record: bytes
) -> None:
    content = WRITER.header + KNOWN + record
    disk = MemoryDisk(content)

    failure = await run_to_failure(EVERYSEC, disk)

    assert failure.startswith(
        "disque.aof is newer than this version of disque-trio, and not damaged"
    )
    assert f"Start disque-trio {LATER} or later with it" in failure
    assert "repair" not in failure
    assert disk.content == content


async def test_the_file_says_which_version_has_written_it(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    disk = MemoryDisk(WRITER.header + KNOWN)
    world = await started(nursery, EVERYSEC, disk)
    reader = Reader()
    reader.feed(disk.content)
    assert reader.written_by == this(__version__)

    await world.client().ask("BGREWRITEAOF")
    await until(lambda: "the journal has been rewritten" in world.log.events())

    reader = Reader()
    reader.feed(disk.content)
    assert reader.written_by == this(__version__)


async def test_a_missing_file_is_an_error_only_for_once(autojump_clock: MockClock) -> None:
    failure = await run_to_failure(Config(aof_enqueue_jobs_once=True), MemoryDisk())

    assert failure.startswith("aof-enqueue-jobs-once is yes, but there is no disque.aof to load")


@pytest.mark.parametrize("appendonly", [False, True])
async def test_after_a_controlled_restart_jobs_are_queued_and_the_setting_is_off(
    nursery: trio.Nursery, autojump_clock: MockClock, appendonly: bool
) -> None:
    config = Config(appendonly=appendonly, aof_enqueue_jobs_once=True)
    world = await started(nursery, config, MemoryDisk(file_of(*ids(3))))

    client = world.client()

    assert await client.ask("QLEN", "q") == b":3\r\n"
    assert b"no" in await client.ask("CONFIG", "GET", "aof-enqueue-jobs-once")
    assert ("rewrite", config.maxclients) in world.host.chores


async def test_a_setting_that_cannot_be_turned_off_is_told(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = World(Config(aof_enqueue_jobs_once=True), disk=MemoryDisk(file_of(*ids(1))))
    world.host.refusal = "Read-only file system"
    await nursery.start(world.node.run)

    (told,) = [line for line in world.log.lines if "cannot turn off" in line[1]]
    assert told[2] == {"error": "Read-only file system"}


async def life(world: World, *batches: bytes) -> MemoryClient:
    """Run until these requests have ended the node."""
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            await nursery.start(world.node.run)
            client = world.client()
            for batch in batches:
                client.send(batch)
    return client


@pytest.mark.parametrize("config", [ALWAYS, EVERYSEC], ids=["always", "everysec"])
async def test_what_comes_before_a_shutdown_is_synced_and_answered(
    autojump_clock: MockClock, config: Config
) -> None:
    world = World(config)
    world.disk.latency = 0.1

    client = await life(world, b"ADDJOB q x 0 REPLICATE 1\r\n", b"SHUTDOWN\r\n")

    assert alive(world.disk.durable) == {client.read[1:41]}


@pytest.mark.parametrize("config", [EVERYSEC, Config(aof_queues=False)], ids=["on", "off"])
async def test_shutdown_may_write_the_file_anew(autojump_clock: MockClock, config: Config) -> None:
    world = World(config)

    await life(world, b"ADDJOB q x 0 REPLICATE 1\r\nGETJOB FROM q\r\n", b"SHUTDOWN REWRITE-AOF\r\n")

    record, end = read(world.disk.durable)
    assert isinstance(record, LoadJob)
    assert record.copy.state != QUEUED, "it has been handed out"
    assert end == STOPPED


async def test_what_is_delivered_before_a_restart_is_not_queued_after_it(
    autojump_clock: MockClock,
) -> None:
    world, count = World(Config()), 3 * TURN
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            await nursery.start(world.node.run)
            worker, operator = world.client(), world.client()
            worker.send(b"ADDJOB q x 0 REPLICATE 1 RETRY 60\r\n" * 2 * count)
            await wait_all_tasks_blocked()
            worker.send(b"GETJOB FROM q\r\n" * count)
            operator.send(b"SHUTDOWN REWRITE-AOF\r\n")

    assert len(queued(world.disk.durable)) == 2 * count - worker.read.count(b"*1\r\n*3\r\n")


async def test_a_shutdown_whose_rewrite_fails_is_refused(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    client = world.client()
    await add(client)
    world.disk.begin_error = OSError(errno.EACCES, "Permission denied")

    assert await client.ask("SHUTDOWN", "REWRITE-AOF") == (
        b"-ERR Errors trying to SHUTDOWN. Check logs.\r\n"
    )
    assert await client.ask("PING") == b"+PONG\r\n"


async def test_a_node_that_ends_before_its_first_version_is_complete_completes_it(
    autojump_clock: MockClock,
) -> None:
    world = World(Config())
    world.disk.latency = 0.1
    add = b"ADDJOB q x 0 REPLICATE 1\r\n"

    client = await life(world, add + b"CONFIG SET appendonly yes\r\n", b"SHUTDOWN\r\n")

    assert alive(world.disk.durable) == {client.read[1:41]}


async def test_debug_loadaof_takes_what_is_on_disk(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    client = world.client()
    await add(client)
    before = world.disk.content

    assert await client.ask("DEBUG", "LOADAOF") == b"+OK\r\n"

    assert b"registered_jobs:1" in await client.ask("INFO", "jobs")
    assert world.disk.content == before
