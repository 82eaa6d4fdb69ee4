"""Bus links: connect, authenticate, carry frames. A full send queue drops whole frames.

A stopped peer keeps its connections, and frames for it would accumulate until the link is recycled
(original, defect 32). So a link queues at most `bus-send-buffer` bytes; frames beyond that are
lost, which every part of the protocol tolerates. The machine decides when to dial again.
"""

import contextlib
import socket
from typing import Final

import trio

from disque_trio.driver.sessions import LinkSession
from disque_trio.net.cluster_auth import Proof, ProofError
from disque_trio.net.multiplexing import IN, OUT
from disque_trio.net.readiness import Readiness, Stream
from disque_trio.net.tls import Keeper, TlsSocket, explained
from disque_trio.node import Node
from disque_trio.system import keep_alive

READ_SIZE: Final = 1 << 16
"""With 128 KiB or more, the C library would map and unmap pages for each read, which takes 10
us."""
PROOF_SIZE: Final = 256
"""Bytes read at once from a link that is not open yet."""
SILENCE_S: Final = 10
"""How long an accepted link may take to send its first frame, or to authenticate."""

KEEPALIVE_S: Final = 60


class Links:
    """The state that all bus channels of a node share."""

    __slots__ = (
        "accepted",
        "challenges",
        "node",
        "opening",
        "readiness",
        "source_ip",
        "tls",
        "unproven",
    )

    def __init__(self, readiness: Readiness, node: Node, source_ip: str, tls: Keeper) -> None:
        self.readiness = readiness
        self.node = node
        self.source_ip = source_ip
        """The first bind address, from which links are dialled (original 1.1)."""
        self.tls = tls
        self.accepted = 0
        self.unproven = 0
        """Accepted links that have not yet proven that they belong to a node."""
        self.opening: dict[LinkChannel, float] = {}
        """Links in either direction without that proof, with the time at which they are given
        up."""
        self.challenges: dict[bytes, None] = {}
        """Challenges of this node without an answer."""

    def sweep(self) -> None:
        """Once a second: give up links that have exceeded their time."""
        now = trio.current_time()
        for channel in [each for each, until in self.opening.items() if until < now]:
            channel.give_up("it did not identify itself as a node in time", "silence")


