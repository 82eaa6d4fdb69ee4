"""Salvage of a damaged file in our format: finds every sound record, anywhere in the file.

The whole file must be mapped into memory: after a damaged beginning of a record, the next record
must be searched for. The salt of the checksums prevents content of a job's body from being read as
a record (`framed`).
"""

from collections.abc import Iterator
from mmap import mmap
from typing import Final

import attrs

from disque_trio.statemachine.records import Record
from disque_trio.wire import framed
from disque_trio.wire.jobs import DamagedError
from disque_trio.wire.journal import NewerFileError, WrittenBy

_WINDOW: Final = 1 << 20


@attrs.frozen
class Gap:
    """Bytes without a sound record, from `start` up to `end`."""

    start: int
    end: int
    reason: str


Data = bytes | mmap


def salvage(data: Data) -> Iterator[Record | Gap]:
    """The sound records and the gaps between them, in the file's order.

    Raises DamagedError if the header cannot be reconstructed, and NewerFileError at content that
    only a newer version can have written.
    """
    salt, is_sound = _salt(data)
    at = framed.HEADER_SIZE
    if not is_sound:
        yield Gap(0, at, "header damaged")
    while at < len(data):
        found: list[Record] = []
        stop = _decode(salt, data, at, found)
        yield from found
        at = stop.at
        if stop.newer and not found:
            raise NewerFileError(stop.newer, at, WrittenBy())
        if at < len(data) and not found:
            after = _next_sound(salt, data, at + 1)
            yield Gap(at, after, stop.damage or "cut short")
            at = after


def _decode(salt: int, data: Data, at: int, found: list[Record]) -> framed.Stop:
    """Decode a window of the file, or a whole record if that is longer."""
    size = max(_WINDOW, framed.size_at(data, at))
    stop = framed.decode(salt, data[at : at + size], 0, found)
    return framed.Stop(at + stop.at, stop.needed, stop.damage, stop.newer)


def _next_sound(salt: int, data: Data, at: int) -> int:
    """The start of the next sound record, or the end of the file."""
    while (at := data.find(framed.MARK, at)) >= 0:
        if _is_sound(salt, data, at):
            return at
        at += 1
    return len(data)


def _is_sound(salt: int, data: Data, at: int) -> bool:
    size = framed.size_at(data, at)
    if not size or size > len(data) - at:
        return False
    stop = framed.decode(salt, data[at : at + size], 0, [])
    return stop.at == size or bool(stop.newer)


def _salt(data: Data) -> tuple[int, bool]:
    """The file's salt, and whether its header is sound."""
    if newer := framed.newer_version(data[: framed.HEADER_SIZE]):
        raise NewerFileError(newer, 0, WrittenBy())
    try:
        return framed.salt_of(data[: framed.HEADER_SIZE]), True
    except DamagedError:
        # The salt itself may be intact, or have one wrong bit.
        written = int.from_bytes(data[12:16], "little")
        for guess in (written, *[written ^ 1 << bit for bit in range(32)]):
            if _is_sound(guess, data, framed.HEADER_SIZE):
                return guess, False
        raise
