"""The layout of a message on the bus, as data: the parts of its payload, in order (original 5.3).

`wire.payloads` derives writers and readers from them. A class in `messages` lists its parts; each
part has the value of the attribute with its name.
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
"""32 bits: the number of bytes of the part with the same name."""
BYTES: Final = "bytes"
IDENTITIES: Final = "identities"
"""Ids, up to the end of the payload."""


@attrs.frozen
class Part:
    """A part of a payload, or a bit of the header."""

    name: str
    form: str
    """The `struct` format of a part of fixed size, or one of the constants above."""
    bit: int = 0
    """For a mark: its bit in the header's message flags."""
    most: int = sys.maxsize
    """The maximum size, in bytes."""
    allowed: tuple[int, ...] = ()
    """The valid values; empty for any."""


def identity(name: str) -> Part:
    """An id of 40 bytes."""
    return Part(name, IDENTITY)


def uint(name: str, bits: int, allowed: tuple[int, ...] = ()) -> Part:
    """An unsigned number of 8, 16, 32 or 64 bits."""
    return Part(name, {8: "B", 16: "H", 32: UINT32, 64: "Q"}[bits], allowed=allowed)


def truth(name: str) -> Part:
    """A number of 32 bits that is 1 or 0; any other than 0 is read as true."""
    return Part(name, TRUTH)


def length(name: str) -> Part:
    """The number of bytes of the later part with this name, in 32 bits."""
    return Part(name, LENGTH)


def data(name: str, most: int = sys.maxsize) -> Part:
    """Bytes: as many as its length part gives, or up to the end of the payload."""
    return Part(name, BYTES, most=most)


def identities(name: str) -> Part:
    """Ids up to the end of the payload."""
    return Part(name, IDENTITIES)


def mark(name: str, bit: int) -> Part:
    """A bit of the header's message flags. Original nodes ignore those that are ours."""
    return Part(name, MARK, bit)
