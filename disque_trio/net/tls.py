"""TLS on non-blocking sockets: its settings, and sockets that read and write like plain ones.

Channels of the event loop call `recv` and `send`, in which BlockingIOError means wait. A
`TlsSocket` behaves in the same way, so that channels need no code for TLS. It is slower: a record
contains at most 16 KiB, and each is encrypted and decrypted in the task of the event loop.
"""

import contextlib
import socket
import ssl
from typing import Final

import attrs

from disque_trio.net.multiplexing import IN, OUT
from disque_trio.statemachine.config import Config

RECORD: Final = 1 << 14
"""The most bytes in one record."""


class TlsError(Exception):
    """A TLS setting cannot be used. The text has the setting, the reason and the remedy."""


@attrs.frozen
class Contexts:
    """TLS contexts by kind of connection; None if it is plain."""

    clients: ssl.SSLContext | None = None
    accept: ssl.SSLContext | None = None
    """For links that peers dial."""
    dial: ssl.SSLContext | None = None
    """For links to peers."""
    web: ssl.SSLContext | None = None
    """For browsers."""


class Keeper:
    """The contexts of a node. They may be reloaded while it runs; open connections keep theirs."""

    def __init__(self, config: Config) -> None:
        self.contexts = load(config)

    def reload(self, config: Config) -> str | None:
        """Read the certificates again. If that fails, the old ones stay, and the reason is
        returned."""
        try:
            self.contexts = load(config)
        except TlsError as error:
            return str(error)
        return None


def load(config: Config) -> Contexts:
    """Return the contexts of the configuration. Raise `TlsError`."""
    clients = accept = dial = None
    if config.tls_port:
        clients = _context(ssl.PROTOCOL_TLS_SERVER, config)
        if config.tls_auth_clients != "no":
            _trust(
                clients, config, "tls-ca-cert-file", "tls-auth-clients requires client certificates"
            )
            is_must = config.tls_auth_clients == "yes"
            clients.verify_mode = ssl.CERT_REQUIRED if is_must else ssl.CERT_OPTIONAL
    if config.tls_cluster:
        accept = _context(ssl.PROTOCOL_TLS_SERVER, config)
        dial = _context(ssl.PROTOCOL_TLS_CLIENT, config)
        # Addresses of nodes may change: only the signing authority counts.
        dial.check_hostname = False
        own = "tls-cluster-ca-cert-file" if config.tls_cluster_ca_cert_file else "tls-ca-cert-file"
        for context in (accept, dial):
            context.verify_mode = ssl.CERT_REQUIRED
            _trust(context, config, own, "tls-cluster requires certificates")
        accept.num_tickets = 0
    web = _context(ssl.PROTOCOL_TLS_SERVER, config) if config.web_tls else None
    return Contexts(clients, accept, dial, web)


def _context(protocol: int, config: Config) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    path, key = config.tls_cert_file, config.tls_key_file or config.tls_cert_file
    if not path:
        raise TlsError("TLS needs a certificate: set 'tls-cert-file' and 'tls-key-file'")
    _must_be_readable("tls-cert-file", path)
    _must_be_readable("tls-key-file", key)
    try:
        # Without a password argument, OpenSSL would read one from the terminal.
        context.load_cert_chain(path, key, config.tls_key_file_pass)
    except (ssl.SSLError, ValueError) as error:
        raise TlsError(
            f"tls-cert-file {path} and tls-key-file {key} cannot be used: {_reason(error)}; "
            "both must be PEM, belong together, and have the right 'tls-key-file-pass' if any"
        ) from None
    return context


def _trust(context: ssl.SSLContext, config: Config, directive: str, reason: str) -> None:
    path = getattr(config, directive.replace("-", "_"))
    if not path:
        raise TlsError(
            f"{reason}: set 'tls-ca-cert-file' to the certificates of the trusted authorities"
        )
    _must_be_readable(directive, path)
    try:
        context.load_verify_locations(path)
    except ssl.SSLError as error:
        raise TlsError(f"{directive} {path} has no certificates: {_reason(error)}") from None


def _must_be_readable(directive: str, path: str) -> None:
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise TlsError(f"{directive} {path}: {error.strerror}") from None


def _reason(error: Exception) -> str:
    """Return OpenSSL's reason, without its source location."""
    found = getattr(error, "verify_message", "") or getattr(error, "reason", "")
    return str(found or error).lower().replace("_", " ")


def explained(error: OSError) -> str:
    """Return why a handshake failed, for the log."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted ({_reason(error)})"
    if isinstance(error, ssl.SSLError):
        return _MEANINGS.get(_reason(error), f"TLS failed ({_reason(error)})")
    return f"it closed the connection in the TLS handshake ({error.strerror or 'reset'})"


_MEANINGS: Final = {
    "http request": "it uses HTTP, not TLS",
    "wrong version number": "it does not use TLS",
    "peer did not return a certificate": "it has no certificate",
    "tlsv1 alert unknown ca": "it does not trust the authority of this node's certificate",
    "tlsv13 alert certificate required": "it requires a certificate of this node",
    "unexpected eof while reading": "it closed the connection in the TLS handshake",
}


class TlsSocket:
    """One connection under TLS. It owns the descriptor of the plain socket."""

    __slots__ = ("is_port_check", "is_ready", "sock", "wants_out")

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, *, is_server: bool) -> None:
        """Raises OSError if the other side has disconnected."""
        self.sock = context.wrap_socket(
            sock, server_side=is_server, do_handshake_on_connect=False, suppress_ragged_eofs=True
        )
        self.is_ready = False
        """Is the handshake complete?"""
        self.is_port_check = is_server
        """Has the other side, which must send first, sent nothing yet? If it then disconnects, it
        only checked whether the port is open, and no client was refused."""
        self.wants_out = False
        """Must reading wait until the socket is writable?"""

    def shake(self) -> int:
        """Continue the handshake. Return the event to wait for, or 0 once it is complete. Raise
        OSError."""
        if self.is_port_check:
            self.is_port_check = not self._has_input()
        try:
            self.sock.do_handshake()
        except ssl.SSLWantReadError:
            return IN
        except ssl.SSLWantWriteError:
            return OUT
        self.is_ready = True
        return 0

    def _has_input(self) -> bool:
        try:
            return bool(socket.socket.recv(self.sock, 1, socket.MSG_PEEK))  # not through TLS
        except OSError:
            return False

    def recv(self, size: int) -> bytes:
        """Return the next bytes, none at the end; a record is always read completely.

        Another record is read only after a full one: a vain attempt costs an exception.
        """
        pieces: list[bytes] = []
        left = size
        while True:
            try:
                piece = self.sock.recv(max(left, RECORD))
            except ssl.SSLWantReadError:
                break
            except ssl.SSLWantWriteError:
                self.wants_out = True
                break
            except OSError:
                if not pieces:
                    raise
                break  # the next call raises it again
            if not piece and not pieces:
                return b""
            pieces.append(piece)
            left -= len(piece)
            if len(piece) < RECORD or left < RECORD:
                break
        if not pieces:
            raise BlockingIOError
        return b"".join(pieces)

    def send(self, data: bytes | bytearray | memoryview) -> int:
        """Send as many bytes as possible now. The next call must begin with the rest."""
        sent = 0
        with memoryview(data) as view:
            while sent < len(view):
                try:
                    sent += self.sock.send(view[sent : sent + RECORD])
                except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
                    break
        if not sent:
            raise BlockingIOError
        return sent

    def say_goodbye(self) -> None:
        """Send the other side the end of the data."""
        if self.is_ready:
            with contextlib.suppress(OSError, ValueError):
                self.sock.unwrap()
