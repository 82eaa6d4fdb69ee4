"""Hostile clients at a node that speaks TLS, at its port for clients and at its bus.

They have no certificate of its authority, but one of another, and have recorded handshakes.
"""

import contextlib
import random
import socket
import ssl
import struct
import time
from collections import Counter
from pathlib import Path
from typing import Final

import attrs

from tests.certificates import Authority, Signed
from tests.cluster.talk import LOOPBACK
from tests.fuzz.mutation import mutated

PATIENCE_S: Final = 1.0


@attrs.define(eq=False)
class HostileTlsClient:
    """One client."""

    rng: random.Random
    ports: list[int]
    """All of them for TLS."""
    authority: str
    own: Signed
    """A certificate that is of no use there."""
    attacks: Counter[str] = attrs.Factory(Counter)
    let_in: int = 0
    recorded: list[bytes] = attrs.Factory(list)
    held: list[socket.socket] = attrs.Factory(list)

    def connect(self) -> socket.socket:
        """From one of several addresses."""
        address = f"127.0.0.{self.rng.randrange(2, 9)}"
        return socket.create_connection(
            (LOOPBACK, self.rng.choice(self.ports)), PATIENCE_S, (address, 0)
        )

    def act(self) -> None:
        """Do one thing."""
        attack = self.rng.choice((self.noise, self.half, self.near, self.giant, self.forged))
        self.attacks[attack.__name__] += 1
        with contextlib.suppress(OSError):
            attack()
        while len(self.held) > 60:
            self.held.pop(self.rng.randrange(len(self.held))).close()

    def say(self, data: bytes) -> None:
        """Send it, and go or stay."""
        sock = self.connect()
        self.held.append(sock)
        sock.sendall(data)
        if self.rng.random() < 0.7:
            self.held.remove(sock)
            sock.close()

    def noise(self) -> None:
        """Random bytes, with or without the head of a record."""
        head = self.rng.choice((b"", b"\x16\x03\x01\x02\x00", b"\x17\x03\x03\x40\x00"))
        self.say(head + self.rng.randbytes(self.rng.choice((1, 100, 20_000))))

    def half(self) -> None:
        """A part of a handshake."""
        hello = self.rng.choice(self.recorded)
        self.say(hello[: self.rng.randrange(len(hello))])

    def near(self) -> None:
        """A handshake with changes."""
        self.say(mutated(self.rng, self.rng.choice(self.recorded), self.recorded))

    def giant(self) -> None:
        """Records, and handshake messages, of every length that can be written down."""
        length = self.rng.choice((0, 0x4000, 0x4001, 0x4800, 0xFFFF))
        inside = struct.pack(">I", 0x0100_0000 | self.rng.randrange(1 << 24))
        self.say(b"\x16\x03\x01" + struct.pack(">H", length) + inside + bytes(70_000))

    def forged(self) -> None:
        """A whole handshake, with a certificate of another authority, or none."""
        context = ssl.create_default_context(cafile=self.authority)
        context.check_hostname = False
        if self.rng.random() < 0.7:
            context.load_cert_chain(self.own.cert, self.own.key)
        with self.connect() as plain, context.wrap_socket(plain) as sock:
            sock.sendall(b"PING\r\n")
            self.let_in += bool(sock.recv(100))

    def record(self) -> None:
        """What a client says first."""
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = ssl.create_default_context()
            context.maximum_version = version
            out = ssl.MemoryBIO()
            with contextlib.suppress(ssl.SSLWantReadError):
                context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="a").do_handshake()
            self.recorded.append(out.read())


def harass_tls(ports: list[int], authority: str, directory: Path, seconds: float, seed: int) -> (
    HostileTlsClient
):  # fmt: skip
    """Act for so long."""
    client = HostileTlsClient(
        random.Random(seed), ports, authority, Authority(directory, "foreign").sign()
    )
    client.record()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        client.act()
    for sock in client.held:
        sock.close()
    return client
