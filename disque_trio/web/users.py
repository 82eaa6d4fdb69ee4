"""Users by name: their roles, and the proofs of their identity.

A password is stored as its scrypt hash, which is slow by design. A token is 32 random bytes, which
nobody can guess, so that its SHA-256 hash suffices. The passwords of directives are users, too:
`admin` and `reader`.
"""

import base64
import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import attrs

from disque_trio.statemachine.config import Config
from disque_trio.statemachine.values import MOST_SCRYPT_BYTES
from disque_trio.web.roles import ADMIN, READER, Role

SCRYPT: Final = b"scrypt"
SHA256: Final = b"sha256"
PLAIN: Final = b"plain"
_COST: Final = (1 << 14, 8, 1)
"""n, r and p of scrypt: 16 MiB, and about 50 ms."""
_TOKEN: Final = "disque_"


@attrs.frozen
class Account:
    """One user."""

    name: str
    role: Role
    secret: bytes = attrs.field(repr=False)
    """The stored proof: `scrypt$n$r$p$salt$hash`, `sha256$hash`, or `plain$password`."""

    @property
    def is_slow(self) -> bool:
        """Is the comparison of its password slow?"""
        return self.secret.startswith(SCRYPT)

    def fits(self, word: bytes) -> bool:
        """Is this its password or token? The comparison takes constant time."""
        kind, _, rest = self.secret.partition(b"$")
        if kind == PLAIN:
            return hmac.compare_digest(word, rest)
        if kind == SHA256:
            return hmac.compare_digest(hashlib.sha256(word).hexdigest().encode(), rest)
        n, r, p, salt, digest = rest.split(b"$")
        found = _scrypt(word, base64.b64decode(salt), int(n), int(r), int(p))
        return hmac.compare_digest(found, base64.b64decode(digest))


def hashed(password: bytes) -> bytes:
    """Return the stored form of a password."""
    salt = os.urandom(16)
    n, r, p = _COST
    parts = (base64.b64encode(salt), base64.b64encode(_scrypt(password, salt, n, r, p)))
    return b"$".join((SCRYPT, b"%d$%d$%d" % _COST, *parts))


def nobody() -> bytes:
    """Return a stored form that no password matches; the comparison takes as long as for others."""
    salt, digest = (base64.b64encode(bytes(size)) for size in (16, 32))
    return b"$".join((SCRYPT, b"%d$%d$%d" % _COST, salt, digest))


def _scrypt(password: bytes, salt: bytes, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(password, salt=salt, n=n, r=r, p=p, maxmem=MOST_SCRYPT_BYTES, dklen=32)


def token() -> tuple[str, bytes]:
    """Return a new token and its stored form."""
    word = _TOKEN + secrets.token_urlsafe(32)
    return word, SHA256 + b"$" + hashlib.sha256(word.encode()).hexdigest().encode()


def accounts(config: Config) -> Mapping[str, Account]:
    """Return all users by name. A user of `web-users-file` replaces the user of a directive with
    the same name."""
    return _accounts(config.requirepass, config.web_reader_password, config.web_users)


@lru_cache(maxsize=4)
def _accounts(requirepass: bytes, reader: bytes, users: bytes) -> Mapping[str, Account]:
    words = {ADMIN: requirepass, READER: reader if requirepass or users else b""}
    found = {name: Account(name, name, PLAIN + b"$" + word) for name, word in words.items() if word}
    return found | {each.name: each for each in parsed(users)}


def parsed(text: bytes) -> list[Account]:
    """Return the users of a file, which was checked when it was read."""
    lines = (line.decode("ascii").split(":") for line in text.splitlines() if is_entry(line))
    return [Account(name, role, secret.encode()) for name, role, secret in lines]


def is_entry(line: bytes) -> bool:
    """Is the line neither empty nor a comment?"""
    return bool(line.strip()) and not line.startswith(b"#")
