"""Clients under TLS: after a handshake they are like all others.

Until the handshake is complete, they are not registered with the machine, and count as
unauthenticated: `admission` limits their number and their time.
"""

import contextlib
import socket

from disque_trio.net.admission import DENIED, is_barred
from disque_trio.net.clients import ClientChannel, ClientListener, Clients
from disque_trio.net.multiplexing import IN, OUT, RDHUP
from disque_trio.net.readiness import Address
from disque_trio.net.tls import Keeper, TlsSocket, explained
from disque_trio.statemachine.config import Config


class TlsClientChannel(ClientChannel):
    """One client's socket under TLS."""

    __slots__ = ("address", "listener", "tls")

    def __init__(self, listener: "TlsClientListener", tls: TlsSocket, address: Address) -> None:
        super().__init__(listener.clients, tls.sock)
        self.listener = listener
        self.address = address
        self.tls = tls
        self._recv = tls.recv
        self._send = tls.send

    def ready(self, mask: int) -> None:
        tls = self.tls
        if not tls.is_ready:
            self._shake()
            return
        waited, tls.wants_out = tls.wants_out, False
        # Decrypted bytes raise no further event, so such a client cannot be deferred.
        self.is_greedy = False
        super().ready(mask | IN if waited else mask)
        if tls.wants_out:
            self.watch(OUT)
        elif waited:
            self._watch()

    def _shake(self) -> None:
        if not self.readiness.may_shake():
            return
        try:
            events = self.tls.shake()
        except OSError as error:
            if not self.tls.is_port_check:
                reason = explained(error)
                self.clients.node.turned_away(
                    f"TLS client refused: {reason}", "tls", address=self.address[0]
                )
            self.readiness.end(self)
            return
        if events:
            self.watch(events | RDHUP)
            return
        self.clients.shaking -= 1
        if self.clients.is_reading:
            self.watch(IN | RDHUP)
            self.listener.connect(self, self.address)
        else:
            self.readiness.end(self)

    def _read(self, size: int) -> None:  # noqa: ARG002
        super()._read(self.clients.read_size)

    def on_authenticated(self) -> None:
        """Do nothing: its reads were never limited."""

    def is_unauthenticated(self, config: Config) -> bool:
        return not self.tls.is_ready or super().is_unauthenticated(config)

    def ended(self) -> None:
        if not self.tls.is_ready:
            self.clients.shaking -= 1
        self.tls.say_goodbye()
        super().ended()


class TlsClientListener(ClientListener):
    """A socket that accepts clients with TLS."""

    __slots__ = ("keeper",)

    def __init__(self, clients: Clients, sock: socket.socket, keeper: Keeper) -> None:
        super().__init__(clients, sock)
        self.keeper = keeper

    def refusal(self, ip: str) -> bytes:
        """If every client must have a certificate, this counts as a password."""
        config = self.clients.node.state.config
        if is_barred(ip, config) and config.tls_auth_clients != "yes":
            self.clients.node.turned_away(
                "client refused: protected mode, and no password", "protected-mode", address=ip
            )
            return DENIED
        return self.refusal_of_unauthenticated(ip)

    def admit(self, sock: socket.socket, address: Address) -> None:
        """Start the handshake."""
        clients, context = self.clients, self.keeper.contexts.clients
        if context is None or clients.are_too_many():
            clients.node.turned_away(
                "client refused: maxclients reached", "maxclients", address=address[0]
            )
            sock.close()
            return
        # OSError: the client has disconnected.
        with contextlib.suppress(OSError):
            channel = TlsClientChannel(self, TlsSocket(sock, context, is_server=True), address)
            clients.shaking += 1
            clients.unauthenticated.add(channel, address[0])
            self.readiness.add(channel, IN | RDHUP)
