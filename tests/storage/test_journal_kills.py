"""A process that is killed: with `aof-queues` the next one has the queues as they were."""

import attrs
import pytest
import trio
from trio.testing import MockClock

from disque_trio.statemachine.base import QUEUED
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.journaling import known_since, left
from disque_trio.statemachine.records import LoadJob
from disque_trio.wire.journal import Reader, WrittenBy
from tests.node.world import MemoryClient, World
from tests.storage import journals
from tests.storage.disks import MemoryDisk, read
from tests.storage.journals import ADD, add, broken, started

KEPT = EVERYSEC = attrs.evolve(journals.EVERYSEC, aof_queues=True)
ALWAYS = attrs.evolve(journals.ALWAYS, aof_queues=True)
NOT_KEPT = journals.EVERYSEC
ONE = b"*1\r\n*3\r\n"


async def again(
    nursery: trio.Nursery, world: World, config: Config = KEPT, boot: str = "a boot"
) -> World:
    """SIGKILL, and a start from what has been written."""
    disk = MemoryDisk(world.disk.content)
    disk.booted = boot
    return await started(nursery, config, disk)


async def length(client: MemoryClient) -> bytes:
    return await client.ask("QLEN", "q")


async def take(client: MemoryClient) -> bytes:
    reply = await client.ask("GETJOB", "FROM", "q")
    assert ONE in reply
    return reply


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
async def test_after_a_kill_what_nobody_had_is_queued_at_once(
    nursery: trio.Nursery, autojump_clock: MockClock, policy: str
) -> None:
    config = attrs.evolve(KEPT, appendfsync=policy)
    world = await started(nursery, config)
    client = world.client()
    jobs = [await add(client) for _ in range(3)]
    once = await client.ask("ADDJOB", "q", "x", "0", "REPLICATE", "1", "RETRY", "0")
    await client.ask("ADDJOB", "q", "x", "0", "REPLICATE", "1", "DELAY", "100")
    assert jobs[0] in await take(client)
    assert jobs[1] in await take(client)
    await client.ask("ACKJOB", jobs[1].decode())

    client = (await again(nursery, world, config)).client()

    found = await client.ask("GETJOB", "NOHANG", "COUNT", "9", "FROM", "q")
    assert [job in found for job in (*jobs, once[1:41])] == [False, False, True, True]
    assert await length(client) == b":0\r\n"
    assert b"registered_jobs:4" in await client.ask("INFO", "jobs")


async def test_so_it_is_if_what_was_taken_together_was_taken_from_a_short_queue(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, KEPT)
    client = world.client()
    jobs = [await add(client) for _ in range(5)]
    taken = await client.ask("GETJOB", "COUNT", "4", "FROM", "q")
    assert all(job in taken for job in jobs[:4])
    await client.ask("NACK", jobs[0].decode())
    await client.ask("ENQUEUE", jobs[1].decode())

    client = (await again(nursery, world)).client()

    found = await client.ask("GETJOB", "NOHANG", "COUNT", "9", "FROM", "q")
    assert [job in found for job in jobs] == [True, True, False, False, True]


async def test_it_is_so_after_each_of_several_kills_and_rewrites(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, KEPT)
    jobs = [await add(world.client()) for _ in range(4)]
    for number in range(3):
        assert jobs[number] in await take(world.client())
        if number == 1:
            await world.client().ask("BGREWRITEAOF")
            await trio.sleep(5)
        world = await again(nursery, world)
        assert await length(world.client()) == b":%d\r\n" % (3 - number)


@pytest.mark.parametrize("boot", ["another boot", ""])
async def test_after_a_loss_of_power_jobs_wait_since_deliveries_may_not_be_on_the_disk(
    nursery: trio.Nursery, autojump_clock: MockClock, boot: str
) -> None:
    world = await started(nursery, KEPT)
    await add(world.client())

    world = await again(nursery, world, boot=boot)

    assert await length(world.client()) == b":0\r\n"
    world = await again(nursery, world, boot=boot)
    assert await length(world.client()) == b":0\r\n", "nobody knows more of it by now"


async def test_jobs_that_wait_since_then_are_queued_at_once_when_they_have_been_queued(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, KEPT)
    await world.client().ask("ADDJOB", "q", "x", "0", "REPLICATE", "1", "RETRY", "10")
    world = await again(nursery, world, boot="another boot")
    await trio.sleep(12)
    assert await length(world.client()) == b":1\r\n"

    world = await again(nursery, world, boot="another boot")

    assert await length(world.client()) == b":1\r\n"


@pytest.mark.parametrize("first", [NOT_KEPT, attrs.evolve(ALWAYS, aof_queues=False)])
async def test_what_was_delivered_while_it_was_off_is_not_queued_after_it_is_on(
    nursery: trio.Nursery, autojump_clock: MockClock, first: Config
) -> None:
    world = await started(nursery, first)
    await add(world.client())
    await take(world.client())
    world = await again(nursery, world)
    assert await length(world.client()) == b":0\r\n"
    world = await again(nursery, world)
    assert await length(world.client()) == b":0\r\n"
    await add(world.client())
    world = await again(nursery, world, first)
    assert await length(world.client()) == b":1\r\n", "it was known, and is not from now on"
    await take(world.client())

    world = await again(nursery, world)

    assert await length(world.client()) == b":0\r\n"


