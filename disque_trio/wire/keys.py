"""The payloads of the messages about keys: KEYCLAIM, KEYANSWER, KEYCANCEL (docs/bus.md)."""

import struct
from collections.abc import Callable
from typing import Any, Final

from disque_trio.statemachine.keyfacts import (
    CANCELS,
    KEY_MARKS,
    KEY_STATES,
    KEY_WORDS,
    MAX_KEY,
    KeyFact,
)
from disque_trio.statemachine.messages import KeyAnswer, KeyCancel, KeyClaim, Message
from disque_trio.wire.jobs import DamagedError, expect

KEYCLAIM: Final = 21
KEYANSWER: Final = 22
KEYCANCEL: Final = 30

_CLAIM: Final = struct.Struct(">QI40sQ40sI")
_ANSWER: Final = struct.Struct(">QI")
_FACT: Final = struct.Struct(">40sQQBBB")
_CANCEL: Final = struct.Struct(">40sBI")

Body = tuple[int, int, bytes]


def _write_keyclaim(message: KeyClaim) -> Body:
    fixed = _CLAIM.pack(
        message.number, message.round, message.id, message.stamp, message.about, len(message.queue)
    )
    return 0, 0, fixed + message.queue + message.key


def _write_keyanswer(message: KeyAnswer) -> Body:
    facts = [
        _FACT.pack(fact.id, fact.stamp, fact.keep, fact.word, fact.state, fact.marks)
        for fact in message.facts
    ]
    return 0, 0, _ANSWER.pack(message.number, message.round) + b"".join(facts)


def _write_keycancel(message: KeyCancel) -> Body:
    fixed = _CANCEL.pack(message.id, message.unless, len(message.queue))
    return 0, 0, fixed + message.queue + message.key


def _read_keyclaim(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    key_at = at + _CLAIM.size
    expect(key_at <= end)
    number, round_, id, stamp, about, length = _CLAIM.unpack_from(data, at)
    expect(key_at + length <= end <= key_at + length + MAX_KEY)
    queue, key = data[key_at : key_at + length], data[key_at + length : end]
    return KeyClaim(number, round_, id, stamp, about, queue, key)


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


def _read_keycancel(data: bytes, at: int, end: int, _count: int, _marks: int) -> Message:
    queue_at = at + _CANCEL.size
    expect(queue_at <= end)
    id, unless, length = _CANCEL.unpack_from(data, at)
    if unless not in CANCELS:
        raise DamagedError("type unknown")
    key_at = queue_at + length
    expect(key_at <= end <= key_at + MAX_KEY)
    return KeyCancel(id, data[queue_at:key_at], data[key_at:end], unless)


WRITERS: Final[dict[type[Message], tuple[int, Callable[[Any], Body]]]] = {
    KeyClaim: (KEYCLAIM, _write_keyclaim),
    KeyAnswer: (KEYANSWER, _write_keyanswer),
    KeyCancel: (KEYCANCEL, _write_keycancel),
}
READERS: Final[dict[int, Callable[[bytes, int, int, int, int], Message]]] = {
    KEYCLAIM: _read_keyclaim,
    KEYANSWER: _read_keyanswer,
    KEYCANCEL: _read_keycancel,
}
