"""Escapes in place of what commands a terminal, or ends a line that others did not mean to end."""

from typing import Final

_SHORT: Final = ("\\a", "\\b", "\\t", "\\n", "\\v", "\\f", "\\r")


def printable(text: str) -> str:
    """The text on one line, with escapes in place of control, bidirectional and unknown
    characters."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escape(each) for each in text)


def _escape(character: str) -> str:
    code = ord(character)
    if 7 <= code <= 13:
        return _SHORT[code - 7]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def printable_lines(text: str) -> str:
    """Likewise, of a text whose line ends are meant."""
    return "\n".join(map(printable, text.split("\n")))
