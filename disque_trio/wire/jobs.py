"""Serialized jobs, as in frames and files (original 4.5).

Little-endian. Every inner length is checked against the outer one before it is used (original,
defect 12), so a copy is either complete and exact, or refused.
"""

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from disque_trio.statemachine.base import NODE_ID_LENGTH, STATE_NAMES, Millis, NodeId
from disque_trio.statemachine.extensions import Extensions
from disque_trio.statemachine.messages import JobCopy
from disque_trio.wire import extensions

# Length of what follows, id, state and attempt, flags, replicas, etime, ctime, delay, retry, nacks,
# deliveries, length of the queue's name.
_LAYOUT: Final = "<I40sBBHIQIIHHI"
_FIXED: Final = struct.Struct(_LAYOUT)
_COUNT: Final = struct.Struct("<I")
_read_fixed: Final = _FIXED.unpack_from
_read_count: Final = _COUNT.unpack_from
_SHORTEST: Final = _FIXED.size + 2 * _COUNT.size
_COUNTER_MASK: Final = 0xFFFF
_MANY: Final = 1 << 12
"""The maximum number of cached lists of holders, and of cached lengths of names."""
_FEW: Final = 16
_FEW_BYTES: Final = _FEW * NODE_ID_LENGTH


class DamagedError(Exception):
    """The bytes are damaged. `reason` is short and without details, so that errors can be counted
    by it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def expect(fits: bool) -> None:
    """Raise DamagedError unless the lengths fit."""
    if not fits:
        raise DamagedError("length wrong for its type")


def encode(copy: JobCopy) -> bytes:
    """Encode a job. Its two counters wrap at 16 bits, as in every original node.

    Raises OSError if its body is on disk and cannot be read.
    """
    queue, body, holders = copy.queue, copy.body, copy.holders
    text = body if isinstance(body, bytes) else bytes(body)
    # The end of the original's layout, and the fields after it.
    tail = _LISTS.get(holders) or _list(holders)
    if copy.due:
        tail += extensions.encode_due(copy.due)
    if copy.extensions is not None:
        tail += extensions.encode(copy.extensions)
    write = _WRITERS.get(len(queue)) or _writer(len(queue))
    beginning = write(
        _FIXED.size + len(queue) + len(text) + len(tail),
        copy.id,
        copy.gc_attempt << 4 | copy.state,
        copy.flags,
        copy.replicas,
        copy.etime,
        copy.ctime,
        copy.delay,
        copy.retry,
        copy.nacks & _COUNTER_MASK,
        copy.deliveries & _COUNTER_MASK,
        len(queue),
        queue,
        len(text),
    )
    return b"".join((beginning, text, tail))


_WRITERS: Final[dict[int, Callable[..., bytes]]] = {}
_LISTS: Final[dict[tuple[NodeId, ...], bytes]] = {}


def _writer(length: int) -> Callable[..., bytes]:
    """A function that packs the fields before the body, for a queue's name of this length."""
    write = struct.Struct(f"{_LAYOUT}{length}sI").pack
    if len(_WRITERS) < _MANY:
        _WRITERS[length] = write
    return write


def _list(holders: tuple[NodeId, ...]) -> bytes:
    """The encoded list of holders, after the body. Cached, because most jobs have the same few
    holders."""
    listed = _COUNT.pack(len(holders)) + b"".join(holders)
    if len(holders) <= _FEW:
        if len(_LISTS) >= _MANY:
            _LISTS.clear()
        _LISTS[holders] = listed
    return listed


def decode_whole(data: bytes, offset: int, limit: int) -> JobCopy:
    """Decode the job that fills the bytes from `offset` to `limit`. Raises DamagedError."""
    copy, end = decode(data, offset, limit)
    if end != limit:
        raise DamagedError("job lengths do not add up")
    return copy


def encode_all(copies: Sequence[JobCopy]) -> list[bytes]:
    """Encode each job. Omits a job whose body cannot be read from disk, as if it were lost."""
    try:
        return [encode(copy) for copy in copies]
    except OSError:
        return [data for data in map(_encode_if_readable, copies) if data]


def _encode_if_readable(copy: JobCopy) -> bytes:
    try:
        return encode(copy)
    except OSError:
        return b""


def decode(data: bytes, offset: int = 0, limit: int | None = None) -> tuple[JobCopy, int]:
    """Decode the job at `offset`. Returns it and its end, which is at most `limit`. Raises
    DamagedError."""
    if limit is None:
        limit = len(data)
    if limit - offset < _SHORTEST:
        raise DamagedError("job cut short")
    (
        length,
        job_id,
        stage,
        flags,
        replicas,
        etime,
        ctime,
        delay,
        retry,
        nacks,
        deliveries,
        queue_length,
    ) = _read_fixed(data, offset)
    end = offset + 4 + length
    if end > limit:
        raise DamagedError("job cut short")
    if stage & 15 >= len(STATE_NAMES):
        raise DamagedError("job state unknown")
    queue_at = offset + _FIXED.size
    queue_end = queue_at + queue_length
    # The four bytes of a count, and the data that it counts, must be present before their use.
    body_at = queue_end + 4
    if body_at > end:
        raise DamagedError("job lengths do not add up")
    body_end = body_at + _read_count(data, queue_end)[0]
    holders_at = body_end + 4
    if holders_at > end:
        raise DamagedError("job lengths do not add up")
    holders_end = holders_at + _read_count(data, body_end)[0] * NODE_ID_LENGTH
    if holders_end > end:
        raise DamagedError("job lengths do not add up")
    copy = JobCopy(
        job_id,
        stage & 15,
        stage >> 4,
        flags,
        replicas,
        etime,
        ctime,
        delay,
        retry,
        nacks,
        deliveries,
        data[queue_at:queue_end],
        data[body_at:body_end],
        (_known_holders if end - holders_at <= _FEW_BYTES else _holders)(
            data[holders_at:holders_end]
        ),
    )
    if holders_end < end:
        copy.due, copy.extensions = _extensions(data[holders_end:end])
    return copy, end


def _extensions(data: bytes) -> tuple[Millis, Extensions | None]:
    due = extensions.decode_due(data)
    if due:
        data = data[extensions.DUE_SIZE :]
        if not data:
            return due, None
    found = extensions.decode(data)
    if found is None:
        raise DamagedError("job extensions cannot be read")
    return due, found


def _holders(data: bytes) -> tuple[NodeId, ...]:
    return tuple([data[at : at + NODE_ID_LENGTH] for at in range(0, len(data), NODE_ID_LENGTH)])


_known_holders: Final = lru_cache(maxsize=_MANY)(_holders)
"""Cached, because shared ids have their hashes computed already."""
