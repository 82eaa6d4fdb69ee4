"""The original's append-only file: commands in the form of client requests (original 7.1).

There are two commands: LOADJOB has a whole job in storage form, DELJOB an id. They are always
written in canonical form, and no other form is accepted, because there is no checksum.
"""

import re
from typing import Final

import attrs

from disque_trio.statemachine.base import ACKED, JOB_ID_LENGTH
from disque_trio.statemachine.extensions import needs_of
from disque_trio.statemachine.records import DeleteJob, LoadJob, Record, StoredResult
from disque_trio.wire import jobs
from disque_trio.wire.framed import Stop
from disque_trio.wire.jobs import DamagedError

_LOAD: Final = b"*2\r\n$7\r\nLOADJOB\r\n$"
_DELETE: Final = b"*2\r\n$6\r\nDELJOB\r\n$40\r\n"
_END: Final = b"\r\n"
_DELETE_SIZE: Final = len(_DELETE) + JOB_ID_LENGTH + len(_END)
_LENGTH: Final = re.compile(rb"([1-9]\d{0,9}|\Z)(?:\r\n|\r?\Z)")
"""Matches the length of a job with its line end, or an incomplete one at the end of the data."""
_STRANGE: Final = "neither LOADJOB nor DELJOB"
_BAD_LENGTH: Final = "length of a LOADJOB wrong"


class NoPlaceError(ValueError):
    """This format has no room for a job's extensions, or long periods."""


def encode(record: Record) -> bytes:
    """Encode a record, without the end of a delay, the count of snoozes and the last error. Raises
    NoPlaceError for a result, and for a job with other extensions, or with periods that an original
    server misreads."""
    if isinstance(record, LoadJob):
        copy = record.copy
        if needs_of(copy.delay * 1000, copy.retry * 1000, copy.extensions):
            raise NoPlaceError(copy.id.decode())
        if copy.extensions is not None or copy.due:
            copy = attrs.evolve(copy, extensions=None, due=0)
        payload = jobs.encode(copy)
        return b"".join((_LOAD, b"%d\r\n" % len(payload), payload, _END))
    if isinstance(record, StoredResult):
        raise NoPlaceError(record.id.decode())
    return b"".join((_DELETE, record.id, _END))


def encode_for_original(record: Record) -> bytes:
    """As `encode`, but an acknowledged job is written as deleted, because the original crashes when
    it loads one."""
    if isinstance(record, LoadJob) and record.copy.state == ACKED:
        return encode(DeleteJob(record.copy.id))
    return encode(record)


def decode(data: bytes, at: int, found: list[Record]) -> Stop:
    """Append the records from `at` on to `found`, up to the first incomplete or damaged one."""
    while True:
        try:
            record, end = _next(data, at)
        except DamagedError as error:
            return Stop(at, damage=error.reason)
        if record is None:
            return Stop(at, needed=end - at)
        found.append(record)
        at = end


def _next(data: bytes, at: int) -> tuple[Record | None, int]:
    """The record at `at` and its end; or, if it is incomplete, None and the smallest possible
    end."""
    if data.startswith(_LOAD, at):
        return _load(data, at + len(_LOAD))
    end = at + _DELETE_SIZE
    if data.startswith(_DELETE, at) and len(data) >= end:
        if data[end - 2 : end] != _END:
            raise DamagedError("no line end behind an id")
        return DeleteJob(data[at + len(_DELETE) : end - 2]), end
    start = data[at : at + len(_DELETE)]
    if not (_LOAD.startswith(start) or _DELETE.startswith(start)):
        raise DamagedError(_STRANGE)
    return None, at + len(start) + 1


def _load(data: bytes, at: int) -> tuple[Record | None, int]:
    size = _LENGTH.match(data, at)
    if size is None:
        raise DamagedError(_BAD_LENGTH)
    line_end = size.end(1)
    if len(data) < line_end + len(_END):
        return None, len(data) + 1
    start = line_end + len(_END)
    end = start + int(size[1]) + len(_END)
    if len(data) < start + 4:
        return None, start + 4
    # The length is stored twice, so that a wrong one at the end of a file is not mistaken for an
    # incomplete record.
    if int.from_bytes(data[start : start + 4], "little") + 4 != end - len(_END) - start:
        raise DamagedError(_BAD_LENGTH)
    if len(data) < end:
        return None, end
    if data[end - 2 : end] != _END:
        raise DamagedError("no line end behind a job")
    copy = jobs.decode_whole(data, start, end - 2)
    if copy.extensions is not None or copy.due:
        raise DamagedError("job lengths do not add up")
    return LoadJob(copy), end
