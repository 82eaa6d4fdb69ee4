"""Encrypts bodies of jobs, checkpoints and results by AES-GCM, with key rotation.

Nodes, their files and the network contain the task, the key, the queue and the options of a job,
and the errors of failed attempts, in plain text; but no arguments, headers, checkpoints or results.
Arguments of schedules that were added at run time are not encrypted. Source: docs/worker-codecs.md,
"Encryption".
"""

import base64
import binascii
import os
from collections.abc import Mapping
from typing import Final

from disque_trio.worker.codecs import Codec
from disque_trio.worker.envelope import NewerBodyError

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
except ModuleNotFoundError as missing:
    raise ImportError(
        'disque_trio.contrib.encryption needs cryptography: pip install "disque-trio[encryption]"',
        name=missing.name,
    ) from missing

__all__ = ["Encryption", "new_key"]

_NONCE: Final = 12
_BOUND: Final = b"disque_trio aes-gcm 1 "
"""Authenticated with each body, together with the id of its key."""


def new_key() -> str:
    """A new key of 256 bits, as base64."""
    return base64.urlsafe_b64encode(AESGCM.generate_key(256)).decode()


class Encryption(Codec):
    """Encrypts bodies with the first one of `keys`, and decrypts them with the key that they name.

    `keys` maps ids, which are written into bodies, to keys of `new_key`. To rotate keys, add the
    new key after the others in all processes, then move it to the front, and delete the old one
    after its last job has ended.
    """

    name = "aes-gcm"

    def __init__(self, keys: Mapping[str, str | bytes]) -> None:
        """Raises `ValueError` for an invalid key, or an id that does not have 1 to 100 bytes."""
        if not keys:
            raise ValueError("Encryption needs at least one key (new_key)")
        self._ciphers = {_id(name): AESGCM(_key(name, key)) for name, key in keys.items()}
        self._first = next(iter(self._ciphers))

    def encode(self, body: bytes) -> bytes:
        """The length and id of the key, a nonce, and the encrypted body."""
        nonce = os.urandom(_NONCE)
        sealed = self._ciphers[self._first].encrypt(nonce, body, _BOUND + self._first)
        return bytes([len(self._first)]) + self._first + nonce + sealed

    def decode(self, body: bytes, most: int) -> bytes:  # noqa: ARG002  # it gets shorter
        """The body. Raises `ValueError` if it was changed, and `NewerBodyError` if this app lacks
        its key."""
        size = body[0] if body else 0
        id, nonce, sealed = (
            body[1 : 1 + size],
            body[1 + size : 1 + size + _NONCE],
            body[13 + size :],
        )
        if not id or len(nonce) < _NONCE:
            raise ValueError("it is truncated")
        cipher = self._ciphers.get(id)
        if cipher is None:
            shown = id.decode(errors="backslashreplace")
            raise NewerBodyError(f"codec aes-gcm: key {shown!r} is unknown here")
        try:
            return cipher.decrypt(nonce, sealed, _BOUND + id)
        except InvalidTag:
            raise ValueError("it was modified, or encrypted with another key of this id") from None


def _id(name: object) -> bytes:
    if not isinstance(name, str) or not 1 <= len(name.encode(errors="backslashreplace")) <= 100:
        raise ValueError(f"the id of a key must be text of 1 to 100 bytes, not {name!r}")
    return name.encode(errors="backslashreplace")


def _key(name: str, key: str | bytes) -> bytes:
    """The bytes of a key. Errors do not contain the key."""
    try:
        found = base64.urlsafe_b64decode(key) if isinstance(key, str) else bytes(key)
    except (binascii.Error, ValueError, TypeError):
        found = b""
    if len(found) not in (16, 24, 32):
        raise ValueError(
            f"key {name!r}: it must have 16, 24 or 32 bytes, raw or in base64 (new_key)"
        )
    return found
