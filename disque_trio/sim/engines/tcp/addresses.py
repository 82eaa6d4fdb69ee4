"""The addresses of real nodes, such that every link between two of them runs through a proxy.

A node dials others at the addresses where it has met them (original 5.5). It dials from its own
`bind` address, and learns the addresses of others from their connections. So each node has two
addresses in the loopback network, with one port for all:

    127.a.0.n   its own: its process listens there, and dials from there
    127.a.1.n   where others see it: our proxy listens there, and dials from there on its behalf

n1 dials 127.a.1.2. The proxy sees by the source, 127.a.0.1, that it is n1, and dials 127.a.0.2 from
127.a.1.1; so n2 learns that n1 is at 127.a.1.1. All addresses of others that a node knows, sends or
saves are of the second kind, and no link can bypass the proxies. Its own address, of the first
kind, is never sent, because gossip is about third nodes. Clients connect to it directly.
"""

import random
import socket
from typing import Final

import attrs

from disque_trio.statemachine.address import BUS_OFFSET

_NETWORKS: Final = range(16, 240)
_PORTS: Final = range(11_000, 22_000)
"""Bus ports are then below the kernel's ephemeral ports."""
_TRIES: Final = 100


class NoAddressError(Exception):
    """No free addresses have been found."""


@attrs.frozen
class NodeAddresses:
    """The addresses of one run."""

    network: int
    port: int

    @property
    def bus_port(self) -> int:
        """The port on which nodes and proxies listen for links."""
        return self.port + BUS_OFFSET

    def own(self, node: int) -> str:
        """Return the address of the node's process."""
        return f"127.{self.network}.0.{node}"

    def seen(self, node: int) -> str:
        """Return the address at which other nodes see the node."""
        return f"127.{self.network}.1.{node}"

    def node_at(self, own: str) -> int:
        """Return the node with this own address; 0 if there is none."""
        start, _, number = own.rpartition(".")
        return int(number) if start == f"127.{self.network}.0" else 0


def find(nodes: int) -> NodeAddresses:
    """Return free addresses. Raise `NoAddressError` if there are none."""
    draw = random.SystemRandom()
    for _ in range(_TRIES):
        addresses = NodeAddresses(draw.choice(_NETWORKS), draw.choice(_PORTS))
        if all(_is_free(addresses, node) for node in range(1, nodes + 1)):
            return addresses
    raise NoAddressError(
        "no free addresses in the loopback network 127.0.0.0/8: every node and proxy needs one of "
        "its own there, and only Linux has them all by itself"
    )


def _is_free(addresses: NodeAddresses, node: int) -> bool:
    wanted = (
        (addresses.own(node), addresses.port),
        (addresses.own(node), addresses.bus_port),
        (addresses.seen(node), addresses.bus_port),
    )
    for address in wanted:
        with socket.socket() as candidate:
            try:
                candidate.bind(address)
            except OSError:
                return False
    return True
