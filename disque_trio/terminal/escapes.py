"""Escapes in place of what commands a terminal, ends a line that others did not mean to end, is not
seen, or covers what stands beside it. The console does the same (`timeline/text.js`)."""

import unicodedata
from typing import Final

_SHORT: Final = ("\\a", "\\b", "\\t", "\\n", "\\v", "\\f", "\\r")


_UNSEEN: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
).union(map(chr, range(0xFE00, 0xFE0F)), map(chr, range(0xE0100, 0xE01F0)))
"""Fillers, the empty pattern of Braille, variation selectors but the one of emoji."""
_MARKS: Final = 4
"""Marks that one character may carry: a stack of hundreds covers the lines around it."""


def printable(text: str) -> str:
    """The text on one line, with escapes in place of control, bidirectional, invisible and unknown
    characters."""
    if text.isascii() and text.isprintable():
        return text
    written, marks = [], 0
    for each in text:
        marks = marks + 1 if is_mark(each) else 0
        written.append(each if is_seen(each) and marks <= _MARKS else _escape(each))
    return "".join(written)


def is_seen(character: str) -> bool:
    """Does a reader see it, and does it command nothing?"""
    return character.isprintable() and character not in _UNSEEN


def is_mark(character: str) -> bool:
    """Is it drawn over the character before it?"""
    return not character.isascii() and unicodedata.category(character) in ("Mn", "Me")


def _escape(character: str) -> str:
    code = ord(character)
    if 7 <= code <= 13:
        return _SHORT[code - 7]
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8, by `surrogateescape`
        code -= 0xDC00
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def printable_lines(text: str) -> str:
    """Likewise, of a text whose line ends are meant."""
    return "\n".join(map(printable, text.split("\n")))