@pytest.mark.parametrize("wanted", ["no", "yes"])
async def test_while_the_journal_is_off_its_file_is_not_relied_on(
    nursery: trio.Nursery, autojump_clock: MockClock, wanted: str
) -> None:
    world = await started(nursery, KEPT)
    client = world.client()
    await add(client)
    await client.ask("CONFIG", "SET", "appendonly", "no")
    await trio.sleep(1)
    if wanted == "yes":
        await client.ask("CONFIG", "SET", "appendonly", "yes")
        await trio.sleep(1)
    await take(client)
    await add(client)

    world = await again(nursery, world)

    assert await length(world.client()) == (b":1\r\n" if wanted == "yes" else b":0\r\n")


async def test_a_file_that_is_written_once_is_not_relied_on(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, attrs.evolve(KEPT, appendonly=False))
    client = world.client()
    await add(client)
    await client.ask("BGREWRITEAOF")
    await trio.sleep(1)
    await take(client)

    world = await again(nursery, world)

    assert await length(world.client()) == b":0\r\n"


async def test_a_file_that_is_only_read_is_not_relied_on_later(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, KEPT)
    await add(world.client())
    once = attrs.evolve(KEPT, appendonly=False, aof_enqueue_jobs_once=True)
    world = await again(nursery, world, once)
    await take(world.client())

    world = await again(nursery, world)

    assert await length(world.client()) == b":0\r\n"


async def test_a_file_that_another_version_has_had_is_not_relied_on(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, KEPT)
    await add(world.client())
    reader = Reader()
    reader.feed(world.disk.content)
    note = WrittenBy(3, "0.1.0").note()
    disk = MemoryDisk(world.disk.content + reader.writer().encode(note))

    world = await started(nursery, KEPT, disk)

    assert await length(world.client()) == b":0\r\n"


async def test_a_start_that_cannot_be_noted_relies_on_nothing(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, NOT_KEPT)
    await add(world.client())
    disk = MemoryDisk(world.disk.content)
    disk.write_error = broken()

    world = await started(nursery, KEPT, disk)

    assert await length(world.client()) == b":0\r\n"
    [said] = [event for event in world.log.events() if "cannot record" in event]
    assert said == "cannot record the start in the journal: enqueued jobs wait for RETRY"
    disk.write_error = None
    await trio.sleep(5)
    await add(world.client())
    world = await again(nursery, world)
    assert await length(world.client()) == b":1\r\n", "the note comes before what is added"


async def test_what_a_killed_node_had_not_synced_is_synced_by_the_next_start(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await again(nursery, await started(nursery, KEPT))
    await add(world.client())
    disk = unsynced(world)

    await started(nursery, KEPT, disk)

    assert disk.file is not None
    assert disk.file.synced == disk.content == world.disk.content, "nothing had to be written"


async def test_a_node_that_cannot_sync_its_file_at_the_start_writes_it_again(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await again(nursery, await started(nursery, KEPT))
    job = await add(world.client())
    disk = unsynced(world)
    disk.sync_error = broken()

    client = (await started(nursery, KEPT, disk)).client()

    await trio.sleep(5)
    assert b"aof_file_status:left unsynced" in await client.ask("INFO", "persistence")
    refused = await client.ask("ADDJOB", "q", "x", "0", "REPLICATE", "1")
    assert refused.startswith(b"-MISCONF")
    assert b"disque.aof could not be synced at the start of the node" in refused
    first, disk.sync_error = disk.file, None
    await trio.sleep(15)
    assert b"aof_file_status:ok" in await client.ask("INFO", "persistence")
    assert disk.file is not None
    assert disk.file is not first, "a later sync of the first file proves nothing"
    assert journals.alive(disk.file.synced) == {job}


def unsynced(world: World) -> MemoryDisk:
    """SIGKILL: a disk of which a loss of power would leave nothing."""
    disk = MemoryDisk(world.disk.content)
    assert disk.file is not None
    disk.file.synced = b""
    return disk


async def test_in_the_original_s_format_it_has_no_effect(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    config = attrs.evolve(KEPT, aof_format="disque")
    world = await started(nursery, config)
    await add(world.client())

    world = await again(nursery, world, config)

    assert await length(world.client()) == b":0\r\n"


async def test_a_delivery_costs_a_short_record_and_a_file_without_it_none(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    files = []
    for config in (KEPT, NOT_KEPT):
        world = await started(nursery, config)
        client = world.client()
        client.send(ADD)
        await client.ask("PING")
        await trio.sleep(0.1)
        await take(client)
        files.append(read(world.disk.content))

    [note, added, gone], [alone] = files
    assert isinstance(added, LoadJob)
    assert isinstance(alone, LoadJob)
    assert (note, gone) == (known_since("a boot"), left(added.copy.id))
    assert added.copy.state == alone.copy.state == QUEUED
