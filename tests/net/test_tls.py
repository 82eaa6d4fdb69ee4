"""TLS on real sockets: for clients and on the bus, with valid and invalid certificates."""

import contextlib
import random
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from disque_trio.net import admission
from disque_trio.statemachine.config import Config
from tests.certificates import Authority, Signed, tls_config
from tests.net.live import connected, ended, expect, live, pair, receive
from tests.net.tls import client, is_refused, read, says
from tests.node.world import until

pytestmark = pytest.mark.usefixtures("multiplexing")

# Clients.


async def test_a_client_with_a_certificate_is_answered(
    nursery: trio.Nursery, authority: Authority
) -> None:
    node = await live(nursery, tls_config(authority))
    stream = await client(node, authority, authority.sign())

    await stream.send_all(b"PING\r\nPING again\r\n")

    assert await read(stream, 18) == b"+PONG\r\n$5\r\nagain\r\n"
    assert stream.transport_stream is not None
    assert len(node.node.state.clients) == 1


async def test_plain_clients_are_answered_beside(
    nursery: trio.Nursery, authority: Authority
) -> None:
    node = await live(nursery, tls_config(authority))
    stream = await node.client()

    await stream.send_all(b"PING\r\n")

    await expect(stream, b"+PONG\r\n")


async def test_a_large_body_goes_in_and_out(nursery: trio.Nursery, authority: Authority) -> None:
    node = await live(nursery, tls_config(authority))
    stream = await client(node, authority, authority.sign())
    body = random.Random(1).randbytes(6 << 20)
    request = b"*2\r\n$4\r\nPING\r\n$%d\r\n%b\r\n" % (len(body), body)

    nursery.start_soon(stream.send_all, request)

    assert await read(stream, len(request) - 14) == request[14:]


async def test_a_slow_reader_gets_everything_in_the_end(
    nursery: trio.Nursery, authority: Authority
) -> None:
    node = await live(nursery, tls_config(authority))
    slow, other = [await client(node, authority, authority.sign()) for _ in range(2)]
    body = random.Random(1).randbytes(1 << 20)
    request = b"*2\r\n$4\r\nPING\r\n$%d\r\n%b\r\n" % (len(body), body)
    nursery.start_soon(slow.send_all, request * 12)
    await until(node.node._event_loop.has_unsent)

    await other.send_all(b"PING\r\n")
    assert await read(other, 7) == b"+PONG\r\n"

    answer = request[14:]
    assert await read(slow, 12 * len(answer)) == answer * 12
    assert not node.node._event_loop.has_unsent()


async def test_a_long_pipeline_is_answered_in_order(
    nursery: trio.Nursery, authority: Authority
) -> None:
    node = await live(nursery, tls_config(authority))
    stream = await client(node, authority, authority.sign())
    numbers = range(20_000)

    nursery.start_soon(stream.send_all, b"".join(b"PING %05d\r\n" % number for number in numbers))

    expected = b"".join(b"$5\r\n%05d\r\n" % number for number in numbers)
    assert await read(stream, len(expected)) == expected


async def test_the_end_is_told_from_being_cut_off(
    nursery: trio.Nursery, authority: Authority
) -> None:
    node = await live(nursery, tls_config(authority))
    stream = await client(node, authority, authority.sign())

    await stream.send_all(b"QUIT\r\n")

    assert await read(stream, 6) == b"+OK\r\n"  # trio raises if it is truncated


@pytest.mark.parametrize(
    ("whose", "is_expired", "reason"),
    [
        ("none", False, "it has no certificate"),
        ("foreign", False, "its certificate is not accepted (unable to get local issuer"),
        ("ours", True, "its certificate is not accepted (certificate has expired)"),
    ],
)
async def test_a_client_whose_certificate_does_not_do_is_refused(
    nursery: trio.Nursery,
    authority: Authority,
    foreign_authority: Authority,
    whose: str,
    is_expired: bool,
    reason: str,
) -> None:
    node = await live(nursery, tls_config(authority))
    signers = {"foreign": foreign_authority, "ours": authority}
    signed = signers[whose].sign(is_expired=is_expired) if whose in signers else None
    stream = await client(node, authority, signed)

    assert await is_refused(stream)

    await until(lambda: any(reason in event for event in node.log.events()))
    assert not node.node.state.clients


