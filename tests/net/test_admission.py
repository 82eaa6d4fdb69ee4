"""Admission: unauthenticated clients at the client port, unknown nodes at the bus."""

import socket

import pytest
import trio
from trio.testing import MockClock

from disque_trio import bus
from disque_trio.driver.limits import UNAUTHENTICATED_LIMIT
from disque_trio.net import admission, bus_links
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.messages import Ping
from disque_trio.wire.frames import encode
from tests.net.live import Live, ended, expect, live, pair, receive
from tests.node.world import World, until

pytestmark = pytest.mark.usefixtures("multiplexing")

SECRET = b"a secret that the cluster shares"
WITH_PASSWORD = Config(requirepass=b"hush")
AUTH = b"*2\r\n$4\r\nAUTH\r\n$4\r\nhush\r\n"


async def pair_with(nursery: trio.Nursery, ours: bytes, theirs: bytes) -> tuple[Live, Live]:
    """Two nodes with these secrets, of which the first is told to meet the second."""
    return await pair(nursery, Config(cluster_secret=ours), Config(cluster_secret=theirs))


# Protected mode.


@pytest.mark.parametrize("ip", ["10.0.0.1", "192.168.1.7", "2001:db8::1", "::ffff:10.0.0.1"])
def test_without_a_password_only_this_machine_is_served(ip: str) -> None:
    assert admission.is_barred(ip, Config())
    assert not admission.is_barred(ip, WITH_PASSWORD)
    assert not admission.is_barred(ip, Config(protected_mode=False))


