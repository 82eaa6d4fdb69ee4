"""A journal that another process removes, replaces or truncates while its node runs."""

import os
import tempfile

import pytest
import trio
from trio.testing import MockClock

from disque_trio.ports import JournalError
from disque_trio.storage.journal_file import JournalDisk
from tests.node.world import until
from tests.storage.journals import EVERYSEC, MISCONF, add, alive, broken, started


@pytest.mark.parametrize("loss", ["removed", "replaced", "truncated"])
async def test_what_a_node_has_answered_is_in_a_new_file_soon(
    nursery: trio.Nursery, autojump_clock: MockClock, loss: str
) -> None:
    world = await started(nursery, EVERYSEC)
    client = world.client()
    jobs = {await add(client)}
    old = world.disk.file
    world.disk.latency = 0.2
    world.disk.loss = loss

    await until(lambda: world.node.state.refusal is not None, seconds=3)
    reason = b"disque.aof was %b by another process, and is being rewritten" % loss.encode()
    assert await client.ask("ADDJOB", "q", "x", "0") == MISCONF % reason
    shown = await client.ask("INFO", "persistence")
    assert b"aof_file_status:" + loss.encode() in shown
    assert b"aof_last_write_status:err" in shown
    await until(lambda: world.node.state.refusal is None, seconds=3)

    assert world.disk.file is not old
    assert world.disk.aside == (loss == "replaced")
    jobs.add(await add(client))
    assert alive(world.disk.content) == jobs
    assert b"aof_file_status:ok" in await client.ask("INFO", "persistence")


async def test_a_file_that_another_node_has_open_is_not_moved(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, EVERYSEC)
    world.disk.loss, world.disk.in_use = "replaced", True
    file = world.disk.file

    await trio.sleep(10)

    assert world.disk.file is file
    assert b"-MISCONF" in await world.client().ask("PING")
    world.disk.in_use = False
    await until(lambda: world.node.state.refusal is None)


async def test_while_a_new_file_cannot_be_made_writes_are_refused_and_it_is_tried_again(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, EVERYSEC)
    job = await add(world.client())
    world.disk.loss, world.disk.begin_error = "removed", broken()

    await trio.sleep(10)

    assert b"-MISCONF" in await world.client().ask("PING")
    world.disk.begin_error = None
    await until(lambda: world.node.state.refusal is None)
    assert alive(world.disk.content) == {job}


def test_the_disk_tells_what_has_become_of_the_file() -> None:
    with tempfile.TemporaryDirectory() as path:
        disk = JournalDisk(f"{path}/disque.aof")
        file = disk.open()
        file.append(b"12345")
        assert file.loss() == ""
        os.truncate(disk.path, 3)
        assert file.loss() == "truncated"
        os.rename(disk.path, f"{path}/moved")
        assert file.loss() == "removed"
        with open(disk.path, "wb") as other:
            other.write(b"other")
        assert file.loss() == "replaced"
        disk.set_aside()
        assert file.loss() == "removed"
        with open(f"{disk.path}.found", "rb") as found:
            assert found.read() == b"other"
        disk.set_aside()
        new = disk.begin()
        disk.replace(new)
        assert new.loss() == ""
        with pytest.raises(JournalError, match="in use by another node"):
            disk.set_aside()
        new.close()
        file.close()
