"""The journal written anew, turned on and turned off."""

import errno
import os
from collections.abc import Callable
from typing import Any, Final, NoReturn

import pytest
import trio
from outcome import Outcome
from trio.testing import MockClock

from disque_trio.statemachine.config import Config
from disque_trio.storage.rewrite import Rewrite
from tests.node.world import until
from tests.storage.disks import MemoryFile
from tests.storage.journals import IO_ERROR, add, alive, broken, started

NO_MEMORY: Final = os.strerror(errno.ENOMEM)

Act = Callable[[], object]
Then = Callable[[Outcome[Any]], None]


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


async def test_a_file_that_has_doubled_is_rewritten(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    config = Config(appendonly=True, aof_queues=False, auto_aof_rewrite_min_size=2000)
    world = await started(nursery, config)
    client = world.client()
    for _ in range(20):
        await client.ask("ACKJOB", (await add(client)).decode())

    await until(lambda: "the journal has been rewritten" in world.log.events())

    assert world.disk.records() == []


async def test_a_look_at_the_file_that_a_rewrite_closes_meanwhile_is_no_trouble(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    client = world.client()
    await add(client)
    looks: list[MemoryFile] = []

    beside = world.disk.thread.beside

    def start(
        act: Callable[..., object], args: tuple[Any, ...], then: Then, *, sync: Act | None = None
    ) -> None:
        """Threads start late: the look at the first file begins when that has been closed."""
        file = getattr(act, "__self__", None)
        if isinstance(file, MemoryFile) and act == file.loss and not looks:
            looks.append(file)
            world.client().send(b"BGREWRITEAOF\r\n")
            nursery.start_soon(start_late, file, act, then)
        else:
            beside(act, args, then, sync=sync)

    async def start_late(file: MemoryFile, act: Callable[..., object], then: Then) -> None:
        await until(lambda: file.is_closed)
        beside(act, (), then)

    world.disk.thread.beside = start  # type: ignore[method-assign]
    await until(lambda: bool(looks) and looks[0].is_closed)

    assert await client.ask("PING") == b"+PONG\r\n"
    await add(client)
    assert "the journal cannot be written: writes are refused" not in world.log.events()


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
    world.disk.settle_error = broken()
    await client.ask("BGREWRITEAOF")
    await until(lambda: "the journal has been rewritten" in world.log.events())
    await trio.sleep(0.1)
    assert await client.ask("PING") == IO_ERROR

    world.disk.settle_error = None
    await trio.sleep(1.5)

    assert await client.ask("PING") == b"+PONG\r\n"
    assert alive(world.disk.durable) == {job}


@pytest.mark.parametrize("during", ["the walk", "a batch"])
async def test_a_rewrite_without_memory_fails_and_the_node_goes_on(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
    during: str,
) -> None:
    world = await started(nursery)
    client = world.client()
    first = await add(client)
    world.disk.latency = 0.01

    def exhausted(*_: object) -> NoReturn:
        raise MemoryError

    with monkeypatch.context() as patch:
        if during == "the walk":
            patch.setattr(Rewrite, "_portion", exhausted)
        await client.ask("BGREWRITEAOF")
        if during == "a batch":
            patch.setattr(Rewrite, "_put", exhausted)
            await client.ask("ACKJOB", (await add(client)).decode())
        await until(lambda: "the journal could not be rewritten" in world.log.events())
    second = await add(client)

    assert alive(world.disk.content) == {first, second}
    assert world.log.lines[-1][2] == {"error": NO_MEMORY}


async def test_a_file_is_not_rewritten_for_its_size_while_the_system_refuses_memory(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    config = Config(appendonly=True, aof_queues=False, auto_aof_rewrite_min_size=2000)
    world = await started(nursery, config)
    client = world.client()
    jobs = [await add(client) for _ in range(20)]
    world.host.room = 0
    for job in jobs:
        await client.ask("ACKJOB", job.decode())

    await trio.sleep(30)
    assert "the journal has grown: rewriting" not in world.log.events()

    world.host.room = 1 << 40
    await until(lambda: "the journal has been rewritten" in world.log.events())
