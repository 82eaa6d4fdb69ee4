"""What the event loop reads while much that has been read waits."""

import pytest
import trio

from disque_trio.driver.sessions import Session
from disque_trio.net import clients
from disque_trio.statemachine.config import Config
from tests.net.live import Live, expect, live
from tests.node.world import until

pytestmark = pytest.mark.usefixtures("multiplexing")


@pytest.mark.pure
async def test_while_much_waits_less_is_read_at_a_time(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disque_trio.driver.senders.LEAST_UNREAD", 0)
    monkeypatch.setattr("disque_trio.driver.senders.most_unread", lambda _: 100_000)
    server = await live(nursery)
    first, second = await server.client(), await server.client()
    await first.send_all(b"CLIENT PAUSE 100000\r\n")
    await expect(first, b"+OK\r\n")
    await first.send_all(b"*2\r\n$4\r\nPING\r\n$60000\r\n" + b"x" * 60_000 + b"\r\n")
    traffic = server.node.state.facts.traffic
    await until(lambda: traffic.unread > 60_000)

    await second.send_all(b"PING\r\n" * 10_000)

    await until(lambda: traffic.unread > 62_000)
    assert traffic.unread < 60_000 + 3 * clients.SHY_SIZE


def reads(server: Live, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much each read from clients that come from now on has brought."""
    sizes: list[int] = []
    received = server.node.received

    def spy(session: Session, data: bytes) -> None:
        sizes.append(len(data))
        received(session, data)

    monkeypatch.setattr(server.node, "received", spy)
    return sizes


HALF = b"*2\r\n$4\r\nPING\r\n$99999\r\n" + b"x" * 60_000


@pytest.mark.pure
async def test_a_client_not_known_for_sending_much_is_read_little_of_at_first(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await live(nursery)
    sizes = reads(server, monkeypatch)

    await (await server.client()).send_all(HALF)

    await until(lambda: sum(sizes) == len(HALF))
    assert sizes[0] <= clients.MUCH


@pytest.mark.pure
async def test_an_unauthenticated_client_is_read_little_of_at_a_time(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await live(nursery, Config(requirepass=b"secret"))
    sizes = reads(server, monkeypatch)
    stream = await server.client()

    await stream.send_all(b"PING\r\n" * 5000)

    await until(lambda: sum(sizes) == 30_000)
    assert max(sizes) <= clients.SHY_SIZE
    await expect(stream, b"-NOAUTH Authentication required.\r\n" * 5000)
    await stream.send_all(b"AUTH secret\r\n")
    await expect(stream, b"+OK\r\n")
    sizes.clear()

    async def knows_it() -> bool:
        await stream.send_all(b"PING " + b"x" * 20_000 + b"\r\n")
        await expect(stream, b"$20000\r\n" + b"x" * 20_000 + b"\r\n")
        return max(sizes) > clients.SHY_SIZE

    with trio.fail_after(60):
        while not await knows_it():
            await trio.sleep(0.05)
