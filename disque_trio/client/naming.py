"""Names of clients' connections, by which an operator recognises a program in CLIENT LIST."""

import os
import re
import socket
import sys
from typing import Final

_OWN: Final = ("disque-trio", "disque_trio")
"""The names of this package's command line."""
_LONGEST: Final = 64
_UNFIT: Final = re.compile("[^!-~]")
"""Characters that are not allowed, because the name is a word in a line of CLIENT LIST."""


def process_name(program: str = "") -> str:
    """`program@host:pid`, such as `shop.py@web-1:4242` or `disque-trio-doctor@web-1:4242`."""
    return f"{(program or _program())[:_LONGEST]}@{socket.gethostname()}:{os.getpid()}"


def as_one_word(name: str) -> bytes:
    """The name with an underscore in place of each character that nodes reject."""
    return _UNFIT.sub("_", name).encode()


def _program() -> str:
    """The started program: a script, the package of `python -m`, or a command of `disque-trio`."""
    place, name = os.path.split(sys.argv[0] if sys.argv else "")
    if name == "__main__.py":
        name = os.path.basename(place)
    if name in _OWN and len(sys.argv) > 1 and sys.argv[1].isalpha():
        return f"disque-trio-{sys.argv[1]}"
    return name if name not in ("", "-c", "-m") else "python"
