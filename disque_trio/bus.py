"""The bus: whom this node dials, whom it lets in. What a link does is in `buslink`."""

import socket
from typing import TYPE_CHECKING, Final

import trio

from disque_trio.buslink import LinkChannel, plain_ip, set_up
from disque_trio.host import link_room
from disque_trio.multiplexing import IN, OUT
from disque_trio.readiness import Listener, Readiness
from disque_trio.system import non_blocking
from disque_trio.tls import Keeper

if TYPE_CHECKING:
    from disque_trio.node import Node
    from disque_trio.session import LinkSession

MAX_STRANGERS: Final = 256
"""Links that may come from where no node of the table is."""


class Bus:
    """What all bus channels of a node share."""

    __slots__ = (
        "accepted",
        "challenges",
        "node",
        "opening",
        "readiness",
        "source_ip",
        "strangers",
        "tls",
    )

    def __init__(self, readiness: Readiness, node: "Node", source_ip: str, tls: Keeper) -> None:
        self.readiness = readiness
        self.node = node
        self.source_ip = source_ip
        """The first bind address: dials come from there (reference 1.1)."""
        self.tls = tls
        self.accepted = 0
        self.strangers = 0
        """Accepted links that have not shown yet that they are nodes'."""
        self.opening: dict[LinkChannel, float] = {}
        """Links of which that is not sure, and when they are given up."""
        self.challenges: dict[bytes, None] = {}
        """What this node has asked for a proof of, and not been given yet."""

    def dial(self, session: "LinkSession", ip: str, port: int) -> "LinkChannel | None":
        """Begin to connect. Whatever comes of it, the node hears of it in a later turn.

        None without a socket: descriptors have run out, or the system has no IPv6.
        """
        family = socket.AF_INET6 if ":" in ip else socket.AF_INET
        try:
            sock = non_blocking(family)
        except OSError as error:
            self.node.warn("cannot dial", error=error.strerror)
            return None
        channel = LinkChannel(self, sock, session)
        self.readiness.add(channel, OUT)
        try:
            set_up(sock)
            if self.source_ip and (":" in self.source_ip) == (":" in ip):
                sock.bind((self.source_ip, 0))
            sock.connect((ip, port))
        except BlockingIOError:
            pass
        except OSError:
            self.readiness.end(channel)
        return channel

    def has_room(self, ip: str) -> bool:
        """May a link from there be accepted? Strangers never take the places of nodes."""
        if self.accepted >= link_room(self.node.state.config.maxclients):
            return False
        if self.strangers < MAX_STRANGERS:
            return True
        return any(peer.ip == ip for peer in self.node.state.cluster.nodes.values())

    def sweep(self) -> None:
        """Once a second: give up links that have had their time."""
        now = trio.current_time()
        for channel in [each for each, until in self.opening.items() if until < now]:
            channel.give_up("it takes too long to show that it is a node", "silence")


class BusListener(Listener):
    """A socket on which peers arrive."""

    __slots__ = ("bus",)

    def __init__(self, bus: Bus, sock: socket.socket) -> None:
        super().__init__(bus.readiness, sock)
        self.bus = bus

    def starve(self, error: OSError) -> None:
        self.bus.node.warn("cannot accept bus links", error=error.strerror)
        super().starve(error)

    def welcome(self, sock: socket.socket, address: tuple[str, int]) -> None:
        bus = self.bus
        if not bus.has_room(plain_ip(address[0])):
            bus.node.turned_away(
                "bus link refused: there are too many", "too many", is_link=True, peer=address[0]
            )
            sock.close()
            return
        sock.setblocking(False)
        set_up(sock)
        bus.accepted += 1
        channel = LinkChannel(bus, sock, None)
        self.readiness.add(channel, IN)
        channel.begin()
