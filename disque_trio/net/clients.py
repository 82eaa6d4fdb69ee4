"""Client sockets: accepting, reading, writing, and unsent bytes.

`Clients.owing` has the clients with unsent bytes. They are checked once a second, so that a client
that never reads is disconnected when it exceeds the limits, and a closing connection does not stay
open.
"""

import contextlib
import os
import socket
from typing import Final

from disque_trio.driver.limits import is_unauthenticated
from disque_trio.driver.sessions import Session
from disque_trio.net.admission import DENIED, TOO_MANY, UnauthenticatedClients, is_barred
from disque_trio.net.lingering import LINGER_S, Lingering
from disque_trio.net.multiplexing import IN, OUT, RDHUP
from disque_trio.net.readiness import Address, Listener, Readiness, Stream
from disque_trio.node import Node
from disque_trio.statemachine.chores import Connection
from disque_trio.statemachine.config import Config
from disque_trio.system import NOTSENT_LOWAT, keep_alive

READ_SIZE: Final = 1 << 16
SHY_SIZE: Final = 1 << 12
"""The size of a read for unauthenticated clients, and while many bytes wait to be processed."""
MUCH: Final = 1 << 14
"""This many bytes of requests may keep the node busy for milliseconds. A client's first read is no
larger; clients with large inputs take turns."""
IN_KERNEL: Final = 1 << 16
"""Bytes that the kernel buffers for a client that does not read. The default is up to 4 MB, and
with some hundred such clients all connections of the machine run short of kernel memory."""

INSIDE: Final = b"unix:inside"
"""The address of a client in this process, in CLIENT LIST."""


class Clients:
    """The state that all client channels of a node share."""

    __slots__ = (
        "channels", "first_size", "is_reading", "lingering", "node", "owing", "read_size",
        "readiness", "shaking", "unauthenticated",
    )  # fmt: skip

    def __init__(self, readiness: Readiness, node: Node) -> None:
        self.readiness = readiness
        self.node = node
        self.channels: dict[ClientChannel, None] = {}
        self.is_reading = True
        """False once the node is shutting down."""
        self.lingering = Lingering(readiness)
        self.owing: dict[ClientChannel, None] = {}
        self.shaking = 0
        """The number of clients in the TLS handshake."""
        self.unauthenticated = UnauthenticatedClients(node)
        self.read_size = READ_SIZE
        """The size of a read for a client with large inputs."""
        self.first_size = MUCH
        """The size of a read for any other client."""
        node.on_crowded(self._set_crowded)

    def _set_crowded(self, is_crowded: bool) -> None:
        self.read_size, self.first_size = (SHY_SIZE, SHY_SIZE) if is_crowded else (READ_SIZE, MUCH)

    def are_too_many(self) -> bool:
        """Has the number of clients reached `maxclients`?"""
        state = self.node.state
        return len(state.clients) + self.shaking >= state.config.maxclients

    def introduce(self, channel: "ClientChannel", peer: bytes, *, is_unix: bool) -> None:
        """Register the client with the node."""
        session = self.node.connect(channel, peer, is_unix=is_unix)
        if session is None:
            channel.close()
        else:
            channel.session = session
            self.channels[channel] = None

    def connect_inside(self) -> socket.socket:
        """Connect a client in this process; return its end of the connection."""
        inner, outer = socket.socketpair()
        outer.setblocking(False)
        channel = ClientChannel(self, outer)
        self.readiness.add(channel, IN | RDHUP)
        self.introduce(channel, INSIDE, is_unix=True)
        return inner

    def stop_reading(self) -> None:
        """The node is shutting down: only send replies from now on."""
        self.is_reading = False
        for channel in self.channels:
            channel.hold()

    def sweep(self) -> None:
        """Once a second: check clients with unsent bytes, unauthenticated and lingering ones."""
        for channel in list(self.owing):
            channel.sweep()
        self.unauthenticated.sweep()
        self.lingering.sweep()
        unsent = sum([len(channel.unsent) for channel in self.owing])
        self.node.state.facts.traffic.unsent = unsent


