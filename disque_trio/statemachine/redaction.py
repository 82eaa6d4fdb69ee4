"""Redaction of secrets in requests, for MONITOR, SLOWLOG and traces."""

from collections.abc import Sequence
from typing import Final

from disque_trio.statemachine.directives import SECRETS

HIDDEN: Final = b"(redacted)"
"""The text that replaces a secret."""


def redacted(name: str, args: Sequence[bytes]) -> Sequence[bytes]:
    """The arguments without passwords. `name` is the command's original name, even if it was
    renamed."""
    if name == "auth":
        return [args[0], *[HIDDEN] * (len(args) - 1)]
    if name == "hello":
        return _greeting(args)
    if name == "config" and len(args) > 3 and args[2].decode("latin-1").lower() in SECRETS:
        return [*args[:3], *[HIDDEN] * (len(args) - 3)]
    return args


def _greeting(args: Sequence[bytes]) -> Sequence[bytes]:
    """Redact the password of HELLO, and the user name after AUTH: if that was omitted, the password
    is in its place."""
    words = list(args)
    for at, word in enumerate(args[2:], 2):
        if word.upper() == b"AUTH":
            words[at + 1 : at + 3] = [HIDDEN] * len(args[at + 1 : at + 3])
            break
    return words
