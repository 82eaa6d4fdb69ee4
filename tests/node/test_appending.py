"""The end of a journal's file: what counts as synced."""

import errno
import os

import pytest
import trio
from trio.testing import MockClock

from disque_trio.appending import SLOW_S
from disque_trio.statemachine.config import Config
from tests.node.journals import ADD, EVERYSEC, MISCONF, NO, add, alive, started
from tests.node.world import until


async def test_what_is_synced_stays_so_when_the_policy_changes_during_a_sync(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, EVERYSEC)
    client = world.client()
    assert world.node._journal is not None
    end = world.node._journal.end
    jobs = {await add(client)}
    world.disk.latency = 0.8
    await until(end.syncing.locked)
    world.disk.latency = 0.1
    await client.ask("CONFIG", "SET", "appendfsync", "always")
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
    world = await started(nursery, EVERYSEC)
    client = world.client()
    assert world.node._journal is not None
    end = world.node._journal.end
    jobs = {await add(client)}
    world.disk.latency = 0.8
    await until(end.syncing.locked)
    world.disk.latency = 0.1
    await client.ask("CONFIG", "SET", "appendfsync", "always")
    jobs.add(await add(client))
    await client.ask("CONFIG", "SET", "appendfsync", "everysec")
    jobs.add(await add(client))
    assert end.syncing.locked()
    await until(lambda: not end.syncing.locked())
    # Of the last one nobody knows whether the sync under way has had it.
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
    assert world.node._journal is not None
    end = world.node._journal.end
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


@pytest.mark.parametrize(
    ("waits", "is_held_up"), [(1, True), (0, False)], ids=["disk", "processor"]
)
async def test_a_disk_that_holds_up_the_loop_is_written_to_in_a_thread(
    nursery: trio.Nursery, autojump_clock: MockClock, waits: int, is_held_up: bool
) -> None:
    world = await started(nursery, NO)
    client, disk = world.client(), world.disk

    def hold_up() -> None:
        disk.waited += waits
        autojump_clock.jump(2 * SLOW_S)

    disk.hold_up = hold_up
    await add(client)
    await add(client)
    disk.hold_up = lambda: None

    disk.latency = 5
    client.send(b"ADDJOB q x 0 REPLICATE 1\r\n")
    await trio.sleep(1)
    assert (client.read == b"") == is_held_up
    await until(lambda: bool(client.read))


async def test_once_a_sync_is_over_what_came_meanwhile_needs_no_thread(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, EVERYSEC)
    first, second = world.client(), world.client()
    assert world.node._journal is not None
    end = world.node._journal.end
    await add(first)
    world.disk.latency = 0.5
    await until(end.syncing.locked)
    await trio.sleep(0.4)
    first.send(ADD)  # In a thread, for the sync still runs.
    await trio.sleep(0.2)
    assert not end.syncing.locked()
    second.send(ADD)

    await until(lambda: bool(first.read))
    await trio.sleep(0.1)
    assert second.read