class ClientChannel(Stream):
    """One client's socket: the `ClientPort` of a node."""

    __slots__ = (
        "clients",
        "group",
        "is_closing",
        "is_greedy",
        "is_half_closed",
        "is_held",
        "lingered_s",
        "node",
        "session",
    )

    def __init__(self, clients: Clients, sock: socket.socket) -> None:
        super().__init__(clients.readiness, sock)
        self.clients = clients
        self.node = clients.node
        self.session: Session | None = None
        """None before the node has registered it, and after it has ended."""
        self.is_held = False
        self.is_closing = False
        self.is_greedy = False
        """Its last input was so large that other clients are served first."""
        self.is_half_closed = False
        self.lingered_s = 0
        self.group = ""
        """Its address among the unauthenticated clients; empty once it is authenticated."""

    # Called for events.

    def ready(self, mask: int) -> None:
        if mask == IN and not self.is_greedy:
            # The fast path for most events. The rest handles large inputs, ends and errors.
            self._read(self.clients.first_size)
            return
        if mask & IN:
            if self.is_greedy:
                self.readiness.defer(self)
            else:
                self._read(self.clients.first_size)
        elif mask & ~(OUT | RDHUP):
            self.readiness.end(self)
            return
        elif mask & RDHUP:
            self.is_half_closed = True
            self._watch()
            self._half_closed()
        if mask & OUT and self.unsent:
            self.write_on()

    def read_much(self) -> None:
        if self.events & IN:
            self._read(self.clients.read_size)

    def _read(self, size: int) -> None:
        try:
            data = self._recv(size)
        except BlockingIOError:
            return
        except OSError:
            self.readiness.end(self)
            return
        except MemoryError:
            if self.session is not None:
                self.node.exhausted(self.session)
            return
        if not data:
            self._end_of_input()
            return
        length = len(data)
        self.is_greedy = length >= SHY_SIZE and (
            length >= MUCH or length == size or bool(self.group)
        )
        session = self.session
        if session is not None:
            self.node.received(session, data)

    def _end_of_input(self) -> None:
        """A client that has closed its sending side still receives its unsent replies."""
        if self.unsent:
            self.is_half_closed = True
            self.close()
            self._half_closed()
        else:
            self.readiness.end(self)

    def _half_closed(self) -> None:
        if self.session is not None:
            self.node.half_closed(self.session)

    def ended(self) -> None:
        self.clients.owing.pop(self, None)
        self.clients.channels.pop(self, None)
        if self.group:
            self.clients.unauthenticated.forget(self)
        if self.session is not None:
            self.node.lost(self.session)
            self.session = None  # breaks a reference cycle
        if self.is_closing and not self.unsent:
            self.clients.lingering.succeed(self)

    # `ClientPort`, called by the node.

    def write(self, data: bytes) -> int:
        unsent = self.unsent
        if unsent:
            unsent += data
            return len(unsent)
        try:
            sent = self._send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.readiness.end(self)
            return 0
        if sent == len(data):
            return 0
        unsent += memoryview(data)[sent:]
        self.clients.owing[self] = None
        self._watch()
        return len(unsent)

    def hold(self) -> None:
        self.is_held = True
        self._watch()

    def resume(self) -> None:
        if self.clients.is_reading:
            self.is_held = False
            self._watch()

    def close(self) -> None:
        self.is_closing = True
        if self.unsent:
            self._watch()
        else:
            self.readiness.end(self)

    def abort(self) -> None:
        self.is_closing = False
        self.unsent.clear()
        self.readiness.end(self)

    def facts(self) -> Connection:
        return Connection(
            fd=self.fd,
            output_bytes=len(self.unsent),
            output_chunks=1 if self.unsent else 0,
            events=(b"r" if self.events & IN else b"") + (b"w" if self.events & OUT else b""),
        )

    # The rest.

    def _watch(self) -> None:
        events = OUT if self.unsent else 0
        if not self.is_closing:
            if not self.is_half_closed:
                events |= RDHUP
            if not self.is_held:
                events |= IN
        self.watch(events)

    def drained(self) -> None:
        self.clients.owing.pop(self, None)
        if self.is_closing:
            self.readiness.end(self)
        else:
            self._watch()
            if self.session is not None:
                self.node.drained(self.session)

    def keep_short(self) -> None:
        """Limit the size of reads until the client is authenticated."""
        recv = self.sock.recv
        self._recv = lambda size: recv(min(size, SHY_SIZE))

    def on_authenticated(self) -> None:
        """Remove the limit on the size of reads."""
        self._recv = self.sock.recv

    def is_unauthenticated(self, config: Config) -> bool:
        """Has the client not yet sent its password?"""
        return self.session is None or is_unauthenticated(self.session.client, config)

    def sweep(self) -> None:
        """Once a second while bytes are unsent: check the limits."""
        if self.is_closing:
            self.lingered_s += 1
            if self.lingered_s > LINGER_S:
                self.readiness.end(self)
        elif self.session is not None:
            self.node.owes(self.session, len(self.unsent))


