import socket

import pytest

from disque_trio.client.address import Address
from disque_trio.client.blocking import BlockingClient
from disque_trio.client.connection import Connection
from disque_trio.client.errors import ConnectionFailedError, LostError
from disque_trio.statemachine.base import OK, Failure, Reply, Status
from tests.client.fakenode import PONG, Answer, fake_node


def connected(port: int, password: bytes | None = None) -> Connection:
    """A connection that the node has noticed, too."""
    connection = Connection(Address(port=port), password)
    connection.ready()
    assert asked(connection, b"PING") == PONG
    return connection


def asked(connection: Connection, command: bytes) -> Reply:
    connection.send([command])
    return connection.receive()


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (Address(), "127.0.0.1:7711"),
        (Address(host="::1", port=1), "[::1]:1"),
        (Address(path="/run/disque.sock"), "/run/disque.sock"),
    ],
)
def test_an_address_reads_as_people_write_it(address: Address, text: str) -> None:
    assert str(address) == text


@pytest.mark.parametrize(
    "address",
    [
        Address(host="no..host"),
        Address(host="a\0b"),
        Address(port=0),
        Address(port=99999),
        Address(port=-1),
        Address(port=1 << 70),
        Address(path="x" * 200),
    ],
)
def test_what_is_no_address_is_a_failed_connection(address: Address) -> None:
    with pytest.raises(ConnectionFailedError):
        Connection(address).ready()


def test_a_port_above_65535_is_not_the_port_of_its_lower_bits() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1] + (1 << 16)
        with pytest.raises(ConnectionFailedError, match="ports are from 1 to 65535"):
            Connection(Address(port=port)).ready()


def test_a_node_that_does_not_accept_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            connection = Connection(Address(port=port), connect_timeout_s=0.05)
            with pytest.raises(ConnectionFailedError, match="no answer in time"):
                connection.ready()


def test_a_node_that_accepts_and_does_not_take_the_password_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as stopped:
        address = Address(port=stopped.getsockname()[1])
        connection = Connection(address, b"sesame", connect_timeout_s=0.05)
        with pytest.raises(LostError, match="before the reply arrived"):
            connection.ready()


def test_an_idle_connection_that_the_node_closed_is_opened_anew_before_the_next_request() -> None:
    with fake_node({b"AUTH": [OK]}) as node:
        connection = connected(node.port, b"sesame")
        node.hang_up()
        connection.ready()
        reply = asked(connection, b"PING")
        connection.close()

    assert reply == PONG
    assert node.requests == [[b"AUTH", b"sesame"], [b"PING"]] * 2


def test_a_standing_connection_is_kept() -> None:
    with fake_node({}) as node:
        connection = connected(node.port)
        connection.ready()
        asked(connection, b"PING")
        connection.close()

    assert len(node.connections) == 1


def test_a_refused_password_is_handed_back() -> None:
    refusal = Failure(b"ERR invalid password")
    with fake_node({b"AUTH": [refusal]}) as node:
        connection = Connection(Address(port=node.port), b"wrong")
        answer = connection.ready()
        connection.close()

    assert answer == refusal


def test_a_leftover_is_not_taken_for_a_reply() -> None:
    with fake_node({b"SURPRISE": b"+one\r\n+two\r\n"}) as node:
        connection = connected(node.port)
        first = asked(connection, b"SURPRISE")
        connection.ready()
        second = asked(connection, b"PING")
        connection.close()

    assert (first, second) == (Status(b"one"), PONG)


@pytest.mark.parametrize("answer", [None, b"$10\r\nhal"])
def test_a_connection_that_ends_before_the_reply_is_lost_and_closed(answer: Answer) -> None:
    with fake_node({b"X": answer}) as node:
        connection = connected(node.port)
        connection.send([b"X"])
        if answer is not None:
            node.hang_up()
        with pytest.raises(LostError, match="is unknown"):
            connection.receive()

    assert not connection.is_open


def test_a_client_gives_a_connection_to_one_node_for_raw_replies() -> None:
    with (
        fake_node({b"HELLO": [[1, b"a" * 40]], b"AUTH": [OK], b"QLEN": [7]}) as node,
        BlockingClient(f"disque://:pw@127.0.0.1:{node.port}") as client,
    ):
        connection = client.open(Address(port=node.port))
        client.close()
        connection.send_all([(b"QLEN", b"q"), (b"NONSENSE",)])
        assert connection.receive() == 7
        assert isinstance(connection.receive(), Failure)
        connection.close()

    assert [words[0] for words in node.requests[:3]] == [b"AUTH", b"HELLO", b"INFO"]
