"""Job extensions, as bytes after a serialized job (docs/journal.md, "Job extensions").

Fields in ascending order of their numbers, each with its number (2 bytes), its length (4 bytes) and
its value; little-endian. Unknown fields are preserved. The first field, DUE, is not an extension:
only journal records of delayed jobs have it, and `wire.jobs` removes it.
"""

import struct
from functools import lru_cache
from typing import Any, Final

from disque_trio.statemachine.base import Millis
from disque_trio.statemachine.extensions import (
    ALIVE,
    FIELDS,
    MAX_ERROR,
    MAX_REASON,
    NO_ERROR,
    TEXTS,
    DeadState,
    Extensions,
    LastError,
)

DUE: Final = 0
_FIELD: Final = struct.Struct("<HI")
_DEAD: Final = struct.Struct("<I?Q")
_SHARED: Final = 512
"""Longer extensions are not cached."""
_ERROR: Final = struct.Struct("<Q")
_DUE: Final = struct.Struct("<HIQ")
DUE_SIZE: Final = _DUE.size
_DUE_HEAD: Final = _FIELD.pack(DUE, DUE_SIZE - _FIELD.size)
_NUMBER_OF: Final = {field.name: field.number for field in FIELDS}
_DEATH: Final = _NUMBER_OF["dead"]
_FAILURE: Final = _NUMBER_OF["error"]
_NUMBERS: Final = [
    (field.number, field.name, struct.Struct(field.layout))
    for field in FIELDS
    if field.layout and field not in TEXTS
]


def encode_due(due: Millis) -> bytes:
    """The field DUE, with which the extensions in a journal record of a delayed job begin."""
    return _DUE.pack(DUE, DUE_SIZE - _FIELD.size, due)


def decode_due(data: bytes) -> Millis:
    """The value of DUE in the first DUE_SIZE bytes; 0 if it is missing."""
    if len(data) < DUE_SIZE or not data.startswith(_DUE_HEAD):
        return 0
    due: Millis = _DUE.unpack_from(data)[2]
    return due


def encode(extensions: Extensions) -> bytes:
    """Encode the fields that differ from their defaults, and unknown ones of later versions."""
    fields = list(extensions.unknown)
    for number, name, layout in _NUMBERS:
        value = getattr(extensions, name)
        if value:
            fields.append((number, layout.pack(value)))
    for field in TEXTS:
        text = getattr(extensions, field.name)
        if text is not None:
            fields.append((field.number, text))
    if extensions.dead != ALIVE:
        fields.append((_DEATH, _dead(extensions.dead)))
    if extensions.error != NO_ERROR:
        fields.append((_FAILURE, _ERROR.pack(extensions.error.at) + extensions.error.text))
    fields.sort()
    return b"".join([_FIELD.pack(number, len(value)) + value for number, value in fields])


def _dead(state: DeadState) -> bytes:
    return _DEAD.pack(state.epoch, state.is_dead, state.life) + state.reason


def decode(data: bytes) -> Extensions | None:
    """Decode extensions; None if the bytes are not in the form of `encode`. Jobs with equal
    extensions share the record, unless it is long, such as one with an error."""
    return _decode(data) if len(data) > _SHARED else _shared(data)


@lru_cache(maxsize=1 << 10)
def _shared(data: bytes) -> Extensions | None:
    return _decode(data)


def _decode(data: bytes) -> Extensions | None:
    values: dict[int, bytes] = {}
    at = 0
    while len(data) - at >= _FIELD.size:
        number, length = _FIELD.unpack_from(data, at)
        at += _FIELD.size
        values[number] = data[at : at + length]
        at += length
    try:
        found = _extensions(values)
    except struct.error:
        return None
    return found if data and encode(found) == data else None


def _extensions(values: dict[int, bytes]) -> Extensions:
    """Raises struct.error for a known field with a wrong length, and for DUE."""
    if DUE in values:
        raise struct.error
    found: dict[str, Any] = {}
    for number, name, layout in _NUMBERS:
        if number in values:
            (found[name],) = layout.unpack(values.pop(number))
    for field in TEXTS:
        found[field.name] = values.pop(field.number, None)
    dead = _read_dead(values.pop(_DEATH)) if _DEATH in values else ALIVE
    error = _read_error(values.pop(_FAILURE)) if _FAILURE in values else NO_ERROR
    return Extensions(dead=dead, error=error, unknown=tuple(values.items()), **found)


def _read_dead(value: bytes) -> DeadState:
    epoch, is_dead, life = _DEAD.unpack_from(value)
    return DeadState(epoch, is_dead, value[_DEAD.size :][:MAX_REASON], life)


def _read_error(value: bytes) -> LastError:
    (at,) = _ERROR.unpack_from(value)
    return LastError(at, value[_ERROR.size :][:MAX_ERROR])
