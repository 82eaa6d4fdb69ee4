"""The dialect of RabbitMQ: AMQP 0-9-1 with publisher confirms, one channel for each connection.

Numbers of methods and fields are those of the specification, amqp-xml-doc0-9-1.
"""

import socket
import struct
from collections.abc import Sequence
from typing import Any, Final

import attrs
import hiredis

from benchmarks.load.dialects import Ask, Dialect, Job

_METHOD: Final = 1
_HEADER: Final = 2
_BODY: Final = 3
_FRAME: Final = struct.Struct(">BHI")
_END: Final = b"\xce"
_PERSISTENT: Final = struct.pack(">HB", 0x1000, 2)
"""The properties of a message: its delivery mode."""
_PASSIVE: Final = b"\x01"
_DURABLE: Final = b"\x02"


def _short(text: bytes) -> bytes:
    return b"%c%b" % (len(text), text)


def _long(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _frame(kind: int, channel: int, payload: bytes) -> bytes:
    return _FRAME.pack(kind, channel, len(payload)) + payload + _END


def method(class_id: int, method_id: int, *fields: bytes, channel: int = 1) -> bytes:
    """A method with its fields."""
    return _frame(_METHOD, channel, struct.pack(">HH", class_id, method_id) + b"".join(fields))


def declare(queue: bytes, copies: int = 0) -> Ask:
    """Make a quorum queue; without a number of copies, ask how many jobs are in it."""
    if not copies:
        return method(50, 10, b"\0\0", _short(queue), _PASSIVE, _long(b"")), 1
    size = _short(b"x-quorum-initial-group-size") + b"l" + struct.pack(">q", copies)
    kind = _short(b"x-queue-type") + b"S" + _long(b"quorum")
    return method(50, 10, b"\0\0", _short(queue), _DURABLE, _long(kind + size)), 1


def delete(queue: bytes) -> Ask:
    """Delete a queue, if there is one."""
    return method(50, 40, b"\0\0", _short(queue), b"\0"), 1


@attrs.frozen
class Amqp(Dialect):
    """The default exchange, and manual acknowledgements, which have no reply."""

    def connected(self, connection: socket.socket) -> "Amqp":
        """Log in, open a channel and select confirms."""
        login = (_long(b""), _short(b"PLAIN"), _long(b"\0guest\0guest"), _short(b"en_US"))
        tuning = struct.pack(">HIH", 1, 1 << 17, 0)
        for data in (
            b"AMQP\0\0\x09\x01",
            method(10, 11, *login, channel=0),
            method(10, 31, tuning, channel=0) + method(10, 40, b"\1/\0\0", channel=0),
            method(20, 10, b"\0"),
            method(85, 10, b"\0"),
        ):
            connection.sendall(data)
            # One method answers each: wait for the end of its frame.
            while not (got := connection.recv(1 << 16)).endswith(_END):
                if not got:
                    raise ConnectionError("the server has hung up")
        return self

    def reader(self) -> "AmqpReader":
        """A parser of frames."""
        return AmqpReader()

    def add(self, queue: bytes, body: bytes, _options: Sequence[bytes] = ()) -> bytes:
        """basic.publish of a persistent message, which is confirmed."""
        about = struct.pack(">HHQ", 60, 0, len(body)) + _PERSISTENT
        publish = method(60, 40, b"\0\0", b"\0", _short(queue), b"\0")
        return publish + _frame(_HEADER, 1, about) + _frame(_BODY, 1, body)

    def get(self, queue: bytes, count: int) -> Ask:
        """basic.get."""
        return method(60, 70, b"\0\0", _short(queue), b"\0") * count, count

    def block(self, queue: bytes, count: int, taken: int | None) -> bytes:
        """basic.qos and basic.consume, once: then jobs come whenever others are acknowledged."""
        if taken is not None:
            return b""
        limit = method(60, 10, struct.pack(">IHB", 0, count, 0))
        no_wait = b"\x08"
        return limit + method(60, 20, b"\0\0", _short(queue), b"\0", no_wait, _long(b""))

    def ack(self, ids: Sequence[bytes]) -> Ask:
        """One basic.ack for all up to the last."""
        return method(60, 80, ids[-1], b"\x01"), 0


class AmqpReader:
    """Replies are methods; a confirm for each job; the jobs that came at once as one list."""

    def __init__(self) -> None:
        self._data = b""
        self._at = 0
        self._tag = b""
        self._size = 0
        self._body = b""
        self._jobs: list[Job] = []
        self._last = 0
        """All publications up to it are confirmed."""
        self._early: set[int] = set()
        """Those after it that are."""
        self._due = 0
        """Confirms that are not yet given."""

    def feed(self, data: bytes) -> None:
        """Take received bytes."""
        self._data = self._data[self._at :] + data
        self._at = 0

    def gets(self) -> Any:
        """The next reply, or False."""
        while not self._due and (frame := self._frame()) is not None:
            kind, payload = frame
            if kind == _HEADER:
                (self._size,) = struct.unpack_from(">Q", payload, 4)
            elif kind == _BODY:
                self._take(payload)
            elif kind == _METHOD and (answer := self._method(payload)) is not None:
                return answer
        if self._due:
            self._due -= 1
            return b""
        jobs, self._jobs = self._jobs, []
        return jobs or False

    def _frame(self) -> tuple[int, bytes] | None:
        begin = self._at + _FRAME.size
        if len(self._data) < begin:
            return None
        kind, _, size = _FRAME.unpack_from(self._data, self._at)
        end = begin + size
        if len(self._data) <= end:
            return None
        self._at = end + 1
        return kind, self._data[begin:end]

    def _take(self, part: bytes) -> None:
        self._body += part
        if len(self._body) == self._size:
            self._jobs.append((self._tag, self._body))
            self._body = b""

    def _method(self, payload: bytes) -> Any:
        """The reply that a method is, if it is one."""
        match struct.unpack_from(">HH", payload):
            case (60, 60):  # deliver, with the consumer's name before the tag
                begin = 5 + payload[4]
                self._tag = payload[begin : begin + 8]
            case (60, 71):  # get-ok
                self._tag = payload[4:12]
            case (60, 72):  # get-empty
                return []
            case (60, 80):  # ack
                self._confirm(*struct.unpack_from(">QB", payload, 4))
            case (60, 11):  # qos-ok, which is not waited for
                pass
            case (10, 50) | (20, 40) | (60, 120):  # connection.close, channel.close, nack
                return hiredis.ReplyError(repr(payload))
            case _:
                return payload
        return None

    def _confirm(self, tag: int, is_multiple: int) -> None:
        for each in range(self._last + 1, tag + 1) if is_multiple else (tag,):
            self._due += each not in self._early
            self._early.add(each)
        while self._last + 1 in self._early:
            self._last += 1
            self._early.remove(self._last)
