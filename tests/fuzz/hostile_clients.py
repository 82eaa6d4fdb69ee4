"""Hostile clients at the ports of a real cluster: what they try, one after the other, without end.

They do not know the password or the cluster's secret, but have recorded what the nodes say to
each other, and one proof of the secret, and have recordings of another cluster.
"""

import contextlib
import random
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import attrs

from disque_trio.net.cluster_auth import Proof
from disque_trio.wire.frames import HEADER_LENGTH
from disque_trio.wire.resp import encode_request
from tests.cluster.processes import BUS_OFFSET
from tests.cluster.talk import LOOPBACK
from tests.fuzz import examples
from tests.fuzz.mutation import mutated

PATIENCE_S: Final = 2.0
MOST_HELD: Final = 60
"""Connections that each client keeps open, to be a burden."""


@attrs.define
class AttackCounts:
    """What all of them have done."""

    attacks: Counter[str] = attrs.Factory(Counter)
    refused: int = 0
    """Attacks that ended in an error of the socket: the node had hung up."""
    sent_bytes: int = 0


@attrs.define(eq=False)
class HostileClient:
    """One client, at one node."""

    rng: random.Random
    port: int
    members: Sequence[bytes]
    """Ids of nodes that belong to the cluster."""
    recorded: bytes
    """A recorded proof of a node."""
    counts: AttackCounts
    held: list[socket.socket] = attrs.Factory(list)
    attacks: Sequence["Attack"] = ()
    frames: list[bytes] = attrs.Factory(examples.recorded_frames)
    requests: list[bytes] = attrs.Factory(examples.requests)

    def __attrs_post_init__(self) -> None:
        for member in self.members:
            self.frames += examples.bus_frames(member)

    def act(self) -> None:
        """Do one thing."""
        attack = self.rng.choice(self.attacks or ATTACKS)
        self.counts.attacks[attack.__name__] += 1
        try:
            attack(self)
        except OSError:
            self.counts.refused += 1
        while len(self.held) > MOST_HELD or (self.held and self.rng.random() < 0.2):
            self.held.pop(self.rng.randrange(len(self.held))).close()

    def close(self) -> None:
        """Go away."""
        for held in self.held:
            held.close()

    # Sending.

    def connect(self, *, is_bus: bool) -> socket.socket:
        """From one of several addresses; at the bus also from that of the nodes."""
        address = f"127.0.0.{self.rng.randrange(1 if is_bus else 2, 9)}"
        port = self.port + BUS_OFFSET if is_bus else self.port
        return socket.create_connection((LOOPBACK, port), PATIENCE_S, (address, 0))

    def say(self, data: bytes, *, is_bus: bool) -> None:
        """Connect and send it; then listen a little, hang up, vanish or stay."""
        sock = self.connect(is_bus=is_bus)
        try:
            self.send(sock, data)
            self._leave(sock)
        except OSError:
            sock.close()
            raise

    def send(self, sock: socket.socket, data: bytes) -> None:
        """In one piece, or in several."""
        for piece in _pieces(self.rng, data):
            sock.sendall(piece)
            self.counts.sent_bytes += len(piece)

    def _leave(self, sock: socket.socket) -> None:
        how = self.rng.randrange(6)
        if how == 0:
            self.held.append(sock)
            return
        if how == 1:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif how < 4:
            sock.settimeout(0.05)
            with contextlib.suppress(TimeoutError):
                sock.recv(1 << 16)
        sock.close()


def _pieces(rng: random.Random, data: bytes) -> list[bytes]:
    if rng.random() < 0.7 or len(data) < 2:
        return [data]
    at = rng.randrange(1, len(data))
    return [data[:at], data[at:]]


# At either port.


def noise(client: HostileClient) -> None:
    """Random bytes."""
    size = client.rng.choice((1, 10, 1000, 70_000))
    client.say(client.rng.randbytes(size), is_bus=client.rng.random() < 0.5)


def flood(client: HostileClient) -> None:
    """Many connections that say nothing, or one byte."""
    is_bus = client.rng.random() < 0.5
    socks: list[socket.socket] = []
    try:
        for _ in range(100):
            socks.append(client.connect(is_bus=is_bus))
            if client.rng.random() < 0.3:
                socks[-1].sendall(b"D")
    finally:
        for sock in socks:
            sock.close()


# At the client port.


def near_requests(client: HostileClient) -> None:
    """Requests with changes, in a pipeline."""
    rng = client.rng
    some = [rng.choice(client.requests) for _ in range(rng.randrange(1, 20))]
    data = b"".join(mutated(rng, one, client.requests) for one in some)
    client.say(data, is_bus=False)


def real_requests(client: HostileClient) -> None:
    """Valid requests, without the password."""
    rng = client.rng
    client.say(b"".join(rng.choices(client.requests, k=200)), is_bus=False)


def harmful_requests(client: HostileClient) -> None:
    """The commands that would do most harm."""
    client.say(b"".join(encode_request(line.split()) for line in _WORST), is_bus=False)


_WORST: Final = (
    b"CONFIG SET requirepass none", b"CONFIG SET dir /", b"CONFIG SET cluster-secret x",
    b"CLUSTER RESET HARD", b"CLUSTER MEET 127.0.0.1 1", b"DEBUG FLUSHALL", b"DEBUG SLEEP 60",
    b"CLIENT PAUSE 60000", b"SHUTDOWN", b"MONITOR",
)  # fmt: skip


