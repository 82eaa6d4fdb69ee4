"""The append-only file's own format: records with a length and a checksum (docs/journal.md).

    file    header, records
    header  "disqueaof 1" and a line end, salt (u32), CRC-32C of these 16 bytes (u32)
    record  tag (4 bytes), length of the payload (u32), its complement (u32), payload,
            CRC-32C of all that, started from the salt (u32)

Little-endian. The complement distinguishes a wrong length from a record that was cut short. The
salt is a random number of the file. It prevents content of a job's body, or old content of the same
disk blocks, from being read as a record.
"""

import struct
from mmap import mmap
from typing import Final

import attrs
import google_crc32c

from disque_trio.statemachine.base import JOB_ID_LENGTH
from disque_trio.statemachine.records import DeleteJob, LoadJob, Record, StoredResult
from disque_trio.wire import jobs
from disque_trio.wire.jobs import DamagedError

MAGIC: Final = b"disqueaof 1\n"
"""The digit is the version of the layout. In every version the header is as here."""
HEADER_SIZE: Final = 20
MARK: Final = b"\xd1\xa5"
"""Every record begins with it."""
MAX_PAYLOAD: Final = (1 << 30) + (1 << 23)
"""No request is longer than 1 GiB, and a job has at most 65,535 holders."""

_HEAD: Final = struct.Struct("<4sII")
_CHECKSUM: Final = struct.Struct("<I")
_OVERHEAD: Final = _HEAD.size + _CHECKSUM.size
_LOAD: Final = MARK + b"LJ"
_LOAD_EXTENDED: Final = MARK + b"LX"
_DELETE: Final = MARK + b"DJ"
_RESULT: Final = MARK + b"KR"
_KINDS: Final = frozenset({_LOAD, _LOAD_EXTENDED, _DELETE, _RESULT})
_RESULT_HEAD: Final = struct.Struct("<40sQQI")
"""A result: the job's id, the time of the result, its expiry, the length of the queue's name."""
_VERSION_AT: Final = 10
_ALL_ONES: Final = 0xFFFFFFFF
_STRANGE: Final = "record of a kind that is not known here"
_RESIDUE: Final = 0x48674BC7
"""CRC-32C of any bytes followed by their own CRC-32C."""

_MOST_HEADS: Final = 1 << 12
"""The maximum number of cached beginnings of records."""

_extend: Final = google_crc32c.extend
_unpack_head: Final = _HEAD.unpack_from
_pack_head: Final = _HEAD.pack
_pack_checksum: Final = _CHECKSUM.pack


@attrs.define
class Stop:
    """Where and why reading stopped."""

    at: int
    """The end of the last complete record."""
    needed: int = 0
    """How many bytes from `at` on are needed to continue."""
    damage: str = ""
    """The damage; empty if only bytes are missing."""
    newer: str = ""
    """Content that only a newer version can have written; empty if there is none. The record is
    sound, or incomplete if bytes are `needed`."""


def header(salt: int) -> bytes:
    """The header of a file. `salt` is any number of 32 bits."""
    start = MAGIC + salt.to_bytes(4, "little")
    return start + _pack_checksum(_extend(0, start))


def salt_of(start: bytes) -> int:
    """The salt in a file's first HEADER_SIZE bytes. Raises DamagedError."""
    if start != header(salt := int.from_bytes(start[12:16], "little")):
        raise DamagedError("header damaged")
    return salt


def is_header(start: bytes) -> bool:
    """Does a file of any version begin with these bytes?"""
    known, version, end = MAGIC[:_VERSION_AT], start[_VERSION_AT : _VERSION_AT + 1], MAGIC[-1:]
    return (
        known.startswith(start[:_VERSION_AT])
        and (not version or version.isalnum())
        and end.startswith(start[_VERSION_AT + 1 : len(MAGIC)])
    )


def newer_version(start: bytes) -> str:
    """A text about the newer layout of a file that begins with these bytes, at most HEADER_SIZE.
    Empty for this layout, and for a damaged header: if only one bit of the version is wrong."""
    if not is_header(start) or not MAGIC[_VERSION_AT:] < start[_VERSION_AT : len(MAGIC)]:
        return ""
    version, known = start[_VERSION_AT], MAGIC[_VERSION_AT]
    if (version ^ known).bit_count() == 1 and len(start) == HEADER_SIZE:
        mended = MAGIC + start[len(MAGIC) :]
        if _extend(0, mended) == _RESIDUE:
            return ""
    return f"layout {chr(version)} of the file is not known here"


