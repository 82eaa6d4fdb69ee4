"""How long a node may wait before it answers a typed command, for the time limit of replies."""

import math
from collections.abc import Sequence
from typing import Final

_ENDLESS: Final = frozenset({b"DEBUG", b"MONITOR", b"SHUTDOWN"})
"""Commands that take as long as they like."""
_KEYS: Final = frozenset({b"SHOW", b"CANCEL"})
_KEY_WAIT_S: Final = 5.0
_MOST_DIGITS: Final = 12


def wait_s(args: Sequence[bytes]) -> float:
    """That, in seconds, as far as the words of the command tell it; infinity is for ever."""
    words = [word.upper() for word in args]
    match words:
        case [b"ADDJOB", _, _, limit, *_]:
            return _milliseconds(limit)
        case [b"GETJOB" | b"WAITJOB" as name, *options]:
            if name == b"GETJOB" and b"FROM" in options:
                options = options[: options.index(b"FROM")]
            if b"NOHANG" in options:
                return 0.0
            at = options.index(b"TIMEOUT") + 1 if b"TIMEOUT" in options else len(options)
            return _milliseconds(*options[at : at + 1])
        case [name, b"KEY", *_] if name in _KEYS:
            return _KEY_WAIT_S
    return math.inf if words[0] in _ENDLESS or b"BUSYLOOP" in words else 0.0


def _milliseconds(word: bytes = b"0") -> float:
    """0 is for ever, and so is what sockets cannot wait; the node judges what is no number."""
    is_finite = word.isdigit() and len(word) <= _MOST_DIGITS and int(word)
    return int(word) / 1000 if is_finite else math.inf
