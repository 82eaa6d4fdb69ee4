"""TLS on sockets that do not block: its settings, and sockets that read and write like plain ones.

Channels of the event loop call `recv` and `send`, where BlockingIOError means wait. A `TlsSocket`
behaves the same, so that channels need not know of TLS. It is slower: a record holds 16 KiB at
most, and each is encrypted and decrypted in the event loop's task.
"""

import contextlib
import socket
import ssl
from typing import Final

import attrs

from disque_trio.net.multiplexing import IN, OUT
from disque_trio.statemachine.config import Config

RECORD: Final = 1 << 14
"""Bytes that one record can hold."""


class TlsError(Exception):
    """A TLS setting cannot be used: which, why, and what to do about it."""


@attrs.frozen
class Contexts:
    """TLS contexts by kind of connection; None where it is plain."""

    clients: ssl.SSLContext | None = None
    accept: ssl.SSLContext | None = None
    """For links that peers open."""
    dial: ssl.SSLContext | None = None
    """For links to peers."""
    web: ssl.SSLContext | None = None
    """For browsers."""


class Keeper:
    """The contexts of a node. They may be reloaded while it runs; open connections stay."""

    def __init__(self, config: Config) -> None:
        self.contexts = load(config)

    def reload(self, config: Config) -> str | None:
        """Read the certificates again. If that fails, the old ones stay; the reason is returned."""
        try:
            self.contexts = load(config)
        except TlsError as error:
            return str(error)
        return None


def load(config: Config) -> Contexts:
    """Contexts as the configuration asks for them. Raises `TlsError`."""
    clients = accept = dial = None
    if config.tls_port:
        clients = _context(ssl.PROTOCOL_TLS_SERVER, config)
        if config.tls_auth_clients != "no":
            _trust(clients, config, "tls-ca-cert-file", "tls-auth-clients asks for certificates")
            is_must = config.tls_auth_clients == "yes"
            clients.verify_mode = ssl.CERT_REQUIRED if is_must else ssl.CERT_OPTIONAL
    if config.tls_cluster:
        accept = _context(ssl.PROTOCOL_TLS_SERVER, config)
        dial = _context(ssl.PROTOCOL_TLS_CLIENT, config)
        # Addresses of nodes may change: only the authority that signed counts.
        dial.check_hostname = False
        own = "tls-cluster-ca-cert-file" if config.tls_cluster_ca_cert_file else "tls-ca-cert-file"
        for context in (accept, dial):
            context.verify_mode = ssl.CERT_REQUIRED
            _trust(context, config, own, "tls-cluster asks for certificates")
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
        # Without a password argument OpenSSL would ask for one on the terminal.
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
            f"{reason}: set 'tls-ca-cert-file' to those of the authorities to be trusted"
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
    """OpenSSL's reason, without its source location."""
    found = getattr(error, "verify_message", "") or getattr(error, "reason", "")
    return str(found or error).lower().replace("_", " ")


def explained(error: OSError) -> str:
    """Why a handshake failed, for the log."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted ({_reason(error)})"
    if isinstance(error, ssl.SSLError):
        return _MEANINGS.get(_reason(error), f"TLS failed ({_reason(error)})")
    return f"it has hung up in the TLS handshake ({error.strerror or 'reset'})"


_MEANINGS: Final = {
    "http request": "it speaks HTTP, not TLS",
    "wrong version number": "it does not speak TLS",
    "peer did not return a certificate": "it has no certificate",
    "tlsv1 alert unknown ca": "it does not trust the authority of this node's certificate",
    "tlsv13 alert certificate required": "it wants this node to have a certificate",
    "unexpected eof while reading": "it has hung up in the TLS handshake",
}


class TlsSocket:
    """One connection under TLS. It takes over the descriptor of the plain socket."""

    __slots__ = ("is_port_check", "is_ready", "sock", "wants_out")

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, *, is_server: bool) -> None:
        """Raises OSError if the other side has hung up."""
        self.sock = context.wrap_socket(
            sock, server_side=is_server, do_handshake_on_connect=False, suppress_ragged_eofs=True
        )
        self.is_ready = False
        """Is the handshake over?"""
        self.is_port_check = is_server
        """Has the other side, which is to begin, sent nothing? If it hangs up then, nobody was
        refused: it looked whether the port is open."""
        self.wants_out = False
        """Reading has to wait until the socket is writable."""

    def shake(self) -> int:
        """Continue the handshake. The event to wait for, 0 once it is over. Raises OSError."""
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
        """The next bytes, none at the end; a record is always read completely.

        Only after a full record is another one asked for: asking in vain costs an exception.
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
                break  # it comes again
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
        """Send as much as fits now. The next call must begin with the rest."""
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
        """Tell the other side that the data is complete."""
        if self.is_ready:
            with contextlib.suppress(OSError, ValueError):
                self.sock.unwrap()
