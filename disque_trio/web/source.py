"""Whose console it is: a node's, or that of a process that has no node."""

import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Final

import attrs
from anyio.abc import ByteStream, UNIXSocketStream

from disque_trio.client import streams
from disque_trio.client.address import Address, Cluster, Tls
from disque_trio.client.errors import not_connected
from disque_trio.client.naming import process_name
from disque_trio.net.tls import Keeper
from disque_trio.node import Node
from disque_trio.observe.client import DeadlineClient
from disque_trio.ports import Log
from disque_trio.statemachine.config import Config
from disque_trio.web.health import Check, checks
from disque_trio.web.metrics import Exposition
from disque_trio.web.subscriptions import Steered

PATIENCE_S: Final = 5.0
"""A connection to a node that gives nothing for so long is closed."""
_PROGRAM: Final = "disque-trio-console"


@attrs.frozen
class Picture:
    """A run that was recorded or simulated (`sim.picture`)."""

    page: bytes
    """As one file."""
    data: bytes
    """What is in it, as JSON."""


@attrs.frozen(kw_only=True)
class Source:
    """What the web port shows, and whom it tells of what happens there."""

    config: Callable[[], Config]
    """The configuration as it is now: password, names, port."""
    client: DeadlineClient
    """Asks the cluster."""
    checks: Callable[[], Iterable[Check]]
    """Can it serve?"""
    wrong_password: Callable[[str], None]
    """Called with the address of who gave one."""
    warn: Callable[[str, str], None]
    """Takes an event and the other side's address."""
    log: Callable[[str, dict[str, Any]], None]
    """Logs an event with facts."""
    metrics: Callable[[], Awaitable[bytes]] | None = None
    tls: Callable[[], ssl.SSLContext | None] = lambda: None
    """How to speak TLS with browsers; None is plain HTTP."""
    picture: Picture | None = None
    sandbox: Steered | None = None
    """A simulated cluster to break by hand (`web.sandbox`)."""
    has_cluster: bool = True
    """Is there a cluster to ask, or the picture alone?"""


def of_node(
    node: Node, connect_inside: Callable[[], socket.socket], tls: Keeper | None = None
) -> Source:
    """The console of a node. It asks the node as any client does, by the port for clients. If that
    speaks TLS only, it asks from within the process: the node's certificate need not be one that
    the node accepts of clients."""

    def password() -> bytes | None:
        return node.state.config.requirepass or None

    def wrong_password(ip: str) -> None:
        node.turned_away("wrong password at the web port", "web-password", address=ip)

    return Source(
        config=lambda: node.state.config,
        client=DeadlineClient(
            Cluster(
                [own_address(node.state.config)], lambda: node.state.config.requirepass or None
            ),
            patience_s=PATIENCE_S,
            name=process_name(_PROGRAM),
            connect=partial(_connect, connect_inside),
        ),
        checks=lambda: checks(node),
        wrong_password=wrong_password,
        warn=lambda event, ip: node.warn(event, address=ip),
        log=lambda event, facts: node.log.notice(event, **facts),
        metrics=Exposition(node).text,
        tls=lambda: tls.contexts.web if tls is not None else None,
    )


async def _connect(
    connect_inside: Callable[[], socket.socket], address: Address, timeout_s: float
) -> ByteStream:
    if address.tls is None:
        return await streams.connect(address, timeout_s)
    try:
        return await UNIXSocketStream.from_socket(connect_inside())
    except OSError as error:
        raise not_connected(str(address), error, None, has_tls=False) from error


def own_address(config: Config) -> Address:
    """Where a node finds itself. Where that speaks TLS, other nodes are not asked
    (`Client.discover`)."""
    host = next((each for each in config.bind if each not in _ANY), "127.0.0.1")
    if config.port:
        return Address(host=host, port=config.port)
    if config.tls_port:
        return Address(host=host, port=config.tls_port, tls=Tls())
    return Address(path=config.unixsocket)


_ANY: Final = ("0.0.0.0", "::", "*")


def alone(
    config: Config,
    cluster: Cluster | None,
    log: Log,
    picture: Picture | None,
    sandbox: Steered | None = None,
) -> Source:
    """The console of a process that has no node: of a cluster, of a run's picture, of a sandbox, or
    of several of them."""

    def warn(event: str, ip: str) -> None:
        log.warning(event, address=ip)

    return Source(
        config=lambda: config,
        client=DeadlineClient(
            cluster or Cluster([Address()]),
            patience_s=PATIENCE_S,
            name=process_name(_PROGRAM),
            follows_tls=True,
        ),
        checks=lambda: [Check("console", True, "serves")],
        wrong_password=lambda ip: warn("wrong password at the web port", ip),
        warn=warn,
        log=lambda event, facts: log.notice(event, **facts),
        picture=picture,
        sandbox=sandbox,
        has_cluster=cluster is not None,
    )