def draft(record: Record) -> bytes:
    """Encode a record without the checksum; the bytes are the same in every file."""
    if isinstance(record, LoadJob):
        copy = record.copy
        tag = _LOAD if copy.extensions is None and not copy.due else _LOAD_EXTENDED
        payload = jobs.encode(copy)
    elif isinstance(record, StoredResult):
        head = _RESULT_HEAD.pack(record.id, record.at, record.until, len(record.queue))
        tag, payload = _RESULT, head + record.queue + record.value
    else:
        tag, payload = _DELETE, record.id
    size = len(payload)
    return (_HEADS.get((tag, size)) or _head(tag, size)) + payload


_HEADS: Final[dict[tuple[bytes, int], bytes]] = {}


def _head(tag: bytes, size: int) -> bytes:
    """The bytes before the payload. Cached, because most records of a tag have one of a few
    sizes."""
    packed = _pack_head(tag, size, size ^ _ALL_ONES)
    if len(_HEADS) < _MOST_HEADS:
        _HEADS[tag, size] = packed
    return packed


def seal(salt: int, drafted: bytes) -> bytes:
    """The complete record, as written to a file with this salt."""
    return drafted + _pack_checksum(_extend(salt, drafted))


def encode(salt: int, record: Record) -> bytes:
    """Encode a record for a file with this salt."""
    return seal(salt, draft(record))


def decode(salt: int, data: bytes, at: int, found: list[Record]) -> Stop:
    """Append the records from `at` on to `found`, up to the first incomplete or damaged one."""
    limit = len(data)
    while limit - at >= _OVERHEAD:
        tag, size, complement = _unpack_head(data, at)
        if size ^ complement != _ALL_ONES or size > MAX_PAYLOAD or tag[:2] != MARK:
            return Stop(at, damage="record without a proper beginning")
        end = at + _OVERHEAD + size
        if end > limit:
            return Stop(at, needed=end - at, newer="" if tag in _KINDS else _STRANGE)
        if _extend(salt, data[at:end]) != _RESIDUE:
            return Stop(at, damage="checksum wrong")
        try:
            record = _record(tag, data, at + _HEAD.size, end - _CHECKSUM.size)
        except DamagedError as error:
            # The checksum is right, so the record is not damaged.
            return Stop(at, newer=error.reason)
        if record is None:
            return Stop(at, damage="record of another kind than its job")
        found.append(record)
        at = end
    start = data[at : at + 2]
    if start != MARK[: len(start)]:
        return Stop(at, damage="record without a proper beginning")
    return Stop(at, needed=_OVERHEAD)


def _record(tag: bytes, data: bytes, at: int, end: int) -> Record | None:
    """Decode a payload. Returns None for a job that needs another kind of record. Raises
    DamagedError for an unknown kind."""
    if tag in {_LOAD, _LOAD_EXTENDED}:
        copy = jobs.decode_whole(data, at, end)
        if (copy.extensions is None and not copy.due) != (tag == _LOAD):
            return None
        return LoadJob(copy)
    if tag == _DELETE and end - at == JOB_ID_LENGTH:
        return DeleteJob(data[at:end])
    if tag == _RESULT and end - at >= _RESULT_HEAD.size:
        id, stored_at, until, length = _RESULT_HEAD.unpack_from(data, at)
        at += _RESULT_HEAD.size
        if at + length <= end:
            return StoredResult(
                id, data[at : at + length], stored_at, until, data[at + length : end]
            )
    raise DamagedError(_STRANGE)


def size_at(data: bytes | mmap, at: int) -> int:
    """The length of the record at `at` according to its beginning; 0 if that is invalid."""
    if len(data) - at < _OVERHEAD:
        return 0
    tag, size, complement = _unpack_head(data, at)
    if size ^ complement != _ALL_ONES or size > MAX_PAYLOAD or tag[:2] != MARK:
        return 0
    return _OVERHEAD + int(size)