def guesses(client: HostileClient) -> None:
    """Passwords, of every length."""
    rng = client.rng
    words = [rng.randbytes(rng.choice((0, 1, 8, 511, 512, 513, 60_000))) for _ in range(5)]
    data = b"".join(encode_request([b"AUTH", word]) for word in words)
    hello = encode_request([b"HELLO", b"3", b"AUTH", b"default", words[0]])
    client.say(data + hello, is_bus=False)


def endless_line(client: HostileClient) -> None:
    """A line, or a header, that does not end."""
    start = client.rng.choice((b"", b"*", b"*1\r\n$", b'"'))
    client.say(start + b"1" * 200_000, is_bus=False)


def announced_much(client: HostileClient) -> None:
    """A request of half a gigabyte is announced, and begun."""
    size = client.rng.choice((0, 1000, 1 << 20, 8 << 20))
    client.say(b"*3\r\n$6\r\nADDJOB\r\n$536870912\r\n" + bytes(size), is_bus=False)


def many_words(client: HostileClient) -> None:
    """A million arguments, of which some thousands come."""
    words = b"$1\r\nx\r\n" * client.rng.choice((10, 10_000, 200_000))
    client.say(b"*1048576\r\n" + words, is_bus=False)


def unread(client: HostileClient) -> None:
    """Thousands of requests, whose answers are not read."""
    sock = client.connect(is_bus=False)
    client.held.append(sock)
    sock.settimeout(0.2)
    data = encode_request([b"PING", b"x" * 1000]) * 5000
    with contextlib.suppress(TimeoutError):
        sock.sendall(data)
    client.counts.sent_bytes += len(data)


def trickle(client: HostileClient) -> None:
    """A request, byte by byte."""
    with client.connect(is_bus=False) as sock:
        for byte in client.rng.choice(client.requests)[:40]:
            sock.sendall(bytes([byte]))
            time.sleep(0.002)


# At the bus.


def replayed_frames(client: HostileClient) -> None:
    """Frames that were valid once, in this cluster or another."""
    rng = client.rng
    at = rng.randrange(len(client.frames))
    client.say(b"".join(client.frames[at : at + rng.randrange(1, 50)]), is_bus=True)


def near_frames(client: HostileClient) -> None:
    """The same with changes."""
    rng = client.rng
    some = [rng.choice(client.frames) for _ in range(rng.randrange(1, 8))]
    client.say(b"".join(mutated(rng, one, client.frames) for one in some), is_bus=True)


def oversized_frame(client: HostileClient) -> None:
    """A frame of up to four gigabytes is announced, and begun."""
    rng = client.rng
    frame = bytearray(rng.choice(client.frames)[:HEADER_LENGTH])
    frame[4:8] = struct.pack(">I", rng.choice((1 << 20, 1 << 28, 1 << 30, 0xFFFF_FFFF)))
    client.say(bytes(frame) + bytes(rng.choice((0, 1 << 16, 8 << 20))), is_bus=True)


def replayed_proof(client: HostileClient) -> None:
    """A proof that was recorded, then frames."""
    frames = b"".join(client.rng.choices(client.frames, k=5))
    client.say(client.recorded + frames, is_bus=True)


def wrong_proof(client: HostileClient) -> None:
    """A proof of another secret, which is right in every other way."""
    with client.connect(is_bus=True) as sock:
        proof = Proof([client.rng.randbytes(20)], is_dialler=True)
        challenge = sock.recv(1000)
        answer = proof.feed(challenge)
        if client.rng.random() < 0.3:
            answer = mutated(client.rng, answer, [challenge])
        client.send(sock, answer)
        sock.recv(1000)


def mirrored_proof(client: HostileClient) -> None:
    """The node is asked what it asks, on a second connection, to have it answer itself."""
    with client.connect(is_bus=True) as first, client.connect(is_bus=True) as second:
        challenge = first.recv(1000)
        client.send(second, challenge)
        client.send(first, second.recv(1000))
        first.recv(1000)


Attack = Callable[[HostileClient], None]
ATTACKS: Final[tuple[Attack, ...]] = (
    noise, flood,
    near_requests, near_requests, real_requests, harmful_requests, guesses, endless_line,
    announced_much, many_words, unread, trickle,
    replayed_frames, near_frames, near_frames, oversized_frame, replayed_proof, wrong_proof,
    mirrored_proof,
)  # fmt: skip


HARMFUL: Final = (harmful_requests, replayed_proof, wrong_proof, mirrored_proof)
"""Of no use where there is neither password nor secret, or too good."""


def record(port: int, secret: bytes) -> bytes:
    """The proof of a node that knows the secret, as an eavesdropper would record it."""
    with socket.create_connection((LOOPBACK, port + BUS_OFFSET), PATIENCE_S) as sock:
        proof = Proof([secret], is_dialler=True)
        answer = proof.feed(sock.recv(1000))
        sock.sendall(answer)
        proof.feed(sock.recv(1000))
        assert proof.rest is not None, "a node that knows the secret is let in"
        return answer


def harass(client: HostileClient, until: float) -> None:
    """Act until that time."""
    while time.monotonic() < until:
        client.act()
    client.close()
