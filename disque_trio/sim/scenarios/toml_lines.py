"""Finds the line of each key of a TOML text, which `tomllib` does not return.

`tomllib` has already accepted the text, so this parser does not validate it.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

Path = tuple[str | int, ...]
"""Keys, and indexes of arrays, from the top of the document."""

_BLANK: Final = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_SPACE: Final = re.compile(r"[ \t]*")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN: Final = re.compile(r"[^,\]}\n#]*")
"""Numbers, booleans, dates."""
_STRINGS: Final = (
    re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}', re.DOTALL),
    re.compile(r"'''.*?'{3,5}", re.DOTALL),
    re.compile(r'"(?:[^"\\]|\\.)*"'),
    re.compile(r"'[^']*'"),
)
_ESCAPE: Final = re.compile(r'\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([btnfr"\\]))')
_ESCAPED: Final = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}


def lines(text: str) -> dict[Path, int]:
    """Return the line of each key, table header and array item, from 1."""
    finder = _Finder(text)
    finder.document()
    return finder.found


def line_of(found: dict[Path, int], path: Path) -> int:
    """Return the line of `path`, or of the innermost enclosing key in the text."""
    while path and path not in found:
        path = path[:-1]
    return found.get(path, 1)


class _Finder:
    """Reads the text once. `at` is the position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[Path, int] = {}
        self._tables: dict[Path, int] = {}
        """By array of tables: the number of its tables so far."""
        self._ends = [match.start() for match in re.finditer("\n", text)]

    def document(self) -> None:
        table: Path = ()
        while self._blank() < len(self.text):
            if self._peek() == "[":
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> Path:
        line = self._line()
        is_array = self.text.startswith("[[", self.at)
        self.at += 2 if is_array else 1
        path: Path = ()
        keys = list(self._key())
        self.at += 2 if is_array else 1
        for depth, key in enumerate(keys):
            path += (key,)
            if is_array and depth == len(keys) - 1:
                self._tables[path] = self._tables.get(path, 0) + 1
            if path in self._tables:
                path += (self._tables[path] - 1,)
        self.found[path] = line
        return path

    def _pair(self, table: Path) -> None:
        path = table
        line = self._line()
        for key in self._key():
            path += (key,)
            self.found.setdefault(path, line)
        self.at += 1  # the equals sign
        self._skip(_SPACE)
        self._value(path)

    def _key(self) -> Iterator[str]:
        """Yield the parts of a dotted key; afterwards `at` is behind it and its spaces."""
        while True:
            self._skip(_SPACE)
            yield self._key_part()
            self._skip(_SPACE)
            if self._peek() != ".":
                return
            self.at += 1

    def _key_part(self) -> str:
        if self._peek() == "'":
            return self._skip(_STRINGS[3])[1:-1]
        if self._peek() == '"':
            return _ESCAPE.sub(_unescape, self._skip(_STRINGS[2])[1:-1])
        return self._skip(_BARE)

    def _value(self, path: Path) -> None:
        first = self._peek()
        if first == "[":
            self._array(path)
        elif first == "{":
            self._inline_table(path)
        elif first in {'"', "'"}:
            self._skip(next(kind for kind in _STRINGS if kind.match(self.text, self.at)))
        else:
            self._skip(_PLAIN)

    def _array(self, path: Path) -> None:
        self.at += 1
        index = 0
        while self._blank() < len(self.text) and self._peek() != "]":
            if self._peek() == ",":
                self.at += 1
                continue
            self.found[(*path, index)] = self._line()
            self._value((*path, index))
            index += 1
        self.at += 1

    def _inline_table(self, path: Path) -> None:
        self.at += 1
        while self._blank() < len(self.text) and self._peek() != "}":
            if self._peek() == ",":
                self.at += 1
                continue
            self._pair(path)
        self.at += 1

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        assert match is not None, f"not TOML at {self.at}: {self.text[self.at :][:40]!r}"
        self.at = match.end()
        return match.group()

    def _blank(self) -> int:
        self._skip(_BLANK)
        return self.at

    def _line(self) -> int:
        return bisect_left(self._ends, self.at) + 1


def _unescape(match: re.Match[str]) -> str:
    short, long, letter = match.groups()
    if letter:
        return _ESCAPED.get(letter, letter)
    return chr(int(short or long, 16))
