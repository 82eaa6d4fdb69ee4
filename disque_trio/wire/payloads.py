"""The payload of a frame, for each type of message (original 5.3, 5.4).

Apart from the job's id, a message about one job has a type and two numbers: the message flags of
the header, and an aux number after the id; together they are its word. The original sends each such
message in a frame of its own; a batch of ours (`batches`) gives a word once for many jobs.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

from disque_trio.statemachine.base import JOB_ID_LENGTH, NODE_ID_LENGTH, JobId
from disque_trio.statemachine.extensions import MAX_REASON, DeadState
from disque_trio.statemachine.messages import (
    AboutJob,
    DelJob,
    Enqueue,
    Fail,
    Gossip,
    GossipMessage,
    GotAck,
    GotJob,
    HaveJobs,
    Holders,
    JobCopy,
    JobMessage,
    JobState,
    Meet,
    Message,
    NeedJobs,
    Pause,
    Ping,
    Pong,
    Postponed,
    Purge,
    Queued,
    ReplJob,
    SetAck,
    Waiting,
    WillQueue,
    Working,
    YourJobs,
)
from disque_trio.wire import jobs, keys
from disque_trio.wire.jobs import DamagedError, expect

NO_REPLY: Final = 1
INCR_NACKS: Final = 2
INCR_DELIVERIES: Final = 4
TOLD: Final = 8
"""Ours: original nodes ignore this bit."""
MORE: Final = 16
WAITS: Final = 32
"""Likewise."""
DEAD: Final = 64
"""Only to nodes that announce `BURIES`: to others it would mean the opposite."""
SNOOZED: Final = 128
"""Only to nodes that announce `SNOOZES`."""
REPLJOB: Final = 4
WAITING: Final = 17
HAVEJOBS: Final = 18
HOLDERS: Final = 19
PURGE: Final = 20
JOBSTATE: Final = 23
POSTPONED: Final = 25
"""Ours, for nodes that announce the capability. 16 is a batch."""

_GOSSIP: Final = struct.Struct(">40sII46sHHHI")
_FIELD: Final = struct.Struct(">HH")
ZONE: Final = 1
"""The number of a PONG's field."""
_JOB: Final = struct.Struct(">40sI")
_PAIR: Final = struct.Struct(">II")
_STATE: Final = struct.Struct(">40sQQI?")
_POSTPONED: Final = struct.Struct(">40sIH")
_SNOOZES: Final = struct.Struct(">I")
_LONG: Final = struct.Struct(">II")
"""The snoozes, and what the wait has beyond 32 bits: only to nodes that announce `LONG_WAITS`."""
_MOST_LONG: Final = 0xFF

Body = tuple[int, int, bytes]
"""What a message contributes to its frame: count, message flags, payload."""
Reader = Callable[[bytes, int, int, int, int], Message]
"""Makes a message of the payload in bytes [at, end), the header's count and its message flags."""

# Messages about one job.

Word = tuple[int, int, int]
"""A message about one job without the job: the type's number, message flags, aux number."""


def _word_of_queued(message: Queued) -> Word:
    marks = (INCR_NACKS if message.nack else 0) | (INCR_DELIVERIES if message.redelivery else 0)
    return 7, marks | (TOLD if message.told else 0), 0


WORDS: Final[dict[type[JobMessage], Callable[[Any], Word]]] = {
    GotJob: lambda _: (5, 0, 0),
    Enqueue: lambda message: (6, 0, message.delay),
    Queued: _word_of_queued,
    SetAck: lambda message: (8, 0, message.holders),
    WillQueue: lambda _: (9, 0, 0),
    GotAck: lambda message: (10, 0, int(message.known)),
    DelJob: lambda _: (11, 0, 0),
    Working: lambda _: (14, 0, 0),
}


def _queued(id: JobId, marks: int, _aux: int) -> Queued:
    nack, redelivery, told = marks & INCR_NACKS, marks & INCR_DELIVERIES, marks & TOLD
    return Queued(id, bool(nack), bool(redelivery), bool(told))


SAID: Final[dict[int, Callable[[JobId, int, int], AboutJob]]] = {
    5: lambda id, _marks, _aux: GotJob(id),
    6: lambda id, _marks, aux: Enqueue(id, aux),
    7: _queued,
    8: lambda id, _marks, aux: SetAck(id, aux),
    9: lambda id, _marks, _aux: WillQueue(id),
    10: lambda id, _marks, aux: GotAck(id, bool(aux)),
    11: lambda id, _marks, _aux: DelJob(id),
    14: lambda id, _marks, _aux: Working(id),
}
"""Make the message about a job, with these message flags and this aux number."""


def _write_job(message: JobMessage) -> Body:
    _, marks, aux = WORDS[type(message)](message)
    return 0, marks, _JOB.pack(message.id, aux)


