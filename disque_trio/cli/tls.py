"""The command-line client's TLS. Imported only when it is asked for."""

import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Any

from disque_trio.cli.connection import Tls


class Stream(ssl.SSLSocket):
    """A socket that knows MSG_DONTWAIT, as plain ones do; no other flag."""

    def send(self, data: Any, flags: int = 0) -> int:
        """Send some; BlockingIOError if nothing fits now."""
        if not flags:
            return super().send(data)
        with self._without_waiting():
            return super().send(data)

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Receive some; BlockingIOError if nothing has come yet."""
        if not flags:
            return super().recv(buflen)
        with self._without_waiting():
            return super().recv(buflen)

    @contextlib.contextmanager
    def _without_waiting(self) -> Iterator[None]:
        before = self.gettimeout()
        self.settimeout(0)
        try:
            yield
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None
        finally:
            self.settimeout(before)


def secured(stream: socket.socket, tls: Tls, host: str) -> socket.socket:
    """The connection under TLS. Raises OSError."""
    context = ssl.create_default_context(cafile=tls.cacert)
    context.sslsocket_class = Stream
    if tls.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert is not None:
        context.load_cert_chain(tls.cert, tls.key)
    return context.wrap_socket(stream, server_hostname=tls.server_name or host)
