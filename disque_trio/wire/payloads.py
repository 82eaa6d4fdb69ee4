"""The payload of a frame, for each type of message (original 5.3, 5.4).

Most payloads consist of the parts listed in the message's class (`layout`); functions here encode
the others. Apart from the job's id, a message about one job has a type and two numbers: the message
flags of the header, and an aux number after the id; together they are its word. The original sends
each such message in a frame of its own; our batches (`batches`) have a word once for many jobs.
"""

import itertools
import struct
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, Final

import attrs

from disque_trio.statemachine.base import NODE_ID_LENGTH, JobId
from disque_trio.statemachine.extensions import MAX_REASON, DeadState
from disque_trio.statemachine.key_facts import KEY_MARKS, KEY_STATES, KEY_WORDS, KeyFact
from disque_trio.statemachine.layout import BYTES, IDENTITIES, LENGTH, MARK, TRUTH, UINT32, Part
from disque_trio.statemachine.messages import (
    ALL_MESSAGES,
    AboutJob,
    BusMessage,
    Gossip,
    GossipMessage,
    JobCopy,
    JobMessage,
    JobState,
    KeyAnswer,
    Meet,
    Message,
    Ping,
    Pong,
    Postponed,
    ReplJob,
    SetAck,
    YourJobs,
)
from disque_trio.wire import jobs
from disque_trio.wire.jobs import DamagedError, expect

_GOSSIP: Final = struct.Struct(">40sII46sHHHI")
_FIELD: Final = struct.Struct(">HH")
ZONE: Final = 1
NAME: Final = 2
LIMITS: Final = 3
"""The numbers of a PONG's fields."""
_JOB: Final = struct.Struct(">40sI")
_PAIR: Final = struct.Struct(">II")
_STATE: Final = struct.Struct(">40sQQI?")
_POSTPONED: Final = struct.Struct(">40sIH")
_SNOOZES: Final = struct.Struct(">I")
_LONG: Final = struct.Struct(">II")
"""The count of snoozes, and the bits of the wait above 32: only for nodes that announce
`LONG_WAITS`."""
_MOST_LONG: Final = 0xFF
_ANSWER: Final = struct.Struct(">QI")
_FACT: Final = struct.Struct(">40sQQBBB")

Body = tuple[int, int, bytes]
"""What a message contributes to its frame: count, message flags, payload."""
Writer = Callable[[Any], Body]
Reader = Callable[[bytes, int, int, int, int], Message]
"""Decodes a message from the payload in bytes [at, end), the header's count and its message
flags."""

# Messages about one job.

Word = tuple[int, int, int]
"""A message about one job without the job: the type's number, message flags, aux number."""


def _marks_of(kind: type[BusMessage]) -> tuple[Callable[[Any], Any], dict[Any, int]]:
    """A function that returns the values of a message's marks, and the flag bits by these
    values."""
    marks = [each for each in kind.LAYOUT if each.form == MARK]
    values = itertools.product((False, True), repeat=len(marks))
    flags = {
        each if len(each) > 1 else each[0]: sum(
            [mark.bit for mark, is_set in zip(marks, each, strict=True) if is_set]
        )
        for each in values
        if each
    }
    names = [each.name for each in marks]
    return (attrgetter(*names) if names else lambda _: False), flags or {False: 0}


def _word_writer(kind: type[BusMessage]) -> Callable[[Any], Word]:
    number = kind.NUMBER
    aux = [each.name for each in kind.LAYOUT if each.form != MARK]
    if aux:
        value = attrgetter(aux[0])
        return lambda message: (number, 0, int(value(message)))
    marks, flags = _marks_of(kind)
    words = {each: (number, bits, 0) for each, bits in flags.items()}
    return lambda message: words[marks(message)]


def _word_reader(kind: Any) -> Callable[[JobId, int, int], AboutJob]:
    bits = [each.bit for each in kind.LAYOUT if each.form == MARK]
    forms = [each.form for each in kind.LAYOUT if each.form != MARK]
    if bits:
        values = [tuple([bool(marks & bit) for bit in bits]) for marks in range(256)]
        return lambda id, marks, _aux: kind(id, *values[marks])
    if forms == [TRUTH]:
        return lambda id, _marks, aux: kind(id, bool(aux))
    if forms:
        return lambda id, _marks, aux: kind(id, aux)
    return lambda id, _marks, _aux: kind(id)


