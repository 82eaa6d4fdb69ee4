"""Bytes that are nearly right: what a fuzzer without coverage makes of an example."""

import random
from collections.abc import Callable, Sequence
from typing import Final

WORDS: Final = (
    b"\r\n", b"*", b"$", b"-1", b"0", b"1048577", b"536870913", b"4294967296", b"\0\0\0\0",
    b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"DbuZ", b"D-", b"\xd1\xa5", b"disqueaof 1\n", b"\"",
    b"LOADJOB", b"DELJOB",
)  # fmt: skip
"""What means something in one of the formats."""


def mutated(rng: random.Random, data: bytes, examples: Sequence[bytes]) -> bytes:
    """The bytes with one to eight changes; some are taken from other examples."""
    result = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        rng.choice(_CHANGES)(rng, result, examples)
    return bytes(result)


Change = Callable[[random.Random, bytearray, Sequence[bytes]], None]


def _flip(rng: random.Random, data: bytearray, _examples: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _number(rng: random.Random, data: bytearray, _examples: Sequence[bytes]) -> None:
    """Four bytes become a number at the edge of something, in either order."""
    if len(data) >= 4:
        at = rng.randrange(len(data) - 3)
        number = rng.choice((0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, len(data), len(data) + 1))
        data[at : at + 4] = number.to_bytes(4, rng.choice(("little", "big")))


def _cut(rng: random.Random, data: bytearray, _examples: Sequence[bytes]) -> None:
    del data[rng.randrange(len(data) + 1) :]


def _remove(rng: random.Random, data: bytearray, _examples: Sequence[bytes]) -> None:
    at = rng.randrange(len(data) + 1)
    del data[at : at + rng.randrange(1, 64)]


def _insert(rng: random.Random, data: bytearray, _examples: Sequence[bytes]) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice((rng.choice(WORDS), rng.randbytes(rng.randrange(1, 40))))


def _double(rng: random.Random, data: bytearray, _examples: Sequence[bytes]) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = data[at : at + rng.randrange(1, 256)]


def _splice(rng: random.Random, data: bytearray, examples: Sequence[bytes]) -> None:
    other = rng.choice(examples)
    start = rng.randrange(len(other) + 1)
    at = rng.randrange(len(data) + 1)
    data[at:] = other[start:]


_CHANGES: Final[tuple[Change, ...]] = (
    _flip, _flip, _number, _number, _cut, _remove, _insert, _double, _splice,
)  # fmt: skip