class ClientListener(Listener):
    """A socket that accepts clients."""

    __slots__ = ("clients", "path")

    def __init__(self, clients: Clients, sock: socket.socket) -> None:
        super().__init__(clients.readiness, sock)
        self.clients = clients
        self.path = os.fsencode(sock.getsockname()) if sock.family == socket.AF_UNIX else None

    def starve(self, error: OSError) -> None:
        self.clients.node.warn("cannot accept clients", error=error.strerror)
        super().starve(error)

    def welcome(self, sock: socket.socket, address: Address) -> None:
        sock.setblocking(False)
        if self.path is None:
            reason = self.refusal(address[0])
            if reason:
                with contextlib.suppress(OSError):
                    sock.send(reason)
                self.clients.lingering.close(sock)
                return
            # BSDs refuse options on a connection that the client has reset; reading reports that.
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.IPPROTO_TCP, NOTSENT_LOWAT, IN_KERNEL)
                keep_alive(sock, self.clients.node.state.config.tcp_keepalive_s)
        self.admit(sock, address)

    def refusal(self, ip: str) -> bytes:
        """Return the error for a refused client with this address; empty if it is admitted."""
        node = self.clients.node
        if is_barred(ip, node.state.config):
            node.turned_away(
                "client refused: protected mode, and no password", "protected-mode", address=ip
            )
            return DENIED
        return self.refusal_of_unauthenticated(ip)

    def refusal_of_unauthenticated(self, ip: str) -> bytes:
        """Return the error if too many clients with this address are unauthenticated; otherwise
        empty."""
        if self.clients.unauthenticated.are_too_many(ip):
            self.clients.node.turned_away(
                "client refused: too many without password", "unauthenticated-clients", address=ip
            )
            return TOO_MANY
        return b""

    def admit(self, sock: socket.socket, address: Address) -> None:
        """Admit the client."""
        channel = ClientChannel(self.clients, sock)
        self.readiness.add(channel, IN | RDHUP)
        self.connect(channel, address)
        if self.path is None and self.clients.node.state.config.requirepass:
            channel.keep_short()
            self.clients.unauthenticated.add(channel, address[0])

    def connect(self, channel: ClientChannel, address: Address) -> None:
        """Register the client with the node."""
        ip, port = address[:2] if self.path is None else ("", 0)
        peer = b"unix:%b" % self.path if self.path is not None else _shown(ip, port)
        self.clients.introduce(channel, peer, is_unix=self.path is not None)


def _shown(ip: str, port: int) -> bytes:
    return b"%b:%d" % (f"[{ip}]".encode() if ":" in ip else ip.encode(), port)
