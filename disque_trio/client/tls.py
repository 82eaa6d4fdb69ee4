"""TLS of clients. Imported only when needed."""

import contextlib
import errno
import os
import socket
import ssl
from collections.abc import Iterator
from typing import Any

from disque_trio.client.address import Tls
from disque_trio.client.errors import ConnectionFailedError


class Stream(ssl.SSLSocket):
    """A socket that supports MSG_DONTWAIT, as plain ones do, and no other flag."""

    def getpeername(self) -> Any:
        """The address of the peer; closes the socket and raises OSError if the peer has closed the
        connection.

        ssl calls this first on a socket that it wraps. If it fails, ssl assumes that the socket is
        not connected yet, and does not close it.
        """
        try:
            return super().getpeername()
        except OSError:
            self.close()
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)) from None

    def send(self, data: Any, flags: int = 0) -> int:
        """Send some bytes. Raises `BlockingIOError` if that would wait."""
        if not flags:
            return super().send(data)
        with self._without_waiting():
            return super().send(data)

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Receive some bytes. Raises `BlockingIOError` if that would wait."""
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
    """The connection with TLS. Raises `OSError`, and `ConnectionFailedError` for unusable files."""
    context = context_for(tls)
    context.sslsocket_class = Stream
    return context.wrap_socket(stream, server_hostname=tls.server_name or host)


def context_for(tls: Tls) -> ssl.SSLContext:
    """The context of OpenSSL for these options. Raises `ConnectionFailedError` for unusable
    files."""
    context = _trusting(tls)
    if tls.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert is not None:
        _show(context, tls, tls.cert)
    return context


def _trusting(tls: Tls) -> ssl.SSLContext:
    if tls.cacert is not None:
        _must_be_readable(tls, "cacert", tls.cacert)
    try:
        return ssl.create_default_context(cafile=tls.cacert)
    except ssl.SSLError as error:
        source = f"{tls.cacert}, given as {tls.terms['cacert']}"
        raise ConnectionFailedError(
            f"{source}, has no certificates ({_reason(error)})", "It must be PEM."
        ) from None


def _show(context: ssl.SSLContext, tls: Tls, cert: str) -> None:
    source = f"{cert}, given as {tls.terms['cert']},"
    _must_be_readable(tls, "cert", cert)
    if tls.key is not None:
        _must_be_readable(tls, "key", tls.key)
    try:
        context.load_cert_chain(cert, tls.key)
    except ssl.SSLError as error:
        if tls.key is None:
            reason = f"{source} cannot be used: it has no key, or that of another certificate"
            advice = f"Give the key file as {tls.terms['key']}."
            raise ConnectionFailedError(reason, advice) from None
        raise ConnectionFailedError(
            f"{source} and {tls.key}, given as {tls.terms['key']}, cannot be used "
            f"({_reason(error)})",
            "Both must be PEM, belong together, and have the right passphrase if any.",
        ) from None


def _must_be_readable(tls: Tls, field: str, path: str) -> None:
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        source = f"{path}, given as {tls.terms[field]}"
        raise ConnectionFailedError(f"Cannot read {source}: {error.strerror}") from None


def _reason(error: ssl.SSLError) -> str:
    return str(error.reason or error).lower().replace("_", " ")
