"""Bytes of unknown and broken nodes on the bus of a real server, which goes on serving."""

import contextlib
import socket
import struct
from contextlib import ExitStack

import pytest

from tests.cluster.processes import BUS_OFFSET, SOON_S, Cluster, Server, becomes, eventually
from tests.cluster.talk import LOOPBACK, PATIENCE_S

pytestmark = pytest.mark.parametrize("multiplexing", ["epoll", "tasks"], scope="module")


def frame(kind: int, payload: bytes, sender: bytes = b"f" * 40, length: int = 0) -> bytes:
    """A bus frame, whatever is in it (original 5.2)."""
    length = length or 144 + len(payload)
    start = struct.pack(">4sIHHHH40s80x", b"DbuZ", length, 1, 0, kind, 0, sender)
    return start + struct.pack(">HHBB2x", 7711, 4, 0, 0) + payload


def hang_up_after(server: Server, data: bytes) -> bytes:
    """Send it to the bus and stop sending. The node's answer, until it closes the link too."""
    with socket.create_connection((LOOPBACK, server.port + BUS_OFFSET), PATIENCE_S) as link:
        # The node may have hung up before the last byte has left.
        with contextlib.suppress(OSError):
            link.sendall(data)
            link.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            return link.recv(1 << 16)
        return b""


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="another protocol"),
        pytest.param(bytes(range(256)) * 4096, id="noise"),
        pytest.param(b"DbuZ", id="a beginning"),
        pytest.param(frame(0, b"")[:100], id="half a header"),
        pytest.param(frame(4, bytes(500))[:300], id="half a frame"),
        pytest.param(frame(0, b"", length=143), id="a length below the header's"),
        pytest.param(frame(0, b"", length=0xFFFF_FFFF) + bytes(8 << 20), id="a length of 4 GB"),
        pytest.param(frame(999, b"?"), id="an unknown type"),
        pytest.param(frame(4, bytes(8)), id="an unknown node's job"),
    ],
)
def test_the_bus_stands_what_unknown_nodes_say(pair: Cluster, data: bytes) -> None:
    assert hang_up_after(pair[0], data) == b""

    assert pair.is_whole()
    assert [server.client.registered_jobs() for server in pair.servers] == [0, 0]
    assert pair[0].rss_mib() < 200


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        pytest.param(0, bytes(103), id="ping, with part of a gossip entry"),
        pytest.param(1, b"\xff" * 104, id="pong, with a gossip entry of ones"),
        pytest.param(3, b"short", id="fail, cut short"),
        pytest.param(4, struct.pack(">II", 1, 80) + bytes(80), id="repljob, all zero"),
        pytest.param(4, struct.pack(">II", 1, 80) + b"\xff" * 80, id="repljob, all ones"),
        pytest.param(4, struct.pack(">II", 0xFFFFFFFF, 0), id="repljob, four billion"),
        pytest.param(4, struct.pack(">II", 1, 0xFFFFFFFF), id="repljob, of four gigabytes"),
        pytest.param(8, b"D-", id="setack, cut short"),
        pytest.param(10, b"\0" * 44, id="gotack, for no id"),
        pytest.param(12, struct.pack(">II", 0xFFFFFFFF, 2) + b"q", id="needjobs, name too short"),
        pytest.param(12, struct.pack(">II", 0xFFFFFFFF, 1) + b"q", id="needjobs, too many"),
        pytest.param(13, struct.pack(">II", 3, 0), id="yourjobs, none of three"),
        pytest.param(15, struct.pack(">II", 0xFFFFFFFF, 5) + b"noise", id="pause, odd bits"),
    ],
)
def test_the_bus_stands_what_a_member_gone_mad_says(
    pair: Cluster, kind: int, payload: bytes
) -> None:
    sender = pair[1].id.encode()

    hang_up_after(pair[0], frame(kind, payload, sender))

    eventually(pair.is_whole, SOON_S, "both nodes think well of each other")
    assert [server.client.registered_jobs() for server in pair.servers] == [0, 0]


def test_what_a_member_says_is_heeded(pair: Cluster) -> None:
    pause_out = struct.pack(">II", 2, 6) + b"heeded"

    hang_up_after(pair[0], frame(15, pause_out, pair[1].id.encode()))

    becomes(lambda: pair[0].client.text("PAUSE", "heeded", "state"), b"out", SOON_S, "the state")


def test_a_bus_peer_that_says_nothing_costs_nothing(pair: Cluster) -> None:
    with ExitStack() as stack:
        for _ in range(200):
            address = (LOOPBACK, pair[0].port + BUS_OFFSET)
            stack.enter_context(socket.create_connection(address, PATIENCE_S)).sendall(b"DbuZ")

        assert pair[0].client.text("PING") == b"PONG"
        assert pair.is_whole()