async def test_certificates_may_be_left_to_the_clients(
    nursery: trio.Nursery, authority: Authority, foreign_authority: Authority
) -> None:
    for policy in ("no", "optional"):
        node = await live(nursery, tls_config(authority, tls_auth_clients=policy))
        stream = await client(node, authority)
        await stream.send_all(b"PING\r\n")
        assert await read(stream, 7) == b"+PONG\r\n"

    assert await is_refused(await client(node, authority, foreign_authority.sign()))


@pytest.mark.parametrize(
    ("noise", "reason"),
    [
        (b"*1\r\n$4\r\nPING\r\n" * 2, "it does not use TLS"),
        (b"PING\r\nPING\r\nPING\r\n", "it does not use TLS"),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "it uses HTTP, not TLS"),
        (b"\x16\x03\x01\xff\xff" + b"\x01" * 100_000, "TLS client refused"),
        (b"\x16\x03\x01\x40\x00" + b"\x01" * 100_000, "TLS client refused"),
        (b"\x17\x03\x03\x00\x20" + b"x" * 32, "TLS client refused"),
    ],
)
async def test_what_is_no_tls_is_sent_away(
    nursery: trio.Nursery, authority: Authority, noise: bytes, reason: str
) -> None:
    node = await live(nursery, tls_config(authority))
    stream = await connected(nursery, node.tls_port)

    with trio.fail_after(30), contextlib.suppress(trio.BrokenResourceError):
        await stream.send_all(noise)

    await until(lambda: any(reason in event for event in node.log.events()))
    assert node.node.state.stats.connections_rejected == {"tls": 1}
    assert not node.node.state.clients


async def until_end(stream: trio.SocketStream) -> None:
    """Read what TLS still says."""
    with trio.fail_after(30), contextlib.suppress(trio.BrokenResourceError):
        async for _ in stream:
            pass


@pytest.mark.parametrize("port", ["tls_port", "bus_port"])
async def test_a_check_whether_a_port_is_open_is_no_refusal(
    nursery: trio.Nursery, authority: Authority, port: str
) -> None:
    node = await live(nursery, tls_config(authority, tls_cluster=True))
    checking = await connected(nursery, getattr(node, port))
    await checking.send_eof()
    await until_end(checking)

    refused = await connected(nursery, getattr(node, port))
    await refused.send_all(b"\x16\x03\x01\x02\x00\x01\x00")
    await refused.send_eof()
    await until_end(refused)

    told = [
        event
        for event in node.log.events()
        if "closed the connection in the TLS handshake" in event
    ]
    stats = node.node.state.stats
    assert len(told) == 1
    assert [stats.connections_rejected, stats.links_refused].count({"tls": 1}) == 1


async def test_tls_to_the_plain_port_is_sent_away(
    nursery: trio.Nursery, authority: Authority
) -> None:
    node = await live(nursery, tls_config(authority))
    node.tls_port = node.port
    stream = await client(node, authority)

    with trio.fail_after(30), pytest.raises(trio.BrokenResourceError):
        await stream.do_handshake()


async def test_half_a_handshake_has_ten_seconds(
    nursery: trio.Nursery, authority: Authority, autojump_clock: MockClock
) -> None:
    node = await live(nursery, tls_config(authority))
    stream = await connected(nursery, node.tls_port)
    await stream.send_all(b"\x16\x03\x01\x02\x00\x01\x00")

    assert await ended(stream)

    assert 10 <= trio.current_time() < 13
    await until(
        lambda: "client disconnected: no password or handshake in time" in node.log.events()
    )


async def test_handshakes_of_one_address_are_limited(
    nursery: trio.Nursery, authority: Authority
) -> None:
    node = await live(nursery, tls_config(authority, unauthenticated_clients=2))
    for _ in range(2):
        await connected(nursery, node.tls_port)

    refused = await connected(nursery, node.tls_port)

    assert (await receive(refused, 10_000)).startswith(b"-ERR too many clients")


async def test_handshakes_count_among_the_clients(
    nursery: trio.Nursery, authority: Authority
) -> None:
    node = await live(nursery, tls_config(authority, maxclients=2))
    streams = [await connected(nursery, node.tls_port) for _ in range(2)]

    assert await ended(await connected(nursery, node.tls_port))

    await streams[0].aclose()
    await until(lambda: node.node._event_loop._clients.shaking == 1)  # type: ignore[attr-defined]
    stream = await client(node, authority, authority.sign())
    await stream.send_all(b"PING\r\n")
    assert await read(stream, 7) == b"+PONG\r\n"


