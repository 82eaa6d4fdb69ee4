"""Rejects real sockets while a scenario runs, because virtual time does not wait for them."""

import contextlib
import socket
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn

import trio

from disque_trio.testing.simulated.step import NOT_OF_USERS


class RealIoError(RuntimeError):
    """Code of the app has tried to open a real socket."""


def _refuse(*_: Any, **__: Any) -> NoReturn:
    frame: FrameType | None = sys._getframe(1)
    where = ""
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(NOT_OF_USERS):
            where = f"{'/'.join(name.split('/')[-2:])}:{frame.f_lineno}"
            break
        frame = frame.f_back
    raise RealIoError(
        f"{where or 'a library'} opens a socket, and virtual time does not wait for it: give the "
        "handler a fake, or test it with disque_server"
    )


class _Refusing(trio.abc.SocketFactory, trio.abc.HostnameResolver):
    """Rejects sockets and name resolution in Trio."""

    def socket(self, family: Any = None, type: Any = None, proto: Any = None) -> NoReturn:  # noqa: ARG002
        _refuse()

    async def getaddrinfo(self, *_: Any, **__: Any) -> NoReturn:
        _refuse()

    async def getnameinfo(self, *_: Any, **__: Any) -> NoReturn:
        _refuse()


@contextlib.contextmanager
def no_sockets() -> Iterator[None]:
    """Reject sockets in this thread, inside a run of Trio."""
    refusing, here = _Refusing(), threading.get_ident()
    trio.socket.set_custom_socket_factory(refusing)
    trio.socket.set_custom_hostname_resolver(refusing)
    plain = {name: getattr(socket.socket, name) for name in ("connect", "connect_ex")}

    def guarded(name: str) -> Any:
        def call(self: socket.socket, address: Any) -> Any:
            if threading.get_ident() == here:
                _refuse()
            return plain[name](self, address)

        return call

    with contextlib.ExitStack() as stack:
        for name in plain:
            setattr(socket.socket, name, guarded(name))
            stack.callback(delattr, socket.socket, name)
        yield