def _setack_word(message: SetAck) -> Word:
    holders, digest = message.holders, message.digest
    if digest and holders:
        return SetAck.NUMBER, min(holders, SetAck.MOST_WITH_DIGEST), digest
    return SetAck.NUMBER, 0, holders


def _setack(id: JobId, marks: int, aux: int) -> SetAck:
    return SetAck(id, marks, aux) if marks else SetAck(id, aux)


_ABOUT_JOBS: Final = [kind for kind in ALL_MESSAGES if issubclass(kind, JobMessage)]
WORDS: Final[dict[type, Callable[[Any], Word]]] = {
    **{kind: _word_writer(kind) for kind in _ABOUT_JOBS},
    SetAck: _setack_word,
}
WORD_READERS: Final[dict[int, Callable[[JobId, int, int], AboutJob]]] = {
    **{kind.NUMBER: _word_reader(kind) for kind in _ABOUT_JOBS},
    SetAck.NUMBER: _setack,
}
"""Functions that make the message about a job from message flags and aux number, by type number."""


def _write_job(message: JobMessage) -> Body:
    _, marks, aux = WORDS[type(message)](message)
    return 0, marks, _JOB.pack(message.id, aux)


def _job_reader(number: int) -> Reader:
    make = WORD_READERS[number]

    def read(data: bytes, at: int, end: int, _count: int, marks: int) -> Message:
        expect(end - at == _JOB.size)
        job_id, aux = _JOB.unpack_from(data, at)
        return make(job_id, marks, aux)

    return read


# Messages that list their parts.

_OPEN: Final = (BYTES, IDENTITIES)
"""Parts of variable size."""


def _fixed(layout: tuple[Part, ...]) -> tuple[list[Part], struct.Struct]:
    """The parts of a fixed size, which precede the others, and their layout."""
    fixed = [each for each in layout if each.form != MARK and each.form not in _OPEN]
    codes = ["I" if each.form == LENGTH else each.form for each in fixed]
    return fixed, struct.Struct(">" + "".join(codes))


def _parts_writer(kind: type[BusMessage]) -> Writer:
    fixed, layout = _fixed(kind.LAYOUT)
    numbers = [
        _length_of(each.name) if each.form == LENGTH else attrgetter(each.name) for each in fixed
    ]
    rest = [(attrgetter(each.name), each.form) for each in kind.LAYOUT if each.form in _OPEN]
    marks, flags = _marks_of(kind)

    def write(message: Any) -> Body:
        pieces = [layout.pack(*[get(message) for get in numbers])]
        for get, form in rest:
            value = get(message)
            pieces.append(value if form == BYTES else b"".join(value))
        return 0, flags[marks(message)], b"".join(pieces)

    return write


def _queue_codec(kind: Any) -> tuple[Writer, Reader]:
    """Writer and reader for messages with a number, a queue, and at most one mark: a fast path,
    because nodes that need jobs send many of these."""
    get = attrgetter(kind.LAYOUT[0].name)
    marks, flags = _marks_of(kind)
    bits = [each.bit for each in kind.LAYOUT if each.form == MARK]

    def write(message: Any) -> Body:
        queue = message.queue
        return 0, flags[marks(message)], _PAIR.pack(get(message), len(queue)) + queue

    def read(data: bytes, at: int, end: int, _count: int, flags: int) -> Message:
        number, at = _pair(data, at, end)
        message: Message = (
            kind(data[at:end], number, bool(flags & bits[0]))
            if bits
            else kind(data[at:end], number)
        )
        return message

    return write, read


def _length_of(name: str) -> Callable[[Any], int]:
    get = attrgetter(name)
    return lambda message: len(get(message))


