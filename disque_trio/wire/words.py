"""Splits the line of an inline request into words (original 1.2).

White space separates words. Double quotes have the escapes \\n \\r \\t \\b \\a \\\\ \\" and \\xHH,
single quotes only \\'. A quote may open inside a word; the closing one also ends the word.
"""

import re
from typing import Final


class UnbalancedQuotesError(Exception):
    """A quote is not closed, or no white space follows a closing one."""


# Possessive throughout: a line that does not match fails at once instead of backtracking.
_WORD: Final = re.compile(
    rb"""
    (?P<plain> [^\s"']*+ )
    (?: " (?P<double> (?: [^"\\] | \\. )*+ ) "
      | ' (?P<single> (?: [^'\\] | \\'? )*+ ) ' )?
    (?: \s++ | \Z )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_CONTROLS: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}


def split(line: bytes) -> list[bytes]:
    """The words, with quotes and escapes resolved; `""` is an empty word. Raises
    UnbalancedQuotesError."""
    if b'"' not in line and b"'" not in line:
        return line.split()
    line = line.strip()
    words = []
    at = 0
    while at < len(line):
        word = _WORD.match(line, at)
        if word is None:
            raise UnbalancedQuotesError
        words.append(_unquoted(word))
        at = word.end()
    return words


def _unquoted(word: re.Match[bytes]) -> bytes:
    plain, double, single = word.groups(b"")
    return plain + _ESCAPE.sub(_unescaped, double) + single.replace(b"\\'", b"'")


def _unescaped(escape: re.Match[bytes]) -> bytes:
    digits, character = escape.groups()
    return bytes.fromhex(digits.decode()) if digits else _CONTROLS.get(character, character)
