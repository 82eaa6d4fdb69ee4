"""Mutual challenge-response: before anything else, two nodes prove that they know the secret of the
cluster.

The dialled node sends a challenge, a random number. The dialler answers with a number of its own
and a MAC of both under the secret; only then the dialled node sends its own MAC. The numbers make a
proof useless on any other connection, and the two MACs include different labels, so that neither
can be reflected. A party without the secret gets no data for an offline attack, unless a node dials
it or it eavesdrops.

The proof does not protect the rest of the connection; TLS does (docs/security.md).
"""

import hmac
import secrets
from collections.abc import Container, Sequence
from typing import Final

from disque_trio.wire.frames import PROOF

CHALLENGE: Final = PROOF + b"C1"
ANSWER: Final = PROOF + b"D1"
CONFIRMATION: Final = PROOF + b"A1"
_NUMBER: Final = 32
_MAC: Final = 32
_FROM_DIALLER: Final = b"disque-trio bus 1, who dialled: "
_FROM_DIALLED: Final = b"disque-trio bus 1, who was dialled: "
_FRAME: Final = b"DbuZ"


class ProofError(Exception):
    """The other side does not know the secret. The text has the reason; `cause` is the counter in
    INFO."""

    def __init__(self, reason: str, cause: str = "cluster-secret") -> None:
        super().__init__(reason)
        self.cause = cause


class Proof:
    """One side of the exchange, with bytes as input and output, without a socket."""

    __slots__ = ("_challenges", "_dialled", "_keys", "_received", "number", "opening", "rest")

    def __init__(
        self, keys: Sequence[bytes], *, is_dialler: bool, own_challenges: Container[bytes] = ()
    ) -> None:
        """A dialler uses the first of `keys`; the dialled node accepts any.

        `own_challenges` are the challenges of this node without an answer. If the other side sends
        one of them, it tries to make the node answer itself.
        """
        self._keys = keys
        self._challenges = own_challenges
        self._received = b""
        self._dialled = b""
        """The number of the dialled node."""
        self.number = secrets.token_bytes(_NUMBER)
        self.opening = b"" if is_dialler else CHALLENGE + self.number
        """The first bytes to send."""
        self.rest: bytes | None = None
        """The bytes after both proofs; None before the proofs are valid."""
        if not is_dialler:
            self._dialled = self.number

    @property
    def has_received(self) -> bool:
        """Has the other side sent anything yet?"""
        return bool(self._received or (self._dialled and self.opening == b""))

    def feed(self, data: bytes) -> bytes:
        """Return the bytes to send. Raise `ProofError`."""
        self._received += data
        if self.opening:
            return self._check_answer()
        if not self._dialled:
            return self._answer()
        return self._check_confirmation()

    def _take(self, magic: bytes, size: int) -> bytes | None:
        """Return the bytes after `magic`, once they have arrived."""
        data = self._received
        if data[: len(magic)] != magic[: len(data)]:
            if data[:4] == _FRAME[: len(data)]:
                raise ProofError("it has no cluster-secret")
            raise ProofError("it sent no proof of the cluster secret", "no node")
        if len(data) < len(magic) + size:
            return None
        self._received = data[len(magic) + size :]
        return data[len(magic) : len(magic) + size]

    def _answer(self) -> bytes:
        """As the dialler: return the proof that answers a challenge."""
        number = self._take(CHALLENGE, _NUMBER)
        if number is None:
            return b""
        if number in self._challenges:
            raise ProofError("it repeats this node's own challenge")
        if self._received:
            raise ProofError("it sent data before it had the reply")
        self._dialled = number
        mac = _mac(self._keys[0], _FROM_DIALLER, number, self.number)
        return ANSWER + self.number + mac

    def _check_answer(self) -> bytes:
        """As the dialled node: check the proof, and return one."""
        found = self._take(ANSWER, _NUMBER + _MAC)
        if found is None:
            return b""
        number, mac = found[:_NUMBER], found[_NUMBER:]
        if self._received:
            raise ProofError("it sent data before it had the reply")
        for key in self._keys:
            if hmac.compare_digest(mac, _mac(key, _FROM_DIALLER, self._dialled, number)):
                self.rest = b""
                return CONFIRMATION + _mac(key, _FROM_DIALLED, self._dialled, number)
        raise ProofError("its cluster secret differs")

    def _check_confirmation(self) -> bytes:
        mac = self._take(CONFIRMATION, _MAC)
        if mac is not None:
            expected = _mac(self._keys[0], _FROM_DIALLED, self._dialled, self.number)
            if not hmac.compare_digest(mac, expected):
                raise ProofError("its cluster secret differs")
            self.rest = self._received
        return b""


def _mac(key: bytes, label: bytes, dialled: bytes, dialler: bytes) -> bytes:
    return hmac.digest(key, label + dialled + dialler, "sha256")
