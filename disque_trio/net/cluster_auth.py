"""How two nodes prove to each other that they know the cluster's secret, before anything else.

The one that was dialled begins with a number that it has never used before. The dialler answers
with a number of its own and a MAC of both under the secret; only then the other gives its own MAC.
The numbers make each proof worth nothing on any other connection, and the two MACs differ in what
else is in them, so that neither can be turned around. Who does not know the secret is never given
anything to guess it by, unless a node dials him or he listens on the way.

What follows on the connection is not protected by this: that is what TLS is for (docs/security.md).
"""

import hmac
import secrets
from collections.abc import Container, Sequence
from typing import Final

CHALLENGE: Final = b"DisqTrC1"
ANSWER: Final = b"DisqTrD1"
CONFIRMATION: Final = b"DisqTrA1"
_NUMBER: Final = 32
_MAC: Final = 32
_FROM_DIALLER: Final = b"disque-trio bus 1, who dialled: "
_FROM_DIALLED: Final = b"disque-trio bus 1, who was dialled: "
_FRAME: Final = b"DbuZ"


class ProofError(Exception):
    """The other side does not belong here: why, and what the node counts it as."""

    def __init__(self, reason: str, cause: str = "cluster-secret") -> None:
        super().__init__(reason)
        self.cause = cause


class Proof:
    """One side of one such conversation. Bytes go in and out; sockets are others' business."""

    __slots__ = ("_challenges", "_dialled", "_keys", "_received", "number", "opening", "rest")

    def __init__(
        self, keys: Sequence[bytes], *, is_dialler: bool, own_challenges: Container[bytes] = ()
    ) -> None:
        """The first of `keys` is what a dialler uses; who was dialled takes any.

        `own_challenges` are numbers that this node waits for answers to: should one of them
        be asked here, somebody tries to have the node answer itself.
        """
        self._keys = keys
        self._challenges = own_challenges
        self._received = b""
        self._dialled = b""
        """The number of who was dialled."""
        self.number = secrets.token_bytes(_NUMBER)
        self.opening = b"" if is_dialler else CHALLENGE + self.number
        """What to begin with."""
        self.rest: bytes | None = None
        """Once both sides are sure: what has come behind the proof."""
        if not is_dialler:
            self._dialled = self.number

    @property
    def has_received(self) -> bool:
        """Has the other side said anything yet?"""
        return bool(self._received or (self._dialled and self.opening == b""))

    def feed(self, data: bytes) -> bytes:
        """What to answer. Raises `ProofError`."""
        self._received += data
        if self.opening:
            return self._check_answer()
        if not self._dialled:
            return self._answer()
        return self._check_confirmation()

    def _take(self, magic: bytes, size: int) -> bytes | None:
        """What follows `magic`, once it is here."""
        heard = self._received
        if heard[: len(magic)] != magic[: len(heard)]:
            if heard[:4] == _FRAME[: len(heard)]:
                raise ProofError("it has no cluster-secret")
            raise ProofError("what it says is no proof of the cluster secret", "no node")
        if len(heard) < len(magic) + size:
            return None
        self._received = heard[len(magic) + size :]
        return heard[len(magic) : len(magic) + size]

    def _answer(self) -> bytes:
        """The dialler: a proof for a challenge."""
        number = self._take(CHALLENGE, _NUMBER)
        if number is None:
            return b""
        if number in self._challenges:
            raise ProofError("it repeats this node's own challenge")
        if self._received:
            raise ProofError("it goes on before it has an answer")
        self._dialled = number
        mac = _mac(self._keys[0], _FROM_DIALLER, number, self.number)
        return ANSWER + self.number + mac

    def _check_answer(self) -> bytes:
        """Who was dialled: is the proof right? Then it is owed one in return."""
        found = self._take(ANSWER, _NUMBER + _MAC)
        if found is None:
            return b""
        number, mac = found[:_NUMBER], found[_NUMBER:]
        if self._received:
            raise ProofError("it goes on before it has an answer")
        for key in self._keys:
            if hmac.compare_digest(mac, _mac(key, _FROM_DIALLER, self._dialled, number)):
                self.rest = b""
                return CONFIRMATION + _mac(key, _FROM_DIALLED, self._dialled, number)
        raise ProofError("its cluster secret is another one")

    def _check_confirmation(self) -> bytes:
        mac = self._take(CONFIRMATION, _MAC)
        if mac is not None:
            expected = _mac(self._keys[0], _FROM_DIALLED, self._dialled, self.number)
            if not hmac.compare_digest(mac, expected):
                raise ProofError("its cluster secret is another one")
            self.rest = self._received
        return b""


def _mac(key: bytes, who: bytes, dialled: bytes, dialler: bytes) -> bytes:
    return hmac.digest(key, who + dialled + dialler, "sha256")
