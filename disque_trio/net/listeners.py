"""Listening sockets for the configuration, or an error with its remedy."""

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Iterator
from typing import Final

import attrs

from disque_trio.statemachine.address import BUS_OFFSET, MAX_PORT
from disque_trio.statemachine.config import Config
from disque_trio.system import non_blocking

_EVERYWHERE: Final = ("0.0.0.0", "::")
_NO_SUCH_FAMILY: Final = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT)


class ListenError(Exception):
    """A port or path cannot be listened on. The text has the reason and the remedy."""


@attrs.define
class Listeners:
    """Sockets that already listen."""

    clients: list[socket.socket] = attrs.Factory(list)
    bus: list[socket.socket] = attrs.Factory(list)
    tls: list[socket.socket] = attrs.Factory(list)
    """For clients with TLS."""
    web: list[socket.socket] = attrs.Factory(list)
    """For HTTP."""
    backlog: int = 511
    """The backlog of sockets that do not listen yet."""

    def close(self) -> None:
        """Close all sockets."""
        for sock in self.clients + self.bus + self.tls + self.web:
            sock.close()


def listen(config: Config) -> Listeners:
    """Open the sockets of the configuration. Raise `ListenError`."""
    _check(config)
    with _closed_on_error(Listeners()) as listeners:
        if config.port:
            listeners.clients += _listen_tcp(config, config.port, "port")
        if config.tls_port:
            listeners.tls += _listen_tcp(config, config.tls_port, "tls-port")
        # Without a port, no address of the bus could be announced: such a node is alone.
        if config.known_port:
            listeners.bus += listen_for_nodes(config, config.known_port)
        if config.web_port:
            listeners.web += listen_for_browsers(config)
        if config.unixsocket:
            listeners.clients.append(_listen_unix(config))
    return listeners


@contextlib.contextmanager
def _closed_on_error(listeners: Listeners) -> Iterator[Listeners]:
    """Close the opened sockets if the others cannot be opened."""
    try:
        yield listeners
    except ListenError:
        listeners.close()
        raise


def reserve(config: Config) -> Listeners:
    """Bind the ports that several processes will share, after checking that no other process has
    them.

    These sockets do not listen, so clients reach only the processes that do (`open_doors`). The
    Unix socket listens, because all processes share it. Raise `ListenError`.
    """
    # Any process of this user may join a shared port, so it must first be free for exclusive use.
    listen(attrs.evolve(config, unixsocket="")).close()
    with _closed_on_error(share(config)) as held:
        if config.unixsocket:
            held.clients.append(_listen_unix(config))
    return held


def share(config: Config) -> Listeners:
    """Return one process's sockets of the shared ports, which do not listen yet. Raise
    `ListenError`."""
    with _closed_on_error(Listeners(backlog=config.tcp_backlog)) as listeners:
        if config.port:
            listeners.clients += _listen_tcp(config, config.port, "port", is_shared=True)
        if config.tls_port:
            listeners.tls += _listen_tcp(config, config.tls_port, "tls-port", is_shared=True)
    return listeners


def open_doors(shared: Listeners) -> None:
    """Listen: from now on the kernel gives this process its share of new connections."""
    for sock in shared.clients + shared.tls:
        sock.listen(shared.backlog)


def listen_for_nodes(config: Config, port: int) -> list[socket.socket]:
    """Return bus sockets for this client port. Raise `ListenError`."""
    return _listen_tcp(config, port + BUS_OFFSET, "bus port")


def listen_for_browsers(config: Config) -> list[socket.socket]:
    """Return sockets of the web port. Raise `ListenError`."""
    return _listen_tcp(config, config.web_port, "web-port")


def _check(config: Config) -> None:
    if config.known_port > MAX_PORT:
        raise ListenError(
            f"port {config.known_port} is too high: the bus listens {BUS_OFFSET} above it, so "
            f"it must be at most {MAX_PORT}"
        )
    if not config.known_port and not config.unixsocket:
        raise ListenError("nothing to listen on: give a 'port', a 'tls-port' or a 'unixsocket'")


def _listen_tcp(
    config: Config, port: int, what: str, *, is_shared: bool = False
) -> list[socket.socket]:
    """Return one socket for each address; without `bind`, for all addresses of both families."""
    sockets: list[socket.socket] = []
    for address in config.bind or _EVERYWHERE:
        try:
            sockets.append(_bound(address, port, is_shared=is_shared))
            if not is_shared:
                sockets[-1].listen(config.tcp_backlog)
        except OSError as error:
            if not config.bind and error.errno in _NO_SUCH_FAMILY:
                continue
            for sock in sockets:
                sock.close()
            raise ListenError(_explained(address, port, what, error)) from None
    if not sockets:
        raise ListenError(f"cannot listen on {what} {port}: this system has no network addresses")
    return sockets


def _bound(address: str, port: int, *, is_shared: bool) -> socket.socket:
    found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, place = found[0]
    sock = non_blocking(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(place)
    except OSError:
        sock.close()
        raise
    return sock


def _explained(address: str, port: int, what: str, error: OSError) -> str:
    text = f"cannot listen on {address} {what} {port}: {error.strerror}"
    if error.errno == errno.EADDRINUSE:
        option = what if what == "web-port" else "port"
        text += f"; another process uses it: stop that, or choose another port with --{option}"
        if what not in ("port", "web-port"):
            text += f" (the bus port is always {BUS_OFFSET} above it)"
    return text


def _listen_unix(config: Config) -> socket.socket:
    path = config.unixsocket
    _clear_the_way(path)
    sock = non_blocking(socket.AF_UNIX)
    try:
        sock.bind(path)
        if config.unixsocketperm:
            os.chmod(path, config.unixsocketperm)
        sock.listen(config.tcp_backlog)
    except OSError as error:
        sock.close()
        raise ListenError(f"cannot listen on {path}: {error.strerror or error}") from None
    return sock


def _clear_the_way(path: str) -> None:
    """Remove only a socket that a dead process left."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        else:
            raise ListenError(f"cannot listen on {path}: another process listens on it; stop that")