def _parts_reader(kind: Any) -> Reader:
    fixed, layout = _fixed(kind.LAYOUT)
    rest = [each for each in kind.LAYOUT if each.form in _OPEN]
    marks = [(each.name, each.bit) for each in kind.LAYOUT if each.form == MARK]
    places = {field.name: place for place, field in enumerate(attrs.fields(kind))}

    def read(data: bytes, at: int, end: int, _count: int, flags: int) -> Message:
        begin = at + layout.size
        expect(begin <= end)
        values: list[Any] = [None] * len(places)
        for name, bit in marks:
            values[places[name]] = bool(flags & bit)
        for part, value in zip(fixed, layout.unpack_from(data, at), strict=True):
            if part.allowed and value not in part.allowed:
                raise DamagedError("type unknown")
            values[places[part.name]] = value  # a length is replaced by its bytes below
        for part in rest:
            place = places[part.name]
            stop = end if values[place] is None else begin + values[place]
            expect(begin <= stop <= end and stop - begin <= part.most)
            values[place] = data[begin:stop] if part.form == BYTES else _ids(data, begin, stop)
            begin = stop
        expect(begin == end)
        message: Message = kind(*values)
        return message

    return read


def _ids(data: bytes, at: int, end: int) -> tuple[bytes, ...]:
    expect((end - at) % NODE_ID_LENGTH == 0)
    places = range(at, end, NODE_ID_LENGTH)
    return tuple([data[place : place + NODE_ID_LENGTH] for place in places])


# The other messages.


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
    texts = ((ZONE, message.zone), (NAME, message.name), (LIMITS, message.limits))
    fields = [_FIELD.pack(number, len(text)) + text for number, text in texts if text]
    return count, marks, entries + b"".join(fields)


def _write_repljob(message: ReplJob) -> Body:
    return 0, ReplJob.NO_REPLY if message.no_reply else 0, _jobs(message.copies)


def _write_yourjobs(message: YourJobs) -> Body:
    return 0, YourJobs.MORE if message.more else 0, _jobs(message.copies)


def _jobs(copies: tuple[JobCopy, ...]) -> bytes:
    encoded = jobs.encode_all(copies)
    return _PAIR.pack(len(encoded), sum(map(len, encoded))) + b"".join(encoded)


def _write_postponed(message: Postponed) -> Body:
    marks = Postponed.NEW if message.is_new else 0
    wait = message.wait
    payload = _POSTPONED.pack(message.id, wait & 0xFFFF_FFFF, message.nacks)
    if message.snoozes and message.is_snooze:
        marks |= Postponed.SNOOZED
    if wait >> 32:
        return 0, marks, payload + _LONG.pack(message.snoozes, wait >> 32)
    if not message.snoozes:
        return 0, marks, payload
    return 0, marks, payload + _SNOOZES.pack(message.snoozes)


def _write_jobstate(message: JobState) -> Body:
    state = message.state
    fixed = _STATE.pack(message.id, message.left, state.life, state.epoch, state.is_dead)
    return 0, 0, fixed + state.reason


def _write_keyanswer(message: KeyAnswer) -> Body:
    facts = [
        _FACT.pack(fact.id, fact.stamp, fact.keep, fact.word, fact.state, fact.marks)
        for fact in message.facts
    ]
    return 0, 0, _ANSWER.pack(message.number, message.round) + b"".join(facts)


def _read_ping(data: bytes, at: int, end: int, count: int, _marks: int) -> Message:
    return Ping(_gossip(data, at, end, count))


def _read_pong(data: bytes, at: int, end: int, count: int, _marks: int) -> Message:
    """Fields may follow the entries, each with number and length: a later version may add some."""
    after = at + count * _GOSSIP.size
    expect(after <= end)
    fields = dict(_fields(data, after, end))
    texts = [fields.get(number, b"") for number in (ZONE, NAME, LIMITS)]
    return Pong(_gossip(data, at, after, count), *texts)


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


def _read_repljob(data: bytes, at: int, end: int, _count: int, marks: int) -> Message:
    copies = _copies(data, at, end)
    if len(copies) != 1:
        raise DamagedError("number of jobs wrong")
    return ReplJob(copies, bool(marks & ReplJob.NO_REPLY))


