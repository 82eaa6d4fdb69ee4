"""Batches: many messages about jobs in one frame, for nodes of ours, which announce `BATCHES`.

An original node receives a frame of at least 188 bytes for each message about a job, and under load
most of the cost of messages is encoding and parsing frames. A batch has one header, followed by
runs: a run has the message (type, message flags, padding, number of jobs, aux number), then the ids
of these jobs, or the jobs themselves for REPLJOB. The order is kept, so a batch is equivalent to
its messages one by one.
"""

import struct
from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Final

from disque_trio.statemachine.base import JOB_ID_LENGTH
from disque_trio.statemachine.messages import Batch, JobMessage, Many, Message, ReplJob
from disque_trio.wire import jobs
from disque_trio.wire.jobs import DamagedError, expect
from disque_trio.wire.payloads import WORD_READERS, WORDS, Body, Word

BATCH: Final = 16
"""The type's number."""
ENOUGH: Final = 1 << 16
"""The maximum size of a batch. Longer ones are split, and a job with a longer body is sent alone,
because a link that is full drops whole frames."""

_RUN: Final = struct.Struct(">BBxxII")
LONGEST: Final = 2 * ENOUGH + _RUN.size
"""The maximum size of a received batch. Nodes send no longer ones: at worst, 64 KiB of ids have a
run each. Longer ones are refused, because a batch is handled in one turn and would block the
node."""

Part = tuple[Word, Sequence[bytes]]
"""Messages of a batch: their word, and the ids of their jobs or the whole jobs."""

_word = itemgetter(0)


def part_of(message: Message) -> Part | None:
    """The message as a part of a batch; None if it must be sent alone."""
    if isinstance(message, JobMessage):
        return WORDS[type(message)](message), (message.id,)
    if isinstance(message, Many):
        return WORDS[type(message.said)](message.said), message.ids
    if isinstance(message, ReplJob) and len(message.copies[0].body) < ENOUGH:
        encoded = jobs.encode_all(message.copies)
        if len(encoded) == 1 and len(encoded[0]) <= 2 * ENOUGH:
            return (ReplJob.NUMBER, ReplJob.NO_REPLY if message.no_reply else 0, 0), encoded
    return None


def bodies(parts: Sequence[Part]) -> list[bytes]:
    """The parts, in order, as the payload of a frame, or of several if they are long."""
    if len(parts) == 1:
        # As nearly always where a client waits alone.
        (number, marks, aux), jobs = parts[0]
        payload = b"".join(jobs)
        if len(payload) <= ENOUGH:
            return [_RUN.pack(number, marks, len(jobs), aux) + payload]
    made: list[bytes] = []
    pieces: list[bytes] = []
    room = ENOUGH
    for (number, marks, aux), run in groupby(parts, _word):
        left = [job for _, jobs in run for job in jobs]
        while left:
            count = _fitting(left, room)
            if not count and pieces:
                made.append(b"".join(pieces))
                pieces, room = [], ENOUGH
                continue
            named, left = left[: count or 1], left[count or 1 :]
            pieces.append(_RUN.pack(number, marks, len(named), aux))
            pieces += named
            room -= sum(map(len, named))
    return [*made, b"".join(pieces)]


def _fitting(jobs: list[bytes], room: int) -> int:
    """How many of the jobs fit into `room` bytes."""
    if sum(map(len, jobs)) <= room:
        return len(jobs)
    return bisect(list(accumulate(map(len, jobs))), room)


def write(batch: Batch) -> Body:
    """The payload of a `Batch`. All its messages must be allowed in batches."""
    parts = [part for part in map(part_of, batch.messages) if part is not None]
    return 0, 0, b"".join(bodies(parts))


def read(data: bytes, at: int, end: int, _count: int, _marks: int) -> Batch:
    """Parse the batch in bytes [at, end). Raises DamagedError if any part of it is invalid."""
    messages: list[Message] = []
    expect(end - at <= LONGEST)
    while at < end:
        expect(end - at >= _RUN.size)
        number, marks, count, aux = _RUN.unpack_from(data, at)
        at += _RUN.size
        make = WORD_READERS.get(number)
        if make is not None:
            start, at = at, at + count * JOB_ID_LENGTH
            if count == 1 and at == end and not messages:
                # As nearly always where a client waits alone.
                return Batch((make(data[start:end], marks, aux),))
            expect(at <= end)
            ids = [data[place : place + JOB_ID_LENGTH] for place in range(start, at, JOB_ID_LENGTH)]
            if count > 1:
                messages.append(Many(make(ids[0], marks, aux), ids))
            else:
                messages += [make(id, marks, aux) for id in ids]
        elif number == ReplJob.NUMBER:
            for _ in range(count):
                copy, at = jobs.decode(data, at, end)
                messages.append(ReplJob((copy,), bool(marks & ReplJob.NO_REPLY)))
        else:
            raise DamagedError("type unknown")
    if not messages:
        raise DamagedError("number of jobs wrong")
    return Batch(tuple(messages))
