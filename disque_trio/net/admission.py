"""Admission: which clients may connect, and how many unauthenticated ones, for how long.

A node without a password serves its own machine only (protected mode). With one, a client is
unauthenticated until it has sent it. Unauthenticated clients are limited in number per address, and
in time, so that they cannot take the places of the others.
"""

import ipaddress
from typing import Final, Protocol

import trio

from disque_trio.node import Node
from disque_trio.statemachine.config import Config

DENIED: Final = (
    b"-DENIED This node is in protected mode: it has no password, so it serves clients of its own"
    b" machine only. To let others in, do one of these there: (1) set a password with"
    b" 'requirepass-file' in its configuration, or with CONFIG SET requirepass; (2) ask clients for"
    b" certificates with 'tls-port' and 'tls-auth-clients yes'; (3) if only people whom you trust"
    b" can reach this port, say CONFIG SET protected-mode no, and the same in the"
    b" configuration.\r\n"
)
TOO_MANY: Final = (
    b"-ERR too many clients of your address have not sent their password yet; see"
    b" 'unauthenticated-clients'\r\n"
)


def is_barred(ip: str, config: Config) -> bool:
    """Does protected mode refuse a client from there?"""
    if not config.protected_mode or config.requirepass:
        return False
    return not is_of_this_machine(ip)


def is_of_this_machine(ip: str) -> bool:
    """Does it lead no further than the loopback?"""
    return ip.removeprefix("::ffff:").startswith("127.") or ip in ("::1", "localhost")


class UnauthenticatedClient(Protocol):
    """What admission needs of a client's channel."""

    group: str

    def is_unauthenticated(self, config: Config) -> bool:
        """Does it still owe its password or handshake?"""

    def on_authenticated(self) -> None:
        """It does not owe them any more."""

    def abort(self) -> None:
        """Disconnect it."""


class UnauthenticatedClients:
    """The connections that were unauthenticated when last looked at."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._groups: dict[str, dict[UnauthenticatedClient, float]] = {}
        """By address, with the time when each connected."""

    def add(self, channel: UnauthenticatedClient, ip: str) -> None:
        """One has connected."""
        channel.group = group_of(ip)
        self._groups.setdefault(channel.group, {})[channel] = trio.current_time()

    def forget(self, channel: UnauthenticatedClient) -> None:
        """It has gone, or is authenticated."""
        group = self._groups[channel.group]
        del group[channel]
        if not group:
            del self._groups[channel.group]
        channel.group = ""

    def are_too_many(self, ip: str) -> bool:
        """Must a further client from this address be refused?"""
        most = self._node.state.config.unauthenticated_clients
        group = self._groups.get(group_of(ip), {}) if self._groups else {}
        if len(group) < most:
            return False
        self._forget_authenticated(group)
        return len(group) >= most

    def sweep(self) -> None:
        """Once a second: cut off those that have exceeded `auth-timeout`."""
        limit = self._node.state.config.auth_timeout_s
        for group in list(self._groups.values()):
            self._forget_authenticated(group)
            if not limit:
                continue
            overdue = trio.current_time() - limit
            for channel in [each for each, came in group.items() if came < overdue]:
                self._node.turned_away(
                    "client cut off: no password or handshake in time",
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
    """One IPv6 host may have all addresses of its /64 network, so these count as one."""
    if ":" not in ip:
        return ip
    address = ipaddress.IPv6Address(ip.partition("%")[0])
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
