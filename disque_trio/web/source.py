"""The source of a console's data: a node, or a process without a node."""

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
"""A connection to a node without input for so long is closed."""
_PROGRAM: Final = "disque-trio-console"


@attrs.frozen
class Picture:
    """A run that was recorded or simulated (`sim.picture`)."""

    page: bytes
    """The picture as one file."""
    data: bytes
    """Its content as JSON."""


@attrs.frozen(kw_only=True)
class Source:
    """The data of a web port, and the receivers of its events."""

    config: Callable[[], Config]
    """Returns the current configuration: password, names, port."""
    client: DeadlineClient
    """The client of the cluster."""
    checks: Callable[[], Iterable[Check]]
    """Returns the conditions for serving clients."""
    wrong_password: Callable[[str], None]
    """Called with the address that sent a wrong password."""
    warn: Callable[[str, str], None]
    """Takes an event and the address of the other side."""
    log: Callable[[str, dict[str, Any]], None]
    """Logs an event with its fields."""
    metrics: Callable[[], Awaitable[bytes]] | None = None
    tls: Callable[[], ssl.SSLContext | None] = lambda: None
    """Returns the TLS context for browsers; None means plain HTTP."""
    picture: Picture | None = None
    sandbox: Steered | None = None
    """A simulated cluster for operations by hand (`web.sandbox`)."""
    has_cluster: bool = True
    """Is there a cluster, or only a picture or a sandbox?"""


def of_node(
    node: Node, connect_inside: Callable[[], socket.socket], tls: Keeper | None = None
) -> Source:
    """Return the source for the console of a node. It connects to the node's port for clients, as
    any client does. If that port uses only TLS, it connects within the process, so that the node's
    own certificate need not be accepted for clients."""

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
    """Return an address at which the node itself is reached. If it uses TLS, other nodes are not
    asked (`Client.discover`)."""
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
    """Return the source for the console of a process without a node: with a cluster, the picture of
    a run, a sandbox, or several of them."""

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