class LinkChannel(Stream):
    """One bus socket: the `LinkPort` of a node.

    It carries frames once it is open: connected, and, if the cluster has a secret, proven.
    """

    __slots__ = (
        "_proof",
        "_tls",
        "bus",
        "is_connected",
        "is_open",
        "session",
        "was_accepted",
    )

    PIECE = 1 << 20

    def __init__(self, bus: Links, sock: socket.socket, session: LinkSession | None) -> None:
        super().__init__(bus.readiness, sock)
        self.bus = bus
        self.session = session
        """None before an accepted link is open."""
        self.was_accepted = self.is_connected = session is None
        self.is_open = False
        self._proof: Proof | None = None
        self._tls: TlsSocket | None = None

    def ready(self, mask: int) -> None:
        if self._tls is not None and self._tls.wants_out:
            self._tls.wants_out = False
            mask |= IN
            self.watch(IN | (OUT if self.unsent else 0))
        if not self.is_open:
            self._open_on(mask)
        elif mask & IN:
            self._read()
        elif mask & ~OUT:
            self.readiness.end(self)
        if mask & OUT and self.unsent and self.is_open:
            self.write_on()

    # Until it is open.

    def _open_on(self, mask: int) -> None:
        if not self.is_connected:
            if self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self.readiness.end(self)
                return
            self.is_connected = True
            self.begin()
        elif self._tls is not None and not self._tls.is_ready:
            self._shake(self._tls)
        elif mask & IN:
            self._read_proof()
        else:
            self.readiness.end(self)

    def begin(self) -> None:
        """The link is connected: start the TLS handshake if TLS is used."""
        contexts = self.bus.tls.contexts
        context = contexts.accept if self.was_accepted else contexts.dial
        if context is None:
            self._greet()
            return
        try:
            self._tls = TlsSocket(self.sock, context, is_server=self.was_accepted)
        except OSError:
            self.readiness.end(self)
            return
        self.sock, self._recv, self._send = self._tls.sock, self._tls.recv, self._tls.send
        self._expect(SILENCE_S)
        self.watch(IN if self.was_accepted else OUT)

    def _shake(self, tls: TlsSocket) -> None:
        if not self.readiness.may_shake():
            return
        try:
            events = tls.shake()
        except OSError as error:
            if tls.is_port_check:
                self.readiness.end(self)
            else:
                self.give_up(explained(error), "tls")
            return
        self.watch(events or IN)
        if not events:
            self._forget_expectation()
            self._greet()

    def _greet(self) -> None:
        """If there is a secret, demand a proof of it from the other side."""
        bus = self.bus
        secret = bus.node.state.config.cluster_secret
        if not secret:
            self._open()
            if self.was_accepted:
                self._expect(SILENCE_S)
            return
        self._proof = Proof(
            secret.split(b"\n"), is_dialler=not self.was_accepted, own_challenges=bus.challenges
        )
        self._expect(SILENCE_S)
        self.watch(IN)
        if self.was_accepted:
            bus.challenges[self._proof.number] = None
            self._say(self._proof.opening)

    def _expect(self, seconds: float) -> None:
        self.bus.opening[self] = trio.current_time() + seconds
        self.bus.unproven += self.was_accepted

    def _forget_expectation(self) -> None:
        bus = self.bus
        if bus.opening.pop(self, None) is not None:
            bus.unproven -= self.was_accepted
        if self._proof is not None:
            bus.challenges.pop(self._proof.number, None)
            self._proof = None

    def _read_proof(self) -> None:
        assert self._proof is not None
        try:
            data = self._recv(PROOF_SIZE)
            if not data:
                # A connection that ends without a byte is a port check, which is not reported.
                if self._proof.has_received:
                    self.give_up(
                        "it closed the connection instead of proving the cluster secret",
                        "cluster-secret",
                    )
                else:
                    self.readiness.end(self)
                return
            answer = self._proof.feed(data)
        except BlockingIOError:
            return
        except ProofError as error:
            self.give_up(str(error), error.cause)
            return
        except OSError:
            self.readiness.end(self)
            return
        rest = self._proof.rest
        if answer:
            self._say(answer)
        if rest is not None:
            self._forget_expectation()
            self._open()
            if rest and self.session is not None:
                self.bus.node.link_received(self.session, rest)

    def _say(self, data: bytes) -> None:
        """Send a few bytes on a new connection: they always fit."""
        try:
            if self._send(data) == len(data):
                return
        except OSError:
            pass
        self.readiness.end(self)

    def give_up(self, reason: str, cause: str) -> None:
        """Close the link, because the other side seems to be no node of this cluster.

        The reason is for the log, the cause for INFO.
        """
        peer = "gone"
        with contextlib.suppress(OSError):
            peer = plain_ip(self.sock.getpeername()[0])
        event = "bus link refused" if self.was_accepted else "bus link failed"
        self.bus.node.turned_away(f"{event}: {reason}", cause, is_link=True, peer=peer)
        self.readiness.end(self)

    def _open(self) -> None:
        try:
            local, remote = self.sock.getsockname(), self.sock.getpeername()
        except OSError:
            self.readiness.end(self)
            return
        self.is_open = True
        self.watch(IN | (OUT if self.unsent else 0))
        node, local_ip, remote_ip = self.bus.node, plain_ip(local[0]), plain_ip(remote[0])
        if self.session is None:
            self.session = node.accept_link(self, local_ip, remote_ip)
        else:
            node.link_up(self.session, local_ip, remote_ip)

    # After it is open.

    def _read(self) -> None:
        assert self.session is not None
        try:
            data = self._recv(READ_SIZE)
        except BlockingIOError:
            if self._tls is not None and self._tls.wants_out:
                self.watch(OUT)
            return
        except OSError:
            data = b""
        if not data:
            self.readiness.end(self)
            return
        if self.bus.node.link_received(self.session, data) and self.bus.opening:
            self._forget_expectation()

    def ended(self) -> None:
        self._forget_expectation()
        if self._tls is not None:
            self._tls.say_goodbye()
        if self.was_accepted:
            self.bus.accepted -= 1
        if self.session is not None:
            self.bus.node.link_lost(self.session)
            self.session = None  # breaks a reference cycle

    def send(self, frames: list[bytes]) -> int:
        if not self.is_open or self.unsent:
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
            self.watch(IN | OUT)
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

    def drained(self) -> None:
        self.watch(IN)


def set_up(sock: socket.socket) -> None:
    """Configure the socket: send frames at once, and detect a dead machine of the peer."""
    # BSDs refuse options on a connection that the peer has reset; reading reports that.
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        keep_alive(sock, KEEPALIVE_S)


def plain_ip(ip: str) -> str:
    """Return the address without a scope, and an IPv4 address in its own form."""
    return ip.partition("%")[0].removeprefix("::ffff:")
