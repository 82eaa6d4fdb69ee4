"""What a node holds back until its journal has it: in order, and never without bounds."""

from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from disque_trio.driver import limits
from disque_trio.driver.sessions import CHOKE
from disque_trio.sim.engines.simulated_thread import Act
from disque_trio.statemachine.knobs import DEFAULTS
from disque_trio.storage.append import STALL_S
from tests.node.world import MemoryClient, World, until
from tests.storage.disks import MemoryDisk, MemoryThread, read
from tests.storage.journals import ADD, ALWAYS, EVERYSEC, IO_ERROR, broken, started

TURN = DEFAULTS.client_turn

LONG = 10_000
PING = b"PING " + b"x" * LONG + b"\r\n"
PONG = b"$%d\r\n" % LONG + b"x" * LONG + b"\r\n"


class PromptThread(MemoryThread):
    """The `DiskThread` of a disk for which nobody waits long."""

    def start(
        self,
        act: Callable[..., object],
        args: tuple[Any, ...],
        then: Callable[[OSError | None], None],
        *,
        sync: Act | None = None,
        wait_s: float = 0.0,  # noqa: ARG002
    ) -> None:
        error = None
        try:
            act(*args)
            if sync is not None:
                sync()
        except OSError as met:
            error = met
        then(error)


async def prompt(nursery: trio.Nursery) -> tuple[World, MemoryClient]:
    """A node with such a disk, and a client."""
    disk = MemoryDisk()
    disk.thread = PromptThread(disk._delay)
    world = await started(nursery, EVERYSEC, disk)
    client = world.client()
    assert await client.ask("PING") == b"+PONG\r\n"
    return world, client


def batch(world: World, client: MemoryClient, data: bytes) -> bytes:
    """The node is given this in a batch; what has been answered at its end."""
    world.node.begin()
    world.node.received(client.session, data)
    world.node.settle()
    return client.read


async def test_what_is_written_at_once_leaves_with_its_batch(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world, client = await prompt(nursery)

    assert batch(world, client, ADD).startswith(b"+D-")
    assert len(world.disk.records()) == 1
    assert world.node.deadline() > world.node.now.mono


async def test_what_cannot_be_written_at_once_is_refused_with_its_batch(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world, client = await prompt(nursery)
    world.disk.write_error = broken()

    assert batch(world, client, ADD) == IO_ERROR
    world.disk.write_error = None
    await until(lambda: not world.journal.end.trouble)
    client.read = b""
    assert batch(world, client, ADD).startswith(b"+D-")


async def test_a_client_whose_replies_wait_for_the_disk_is_not_read_for_ever(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, ALWAYS)
    world.disk.latency = 5
    client, other = world.client(), world.client()
    client.send(ADD + PING * 1000)
    other.send(b"PING\r\n")

    await trio.sleep(4)
    session = client.session
    assert CHOKE < session.waiting < CHOKE + TURN * LONG * 1.1
    assert session.is_held
    assert world.node.state.facts.traffic.delayed > CHOKE

    await until(lambda: client.read.count(b"\r\n") == 2001)
    assert client.read[43:] == PONG * 1000
    assert other.read == b"+PONG\r\n"
    assert not client.is_held
    assert session.waiting == world.node.state.facts.traffic.delayed == 0


@pytest.mark.pure
async def test_a_client_with_too_much_that_waits_is_cut_off_where_the_limits_say_so(
    nursery: trio.Nursery, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MONITOR_LIMIT", CHOKE)
    world = await started(nursery, ALWAYS)
    monitor, client = world.client(), world.client()
    await monitor.ask("MONITOR")
    world.disk.latency = 5
    monitor.send(ADD)
    await trio.sleep(0.1)
    client.send(ADD + PING * 300)

    await trio.sleep(1)

    assert monitor.is_over
    assert not client.is_over
    await until(lambda: client.read.count(b"\r\n") == 601)


async def test_what_waited_when_the_disk_failed_weighs_no_more(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, ALWAYS)
    world.disk.latency = 1
    world.disk.sync_error = broken()
    client = world.client()
    client.send(ADD + PING * 1000)

    await until(lambda: client.read.count(b"\r\n") >= 1001)

    assert client.read.startswith(IO_ERROR)
    assert client.session.waiting == 0
    assert not client.is_held


async def test_a_client_that_has_gone_is_not_served_when_its_replies_could_leave(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, ALWAYS)
    world.disk.latency = 1
    client = world.client()
    client.send(ADD + PING * 1000 + ADD)
    await trio.sleep(0.5)
    client.leave()

    await trio.sleep(5)

    assert len(world.node.state.jobs) == 1
    assert world.node.state.facts.traffic.delayed == 0


async def test_after_trouble_an_answer_waits_for_what_was_not_kept_meanwhile(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, ALWAYS)
    client = world.client()
    end = world.journal.end
    job = await client.ask("ADDJOB", "q", "x", "0", "RETRY", "0", "DELAY", "15")
    world.disk.latency = 0.5
    await client.ask("BGREWRITEAOF")
    await trio.sleep(0.8)
    world.disk.latency = STALL_S * 2
    await until(end.syncing.locked)
    world.disk.latency = 3
    await until(lambda: bool(end.trouble) and bool(world.node.state.queues))
    await until(lambda: not end.trouble)

    # What the job's turn has left is still to be written; this asks for nothing to be.
    client.send(b"ENQUEUE %b\r\n" % job[1:41])
    await trio.sleep(2)
    assert client.read == b""

    await client.expect(b":0\r\n")
    assert len(read(world.disk.durable)) == 2
