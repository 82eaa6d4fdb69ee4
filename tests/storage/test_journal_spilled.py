"""A journal of jobs whose bodies are on disk, where they may be lost."""

import os
import signal
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from disque_trio.statemachine.base import Spilled
from disque_trio.statemachine.records import LoadJob
from tests.cluster.talk import RefusedError, connection
from tests.node.world import World, until
from tests.serving.process import server
from tests.storage.disks import read
from tests.storage.journals import ALWAYS, EVERYSEC, add, alive, broken, started


class Lost(Spilled):
    """A body that cannot be read back."""

    def __bytes__(self) -> bytes:
        raise broken()


class Counted(Spilled):
    """A body that counts how often it is read."""

    reads = 0

    def __bytes__(self) -> bytes:
        self.reads += 1
        return b"x" * self.length


async def add_delayed(world: World, delay: int = 1) -> bytes:
    """An at-most-once job that is recorded a second time when it is queued, a second later."""
    reply = await world.client().ask("ADDJOB", "q", "x", "0", "RETRY", "0", "DELAY", str(delay))
    return reply[1:41]


async def test_a_record_whose_body_is_lost_is_left_out_and_the_node_goes_on(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, ALWAYS)
    client = world.client()
    job = await add_delayed(world)
    world.node.state.jobs[job].body = Lost(1)

    await until(lambda: world.node.state.jobs[job].in_line)
    other = await add(client)

    (first, second) = read(world.disk.durable)
    assert isinstance(first, LoadJob)
    assert isinstance(second, LoadJob)
    assert (first.copy.id, first.copy.body) == (job, b"x")
    assert second.copy.id == other
    (told,) = [
        facts
        for _, event, facts in world.log.lines
        if event.startswith("cannot read a spilled body")
    ]
    assert told == {"job": job.decode(), "error": "Input/output error"}


async def test_a_rewrite_that_meets_a_lost_body_leaves_the_file_that_has_it(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, ALWAYS)
    client = world.client()
    job = await add(client)
    world.node.state.jobs[job].body = Lost(1)

    assert await client.ask("BGREWRITEAOF") == b"+Background append only file rewriting started\r\n"
    await until(lambda: "the journal could not be rewritten" in world.log.events())

    assert await client.ask("PING") == b"+PONG\r\n"
    assert alive(world.disk.durable) == {job}
    assert world.disk.new is None
    assert world.log.lines[-1][2] == {
        "error": f"the body of {job.decode()} cannot be read from the spill-directory: "
        "Input/output error"
    }
    assert alive(world.disk.durable) == {job}
    other = await add(client)
    assert alive(world.disk.durable) == {job, other}


async def test_a_body_that_is_lost_during_a_rewrite_does_not_end_it(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, EVERYSEC)
    client = world.client()
    job = await add_delayed(world)
    world.disk.latency = 2
    await client.ask("BGREWRITEAOF")
    await trio.sleep(0.1)
    world.node.state.jobs[job].body = Lost(1)

    await until(lambda: "the journal has been rewritten" in world.log.events())

    assert world.node.state.jobs[job].in_line
    assert alive(world.disk.content) == {job}


async def test_a_shutdown_that_cannot_write_everything_is_refused(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, EVERYSEC)
    client = world.client()
    job = await add(client)
    world.node.state.jobs[job].body = Lost(1)

    assert await client.ask("SHUTDOWN", "REWRITE-AOF") == (
        b"-ERR Errors trying to SHUTDOWN. Check logs.\r\n"
    )

    assert await client.ask("PING") == b"+PONG\r\n"
    assert alive(world.disk.content) == {job}


async def test_during_a_rewrite_a_body_is_read_once_for_both_files(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, EVERYSEC)
    client = world.client()
    job = await add_delayed(world, delay=3)
    world.disk.latency = 2
    await client.ask("BGREWRITEAOF")
    await trio.sleep(0.1)
    body = world.node.state.jobs[job].body = Counted(1)

    await until(lambda: world.node.state.jobs[job].in_line)

    assert body.reads == 1
    await until(lambda: "the journal has been rewritten" in world.log.events())
    assert len(world.disk.records()) == 2


def test_a_node_whose_spill_files_are_cut_goes_on_and_a_restart_brings_everything_back(
    tmp_path: Path,
) -> None:
    (tmp_path / "spill").mkdir()
    options = (
        "--maxmemory", "64mb", "--appendonly", "yes", "--aof-queues", "no",
        "--spill-directory", str(tmp_path / "spill"),
    )  # fmt: skip
    bodies = [b"%06d" % number * 40_000 for number in range(200)]
    with server(tmp_path, *options) as (process, port), connection(port) as client:
        process.says("journal loaded")
        for body in bodies:
            client.add("q", body)
        client.text("CONFIG", "SET", "maxmemory", "1gb")  # So nothing more is spilled.
        cut_spill_files(process.popen.pid)

        client.text("BGREWRITEAOF")
        process.says("the journal could not be rewritten")
        with pytest.raises(RefusedError, match="Errors trying to SHUTDOWN"):
            client.text("SHUTDOWN", "REWRITE-AOF")
        (job,) = client.get("q")
        assert job.body == bodies[0]
        process.signal(signal.SIGKILL)
        process.popen.wait()

    with (
        server(tmp_path, *options, "--aof-enqueue-jobs-once", "yes") as (process, port),
        connection(port) as client,
    ):
        process.says("journal loaded")
        found = [client.get("q")[0].body for _ in bodies]
        assert found == bodies


def cut_spill_files(pid: int) -> None:
    """They have no names, but the kernel shows them."""
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        if "/spill/" in os.readlink(descriptor):
            os.truncate(descriptor, 1)
