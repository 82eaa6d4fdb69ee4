"""A node and its journal: what is on disk when something is promised."""

import errno
import os

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from disque_trio import journal as journal_module
from disque_trio.appending import STALL_S
from disque_trio.node import TURN
from disque_trio.statemachine.base import QUEUED
from disque_trio.statemachine.chores import Shutdown
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.records import DeleteJob, LoadJob
from disque_trio.wire.journal import Format, Reader, Writer
from tests.node.disks import MemoryDisk, read
from tests.node.world import MemoryClient, MemoryHub, World, until
from tests.rig import copy_of

ALWAYS = Config(appendonly=True, appendfsync="always")
EVERYSEC = Config(appendonly=True)
NO = Config(appendonly=True, appendfsync="no")
MISCONF = b"-MISCONF Errors writing to the AOF file: %b\r\n"
NO_SPACE = MISCONF % b"No space left on device"
WALL_S = 1_800_000_000


async def started(
    nursery: trio.Nursery, config: Config = ALWAYS, disk: MemoryDisk | None = None
) -> World:
    world = World(config, disk=disk)
    await nursery.start(world.node.run)
    return world


def file_of(*jobs: bytes, format_: Format = Format.FRAMED) -> bytes:
    """A journal with jobs of these ids, queued."""
    writer = Writer(format_, 9)
    records = [LoadJob(copy_of(job, ttl=WALL_S + 600, queue=b"q")) for job in jobs]
    for record in records:
        record.copy.state = QUEUED
    return writer.header + b"".join(map(writer.encode, records))


def ids(number: int) -> list[bytes]:
    return [b"D-bbbbbbbb-%024d-05a1" % each for each in range(number)]


async def add(client: MemoryClient, body: str = "x") -> bytes:
    """Add a job; its id."""
    reply = await client.ask("ADDJOB", "q", body, "0", "REPLICATE", "1")
    assert reply[:3] == b"+D-", reply
    return reply[1:41]


# What is promised.


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
    await until(lambda: world.node._journal.end.is_busy)  # type: ignore[union-attr]

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


# Trouble.


