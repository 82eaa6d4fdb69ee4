"""Admission: which clients may connect, how many unauthenticated ones, and for how long.

A node without a password serves only clients on its own machine (protected mode). A node with a
password regards a client as unauthenticated until the client has sent it. Unauthenticated clients
are limited in number per address, and in time, so that they cannot block other clients.
"""

import ipaddress
from typing import Final, Protocol

import trio

from disque_trio.node import Node
from disque_trio.statemachine.config import Config

DENIED: Final = (
    b"-DENIED This node is in protected mode: it has no password, so it serves clients of its own"
    b" machine only. To serve other clients, do one of these there: (1) set a password with"
    b" 'requirepass-file' in its configuration, or with CONFIG SET requirepass; (2) ask clients for"
    b" certificates with 'tls-port' and 'tls-auth-clients yes'; (3) if only trusted machines can"
    b" reach this port, send CONFIG SET protected-mode no, and write it in the configuration.\r\n"
)
TOO_MANY: Final = (
    b"-ERR too many clients of your address have not authenticated yet; see"
    b" 'unauthenticated-clients'\r\n"
)


def is_barred(ip: str, config: Config) -> bool:
    """Does protected mode refuse a client with this address?"""
    if not config.protected_mode or config.requirepass:
        return False
    return not is_of_this_machine(ip)


def is_of_this_machine(ip: str) -> bool:
    """Is it a loopback address?"""
    return ip.removeprefix("::ffff:").startswith("127.") or ip in ("::1", "localhost")


class UnauthenticatedClient(Protocol):
    """The part of a client's channel that admission uses."""

    group: str

    def is_unauthenticated(self, config: Config) -> bool:
        """Has the client not yet sent its password, or not completed the handshake?"""

    def on_authenticated(self) -> None:
        """The client is authenticated."""

    def abort(self) -> None:
        """Disconnect the client."""


class UnauthenticatedClients:
    """The connections that were unauthenticated at the last check."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._groups: dict[str, dict[UnauthenticatedClient, float]] = {}
        """By address: the connections, with the time when each was made."""

    def add(self, channel: UnauthenticatedClient, ip: str) -> None:
        """Add a new connection."""
        channel.group = group_of(ip)
        self._groups.setdefault(channel.group, {})[channel] = trio.current_time()

    def forget(self, channel: UnauthenticatedClient) -> None:
        """Remove a connection that has ended, or is authenticated."""
        group = self._groups[channel.group]
        del group[channel]
        if not group:
            del self._groups[channel.group]
        channel.group = ""

    def are_too_many(self, ip: str) -> bool:
        """Must a further client with this address be refused?"""
        most = self._node.state.config.unauthenticated_clients
        group = self._groups.get(group_of(ip), {}) if self._groups else {}
        if len(group) < most:
            return False
        self._forget_authenticated(group)
        return len(group) >= most

    def sweep(self) -> None:
        """Once a second: disconnect clients that have exceeded `auth-timeout`."""
        limit = self._node.state.config.auth_timeout_s
        for group in list(self._groups.values()):
            self._forget_authenticated(group)
            if not limit:
                continue
            overdue = trio.current_time() - limit
            for channel in [each for each, came in group.items() if came < overdue]:
                self._node.turned_away(
                    "client disconnected: no password or handshake in time",
                    "auth-timeout",
                    address=channel.group,
                )
                self.forget(channel)
                channel.abort()

    def _forget_authenticated(self, group: dict[UnauthenticatedClient, float]) -> None:
        config = self._node.state.config
        for channel in [each for each in group if not each.is_unauthenticated(config)]:
            self.forget(channel)
            channel.on_authenticated()


def group_of(ip: str) -> str:
    """Return the address that counts. One IPv6 host may have all addresses of its /64 network, so
    these count as one."""
    if ":" not in ip:
        return ip
    address = ipaddress.IPv6Address(ip.partition("%")[0])
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
