"""A node whose disk never answers: its operator can still turn the journal off, or end it."""

import trio
from trio.testing import MockClock

from disque_trio.statemachine.config import Config
from disque_trio.storage.append import STALL_S
from tests.node.world import until
from tests.storage.journals import ADD, ALWAYS, EVERYSEC, STALLED, add, alive, broken, started


async def test_a_journal_may_be_turned_off_when_the_disk_never_answers(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, ALWAYS)
    client = world.client()
    job = await add(client)
    world.disk.latency = 1e6
    client.send(ADD)
    await until(lambda: client.read == STALLED)
    client.read = b""

    assert await client.ask("CONFIG", "SET", "appendonly", "no") == b"+OK\r\n"
    await trio.sleep(2 * STALL_S)

    assert await client.ask("PING") == b"+PONG\r\n"
    await add(client)
    await trio.sleep(2 * STALL_S)
    assert await client.ask("PING") == b"+PONG\r\n"
    assert alive(world.disk.durable) == {job}
    assert "the journal lacks records that could not be written" in world.log.events()


async def test_a_journal_may_be_turned_off_when_a_rewrite_never_ends(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, EVERYSEC)
    client = world.client()
    job = await add(client)
    file = world.disk.file
    assert file is not None
    await trio.sleep(2)
    world.disk.latency = 1e6
    await client.ask("BGREWRITEAOF")

    assert await client.ask("CONFIG", "SET", "appendonly", "no") == b"+OK\r\n"
    await trio.sleep(3 * STALL_S)

    assert await client.ask("PING") == b"+PONG\r\n"
    assert b"aof_rewrite_in_progress:0" in await client.ask("INFO", "persistence")
    world.disk.latency = 0
    assert await client.ask("CONFIG", "SET", "appendonly", "yes") == b"+OK\r\n"
    await until(lambda: "the journal has been rewritten" in world.log.events())
    assert alive(world.disk.content) == {job}


async def test_a_journal_may_be_turned_off_when_its_file_cannot_be_closed_well(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, EVERYSEC)
    client = world.client()
    world.disk.close_error = broken()

    assert await client.ask("CONFIG", "SET", "appendonly", "no") == b"+OK\r\n"
    await trio.sleep(STALL_S)

    assert await client.ask("PING") == b"+PONG\r\n"
    await add(client)


async def test_a_shutdown_with_a_rewrite_is_refused_when_the_disk_never_answers(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, EVERYSEC)
    client = world.client()
    await add(client)
    world.disk.latency = 1e6
    await trio.sleep(1.5)

    client.send(b"SHUTDOWN REWRITE-AOF\r\n")
    await until(lambda: bool(client.read), seconds=2 * STALL_S)

    assert client.read == b"-ERR Errors trying to SHUTDOWN. Check logs.\r\n"
    failures = [facts for _, event, facts in world.log.lines if "not be rewritten" in event]
    assert failures == [{"error": "no answer from the disk"}]


async def test_a_file_beside_no_journal_whose_name_may_not_last_is_no_trouble(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, Config())
    client = world.client()
    await add(client)
    world.disk.settle_error = broken()

    await client.ask("BGREWRITEAOF")
    await until(lambda: "the journal could not be rewritten" in world.log.events())
    await trio.sleep(2)

    assert await client.ask("PING") == b"+PONG\r\n"
    await add(client)
    assert b"aof_last_bgrewrite_status:err" in await client.ask("INFO", "persistence")


async def test_nothing_is_written_beside_a_write_that_is_no_longer_awaited(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, EVERYSEC)
    client, end = world.client(), world.journal.end
    await add(client)
    world.disk.latency = 1e6
    tasks = world.journal.tasks

    async def flush() -> None:
        with tasks.move_on_after(3):
            await end.flush()

    tasks.start(flush())
    client.send(ADD)
    await trio.sleep(3.1)

    assert end.group is None
    assert end.trouble == "no answer from the disk"
