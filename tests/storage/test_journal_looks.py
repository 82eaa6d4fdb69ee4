"""A disk that hangs delays clients that change jobs, and not those that only read."""

import pytest
import trio
from trio.testing import MockClock

from disque_trio.statemachine.config import Config
from disque_trio.statemachine.knobs import Knobs
from tests.node.world import MemoryClient, World, until
from tests.storage.disks import read
from tests.storage.journals import ADD, ALWAYS, EVERYSEC, NO, STALLED, add, started

NEVER = 1e6
POLICIES = pytest.mark.parametrize(
    "config", [EVERYSEC, NO, ALWAYS], ids=["everysec", "no", "always"]
)
LOOKS = (
    "PING", "INFO", "INFO persistence", "QLEN q", "QSTAT q", "QPEEK q 1", "CONFIG GET maxmemory",
    "CLUSTER NODES", "HELLO", "CLIENT LIST", "TIME", "JSCAN 0", "NONSENSE",
)  # fmt: skip


async def hanging(nursery: trio.Nursery, config: Config) -> tuple[World, MemoryClient]:
    """A node whose disk hangs while it writes the second job of this client."""
    world = await started(nursery, config)
    client = world.client()
    await add(client)
    world.disk.latency = NEVER
    client.send(ADD)
    await trio.sleep(0.1)
    return world, client


@POLICIES
async def test_reads_do_not_wait_for_the_disk(
    nursery: trio.Nursery, autojump_clock: MockClock, config: Config
) -> None:
    world, client = await hanging(nursery, config)
    other = world.client()
    start = trio.current_time()

    for question in LOOKS:
        assert await other.ask(*question.split())

    assert trio.current_time() - start < 0.5
    assert client.read == b""


async def test_several_questions_at_once_do_not_wait_either(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world, _ = await hanging(nursery, EVERYSEC)
    other = world.client()

    other.send(b"PING\r\nINFO server\r\nQLEN q\r\nPING\r\n")
    await trio.sleep(0.1)

    assert other.read.startswith(b"+PONG\r\n$")
    assert other.read.endswith(b":2\r\n+PONG\r\n")


@pytest.mark.parametrize("question", ["PING", "INFO server"])
async def test_an_answer_waits_for_what_the_client_has_asked_before(
    nursery: trio.Nursery, autojump_clock: MockClock, question: str
) -> None:
    _, client = await hanging(nursery, EVERYSEC)

    client.send(question.encode() + b"\r\n")
    await trio.sleep(4)
    assert client.read == b""

    await until(lambda: client.read.startswith(STALLED))


@pytest.mark.parametrize("silence", [b"", b"CLIENT REPLY SKIP\r\n"], ids=["told", "silent"])
async def test_what_is_asked_together_with_a_change_waits_for_it(
    nursery: trio.Nursery, autojump_clock: MockClock, silence: bytes
) -> None:
    world, _ = await hanging(nursery, EVERYSEC)
    other = world.client()

    other.send(silence + ADD + b"PING\r\n")
    await trio.sleep(1)
    other.send(b"PING\r\n")
    await trio.sleep(3)

    assert other.read == b""


async def test_a_job_is_not_handed_out_before_its_record_is_written(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world, _ = await hanging(nursery, EVERYSEC)
    worker = world.client()

    worker.send(b"GETJOB FROM q\r\n")
    await trio.sleep(3)

    assert worker.read == b""


async def test_however_much_waits_for_the_disk_reads_are_answered(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world, client = await hanging(nursery, EVERYSEC)
    world.node.state.knobs = Knobs(waiting_bytes=100)
    other = world.client()

    assert await other.ask("PING") == b"+PONG\r\n"
    assert await other.ask("QLEN", "q") == b":2\r\n"
    other.send(ADD)
    await trio.sleep(1)
    assert await world.client().ask("QLEN", "q") == b":2\r\n"
    assert client.read == other.read == b""


@POLICIES
async def test_a_write_that_hangs_is_an_error_after_five_seconds(
    nursery: trio.Nursery, autojump_clock: MockClock, config: Config
) -> None:
    start = trio.current_time()
    _, client = await hanging(nursery, config)

    await until(lambda: bool(client.read))

    assert client.read == STALLED
    assert 5 < trio.current_time() - start < 6.5


async def test_an_answer_to_a_read_guarantees_nothing_and_a_confirmed_job_is_kept(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, ALWAYS)
    world.disk.latency = 1
    client, other = world.client(), world.client()
    client.send(ADD)
    await trio.sleep(0.1)

    assert await other.ask("QLEN", "q") == b":1\r\n"
    assert read(world.disk.durable) == []

    await until(lambda: client.read.startswith(b"+D-"))
    assert len(read(world.disk.durable)) == 1
