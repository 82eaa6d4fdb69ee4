"""What an error says to a person beside its first words: the value at fault, the nearest name.

The first words are the original's, so that programs that look for them go on; what stands here
follows them.
"""

import difflib
from collections.abc import Iterable
from typing import Final

_LONGEST_SHOWN: Final = 64
_LONGEST_NAME: Final = 32
"""Whatever is longer is no slip of the fingers, and to compare it would take long."""
_SHORTEST_START: Final = 3
"""Letters that say which name was begun."""


def shown(word: bytes) -> bytes:
    """The word between quotes; of a long one the beginning, for an answer echoes no whole body."""
    word = word.replace(b"\r", b" ").replace(b"\n", b" ")
    return b"'%b'" % word if len(word) <= _LONGEST_SHOWN else b"'%b...'" % word[:_LONGEST_SHOWN]


def nearest(word: bytes, names: Iterable[bytes]) -> bytes | None:
    """The name that was probably meant, whatever its case; None if there is none like it."""
    if len(word) > _LONGEST_NAME:
        return None
    # As text, for difflib compares no bytes.
    wanted = word.decode("latin-1").lower()
    known = {name.decode("latin-1").lower(): name for name in names}
    begun = [name for name in known if name.startswith(wanted)]
    if begun and len(wanted) >= _SHORTEST_START:
        return known[min(begun, key=len)]
    near = difflib.get_close_matches(wanted, known, n=1, cutoff=0.7)
    return known[near[0]] if near else None


def did_you_mean(word: bytes, names: Iterable[bytes]) -> bytes:
    """`` (did you mean 'RETRY'?)``, or nothing."""
    near = nearest(word, names)
    return b"" if near is None else b" (did you mean '%b'?)" % near


def one_of(names: Iterable[bytes]) -> bytes:
    """``A, B or C``."""
    *most, last = names
    return b"%b or %b" % (b", ".join(most), last) if most else last
