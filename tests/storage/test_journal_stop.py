"""A node that is stopped in order: its queues stand in its journal, and are whole at the start."""

import pytest
import trio
from trio.testing import MockClock

from disque_trio.driver.life import GRACE_S, HURRY_AFTER
from disque_trio.statemachine.base import QUEUED
from disque_trio.statemachine.chores import Shutdown
from disque_trio.statemachine.config import Config
from disque_trio.storage.append import STALL_S
from disque_trio.storage.stopping import QUEUES_S
from tests.node.world import World, until
from tests.storage.disks import MemoryDisk
from tests.storage.journals import ADD, ALWAYS, EVERYSEC, add, alive, broken, queued

DELIVERED = b"*1\r\n*3\r\n"


async def born(nursery: trio.Nursery, disk: MemoryDisk, config: Config = EVERYSEC) -> World:
    world = World(config, disk=disk)
    await nursery.start(live, world)
    return world


async def live(
    world: World, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    await world.node.run(task_status=task_status)
    world.log.notice("has ended")


async def ended(world: World) -> None:
    with trio.fail_after(200):
        while "has ended" not in world.log.events():
            await trio.sleep(0.01)


async def stop(world: World) -> float:
    """As SIGTERM does; how long it took."""
    began = trio.current_time()
    world.node.stop(Shutdown(), "SIGTERM")
    await ended(world)
    return trio.current_time() - began


@pytest.mark.parametrize("format_", ["framed", "disque"])
@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
async def test_after_a_stop_and_a_start_the_queue_is_whole_at_once(
    nursery: trio.Nursery, autojump_clock: MockClock, policy: str, format_: str
) -> None:
    config = Config(appendonly=True, appendfsync=policy, aof_format=format_)
    disk = MemoryDisk()
    world = await born(nursery, disk, config)
    client = world.client()
    jobs = [await client.ask("ADDJOB", "q", "x", "0", "RETRY", retry) for retry in ("300", "0")]
    await client.ask("ADDJOB", "q", "x", "0", "DELAY", "100")
    held = await add(client)
    await client.ask("ADDJOB", "other", "x", "0")
    assert DELIVERED in await client.ask("GETJOB", "FROM", "other")
    assert await stop(world) < GRACE_S

    world = await born(nursery, disk, config)
    client = world.client()
    assert await client.ask("QLEN", "q") == b":3\r\n"
    assert await client.ask("QLEN", "other") == b":0\r\n"
    assert b"registered_jobs:5" in await client.ask("INFO", "jobs")
    found = await client.ask("GETJOB", "COUNT", "9", "FROM", "q")
    assert all(job in found for job in (jobs[0][1:41], jobs[1][1:41], held))


async def test_what_was_given_out_since_the_start_is_not_queued_after_a_kill(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    disk = MemoryDisk()
    world = await born(nursery, disk)
    await add(world.client())
    await stop(world)
    world = await born(nursery, disk)
    assert DELIVERED in await world.client().ask("GETJOB", "FROM", "q")

    # Killed: nothing is said of the delivery.
    world = await born(nursery, MemoryDisk(disk.durable))

    assert await world.client().ask("QLEN", "q") == b":0\r\n"
    assert b"registered_jobs:1" in await world.client().ask("INFO", "jobs")


async def test_a_start_that_cannot_be_noted_leaves_jobs_to_their_retry(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    disk = MemoryDisk()
    world = await born(nursery, disk)
    await add(world.client())
    await stop(world)
    disk.room = len(disk.content)

    world = await born(nursery, disk)

    assert await world.client().ask("QLEN", "q") == b":0\r\n"
    assert any("cannot record the start" in event for event in world.log.events())


async def test_clients_are_served_until_the_end_and_what_they_get_is_no_longer_queued(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    disk = MemoryDisk()
    world = await born(nursery, disk)
    client = world.client()
    jobs = [await add(client) for _ in range(4)]
    disk.latency = 0.5
    world.node.stop(Shutdown(), "SIGTERM")
    await trio.sleep(0.7)

    got = await client.ask("GETJOB", "FROM", "q")
    nacked = await client.ask("GETJOB", "FROM", "q")
    await client.ask("NACK", nacked.split(b"\r\n")[5].decode())
    late = await add(client)
    await client.ask("DEQUEUE", jobs[2].decode())
    await client.ask("ACKJOB", jobs[3].decode())
    await ended(world)

    assert jobs[0] in got
    assert jobs[1] in nacked
    assert queued(disk.durable) == {jobs[1], late}
    assert alive(disk.durable) == {*jobs[:3], late}


async def test_a_disk_that_hangs_does_not_hold_up_the_end_for_long(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    disk = MemoryDisk()
    world = await born(nursery, disk)
    await add(world.client())
    await trio.sleep(2)
    disk.latency = 1e6

    assert await stop(world) < 55
    assert any("queues are not in the journal" in event for event in world.log.events())


async def test_a_rewrite_that_takes_too_long_is_left_and_nothing_is_lost(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    disk = MemoryDisk()
    world = await born(nursery, disk)
    jobs = {await add(world.client())}
    disk.latency = STALL_S - 1

    assert QUEUES_S <= await stop(world) < 55
    assert alive(disk.content) == jobs
    assert queued(disk.content) == set()


async def test_a_second_request_to_stop_leaves_out_the_queues(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    disk = MemoryDisk()
    world = await born(nursery, disk)
    jobs = {await add(world.client())}
    disk.latency = 2
    world.node.stop(Shutdown(), "SIGTERM")
    # The service manager and the supervisor of workers, at once.
    world.node.stop(Shutdown(), "SIGTERM")
    await trio.sleep(HURRY_AFTER / 1000)
    assert not any("queues are not" in event for event in world.log.events())

    took = await stop(world)

    assert took < 10
    assert alive(disk.durable) == jobs
    assert queued(disk.durable) == set()


async def test_a_node_in_trouble_ends_as_before(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    disk = MemoryDisk()
    world = await born(nursery, disk, ALWAYS)
    client = world.client()
    jobs = {await add(client)}
    disk.write_error = broken()
    client.send(ADD)
    await until(lambda: bool(client.read))

    await stop(world)

    assert alive(disk.durable) == jobs


@pytest.mark.parametrize("config", [EVERYSEC, Config()], ids=["on", "off"])
async def test_while_a_shutdown_rewrites_on_a_disk_that_hangs_others_are_served(
    nursery: trio.Nursery, autojump_clock: MockClock, config: Config
) -> None:
    disk = MemoryDisk()
    world = await born(nursery, disk, config)
    operator, other = world.client(), world.client()
    job = await add(other)
    await trio.sleep(2)
    disk.latency = 3 * STALL_S

    operator.send(b"SHUTDOWN REWRITE-AOF\r\n")
    for _ in range(int(STALL_S) - 1):
        await trio.sleep(1)
        assert await other.ask("QLEN", "q") == b":1\r\n"
        assert operator.read == b""
    await until(lambda: bool(operator.read))

    assert operator.read == b"-ERR Errors trying to SHUTDOWN. Check logs.\r\n"
    disk.latency = 0
    await trio.sleep(5 * STALL_S)
    assert job in await other.ask("GETJOB", "FROM", "q")
    assert not world.node.state.is_recording_queues
    assert world.node.state.is_recording == config.appendonly
    assert world.node.state.jobs[job].state != QUEUED