def _job_reader(number: int) -> Reader:
    make = SAID[number]

    def read(data: bytes, at: int, end: int, _count: int, marks: int) -> Message:
        expect(end - at == _JOB.size)
        job_id, aux = _JOB.unpack_from(data, at)
        return make(job_id, marks, aux)

    return read


# The others.


def _write_gossip(message: GossipMessage) -> Body:
    entries = [
        _GOSSIP.pack(
            node.id,
            node.ping_sent,
            node.pong_received,
            node.ip,
            node.port,
            node.flags,
            node.bus_port,
            0,
        )
        for node in message.gossip
    ]
    return len(entries), 0, b"".join(entries)


def _write_pong(message: Pong) -> Body:
    count, marks, entries = _write_gossip(message)
    zone = _FIELD.pack(ZONE, len(message.zone)) + message.zone if message.zone else b""
    return count, marks, entries + zone


def _write_fail(message: Fail) -> Body:
    return 0, 0, message.node


def _write_repljob(message: ReplJob) -> Body:
    return 0, NO_REPLY if message.no_reply else 0, _jobs(message.copies)


def _write_yourjobs(message: YourJobs) -> Body:
    return 0, MORE if message.more else 0, _jobs(message.copies)


def _jobs(copies: tuple[JobCopy, ...]) -> bytes:
    encoded = jobs.encode_all(copies)
    return _PAIR.pack(len(encoded), sum(map(len, encoded))) + b"".join(encoded)


def _write_needjobs(message: NeedJobs) -> Body:
    return 0, WAITS if message.waits else 0, _number(message)


def _write_number(message: Waiting | HaveJobs) -> Body:
    return 0, 0, _number(message)


def _number(message: NeedJobs | Waiting | HaveJobs) -> bytes:
    return _PAIR.pack(message.count, len(message.queue)) + message.queue


def _write_holders(message: Holders) -> Body:
    return 0, 0, message.id + b"".join(message.holders)


def _write_postponed(message: Postponed) -> Body:
    marks = INCR_NACKS if message.is_new else 0
    wait = message.wait
    payload = _POSTPONED.pack(message.id, wait & 0xFFFF_FFFF, message.nacks)
    if message.snoozes and message.is_snooze:
        marks |= SNOOZED
    if wait >> 32:
        return 0, marks, payload + _LONG.pack(message.snoozes, wait >> 32)
    if not message.snoozes:
        return 0, marks, payload
    return 0, marks, payload + _SNOOZES.pack(message.snoozes)


def _write_jobstate(message: JobState) -> Body:
    state = message.state
    fixed = _STATE.pack(message.id, message.left, state.life, state.epoch, state.is_dead)
    return 0, 0, fixed + state.reason


def _write_pause(message: Pause) -> Body:
    return 0, 0, _PAIR.pack(message.bits, len(message.queue)) + message.queue


def _write_purge(message: Purge) -> Body:
    return 0, DEAD if message.dead else 0, message.queue


def _read_ping(data: bytes, at: int, end: int, count: int, _marks: int) -> Message:
    return Ping(_gossip(data, at, end, count))


def _read_pong(data: bytes, at: int, end: int, count: int, _marks: int) -> Message:
    """Behind the entries may be fields, with number and length: a later version may add some."""
    after = at + count * _GOSSIP.size
    expect(after <= end)
    fields = dict(_fields(data, after, end))
    return Pong(_gossip(data, at, after, count), fields.get(ZONE, b""))


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, bytes]]:
    while at < end:
        expect(end - at >= _FIELD.size)
        number, length = _FIELD.unpack_from(data, at)
        expect(number > 0)
        at += _FIELD.size + length
        expect(at <= end)
        yield number, data[at - length : at]


def _read_meet(data: bytes, at: int, end: int, count: int, _marks: int) -> Message:
    return Meet(_gossip(data, at, end, count))


def _gossip(data: bytes, at: int, end: int, count: int) -> tuple[Gossip, ...]:
    expect(end - at == count * _GOSSIP.size)
    entries = []
    for start in range(at, end, _GOSSIP.size):
        node, pinged, ponged, ip, port, flags, bus, _ = _GOSSIP.unpack_from(data, start)
        # After the NUL there may be the end of a longer address that was in the buffer before.
        entries.append(Gossip(node, ip.partition(b"\0")[0], port, flags, pinged, ponged, bus))
    return tuple(entries)


