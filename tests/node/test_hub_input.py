"""What the hub reads while much that has been read waits."""

import pytest
import trio

from disque_trio import clients
from tests.node.live import expect, live
from tests.node.world import until

pytestmark = pytest.mark.usefixtures("multiplexing")


async def test_while_much_waits_less_is_read_at_a_time(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disque_trio.carriage.LEAST_UNREAD", 0)
    monkeypatch.setattr("disque_trio.carriage.most_unread", lambda _: 100_000)
    server = await live(nursery)
    first, second = await server.client(), await server.client()
    await first.send_all(b"CLIENT PAUSE 100000\r\n")
    await expect(first, b"+OK\r\n")
    await first.send_all(b"*2\r\n$4\r\nPING\r\n$60000\r\n" + b"x" * 60_000 + b"\r\n")
    traffic = server.node.state.facts.traffic
    await until(lambda: traffic.unread > 60_000)

    await second.send_all(b"PING\r\n" * 10_000)

    await until(lambda: traffic.unread > 62_000)
    assert traffic.unread < 60_000 + 3 * clients.CROWDED_SIZE
