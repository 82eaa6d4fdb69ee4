"""Glob patterns over bytes: ``*``, ``?``, ``[a-z]``, ``[^a-z]`` and ``\\`` before a literal.

Matching takes at most time proportional to the length of the pattern times that of the text, even
with many stars.
"""

from collections.abc import Iterator
from typing import Final

import attrs


@attrs.frozen
class _Step:
    """Matches one byte: within `ranges` or, with `is_negated`, outside them."""

    ranges: tuple[tuple[int, int], ...]
    is_negated: bool = False

    def takes(self, byte: int) -> bool:
        return any(low <= byte <= high for low, high in self.ranges) != self.is_negated


_ANY: Final = _Step((), is_negated=True)


def matches(pattern: bytes, text: bytes) -> bool:
    """Does the whole of `text` match? Case-sensitive."""
    ends = [0]
    for step in _steps(pattern):
        if step is None:
            ends = list(range(ends[0], len(text) + 1))
        else:
            ends = [end + 1 for end in ends if end < len(text) and step.takes(text[end])]
        if not ends:
            return False
    return ends[-1] == len(text)


def _steps(pattern: bytes) -> Iterator[_Step | None]:
    """The steps of the pattern; None is a star."""
    at = 0
    while at < len(pattern):
        symbol = pattern[at : at + 1]
        at += 1
        if symbol == b"*":
            yield None
        elif symbol == b"?":
            yield _ANY
        elif symbol == b"[":
            step, at = _bracket(pattern, at)
            yield step
        else:
            at -= 1
            byte, at = _literal(pattern, at)
            yield _Step(((byte, byte),))


def _bracket(pattern: bytes, at: int) -> tuple[_Step, int]:
    """The step of a bracket whose content starts at `at`, and the index after it. A missing ``]``
    is implied at the end."""
    is_negated = pattern[at : at + 1] == b"^"
    at += is_negated
    ranges = []
    while at < len(pattern) and pattern[at : at + 1] != b"]":
        low, at = _literal(pattern, at)
        high = low
        if pattern[at : at + 1] == b"-" and at + 1 < len(pattern):
            high, at = pattern[at + 1], at + 2
        ranges.append((min(low, high), max(low, high)))
    return _Step(tuple(ranges), is_negated), at + 1


def _literal(pattern: bytes, at: int) -> tuple[int, int]:
    """The literal byte at `at`, possibly after a backslash, and the index after it."""
    if pattern[at : at + 1] == b"\\" and at + 1 < len(pattern):
        at += 1
    return pattern[at], at + 1
