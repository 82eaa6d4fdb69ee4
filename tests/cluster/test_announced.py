"""Workers behind mapped ports: they, and clients, use the announced ones."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from disque_trio.client.address import Address, Cluster
from disque_trio.client.blocking import BlockingClient
from tests.cluster.processes import BUS_OFFSET, SOON_S, becomes, free_port
from tests.cluster.talk import LOOPBACK, Client, connection
from tests.serving.test_processes import workers

OUTSIDE = "127.0.0.7"


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


def _relay(inward: socket.socket, port: int) -> None:
    with inward, socket.socket() as outward, contextlib.suppress(OSError):
        outward.connect((LOOPBACK, port))
        back = threading.Thread(target=_copy, args=(outward, inward))
        back.start()
        _copy(inward, outward)
        back.join()


def _serve(listener: socket.socket, port: int) -> None:
    relays = []
    with contextlib.suppress(OSError):
        while True:
            relay = threading.Thread(target=_relay, args=(listener.accept()[0], port))
            relay.start()
            relays.append(relay)
    for relay in relays:
        relay.join()


@contextlib.contextmanager
def mapped(ports: dict[int, int]) -> Iterator[None]:
    """Ports of the outside address lead to ports here."""
    with contextlib.ExitStack() as cleanup:
        for outside, inside in ports.items():
            listener = cleanup.enter_context(socket.create_server((OUTSIDE, outside)))
            server = threading.Thread(target=_serve, args=(listener, inside))
            server.start()
            cleanup.callback(server.join)
            cleanup.callback(listener.shutdown, socket.SHUT_RDWR)
        yield


def state(node: Client) -> tuple[int, int]:
    """How many nodes it knows, and how many handshakes are under way."""
    lines = node.text("CLUSTER", "NODES").decode().splitlines()
    handshakes = sum("handshake" in line for line in lines)
    return len(lines) - handshakes, handshakes


def test_workers_join_each_other_and_serve_clients_at_the_announced_ports(tmp_path: Path) -> None:
    port, outside = free_port(2), free_port(2)
    ports = {outside + n: port + n for n in (1, 2)}
    ports |= {outside + BUS_OFFSET + n: port + BUS_OFFSET + n for n in (1, 2)}
    announced = ("--cluster-announce-ip", OUTSIDE, "--cluster-announce-port", str(outside))

    with mapped(ports), workers(tmp_path, 2, *announced, port=port) as (_, _port):
        for number in (1, 2):
            with connection(port + number) as node:
                becomes(partial(state, node), (2, 0), SOON_S, "it is not looking for the other")
        seed = Address(host=OUTSIDE, port=outside + 1)
        with BlockingClient(Cluster([seed])) as client:
            client.addjob("q", "body", replicate=2)
            places = {str(address) for address in client.nodes.order(0)}
    assert places == {f"{OUTSIDE}:{outside + 1}", f"{OUTSIDE}:{outside + 2}"}
