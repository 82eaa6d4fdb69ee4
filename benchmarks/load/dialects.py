"""Dialects: the same work as requests of Disque, of Redis and of beanstalkd."""

import socket
from collections.abc import Sequence
from typing import Any, Final, Protocol

import attrs
import hiredis

Ask = tuple[bytes, int]
"""The bytes of one or more requests, and the number of replies."""
Job = tuple[bytes, bytes]
"""Id, empty where the server has none, and body."""


class Reader(Protocol):
    """Parses replies."""

    def feed(self, data: bytes) -> None:
        """Take received bytes."""

    def gets(self) -> Any:
        """The next reply, or False."""


class Dialect(Protocol):
    """The requests of one kind of server."""

    def connected(self, connection: socket.socket) -> "Dialect":
        """Greet the server. Returns the dialect of this connection."""
        del connection
        return self

    def reader(self) -> Reader:
        """A parser for a new connection; of RESP, unless it says otherwise."""
        return hiredis.Reader()

    def add(self, queue: bytes, body: bytes, options: Sequence[bytes] = ()) -> bytes:
        """Add one job; there is one reply."""

    def get(self, queue: bytes, count: int) -> Ask:
        """Take up to `count` jobs without waiting."""

    def block(self, queue: bytes, count: int, taken: int | None) -> bytes:
        """Wait for jobs; there is one reply, when there are any or after some seconds.

        `taken` says how many the reply before had; None in a connection's first request.
        """

    def ack(self, ids: Sequence[bytes]) -> Ask:
        """Acknowledge jobs."""

    def jobs(self, answers: Sequence[Any]) -> list[Job]:
        """The jobs in these replies to `get` or `block`; all, if each reply is a list of jobs."""
        return [job for answer in answers for job in answer]


def resp(*words: bytes) -> bytes:
    """A request in RESP."""
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


PATIENCE_MS: Final = b"2000"
"""How long a worker waits before it asks again."""


@attrs.frozen
class Disque(Dialect):
    """Ours and the original."""

    def add(self, queue: bytes, body: bytes, options: Sequence[bytes] = ()) -> bytes:
        """ADDJOB."""
        return resp(b"ADDJOB", queue, body, b"0", *options)

    def get(self, queue: bytes, count: int) -> Ask:
        """GETJOB NOHANG."""
        return resp(b"GETJOB", b"NOHANG", b"COUNT", b"%d" % count, b"FROM", queue), 1

    def block(self, queue: bytes, count: int, _taken: int | None) -> bytes:
        """GETJOB."""
        number = b"%d" % count
        return resp(b"GETJOB", b"TIMEOUT", PATIENCE_MS, b"COUNT", number, b"FROM", queue)

    def ack(self, ids: Sequence[bytes]) -> Ask:
        """ACKJOB."""
        return resp(b"ACKJOB", *ids), 1

    def jobs(self, answers: Sequence[Any]) -> list[Job]:
        """Rows of queue, id and body."""
        return [(row[1], row[2]) for answer in answers for row in answer or ()]


@attrs.frozen
class Redis(Dialect):
    """Lists as queues. A job that is taken is gone: there are no acknowledgements."""

    def add(self, queue: bytes, body: bytes, _options: Sequence[bytes] = ()) -> bytes:
        """LPUSH."""
        return resp(b"LPUSH", queue, body)

    def get(self, queue: bytes, count: int) -> Ask:
        """RPOP."""
        return resp(b"RPOP", queue, b"%d" % count), 1

    def block(self, queue: bytes, count: int, _taken: int | None) -> bytes:
        """BRPOP, or for many BLMPOP."""
        if count == 1:
            return resp(b"BRPOP", queue, b"2")
        return resp(b"BLMPOP", b"2", b"1", queue, b"RIGHT", b"COUNT", b"%d" % count)

    def ack(self, _ids: Sequence[bytes]) -> Ask:
        """No request."""
        return b"", 0

    def jobs(self, answers: Sequence[Any]) -> list[Job]:
        """Bodies, or a queue and its bodies."""
        return [(b"", body) for answer in answers if answer for body in _bodies(answer)]