def _read_yourjobs(data: bytes, at: int, end: int, _count: int, marks: int) -> Message:
    copies = _copies(data, at, end)
    if not copies:
        raise DamagedError("number of jobs wrong")
    return YourJobs(copies, bool(marks & YourJobs.MORE))


def _copies(data: bytes, at: int, end: int) -> tuple[JobCopy, ...]:
    count, at = _pair(data, at, end)
    copies = []
    for _ in range(count):
        copy, at = jobs.decode(data, at, end)
        copies.append(copy)
    if at != end:
        raise DamagedError("number of jobs wrong")
    return tuple(copies)


def _read_postponed(data: bytes, at: int, end: int, _count: int, marks: int) -> Message:
    more_at = at + _POSTPONED.size
    expect(end in (more_at, more_at + _SNOOZES.size, more_at + _LONG.size))
    job_id, wait, nacks = _POSTPONED.unpack_from(data, at)
    is_new = bool(marks & Postponed.NEW)
    if end == more_at:
        return Postponed(job_id, wait, nacks, is_new)
    if end == more_at + _LONG.size:
        snoozes, beyond = _LONG.unpack_from(data, more_at)
        expect(0 < beyond <= _MOST_LONG)
        wait += beyond << 32
    else:
        (snoozes,) = _SNOOZES.unpack_from(data, more_at)
    return Postponed(job_id, wait, nacks, is_new, snoozes, bool(marks & Postponed.SNOOZED))


def _read_jobstate(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    reason_at = at + _STATE.size
    expect(reason_at <= end <= reason_at + MAX_REASON)
    id, left, life, epoch, is_dead = _STATE.unpack_from(data, at)
    return JobState(id, left, DeadState(epoch, is_dead, data[reason_at:end], life))


def _read_keyanswer(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    first = at + _ANSWER.size
    expect(end >= first and (end - first) % _FACT.size == 0)
    number, round_ = _ANSWER.unpack_from(data, at)
    facts = []
    for place in range(first, end, _FACT.size):
        id, stamp, keep, word, state, marks = _FACT.unpack_from(data, place)
        if word not in KEY_WORDS or state >= len(KEY_STATES) or marks & ~KEY_MARKS:
            raise DamagedError("type unknown")
        facts.append(KeyFact(id, stamp, word, state, keep, marks))
    return KeyAnswer(number, round_, tuple(facts))


def _pair(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The first of two numbers, and the start of the data after them. The second number must be the
    length of that data."""
    expect(end - at >= _PAIR.size)
    first, length = _PAIR.unpack_from(data, at)
    expect(end - at == _PAIR.size + length)
    return first, at + _PAIR.size


_OTHERS: Final[dict[type[BusMessage], tuple[Writer, Reader]]] = {
    Ping: (_write_gossip, _read_ping),
    Pong: (_write_pong, _read_pong),
    Meet: (_write_gossip, _read_meet),
    ReplJob: (_write_repljob, _read_repljob),
    YourJobs: (_write_yourjobs, _read_yourjobs),
    Postponed: (_write_postponed, _read_postponed),
    JobState: (_write_jobstate, _read_jobstate),
    KeyAnswer: (_write_keyanswer, _read_keyanswer),
}


def _codec(kind: type[BusMessage]) -> tuple[Writer, Reader]:
    if issubclass(kind, JobMessage):
        return _write_job, _job_reader(kind.NUMBER)
    if kind in _OTHERS:
        return _OTHERS[kind]
    forms = [each.form for each in kind.LAYOUT if each.form != MARK]
    if forms == [UINT32, LENGTH, BYTES]:
        return _queue_codec(kind)
    return _parts_writer(kind), _parts_reader(kind)


_CODECS: Final = {kind: _codec(kind) for kind in ALL_MESSAGES}
WRITERS: Final[dict[type, tuple[int, Writer]]] = {
    kind: (kind.NUMBER, write) for kind, (write, _) in _CODECS.items()
}
READERS: Final[dict[int, Reader]] = {kind.NUMBER: read for kind, (_, read) in _CODECS.items()}
