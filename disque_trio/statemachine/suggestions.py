"""Details of error texts for people: the invalid value, and the most similar name.

An error begins with the words of the original, on which programs may depend; these details follow.
"""

import difflib
from collections.abc import Iterable
from typing import Final

_LONGEST_SHOWN: Final = 64
_LONGEST_NAME: Final = 32
"""A longer word is not a misspelling, and comparing it would take long."""
_SHORTEST_START: Final = 3
"""The number of letters from which a name is completed."""
_CONTROLS: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), 0x7F)} | {
    ord("\r"): " ",
    ord("\n"): " ",
}


def shown(word: bytes) -> bytes:
    """The word in quotes, as text on one line, truncated so that an error does not echo a whole
    body."""
    text = word[:_LONGEST_SHOWN].decode(errors="backslashreplace").translate(_CONTROLS)
    return b"'%b%b'" % (text.encode(), b"..." if len(word) > _LONGEST_SHOWN else b"")


def nearest(word: bytes, names: Iterable[bytes]) -> bytes | None:
    """The most similar name, case-insensitive; None if there is none."""
    wanted = word.lower()
    if not 1 < len(wanted) <= _LONGEST_NAME:
        return None
    known = {name.lower(): name for name in names}
    begun = [name for name in known if name.startswith(wanted)]
    if begun and len(wanted) >= _SHORTEST_START:
        return known[min(begun, key=len)]
    # The comparison is slow, and clients can cause it at will, so unlikely names are excluded
    # first.
    letters = set(wanted)
    alike = [
        name
        for name in known
        if abs(len(name) - len(wanted)) <= 3 and len(letters.intersection(name)) * 2 > len(letters)
    ]
    near = difflib.get_close_matches(wanted, alike, n=1, cutoff=0.65)
    return known[near[0]] if near else None


def did_you_mean(word: bytes, names: Iterable[bytes]) -> bytes:
    """`` (did you mean 'RETRY'?)``; empty if there is no similar name."""
    near = nearest(word, names)
    return b"" if near is None else b" (did you mean '%b'?)" % near


def none_of(word: bytes, names: Iterable[bytes]) -> bytes:
    """``'in' is none of …``, with the most similar name."""
    names = tuple(names)
    return b"%b is none of %b%b" % (shown(word), b", ".join(names), did_you_mean(word, names))


def no_option(word: bytes, command: bytes, names: Iterable[bytes]) -> bytes:
    """``'RETYR' is not an option of ADDJOB``, with the most similar option, or else all."""
    names = tuple(names)
    there = b"there is only" if len(names) == 1 else b"there are"
    hint = did_you_mean(word, names) or b"; %b %b" % (there, b", ".join(names))
    return b"%b is not an option of %b%b" % (shown(word), command, hint)