def _bodies(answer: list[Any]) -> list[bytes]:
    """The bodies in a reply: RPOP gives bodies, BRPOP a queue and a body, BLMPOP a queue and
    bodies."""
    if len(answer) == 2 and isinstance(answer[1], list):
        return answer[1]
    if len(answer) == 2 and answer[0].startswith(QUEUE_PREFIX):
        return answer[1:]
    return answer


QUEUE_PREFIX: Final = b"queue:"
"""All queue names of the benchmarks begin with it, and no body does."""
QUEUE: Final = QUEUE_PREFIX + b"bench"
GROUP: Final = b"workers"


@attrs.frozen
class RedisStreams(Dialect):
    """A stream with one group of consumers; acknowledged entries are deleted, as in a queue."""

    def add(self, queue: bytes, body: bytes, _options: Sequence[bytes] = ()) -> bytes:
        """XADD."""
        return resp(b"XADD", queue, b"*", b"body", body)

    def get(self, queue: bytes, count: int) -> Ask:
        """XREADGROUP."""
        return self._read(queue, count), 1

    def block(self, queue: bytes, count: int, _taken: int | None) -> bytes:
        """XREADGROUP BLOCK."""
        return self._read(queue, count, b"BLOCK", PATIENCE_MS)

    def _read(self, queue: bytes, count: int, *limit: bytes) -> bytes:
        group = (b"GROUP", GROUP, b"any", b"COUNT", b"%d" % count)
        return resp(b"XREADGROUP", *group, *limit, b"STREAMS", queue, b">")

    def ack(self, ids: Sequence[bytes]) -> Ask:
        """XACK and XDEL."""
        return resp(b"XACK", QUEUE, GROUP, *ids) + resp(b"XDEL", QUEUE, *ids), 2

    def jobs(self, answers: Sequence[Any]) -> list[Job]:
        """Streams with their entries."""
        streams = [stream for answer in answers for stream in answer or ()]
        return [(id, fields[1]) for _, entries in streams for id, fields in entries]


@attrs.frozen
class Beanstalkd(Dialect):
    """The default tube. Reserved jobs are kept until they are deleted, as in Disque."""

    def reader(self) -> Reader:
        """A parser of lines and bodies."""
        return BeanstalkReader()

    def add(self, _queue: bytes, body: bytes, options: Sequence[bytes] = ()) -> bytes:
        """put; the only option is DELAY."""
        delay = options[options.index(b"DELAY") + 1] if b"DELAY" in options else b"0"
        return b"put 1000 %b 300 %d\r\n%b\r\n" % (delay, len(body), body)

    def get(self, _queue: bytes, count: int) -> Ask:
        """`count` requests that do not wait."""
        return b"reserve-with-timeout 0\r\n" * count, count

    def block(self, _queue: bytes, _count: int, _taken: int | None) -> bytes:
        """reserve, always one job."""
        return b"reserve-with-timeout 2\r\n"

    def ack(self, ids: Sequence[bytes]) -> Ask:
        """Delete."""
        return b"".join([b"delete %b\r\n" % id for id in ids]), len(ids)

    def jobs(self, answers: Sequence[Any]) -> list[Job]:
        """The reserved jobs."""
        return [answer for answer in answers if isinstance(answer, tuple)]


_REFUSALS: Final = (b"OUT_OF", b"INTERNAL", b"BAD", b"UNKNOWN", b"EXPECTED", b"JOB_TOO_BIG")


class BeanstalkReader:
    """Replies are lines as bytes, a job as a tuple, or an error."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take received bytes."""
        self._rest += data

    def gets(self) -> Any:
        """The next reply, or False."""
        end = self._rest.find(b"\r\n")
        if end < 0:
            return False
        line = self._rest[:end]
        if not line.startswith((b"RESERVED ", b"OK ")):
            self._rest = self._rest[end + 2 :]
            return hiredis.ReplyError(line.decode()) if line.startswith(_REFUSALS) else line
        *_, job_id, length = line.split()
        begin = end + 2
        after = begin + int(length) + 2
        if len(self._rest) < after:
            return False
        body, self._rest = self._rest[begin : after - 2], self._rest[after:]
        return job_id, body
