"""A node whose disk fails or hangs at a bad moment: nothing is lost, and nobody is left waiting."""

import errno
import os

import pytest
import trio
from trio.testing import MockClock

from disque_trio import journal as journal_module
from tests.node.test_journal import ALWAYS, MISCONF, NO_SPACE, add, alive, started
from tests.node.world import until

IO_ERROR = MISCONF % b"Input/output error"
ADD = b"ADDJOB q x 0 REPLICATE 1\r\n"


def broken() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))


async def test_in_trouble_everybody_is_answered_however_much_waits(
    nursery: trio.Nursery, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "MAX_WAITING", 100)
    world = await started(nursery, ALWAYS)
    client = world.client()
    world.disk.room = len(world.disk.content)
    assert await client.ask("ADDJOB", "q", "x" * 500, "0", "REPLICATE", "1") == NO_SPACE
    assert world.node._journal is not None
    assert world.node._journal.end.waiting > 100

    assert await client.ask("PING") == NO_SPACE
    assert await client.ask("QLEN", "q") == b":1\r\n"


async def test_what_only_the_new_file_has_is_promised_once_its_name_will_last(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, ALWAYS)
    first, second = world.client(), world.client()
    world.disk.latency = 1
    start = trio.current_time()
    await world.client().ask("BGREWRITEAOF")
    await trio.sleep_until(start + 0.5)
    first.send(ADD)  # Written until 1.5: only then can the new file take over.
    await trio.sleep_until(start + 1.2)
    second.send(ADD)  # Goes to the new file, which is complete at 2.5.
    await trio.sleep_until(start + 2.9)
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
