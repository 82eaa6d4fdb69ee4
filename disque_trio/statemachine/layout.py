"""How a message lies on the bus, as data: the parts of its payload, in order (original 5.3).

`wire.payloads` makes writers and readers of them. A class of `messages` has its parts beside its
attributes; each part is the value of the attribute of its name.
"""

import sys
from typing import Final

import attrs

IDENTITY: Final = "40s"
"""The id of a job or node."""
UINT32: Final = "I"
TRUTH: Final = "truth"
"""32 bits that are read as true or false."""
MARK: Final = "mark"
"""A bit of the header."""
LENGTH: Final = "length"
"""32 bits: the bytes of the part with the same name."""
BYTES: Final = "bytes"
IDENTITIES: Final = "identities"
"""Ids, up to the end of the payload."""


@attrs.frozen
class Part:
    """A piece of a payload, or a bit of the header."""

    name: str
    form: str
    """The code of `struct` for a piece of a fixed size, or one of the words above."""
    bit: int = 0
    """Of the header's message flags, for a mark."""
    most: int = sys.maxsize
    """Bytes that it may have."""
    allowed: tuple[int, ...] = ()
    """The values that it may have; empty: all."""


def identity(name: str) -> Part:
    """40 bytes."""
    return Part(name, IDENTITY)


def uint(name: str, bits: int, allowed: tuple[int, ...] = ()) -> Part:
    """An unsigned number of 8, 16, 32 or 64 bits."""
    return Part(name, {8: "B", 16: "H", 32: UINT32, 64: "Q"}[bits], allowed=allowed)


def truth(name: str) -> Part:
    """A number of 32 bits that is 1 or 0; any other than 0 is read as true."""
    return Part(name, TRUTH)


def length(name: str) -> Part:
    """How many bytes the part of this name has, which comes later: 32 bits."""
    return Part(name, LENGTH)


def data(name: str, most: int = sys.maxsize) -> Part:
    """As many bytes as its length says, or all that are left."""
    return Part(name, BYTES, most=most)


def identities(name: str) -> Part:
    """Ids to the end."""
    return Part(name, IDENTITIES)


def mark(name: str, bit: int) -> Part:
    """A bit of the header's message flags. Original nodes ignore those that are ours."""
    return Part(name, MARK, bit)
