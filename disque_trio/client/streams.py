"""Opens byte streams to nodes with anyio: TCP, TLS and Unix sockets, on Trio and on asyncio."""

import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeVar

import anyio
from anyio.abc import ByteStream, SocketAttribute

from disque_trio.client.address import Address
from disque_trio.client.errors import not_connected
from disque_trio.client.settings import KEEPALIVE_S
from disque_trio.system import keep_alive

AnyStream = TypeVar("AnyStream", bound=ByteStream)
Connect = Callable[[Address, float], Awaitable[ByteStream]]
"""Opens a stream within this many seconds. Raises `ConnectionFailedError`."""


async def connect(address: Address, timeout_s: float) -> ByteStream:
    """Open a stream to a node. Raises `ConnectionFailedError`."""
    try:
        with anyio.fail_after(timeout_s):
            return await _opened(address)
    except OSError as error:
        cause, has_tls = cause_of(error), address.tls is not None
        raise not_connected(str(address), cause, address.path, has_tls=has_tls) from error


def cause_of(error: OSError) -> OSError:
    """The cause of a failed connection attempt of anyio."""
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
    if isinstance(cause, ConnectionError) and cause.errno:  # asyncio has its own texts
        return OSError(cause.errno, os.strerror(cause.errno))
    return cause


async def _opened(address: Address) -> ByteStream:
    if address.path is not None:
        return await anyio.connect_unix(address.path)
    if address.tls is None:
        return _kept_alive(await anyio.connect_tcp(address.host, address.port))
    # OpenSSL takes longer to import than all the rest.
    context: Any = import_module("disque_trio.client.tls").context_for(address.tls)
    stream = await anyio.connect_tcp(
        address.host,
        address.port,
        ssl_context=context,
        tls_standard_compatible=False,
        tls_hostname=address.tls.server_name or address.host,
    )
    return _kept_alive(stream)


def _kept_alive(stream: AnyStream) -> AnyStream:
    raw = stream.extra(SocketAttribute.raw_socket, None)
    if raw is not None:
        # The socket of uvloop lacks these options, so set them through another descriptor.
        with suppress(OSError), socket.socket(fileno=os.dup(raw.fileno())) as same:
            keep_alive(same, KEEPALIVE_S)
    return stream