@pytest.mark.parametrize(("policy", "is_served"), [("yes", True), ("optional", False)])
async def test_a_certificate_is_as_good_as_a_password_for_those_from_elsewhere(
    nursery: trio.Nursery,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    policy: str,
    is_served: bool,
) -> None:
    monkeypatch.setattr(admission, "is_of_this_machine", lambda _: False)
    node = await live(nursery, tls_config(authority, tls_auth_clients=policy))

    if is_served:
        stream = await client(node, authority, authority.sign())
        await stream.send_all(b"PING\r\n")
        assert await read(stream, 7) == b"+PONG\r\n"
    else:
        plain = await connected(nursery, node.tls_port)
        assert (await receive(plain, 10_000)).startswith(b"-DENIED")


# The bus.


def bus_config(authority: Authority, signed: Signed | None = None, **more: Any) -> Config:
    return tls_config(authority, signed, **{"tls_port": 0, "tls_cluster": True, **more})


@pytest.mark.parametrize("secret", [b"", b"a secret that the cluster shares"])
async def test_nodes_of_one_authority_meet_and_pass_jobs(
    nursery: trio.Nursery, authority: Authority, secret: bytes
) -> None:
    configs = [bus_config(authority, cluster_secret=secret) for _ in range(2)]
    nodes = await pair(nursery, *configs)
    await until(lambda: all(node.node.state.cluster.reachable for node in nodes))

    stream = await nodes[0].client()
    body = b"x" * 3_000_000
    await stream.send_all(b"*6\r\n$6\r\nADDJOB\r\n$1\r\nq\r\n$3000000\r\n%b\r\n" % body)
    await stream.send_all(b"$4\r\n5000\r\n$9\r\nREPLICATE\r\n$1\r\n2\r\n")

    assert (await receive(stream, 43)).startswith(b"+D-")
    assert [job.body for job in nodes[1].node.state.jobs.values()] == [body]


@pytest.mark.parametrize(
    ("whose", "reason"),
    [
        ("foreign", "its certificate is not accepted (unable to get local issuer certificate)"),
        ("expired", "its certificate is not accepted (certificate has expired)"),
        ("plain", "it does not use TLS"),
    ],
)
async def test_a_node_of_no_such_authority_stays_outside(
    nursery: trio.Nursery,
    authority: Authority,
    foreign_authority: Authority,
    whose: str,
    reason: str,
) -> None:
    signed = authority.sign(is_expired=True) if whose == "expired" else foreign_authority.sign()
    # It trusts our authority, so only our check of its certificate can fail.
    theirs = Config() if whose == "plain" else bus_config(authority, signed)
    first, second = await pair(nursery, theirs, bus_config(authority))

    await says(second, f"bus link refused: {reason}")

    assert second.node.state.stats.links_refused["tls"] >= 1
    assert second.node.state.cluster.size == 1
    assert not second.node.state.cluster.links
    assert not first.node.state.cluster.reachable


async def test_a_node_that_one_is_told_to_meet_must_be_of_the_cluster(
    nursery: trio.Nursery, authority: Authority, foreign_authority: Authority
) -> None:
    theirs = bus_config(authority, foreign_authority.sign())
    first, _ = await pair(nursery, bus_config(authority), theirs)

    await until(
        lambda: any(event.startswith("bus link failed: its cert") for event in first.log.events())
    )

    assert not first.node.state.cluster.reachable


async def test_a_clients_certificate_opens_no_bus_that_has_an_authority_of_its_own(
    nursery: trio.Nursery, authority: Authority, foreign_authority: Authority
) -> None:
    ours = bus_config(
        foreign_authority, authority.sign(), tls_cluster_ca_cert_file=authority.file, tls_port=1
    )
    node = await live(nursery, ours)
    node.tls_port = node.bus_port
    theirs = await client(node, authority, foreign_authority.sign())

    assert await is_refused(theirs)

    await says(
        node,
        "bus link refused: its certificate is not accepted (unable to get local issuer "
        "certificate)",
    )


async def test_half_a_handshake_on_the_bus_has_ten_seconds(
    nursery: trio.Nursery, authority: Authority, autojump_clock: MockClock
) -> None:
    node = await live(nursery, bus_config(authority))
    stream = await node.peer()
    await stream.send_all(b"\x16\x03\x01\x02\x00\x01\x00")

    assert await ended(stream)

    assert 10 <= trio.current_time() < 13
