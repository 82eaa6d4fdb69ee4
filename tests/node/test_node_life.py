"""Chores of a node, what it logs, and its end."""

import errno
import itertools

import pytest
import trio
from trio.testing import MockClock

from disque_trio import node as node_module
from disque_trio.driver.life import GRACE_S
from disque_trio.statemachine.chores import Shutdown
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.knobs import DEFAULTS
from tests.node.world import World, until

TURN = DEFAULTS.client_turn


async def started(nursery: trio.Nursery, config: Config | None = None) -> World:
    world = World(config)
    await nursery.start(world.node.run)
    return world


async def test_a_nap_holds_up_everybody(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = await started(nursery)
    client, other = world.client(), world.client()
    before = trio.current_time()

    client.send(b"DEBUG SLEEP 2\r\n")
    await trio.sleep(0.1)
    other.send(b"PING\r\n")

    await other.expect(b"+PONG\r\n")
    assert 2 <= trio.current_time() - before <= 2.1
    await client.expect(b"+OK\r\n")


async def test_a_nap_holds_up_a_pipeline_too(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    client, other = world.client(), world.client()
    before = trio.current_time()

    client.send(b"DEBUG SLEEP 2\r\nPING\r\n")
    other.send(b"PING\r\n" * (TURN + 1))

    await other.expect(b"+PONG\r\n" * (TURN + 1))
    assert 2 <= trio.current_time() - before <= 2.1
    await client.expect(b"+OK\r\n+PONG\r\n")


async def test_work_on_due_jobs_that_takes_long_is_an_event(
    nursery: trio.Nursery, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = itertools.count(step=50_000_000)
    monkeypatch.setattr(node_module, "perf_counter_ns", lambda: next(readings))
    world = await started(nursery, Config(latency_monitor_threshold=20))

    await world.client().ask("GETJOB", "TIMEOUT", "100", "FROM", "q")

    assert world.node.state.latency.events[b"jobs-processing"].worst == 50


async def test_chores_have_outcomes(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = await started(nursery)
    client = world.client()

    assert await client.ask("CONFIG", "REWRITE") == b"+OK\r\n"
    assert await client.ask("CONFIG", "SET", "dir", "/srv") == b"+OK\r\n"
    assert await client.ask("CONFIG", "SET", "maxclients", "15000") == b"+OK\r\n"
    assert await client.ask("CLUSTER", "SAVECONFIG") == b"+OK\r\n"
    assert b"fd=7" in await client.ask("CLIENT", "LIST")

    assert world.host.chores == [("rewrite", 10_000), ("chdir", "/srv"), ("files", 15_000)]
    assert world.store.saved == [b"a" * 40 + b" :7711 myself 0 0 connected\n"]


async def test_a_chore_that_fails_says_why(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    world.host.refusal = "Permission denied"
    client = world.client()

    answer = await client.ask("CONFIG", "REWRITE")

    assert answer == b"-ERR Rewriting config file: Permission denied\r\n"


async def test_nodes_conf_is_written_when_the_disk_allows_it_again(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    world.store.error = OSError(errno.ENOSPC, "No space left on device")
    client = world.client()

    assert await client.ask("CLUSTER", "LEAVING", "yes") == b"+OK\r\n"
    await until(lambda: "cannot write the node table" in world.log.events())
    world.store.error = None

    await until(lambda: bool(world.store.saved))
    assert b"myself,leaving" in world.store.saved[0]


async def test_settings_that_change_are_logged_without_secrets(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    client = world.client()

    await client.ask("CONFIG", "SET", "loglevel", "debug")
    await client.ask("CONFIG", "SET", "requirepass", "geheim")
    await trio.sleep(2)
    await client.ask("PING")
    await until(lambda: world.log.level == "debug")

    assert ("notice", "setting changed", {"name": "requirepass"}) in world.log.lines


# The end.


async def test_shutdown_closes_the_connection_and_ends_the_node(autojump_clock: MockClock) -> None:
    world = World()
    async with trio.open_nursery() as nursery:
        await nursery.start(world.node.run)
        client = world.client()
        client.send(b"SHUTDOWN\r\n")
    assert client.is_closing
    assert client.read == b""
    assert world.node.life.shutdown == Shutdown()
    assert not world.event_loop.is_listening


async def test_a_shutdown_that_the_host_refuses_is_answered(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    world.host.refusal = "not now"

    answer = await world.client().ask("SHUTDOWN")

    assert answer.startswith(b"-ERR Errors trying to SHUTDOWN")
    assert world.node.life.shutdown is None


async def test_what_was_read_is_answered_before_the_end(autojump_clock: MockClock) -> None:
    world = World()
    async with trio.open_nursery() as nursery:
        await nursery.start(world.node.run)
        client = world.client()
        client.send(b"PING\r\n" * (TURN * 3))
        await until(lambda: bool(client.read))
        world.node.stop(Shutdown(), "test")
    assert client.read == b"+PONG\r\n" * (TURN * 3)


async def test_a_client_that_does_not_read_delays_the_end_a_little(
    autojump_clock: MockClock,
) -> None:
    world = World()
    world.event_loop.unsent = lambda: True
    async with trio.open_nursery() as nursery:
        await nursery.start(world.node.run)
        before = trio.current_time()
        world.node.stop(Shutdown(), "test")
        world.node.stop(Shutdown(restart=True), "again")
    assert trio.current_time() - before == pytest.approx(GRACE_S, rel=0.01)
    assert world.node.life.shutdown == Shutdown()


async def test_a_crash_does_not_wait(autojump_clock: MockClock) -> None:
    world = World()
    world.event_loop.unsent = lambda: True
    async with trio.open_nursery() as nursery:
        await nursery.start(world.node.run)
        before = trio.current_time()
        world.client().send(b"DEBUG CRASH-AND-RECOVER 100\r\n")
    assert trio.current_time() - before < 0.1
    assert world.node.life.shutdown == Shutdown(restart=True, graceful=False, delay=100)


async def test_wrong_passwords_are_logged_and_not_shown(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, Config(requirepass=b"hush"))

    for _ in range(3):
        assert await world.client().ask("AUTH", "guessed") == b"-ERR invalid password\r\n"
        await trio.sleep(2)
    await trio.sleep(6)
    await world.client().ask("QUIT")

    said = [line for line in world.log.lines if "wrong passwords" in line[1]]
    assert said[0][2] == {"in_all": 1}
    assert len(said) == 2  # now, and once more for all that came since
    assert "guessed" not in repr(world.log.lines)