def _read_fail(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    expect(end - at == NODE_ID_LENGTH)
    return Fail(data[at:end])


def _read_repljob(data: bytes, at: int, end: int, _count: int, marks: int) -> Message:
    copies = _copies(data, at, end)
    if len(copies) != 1:
        raise DamagedError("number of jobs wrong")
    return ReplJob(copies, bool(marks & NO_REPLY))


def _read_yourjobs(data: bytes, at: int, end: int, _count: int, marks: int) -> Message:
    copies = _copies(data, at, end)
    if not copies:
        raise DamagedError("number of jobs wrong")
    return YourJobs(copies, bool(marks & MORE))


def _copies(data: bytes, at: int, end: int) -> tuple[JobCopy, ...]:
    count, at = _pair(data, at, end)
    copies = []
    for _ in range(count):
        copy, at = jobs.decode(data, at, end)
        copies.append(copy)
    if at != end:
        raise DamagedError("number of jobs wrong")
    return tuple(copies)


def _read_needjobs(data: bytes, at: int, end: int, _count: int, marks: int) -> Message:
    wanted, at = _pair(data, at, end)
    return NeedJobs(data[at:end], wanted, bool(marks & WAITS))


def _read_waiting(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    number, at = _pair(data, at, end)
    return Waiting(data[at:end], number)


def _read_havejobs(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    number, at = _pair(data, at, end)
    return HaveJobs(data[at:end], number)


def _read_holders(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    expect(end - at >= JOB_ID_LENGTH and (end - at - JOB_ID_LENGTH) % NODE_ID_LENGTH == 0)
    first = at + JOB_ID_LENGTH
    ids = [data[place : place + NODE_ID_LENGTH] for place in range(first, end, NODE_ID_LENGTH)]
    return Holders(data[at:first], tuple(ids))


def _read_postponed(data: bytes, at: int, end: int, _count: int, marks: int) -> Message:
    more_at = at + _POSTPONED.size
    expect(end in (more_at, more_at + _SNOOZES.size, more_at + _LONG.size))
    job_id, wait, nacks = _POSTPONED.unpack_from(data, at)
    is_new = bool(marks & INCR_NACKS)
    if end == more_at:
        return Postponed(job_id, wait, nacks, is_new)
    if end == more_at + _LONG.size:
        snoozes, beyond = _LONG.unpack_from(data, more_at)
        expect(0 < beyond <= _MOST_LONG)
        wait += beyond << 32
    else:
        (snoozes,) = _SNOOZES.unpack_from(data, more_at)
    return Postponed(job_id, wait, nacks, is_new, snoozes, bool(marks & SNOOZED))


def _read_jobstate(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    reason_at = at + _STATE.size
    expect(reason_at <= end <= reason_at + MAX_REASON)
    id, left, life, epoch, is_dead = _STATE.unpack_from(data, at)
    return JobState(id, left, DeadState(epoch, is_dead, data[reason_at:end], life))


def _read_pause(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    bits, at = _pair(data, at, end)
    return Pause(data[at:end], bits)


def _pair(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The first of two numbers, and where the data after them starts; its length is the second."""
    expect(end - at >= _PAIR.size)
    first, length = _PAIR.unpack_from(data, at)
    expect(end - at == _PAIR.size + length)
    return first, at + _PAIR.size


WRITERS: Final[dict[type[Message], tuple[int, Callable[[Any], Body]]]] = {
    Ping: (0, _write_gossip),
    Pong: (1, _write_pong),
    Meet: (2, _write_gossip),
    Fail: (3, _write_fail),
    ReplJob: (REPLJOB, _write_repljob),
    GotJob: (5, _write_job),
    Enqueue: (6, _write_job),
    Queued: (7, _write_job),
    SetAck: (8, _write_job),
    WillQueue: (9, _write_job),
    GotAck: (10, _write_job),
    DelJob: (11, _write_job),
    NeedJobs: (12, _write_needjobs),
    YourJobs: (13, _write_yourjobs),
    Working: (14, _write_job),
    Pause: (15, _write_pause),
    Waiting: (WAITING, _write_number),
    HaveJobs: (HAVEJOBS, _write_number),
    Holders: (HOLDERS, _write_holders),
    Purge: (PURGE, _write_purge),
    **keys.WRITERS,
    JobState: (JOBSTATE, _write_jobstate),
    Postponed: (POSTPONED, _write_postponed),
}
READERS: Final[dict[int, Reader]] = {
    0: _read_ping,
    1: _read_pong,
    2: _read_meet,
    3: _read_fail,
    REPLJOB: _read_repljob,
    12: _read_needjobs,
    13: _read_yourjobs,
    15: _read_pause,
    WAITING: _read_waiting,
    HAVEJOBS: _read_havejobs,
    HOLDERS: _read_holders,
    PURGE: lambda data, at, end, _count, marks: Purge(data[at:end], bool(marks & DEAD)),
    **keys.READERS,
    JOBSTATE: _read_jobstate,
    POSTPONED: _read_postponed,
    **{number: _job_reader(number) for number in SAID},
}