@pytest.mark.parametrize("ip", ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"])
def test_this_machine_is_always_served(ip: str) -> None:
    assert not admission.is_barred(ip, Config())


async def test_a_client_from_elsewhere_reads_why_it_is_refused(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = await live(nursery)
    monkeypatch.setattr(admission, "is_of_this_machine", lambda _: False)
    stream = await node.client()

    answer = await receive(stream, 10_000)

    assert answer.startswith(b"-DENIED ")
    assert answer.count(b"\r\n") == 1
    for remedy in (b"requirepass", b"tls-port", b"protected-mode no"):
        assert remedy in answer
    assert "client refused: protected mode, and no password" in node.log.events()
    assert node.node.state.stats.connections_rejected == {"protected-mode": 1}


# Clients that owe their password.


async def test_an_unauthenticated_client_may_not_send_much(nursery: trio.Nursery) -> None:
    node = await live(nursery, WITH_PASSWORD)
    stream = await node.client()

    await stream.send_all(b"*2\r\n$4\r\nPING\r\n$500000000\r\n" + b"x" * UNAUTHENTICATED_LIMIT)

    assert await ended(stream)
    assert "client disconnected: query buffer limit" in node.log.events()


async def test_a_password_may_stand_before_a_long_request(nursery: trio.Nursery) -> None:
    stream = await (await live(nursery, WITH_PASSWORD)).client()
    body = b"x" * 1_000_000

    nursery.start_soon(stream.send_all, AUTH + b"*2\r\n$4\r\nPING\r\n$1000000\r\n%b\r\n" % body)

    await expect(stream, b"+OK\r\n$1000000\r\n%b\r\n" % body)


async def test_an_unauthenticated_client_that_never_reads_is_cut_off(nursery: trio.Nursery) -> None:
    node = await live(nursery, WITH_PASSWORD)
    stream = await node.client()
    stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

    with pytest.raises(trio.BrokenResourceError):
        await stream.send_all(b"PING\r\n" * 10_000_000)

    assert "client disconnected: output buffer limit" in node.log.events()


async def test_an_unauthenticated_client_has_ten_seconds(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    node = await live(nursery, WITH_PASSWORD)
    client, friend = await node.client(), await node.client()
    await friend.send_all(AUTH)
    await expect(friend, b"+OK\r\n")

    assert await ended(client)

    assert 10 <= trio.current_time() < 13
    assert "client disconnected: no password or handshake in time" in node.log.events()
    await friend.send_all(b"PING\r\n")
    await expect(friend, b"+PONG\r\n")


async def test_unauthenticated_clients_of_one_address_are_limited(nursery: trio.Nursery) -> None:
    node = await live(nursery, Config(requirepass=b"hush", unauthenticated_clients=3))
    streams = [await node.client() for _ in range(3)]
    await until(lambda: len(node.node.state.clients) == 3)

    refused = await node.client()
    assert (await receive(refused, 10_000)).startswith(b"-ERR too many clients of your address")

    await streams[0].send_all(AUTH)
    await expect(streams[0], b"+OK\r\n")
    await (await node.client()).send_all(AUTH)
    await until(lambda: len(node.node.state.clients) == 4)


@pytest.mark.parametrize(
    ("ip", "other", "are_alike"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%lo", "fe80::2%lo", True),
    ],
)
async def test_an_address_of_the_new_kind_is_a_network(
    ip: str, other: str, are_alike: bool
) -> None:
    class One:
        group = ""

    one, two = One(), One()
    crowd = admission.UnauthenticatedClients(World().node)
    crowd.add(one, ip)  # type: ignore[arg-type]
    crowd.add(two, other)  # type: ignore[arg-type]

    assert (one.group == two.group) is are_alike


async def test_a_killed_client_is_gone_though_it_never_reads(nursery: trio.Nursery) -> None:
    node = await live(nursery)
    victim, killer = await node.client(), await node.client()
    await victim.send_all(b"*2\r\n$4\r\nPING\r\n$9000000\r\n" + b"x" * 9_000_000 + b"\r\n")
    await until(lambda: len(node.node.state.clients) == 2)

    await killer.send_all(b"CLIENT KILL ID 1\r\n")

    await expect(killer, b":1\r\n")
    await until(lambda: len(node.node._output.sessions) == 1)


async def test_a_client_that_gave_wrong_passwords_is_logged_with_their_number_when_it_goes(
    nursery: trio.Nursery,
) -> None:
    node = await live(nursery, WITH_PASSWORD)
    stream = await node.client()

    await stream.send_all(b"AUTH wrong\r\n" * 300 + b"HELLO 2 AUTH default wrong\r\nQUIT\r\n")
    while await stream.receive_some():
        pass

    told = "a client that sent wrong passwords has disconnected"
    await until(lambda: told in node.log.events())
    [facts] = [line[2] for line in node.log.lines if line[1] == told]
    assert facts["wrong_passwords"] == 301


# The bus, in protected mode.


@pytest.mark.parametrize(
    ("config", "is_let_in"),
    [
        (Config(), False),
        (Config(protected_mode=False), True),
        (WITH_PASSWORD, True),
        (Config(cluster_secret=SECRET), True),
    ],
)
async def test_in_protected_mode_and_without_a_secret_no_node_from_elsewhere_is_let_in(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch, config: Config, is_let_in: bool
) -> None:
    monkeypatch.setattr(admission, "is_of_this_machine", lambda _: False)
    node = await live(nursery, config)
    stream = await node.peer()
    if is_let_in:
        await until(lambda: bool(node.node.state.cluster.links) or bool(config.cluster_secret))
        assert not node.log.events()
        return

    assert await ended(stream)

    [event] = [event for event in node.log.events() if event.startswith("bus link refused")]
    assert "protected mode, and no cluster secret" in event
    assert node.node.state.stats.links_refused == {"protected-mode": 1}


# The bus, with a secret.


async def test_nodes_with_the_same_secret_meet(nursery: trio.Nursery) -> None:
    nodes = await pair_with(nursery, SECRET, SECRET)

    await until(lambda: all(node.node.state.cluster.reachable for node in nodes))
    assert not [event for event in nodes[0].log.events() if event.startswith("bus link")]


async def test_nodes_meet_while_their_secret_is_changed(nursery: trio.Nursery) -> None:
    old, new = SECRET, SECRET[::-1]
    nodes = await pair_with(nursery, old + b"\n" + new, new + b"\n" + old)

    await until(lambda: all(node.node.state.cluster.reachable for node in nodes))


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (SECRET, SECRET[::-1], "bus link refused: its cluster secret differs"),
        (b"", SECRET, "bus link refused: it has no cluster-secret"),
    ],
)
async def test_a_node_with_another_secret_or_none_stays_outside(
    nursery: trio.Nursery, ours: bytes, theirs: bytes, said: str
) -> None:
    first, second = await pair_with(nursery, ours, theirs)

    await until(lambda: said in second.log.events())

    assert second.node.state.stats.links_refused["cluster-secret"] >= 1
    assert second.node.state.cluster.size == 1
    assert len(second.node.state.cluster.links) == 0
    assert not first.node.state.cluster.reachable


@pytest.mark.pure
async def test_a_node_that_asks_for_no_proof_is_not_believed(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_links, "SILENCE_S", 0)
    first, second = await pair_with(nursery, SECRET, b"")

    await until(
        lambda: (
            "bus link failed: it did not identify itself as a node in time" in first.log.events()
        )
    )

    assert not first.node.state.cluster.reachable
    assert first.node.state.stats.links_refused["silence"] >= 1
    assert second.node.state.cluster.size == 1


@pytest.mark.parametrize(
    ("noise", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "it sent no proof of the cluster secret"),
        (b"\x16\x03\x01\x02\x00", "it sent no proof of the cluster secret"),
        (encode(b"f" * 40, 1, 0, Ping(())), "it has no cluster-secret"),
        (b"DisqTrD1" + b"0" * 64, "its cluster secret differs"),
        (b"DisqTrD1" + b"0" * 65, "it sent data before it had the reply"),
        (b"DisqTrD1" + b"0" * 63, "it closed the connection instead of proving the cluster secret"),
        (b"x" * 10_000_000, "it sent no proof of the cluster secret"),
    ],
)
async def test_a_link_without_a_proof_is_refused_before_anything_is_believed(
    nursery: trio.Nursery, noise: bytes, reason: str
) -> None:
    node = await live(nursery, Config(cluster_secret=SECRET))
    stream = await node.peer()
    await receive(stream, 40)

    try:
        await stream.send_all(noise)
        await stream.send_eof()
    except trio.BrokenResourceError:
        pass

    await until(lambda: f"bus link refused: {reason}" in node.log.events())
    assert await ended(stream)
    cause = "no node" if reason.startswith("it sent no proof") else "cluster-secret"
    assert node.node.state.stats.links_refused == {cause: 1}
    assert not node.node.state.cluster.links
    assert node.node.state.cluster.messages_received == 0


async def test_a_connection_that_says_nothing_is_not_logged(
    nursery: trio.Nursery,
) -> None:
    node = await live(nursery, Config(cluster_secret=SECRET))
    stream = await node.peer()
    await receive(stream, 40)

    await stream.send_eof()

    assert await ended(stream)
    assert node.log.events() == []
    assert node.node.state.stats.links_refused == {}


@pytest.mark.parametrize("secret", [b"", SECRET])
async def test_a_silent_link_is_refused(
    nursery: trio.Nursery, autojump_clock: MockClock, secret: bytes
) -> None:
    node = await live(nursery, Config(cluster_secret=secret))
    stream = await node.peer()

    if secret:
        await receive(stream, 40)
    assert await ended(stream)

    assert 10 <= trio.current_time() < 13


async def test_unknown_nodes_do_not_take_the_places_of_members(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus, "MAX_UNPROVEN", 2)
    node = await live(nursery)
    for _ in range(2):
        await node.peer()
    await until(lambda: len(node.node.state.cluster.links) == 2)

    assert await ended(await node.peer())

    assert "bus link refused: there are too many" in node.log.events()
    assert node.node.state.stats.links_refused == {"too many": 1}
