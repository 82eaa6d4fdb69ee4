"""The bus: which nodes this one dials, and which links it accepts. The links: `bus_links`."""

import socket
from typing import Final

from disque_trio.driver.sessions import LinkSession
from disque_trio.net.admission import is_barred
from disque_trio.net.bus_links import LinkChannel, Links, plain_ip, set_up
from disque_trio.net.file_limits import link_room
from disque_trio.net.multiplexing import IN, OUT
from disque_trio.net.readiness import Address, Listener
from disque_trio.system import non_blocking

MAX_UNPROVEN: Final = 256
"""Accepted links, not yet proven to be a node's, from addresses of no known node."""


class Bus(Links):
    """All bus channels of a node."""

    __slots__ = ()

    def dial(self, session: LinkSession, ip: str, port: int) -> LinkChannel | None:
        """Begin to connect. The node is told the outcome in a later turn.

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

    def is_barred(self, ip: str) -> bool:
        """Does protected mode refuse a link from there? With a cluster secret or certificates for
        the bus, nobody is let in who does not show them."""
        config = self.node.state.config
        return not config.cluster_secret and not config.tls_cluster and is_barred(ip, config)

    def has_room(self, ip: str) -> bool:
        """May a link from there be accepted? Unknown nodes never take the places of members."""
        if self.accepted >= link_room(self.node.state.config.maxclients):
            return False
        if self.unproven < MAX_UNPROVEN:
            return True
        return any(peer.ip == ip for peer in self.node.state.cluster.nodes.values())


class BusListener(Listener):
    """A socket that accepts links of peers."""

    __slots__ = ("bus",)

    def __init__(self, bus: Bus, sock: socket.socket) -> None:
        super().__init__(bus.readiness, sock)
        self.bus = bus

    def starve(self, error: OSError) -> None:
        self.bus.node.warn("cannot accept bus links", error=error.strerror)
        super().starve(error)

    def welcome(self, sock: socket.socket, address: Address) -> None:
        bus = self.bus
        if bus.is_barred(address[0]):
            bus.node.turned_away(
                "bus link refused: protected mode, and no cluster secret: set "
                "'cluster-secret-file', or 'protected-mode no' if only trusted machines reach "
                "this port",
                "protected-mode",
                is_link=True,
                peer=address[0],
            )
            sock.close()
            return
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
