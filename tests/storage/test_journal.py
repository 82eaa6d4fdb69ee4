"""A node and its journal: what is on disk when a reply leaves."""

import pytest
import trio
from trio.testing import MockClock

from disque_trio.statemachine.config import Config
from disque_trio.statemachine.records import DeleteJob, LoadJob
from tests.node.world import MemoryHub, World, until
from tests.storage.disks import read
from tests.storage.journals import ALWAYS, EVERYSEC, NO, add, started


async def test_with_always_a_job_is_on_disk_before_its_id_is_told(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    world.disk.latency = 0.5
    client = world.client()

    client.send(b"ADDJOB q x 0 REPLICATE 1\r\n")
    await trio.sleep(0.4)
    assert client.read == b""

    await until(lambda: bool(client.read))
    (record,) = read(world.disk.durable)
    assert isinstance(record, LoadJob)
    assert record.copy.id == client.read[1:41]


async def test_what_comes_while_the_disk_works_goes_together_next_time(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    assert world.disk.file is not None
    world.disk.latency = 1
    clients = [world.client() for _ in range(10)]
    before = world.disk.file.syncs

    for client in clients:
        client.send(b"ADDJOB q x 0 REPLICATE 1\r\n")
        await trio.sleep(0.05)
    await until(lambda: all(client.read for client in clients))

    assert world.disk.file.syncs - before == 2
    assert len(read(world.disk.durable)) == 10


async def test_later_answers_wait_their_turn(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    world.disk.latency = 0.5
    client = world.client()

    client.send(b"ADDJOB q x 0 REPLICATE 1\r\n")
    await trio.sleep(0.1)
    client.send(b"PING\r\n")
    await trio.sleep(0.1)
    assert client.read == b""

    await until(lambda: client.read.endswith(b"+PONG\r\n"))
    assert client.read.startswith(b"+D-")


async def test_the_heartbeat_does_not_wait(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    network: dict[tuple[str, int], MemoryHub] = {}
    world = World(ALWAYS, network=network, ip="127.0.0.1")
    other = World(Config(), name=b"b" * 40, network=network, ip="127.0.0.2")
    await nursery.start(world.node.run)
    await nursery.start(other.node.run)
    await world.client().ask("CLUSTER", "MEET", "127.0.0.2", "7711")
    nodes = other.node.state.cluster.nodes
    await until(lambda: any(peer.is_connected for peer in nodes.values()))
    world.disk.latency = 8
    client = world.client()
    client.send(b"ADDJOB q x 0 REPLICATE 1\r\n")
    await trio.sleep(0.1)

    before = nodes[b"a" * 40].pong_received
    await until(lambda: nodes[b"a" * 40].pong_received > before, seconds=7.9)

    assert client.read == b""


@pytest.mark.parametrize("config", [EVERYSEC, NO], ids=["everysec", "no"])
async def test_otherwise_it_is_written_before_and_synced_or_not_later(
    nursery: trio.Nursery, autojump_clock: MockClock, config: Config
) -> None:
    world = await started(nursery, config)
    await add(world.client())
    assert len(world.disk.records()) == 1
    assert read(world.disk.durable) == []

    await trio.sleep(1.5)

    assert len(read(world.disk.durable)) == (config is EVERYSEC)


async def test_while_a_sync_runs_writes_do_not_hold_up_the_loop(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, EVERYSEC)
    client = world.client()
    await add(client)
    world.disk.latency = 0.8
    await until(lambda: world.journal.end.is_busy)

    client.send(b"ADDJOB q x 0 REPLICATE 1\r\n")
    await trio.sleep(0.1)
    assert client.read == b""

    await until(lambda: bool(client.read))
    assert len(world.disk.records()) == 2


async def test_an_at_most_once_job_is_deleted_before_it_is_handed_out(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    client = world.client()
    await client.ask("ADDJOB", "q", "x", "0", "RETRY", "0")
    world.disk.latency = 1
    client.send(b"GETJOB FROM q\r\n")

    await until(lambda: bool(client.read))

    assert isinstance(read(world.disk.durable)[-1], DeleteJob)


async def test_without_a_journal_nothing_is_written(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, Config())
    await add(world.client())
    await trio.sleep(2)

    assert not world.disk.exists()
