"""Clients of a node, without sockets: turns, limits, waits."""

import trio
from trio.testing import MockClock

from disque_trio.driver.limits import MONITOR_LIMIT
from disque_trio.driver.sessions import CHOKE
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.knobs import DEFAULTS
from tests.node.world import World, until

TURN = DEFAULTS.client_turn


async def started(nursery: trio.Nursery, config: Config | None = None) -> World:
    world = World(config)
    await nursery.start(world.node.run)
    return world


async def test_a_request_is_answered(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    client = (await started(nursery)).client()

    assert await client.ask("PING") == b"+PONG\r\n"


async def test_a_pipeline_is_answered_in_one_write(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    client = (await started(nursery)).client()

    client.send(b"PING\r\nPING a\r\nPING b\r\n")

    await client.expect(b"+PONG\r\n$1\r\na\r\n$1\r\nb\r\n")
    assert len(client.writes) == 1


async def test_a_request_may_come_in_pieces(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    client = (await started(nursery)).client()

    for byte in b"*2\r\n$4\r\nPING\r\n$2\r\nhi\r\n":
        client.send(bytes([byte]))

    await client.expect(b"$2\r\nhi\r\n")


async def test_a_long_pipeline_is_answered_in_turns_and_in_order(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    client, other = world.client(), world.client()

    client.send(b"".join(b"PING %04d\r\n" % number for number in range(TURN * 3 + 1)))
    other.send(b"PING\r\n")

    await other.expect(b"+PONG\r\n")
    await client.expect(b"".join(b"$4\r\n%04d\r\n" % number for number in range(TURN * 3 + 1)))
    assert len(client.writes) == 4
    assert not client.is_held


async def test_a_blocked_client_is_not_read_from_until_it_is_served(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    worker, producer = world.client(), world.client()

    worker.send(b"GETJOB FROM q\r\nPING\r\n")
    await until(lambda: worker.is_held)
    job = await producer.ask("ADDJOB", "q", "body", "0")

    await until(lambda: b"+PONG\r\n" in worker.read)
    assert job[1:-2] in worker.read
    assert not worker.is_held


async def test_a_blocked_client_without_more_input_is_still_read_from(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    worker = world.client()

    worker.send(b"GETJOB TIMEOUT 5000 FROM q\r\n")
    await trio.sleep(1)
    assert not worker.is_held

    worker.leave()
    await until(lambda: worker.session.client.id not in world.node.state.clients)


async def test_a_wait_ends_in_time(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    client = (await started(nursery)).client()
    before = trio.current_time()

    client.send(b"GETJOB TIMEOUT 2500 FROM q\r\n")

    await client.expect(b"*-1\r\n")
    assert 2.5 <= trio.current_time() - before <= 2.6


async def test_a_blocked_client_that_will_not_send_any_more_is_forgotten(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    client = (await started(nursery)).client()

    client.send(b"GETJOB FROM q\r\nPING\r\n")
    await until(lambda: client.is_held)
    client.half_close()

    await until(lambda: client.is_over)


async def test_a_half_closed_client_that_blocks_later_is_forgotten_then(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    client = world.client(window=0)
    client.send(b"PING %b\r\n" % (b"x" * 60_000) * 20)
    await until(lambda: client.is_held)
    client.send(b"GETJOB FROM q\r\nPING\r\n")
    client.half_close()
    await trio.sleep(1)
    assert not client.is_over

    client.read_all()

    await until(lambda: client.is_over)
    assert len(client.read) > 20 * 60_000


async def test_clients_go_on_when_a_pause_is_over(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    client, other = world.client(), world.client()
    assert await client.ask("CLIENT", "PAUSE", "3000") == b"+OK\r\n"
    before = trio.current_time()

    client.send(b"PING\r\n")
    other.send(b"PING\r\nPING\r\n")

    await client.expect(b"+PONG\r\n")
    await other.expect(b"+PONG\r\n+PONG\r\n")
    assert 2.9 <= trio.current_time() - before <= 3.1


async def test_a_client_that_does_not_read_is_not_served_beyond_a_bound(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    client = (await started(nursery)).client(window=0)
    request = b"*2\r\n$4\r\nPING\r\n$60000\r\n%b\r\n" % (b"x" * 60_000)

    client.send(request * 500)
    await trio.sleep(10)
    assert client.is_held
    assert CHOKE < len(client.unsent) < CHOKE + (TURN + 1) * 60_100

    for _ in range(10):
        client.read_all()
        await trio.sleep(1)
    assert len(client.read) == 500 * 60_010
    assert not client.is_held


async def test_a_hard_limit_cuts_off_a_client_that_does_not_read(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    config = Config(client_output_buffer_limit=(1000, 0, 0))
    client = (await started(nursery, config)).client(window=0)

    client.send(b"PING %b\r\n" % (b"x" * 2000))

    await until(lambda: client.is_over)


async def test_a_soft_limit_gives_a_client_time(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    config = Config(client_output_buffer_limit=(0, 1000, 5))
    world = await started(nursery, config)
    await trio.sleep(1)
    client = world.client(window=0)
    client.send(b"PING %b\r\n" % (b"x" * 2000))
    await until(lambda: bool(client.unsent))

    for _ in range(5):
        await trio.sleep(1)
        world.event_loop.put(lambda node: node.owes(client.session, len(client.unsent)))
    assert not client.is_over
    await trio.sleep(1)
    world.event_loop.put(lambda node: node.owes(client.session, len(client.unsent)))

    await until(lambda: client.is_over)


async def test_a_monitor_that_does_not_read_is_cut_off(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    monitor, client = world.client(), world.client()
    assert await monitor.ask("MONITOR") == b"+OK\r\n"
    monitor.window = 0

    size = 4 << 20
    for _ in range(MONITOR_LIMIT // size):
        assert not monitor.is_over
        client.send(b"*2\r\n$4\r\nPING\r\n$%d\r\n%b\r\n" % (size, b"x" * size))
        await until(lambda: len(client.read) > size)
        client.read = b""

    await until(lambda: monitor.is_over)


async def test_an_endless_request_is_cut_off(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    client = (await started(nursery, Config(client_query_buffer_limit=100_000))).client()

    client.send(b"*2\r\n$4\r\nPING\r\n$500000\r\n")
    for _ in range(11):
        client.send(b"x" * 10_000)

    await until(lambda: client.is_over)
    assert client.read == b""


async def test_a_protocol_error_comes_after_the_requests_before_it(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    client = world.client()

    client.send(b"PING\r\n*1\r\nnonsense\r\nPING\r\n")

    await client.expect(b"+PONG\r\n-ERR Protocol error: expected '$', got 'n'\r\n")
    await until(lambda: client.is_over)
    assert "client sent invalid data" in world.log.events()


async def test_a_protocol_error_waits_for_a_blocked_client(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    client = (await started(nursery)).client()

    client.send(b"GETJOB TIMEOUT 500 FROM q\r\n*x\r\n")

    await client.expect(b"*-1\r\n-ERR Protocol error: invalid multibulk length\r\n")
    await until(lambda: client.is_over)


async def test_quit_ends_a_pipeline(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    client = (await started(nursery)).client()

    client.send(b"PING\r\nQUIT\r\nPING\r\n")

    await client.expect(b"+PONG\r\n+OK\r\n")
    await until(lambda: client.is_over)


async def test_one_client_too_many_is_told_so(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery, Config(maxclients=1))
    client = world.client()
    assert await client.ask("PING") == b"+PONG\r\n"

    other = world.client()

    await other.expect(b"-ERR max number of clients reached\r\n")
    assert other.is_over


async def test_idle_clients_are_closed(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = await started(nursery, Config(timeout_s=30))
    client, busy = world.client(), world.client()

    for _ in range(4):
        assert await busy.ask("PING") == b"+PONG\r\n"
        await trio.sleep(10)

    await until(lambda: client.is_over)
    assert not busy.is_over


async def test_a_killed_client_goes(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    world = await started(nursery)
    client, victim = world.client(), world.client()
    await until(lambda: len(world.node.state.clients) == 2)

    assert await client.ask("CLIENT", "KILL", "ID", "2") == b":1\r\n"

    await until(lambda: victim.is_over)