async def test_on_a_full_disk_writes_are_refused_and_nothing_is_promised(
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
    assert "the journal is written again" in world.log.events()


@pytest.mark.parametrize("config", [EVERYSEC, NO], ids=["everysec", "no"])
async def test_a_write_that_fails_at_once_is_answered_likewise(
    nursery: trio.Nursery, autojump_clock: MockClock, config: Config
) -> None:
    world = await started(nursery, config)
    client, waiting = world.client(), world.client()
    waiting.send(b"GETJOB FROM other\r\n")
    await trio.sleep(0.1)
    world.disk.write_error = OSError(errno.EIO, os.strerror(errno.EIO))

    answer = MISCONF % b"Input/output error"
    assert await client.ask("ADDJOB", "q", "x", "0", "REPLICATE", "1") == answer
    await waiting.expect(answer)

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
    world.disk.sync_error = OSError(errno.EIO, os.strerror(errno.EIO))
    await trio.sleep(1.2)
    assert await client.ask("PING") == MISCONF % b"Input/output error"
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
    assert client.read == MISCONF % b"no answer from the disk for 10 seconds"
    client.read = b""
    world.disk.latency = 0

    await trio.sleep(STALL_S * 3)
    assert await client.ask("PING") == b"+PONG\r\n"
    assert len(read(world.disk.durable)) == 1


async def test_a_producer_that_never_waits_fills_no_memory(
    nursery: trio.Nursery, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "MAX_WAITING", 10_000)
    world = await started(nursery)
    world.disk.latency = 5
    client = world.client()
    client.send(b"ADDJOB q x 0 REPLICATE 1\r\n" * 1000)

    await trio.sleep(4)
    assert len(world.node.state.jobs) < 1000
    assert client.is_held

    await until(lambda: client.read.count(b"\r\n") == 1000, seconds=300)
    assert not client.is_held


# Rewriting.


async def test_a_rewrite_has_what_is_there_and_what_comes_meanwhile(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    client = world.client()
    first = [await add(client) for _ in range(600)]
    for job in first[:300]:
        await client.ask("ACKJOB", job.decode())
    world.disk.latency = 0.01

    answer = await client.ask("BGREWRITEAOF")
    assert answer == b"+Background append only file rewriting started\r\n"
    assert await client.ask("BGREWRITEAOF") == (
        b"-ERR Background append only file rewriting already in progress\r\n"
    )
    await client.ask("ACKJOB", first[599].decode())
    late = await add(client)
    await until(lambda: "the journal has been rewritten" in world.log.events())
    later = await add(client)

    assert alive(world.disk.durable) == {*first[300:599], late, later}
    assert len(world.disk.records()) < 310


def alive(data: bytes) -> set[bytes]:
    """The ids of the jobs that a node would load."""
    jobs: set[bytes] = set()
    for record in read(data):
        if isinstance(record, LoadJob):
            jobs.add(record.copy.id)
        else:
            jobs.discard(record.id)
    return jobs


async def test_a_file_that_has_doubled_is_rewritten(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    config = Config(appendonly=True, auto_aof_rewrite_min_size=2000)
    world = await started(nursery, config)
    client = world.client()
    for _ in range(20):
        await client.ask("ACKJOB", (await add(client)).decode())

    await until(lambda: "the journal has been rewritten" in world.log.events())

    assert world.disk.records() == []


async def test_a_rewrite_that_fails_leaves_the_file_as_it_is(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    client = world.client()
    job = await add(client)
    world.disk.begin_error = OSError(errno.EACCES, "Permission denied")
    assert b"Permission denied" in await client.ask("BGREWRITEAOF")

    world.disk.begin_error = None
    world.disk.room = 10
    await client.ask("BGREWRITEAOF")
    await until(lambda: world.log.events().count("the journal could not be rewritten") == 2)

    assert alive(world.disk.durable) == {job}
    assert b"aof_last_bgrewrite_status:err" in await client.ask("INFO", "persistence")


async def test_a_journal_can_be_turned_on_and_off(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, Config())
    client = world.client()
    first = await add(client)

    assert await client.ask("CONFIG", "SET", "appendonly", "yes") == b"+OK\r\n"
    second = await add(client)
    await until(lambda: "the journal has been rewritten" in world.log.events())
    third = await add(client)
    assert alive(world.disk.content) == {first, second, third}

    assert await client.ask("CONFIG", "SET", "appendonly", "no") == b"+OK\r\n"
    await add(client)
    await trio.sleep(2)

    assert alive(world.disk.durable) == {first, second, third}
    assert b"aof_state:off" in await client.ask("INFO", "persistence")


async def test_a_journal_that_is_anothers_is_not_taken(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, Config())
    world.disk.in_use = True

    reply = await world.client().ask("CONFIG", "SET", "appendonly", "yes")

    assert reply == b"-ERR Unable to turn on AOF. Check server logs.\r\n"
    assert world.log.lines[-1][2] == {"error": "disque.aof is in use by another node"}


async def test_bgrewriteaof_writes_a_file_even_if_no_journal_is_kept(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, Config())
    client = world.client()
    job, other = await add(client), await add(client)
    world.disk.latency = 0.1

    await client.ask("BGREWRITEAOF")
    await client.ask("ACKJOB", other.decode())
    await until(lambda: "the journal has been rewritten" in world.log.events())
    await add(client)

    assert alive(world.disk.durable) == {job}
    await trio.sleep(1)
    assert not world.node.state.is_recording


async def test_a_new_name_that_may_not_last_is_trouble(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    client = world.client()
    job = await add(client)
    world.disk.settle_error = OSError(errno.EIO, os.strerror(errno.EIO))
    await client.ask("BGREWRITEAOF")
    await until(lambda: "the journal has been rewritten" in world.log.events())
    await trio.sleep(0.1)
    assert await client.ask("PING") == MISCONF % b"Input/output error"

    world.disk.settle_error = None
    await trio.sleep(1.5)

    assert await client.ask("PING") == b"+PONG\r\n"
    assert alive(world.disk.durable) == {job}


# Start and end.


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
    assert world.hub.is_bus_open


async def test_a_file_of_the_other_format_is_rewritten(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    content = file_of(*ids(3), format_=Format.DISQUE)
    world = await started(nursery, EVERYSEC, MemoryDisk(content))

    await until(lambda: "the journal has been rewritten" in world.log.events())

    assert alive(world.disk.content) == set(ids(3))
    assert not world.disk.content.startswith(b"*")


async def test_while_loading_clients_wait_and_peers_too(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    disk = MemoryDisk(file_of(*ids(2000)))
    disk.latency = 3
    world = World(EVERYSEC, disk=disk)
    nursery.start_soon(world.node.run)
    client = world.client()

    assert await client.ask("PING") == b"-LOADING Disque is loading the dataset in memory\r\n"
    await trio.sleep(4)
    shown = await client.ask("INFO", "persistence")
    assert b"loading:1" in shown
    assert b"loading_loaded_bytes:65536\r\n" in shown
    assert not world.hub.is_bus_open

    await until(lambda: world.hub.is_bus_open)
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
    assert "the journal ends within a record: cut" in world.log.events()


async def run_to_failure(config: Config, disk: MemoryDisk) -> str:
    world = World(config, disk=disk)
    with trio.fail_after(10):
        await world.node.run()
    return world.node.failure


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


async def test_a_missing_file_is_an_error_only_for_once(autojump_clock: MockClock) -> None:
    failure = await run_to_failure(Config(aof_enqueue_jobs_once=True), MemoryDisk())

    assert failure.startswith("aof-enqueue-jobs-once is yes, and there is no disque.aof to load")


@pytest.mark.parametrize("appendonly", [False, True])
async def test_after_a_controlled_restart_jobs_are_queued_and_the_setting_is_off(
    nursery: trio.Nursery, autojump_clock: MockClock, appendonly: bool
) -> None:
    config = Config(appendonly=appendonly, aof_enqueue_jobs_once=True)
    world = await started(nursery, config, MemoryDisk(file_of(*ids(3))))

    client = world.client()

    assert await client.ask("QLEN", "q") == b":3\r\n"
    assert b"no" in await client.ask("CONFIG", "GET", "aof-enqueue-jobs-once")
    assert ("rewrite", config.maxclients) in world.host.errands


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


@pytest.mark.parametrize("config", [EVERYSEC, Config()], ids=["on", "off"])
async def test_shutdown_may_write_the_file_anew(autojump_clock: MockClock, config: Config) -> None:
    world = World(config)

    await life(world, b"ADDJOB q x 0 REPLICATE 1\r\nGETJOB FROM q\r\n", b"SHUTDOWN REWRITE-AOF\r\n")

    (record,) = read(world.disk.durable)
    assert isinstance(record, LoadJob)
    assert record.copy.state != QUEUED, "it has been handed out"


async def test_nothing_befalls_jobs_that_are_written_for_a_restart(
    autojump_clock: MockClock,
) -> None:
    world, count = World(Config()), 3 * TURN
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            await nursery.start(world.node.run)
            worker, operator = world.client(), world.client()
            worker.send(b"ADDJOB q x 0 REPLICATE 1 RETRY 0\r\n" * count)
            await wait_all_tasks_blocked()
            worker.send(b"GETJOB FROM q\r\n" * count)
            operator.send(b"SHUTDOWN REWRITE-AOF\r\n")

    records = read(world.disk.durable)
    queued = [each for each in records if isinstance(each, LoadJob) and each.copy.state == QUEUED]
    assert 0 < len(queued) == count - worker.read.count(b"*1\r\n*3\r\n")


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
