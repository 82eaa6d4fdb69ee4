"""Bus sockets: dialling, accepting, reading, and queues that drop whole frames when they are full.

A peer that has stopped keeps its connections, and what is sent to it would pile up until the link
is recycled (reference 8.2, defect 32). So a link owes its peer at most `bus-send-buffer` bytes;
frames beyond that are lost, which every part of the protocol stands. Dialling again is the
machine's business.
"""

import select
import socket
from typing import TYPE_CHECKING, Final

from disque_trio.readiness import Channel, Listener, Readiness, keep_alive

if TYPE_CHECKING:
    from disque_trio.node import Node
    from disque_trio.session import LinkSession

READ_SIZE: Final = 1 << 18
WRITE_SIZE: Final = 1 << 20
"""Bytes of what was left over that are written to one peer per turn."""
MAX_ACCEPTED: Final = 2048
"""Links that others may open to us: twice the nodes that the table takes from the bus."""

KEEPALIVE_S: Final = 60

_IN: Final = select.EPOLLIN
_OUT: Final = select.EPOLLOUT


class Bus:
    """What all bus channels of a node share."""

    __slots__ = ("accepted", "node", "readiness", "source_ip")

    def __init__(self, readiness: Readiness, node: "Node", source_ip: str) -> None:
        self.readiness = readiness
        self.node = node
        self.source_ip = source_ip
        """The first bind address: dials come from there (reference 1.1)."""
        self.accepted = 0

    def dial(self, session: "LinkSession", ip: str, port: int) -> "LinkChannel | None":
        """Begin to connect. Whatever comes of it, the node hears of it in a later turn.

        None without a socket: descriptors have run out, or the system has no IPv6.
        """
        family = socket.AF_INET6 if ":" in ip else socket.AF_INET
        try:
            sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError as error:
            self.node.warn("cannot dial", error)
            return None
        channel = LinkChannel(self, sock, session, is_dialling=True)
        self.readiness.add(channel, _OUT)
        try:
            set_up(sock)
            if self.source_ip and (":" in self.source_ip) == (":" in ip):
                sock.bind((self.source_ip, 0))
            sock.connect((ip, port))
        except BlockingIOError:
            pass
        except OSError:
            self.readiness.end(channel)
        return channel


class LinkChannel(Channel):
    """One bus socket: the `LinkPort` of a node."""

    __slots__ = ("_recv", "_send", "bus", "is_dialling", "session", "unsent", "was_accepted")

    session: "LinkSession"

    def __init__(
        self, bus: Bus, sock: socket.socket, session: "LinkSession | None", *, is_dialling: bool
    ) -> None:
        super().__init__(bus.readiness, sock)
        self.bus = bus
        self.unsent = bytearray()
        self.is_dialling = is_dialling
        self.was_accepted = not is_dialling
        self._recv = sock.recv
        self._send = sock.send
        if session is not None:
            self.session = session

    def ready(self, mask: int) -> None:
        if self.is_dialling:
            self._dialled()
        elif mask & _IN:
            self._read()
        elif mask & ~_OUT:
            self.readiness.end(self)
        if mask & _OUT and self.unsent and not self.is_dialling:
            self._write_on()

    def _dialled(self) -> None:
        if self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.readiness.end(self)
            return
        try:
            local, remote = self.sock.getsockname(), self.sock.getpeername()
        except OSError:
            self.readiness.end(self)
            return
        self.is_dialling = False
        self.watch(_IN | (_OUT if self.unsent else 0))
        self.bus.node.link_up(self.session, plain_ip(local[0]), plain_ip(remote[0]))

    def _read(self) -> None:
        try:
            data = self._recv(READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.bus.node.link_received(self.session, data)
        else:
            self.readiness.end(self)

    def ended(self) -> None:
        if self.was_accepted:
            self.bus.accepted -= 1
        self.bus.node.link_lost(self.session)
        del self.session  # a cycle less for the collector

    def send(self, frames: list[bytes]) -> int:
        if self.is_dialling or self.unsent:
            return self._queue(frames)
        data = frames[0] if len(frames) == 1 else b"".join(frames)
        try:
            sent = self._send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.readiness.end(self)
            return 0
        if sent < len(data):
            self.unsent += memoryview(data)[sent:]
            self.watch(_IN | _OUT)
        return 0

    def _queue(self, frames: list[bytes]) -> int:
        unsent, limit = self.unsent, self.bus.node.state.config.bus_send_buffer
        dropped = 0
        for frame in frames:
            if len(unsent) + len(frame) <= limit:
                unsent += frame
            else:
                dropped += 1
        return dropped

    def hang_up(self) -> None:
        self.readiness.end(self)

    def _write_on(self) -> None:
        unsent = self.unsent
        try:
            with memoryview(unsent) as view, view[:WRITE_SIZE] as piece:
                sent = self._send(piece)
        except BlockingIOError:
            return
        except OSError:
            self.readiness.end(self)
            return
        del unsent[:sent]
        if not unsent:
            self.watch(_IN)


class BusListener(Listener):
    """A socket on which peers arrive."""

    __slots__ = ("bus",)

    def __init__(self, bus: Bus, sock: socket.socket) -> None:
        super().__init__(bus.readiness, sock)
        self.bus = bus

    def starve(self, error: OSError) -> None:
        self.bus.node.warn("cannot accept bus links", error)
        super().starve(error)

    def welcome(self, sock: socket.socket, address: tuple[str, int]) -> None:
        bus = self.bus
        if bus.accepted >= MAX_ACCEPTED:
            sock.close()
            return
        try:
            local_ip = sock.getsockname()[0]
        except OSError:
            sock.close()
            return
        sock.setblocking(False)
        set_up(sock)
        bus.accepted += 1
        channel = LinkChannel(bus, sock, None, is_dialling=False)
        channel.session = bus.node.accept_link(channel, plain_ip(local_ip), plain_ip(address[0]))
        self.readiness.add(channel, _IN)


def set_up(sock: socket.socket) -> None:
    """Frames leave at once; and a peer whose machine has died must not keep a link for ever."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    keep_alive(sock, KEEPALIVE_S)


def plain_ip(ip: str) -> str:
    """The address without a scope, and an IPv4 address as such."""
    return ip.partition("%")[0].removeprefix("::ffff:")
