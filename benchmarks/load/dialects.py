"""How servers are spoken to: the same work in the words of Disque, of Redis and of beanstalkd."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

import attrs
import hiredis

Ask = tuple[bytes, int]
"""A request, or many, and how many answers there will be."""
Job = tuple[bytes, bytes]
"""Its id, or nothing where there are no ids, and its body."""


class Reader(Protocol):
    """Makes answers of bytes."""

    def feed(self, data: bytes) -> None:
        """Take what has come."""

    def gets(self) -> Any:
        """The next answer, or False."""


class Dialect(Protocol):
    """What a load generator has to say."""

    def reader(self) -> Reader:
        """Of a new connection."""

    def add(self, queue: bytes, body: bytes, options: Sequence[bytes] = ()) -> bytes:
        """One job; there is one answer."""

    def get(self, queue: bytes, count: int) -> Ask:
        """As many jobs as there are, up to so many, at once."""

    def block(self, queue: bytes, count: int) -> bytes:
        """Wait for jobs; there is one answer, when there are any or after some seconds."""

    def ack(self, ids: Sequence[bytes]) -> Ask:
        """These are done."""

    def jobs(self, answers: Sequence[Any]) -> list[Job]:
        """Those that were got."""


def resp(*words: bytes) -> bytes:
    """A request."""
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


PATIENCE_MS: Final = b"2000"
"""A worker that waits asks again after that."""


@attrs.frozen
class Disque:
    """The words of ours and of the original."""

    def reader(self) -> Reader:
        """RESP."""
        return hiredis.Reader()

    def add(self, queue: bytes, body: bytes, options: Sequence[bytes] = ()) -> bytes:
        """ADDJOB."""
        return resp(b"ADDJOB", queue, body, b"0", *options)

    def get(self, queue: bytes, count: int) -> Ask:
        """GETJOB NOHANG."""
        return resp(b"GETJOB", b"NOHANG", b"COUNT", b"%d" % count, b"FROM", queue), 1

    def block(self, queue: bytes, count: int) -> bytes:
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
class Redis:
    """A list is a queue, and what is taken is gone: less than Disque does."""

    def reader(self) -> Reader:
        """RESP."""
        return hiredis.Reader()

    def add(self, queue: bytes, body: bytes, _options: Sequence[bytes] = ()) -> bytes:
        """LPUSH."""
        return resp(b"LPUSH", queue, body)

    def get(self, queue: bytes, count: int) -> Ask:
        """RPOP."""
        return resp(b"RPOP", queue, b"%d" % count), 1

    def block(self, queue: bytes, count: int) -> bytes:
        """BRPOP, or for many BLMPOP."""
        if count == 1:
            return resp(b"BRPOP", queue, b"2")
        return resp(b"BLMPOP", b"2", b"1", queue, b"RIGHT", b"COUNT", b"%d" % count)

    def ack(self, _ids: Sequence[bytes]) -> Ask:
        """There is nothing to be said."""
        return b"", 0

    def jobs(self, answers: Sequence[Any]) -> list[Job]:
        """Bodies, or a queue and its bodies."""
        return [(b"", body) for answer in answers if answer for body in _bodies(answer)]


def _bodies(answer: list[Any]) -> list[bytes]:
    """RPOP gives bodies; BRPOP a queue and a body, BLMPOP a queue and bodies."""
    if len(answer) == 2 and isinstance(answer[1], list):
        return answer[1]
    if len(answer) == 2 and answer[0].startswith(QUEUE_PREFIX):
        return answer[1:]
    return answer


QUEUE_PREFIX: Final = b"queue:"
"""All queues of the benchmarks begin so, and no body does."""


@attrs.frozen
class Beanstalkd:
    """One tube, the default one. It keeps what is reserved until it is deleted, as Disque does."""

    def reader(self) -> Reader:
        """Lines, some of which announce a body."""
        return BeanstalkReader()

    def add(self, _queue: bytes, body: bytes, options: Sequence[bytes] = ()) -> bytes:
        """Put; of the options it knows DELAY."""
        delay = options[options.index(b"DELAY") + 1] if b"DELAY" in options else b"0"
        return b"put 1000 %b 300 %d\r\n%b\r\n" % (delay, len(body), body)

    def get(self, _queue: bytes, count: int) -> Ask:
        """So many reserves, none of which waits."""
        return b"reserve-with-timeout 0\r\n" * count, count

    def block(self, _queue: bytes, _count: int) -> bytes:
        """Reserve: always one."""
        return b"reserve-with-timeout 2\r\n"

    def ack(self, ids: Sequence[bytes]) -> Ask:
        """Delete."""
        return b"".join([b"delete %b\r\n" % id for id in ids]), len(ids)

    def jobs(self, answers: Sequence[Any]) -> list[Job]:
        """Those that were reserved."""
        return [answer for answer in answers if isinstance(answer, tuple)]


_REFUSALS: Final = (b"OUT_OF", b"INTERNAL", b"BAD", b"UNKNOWN", b"EXPECTED", b"JOB_TOO_BIG")


class BeanstalkReader:
    """Answers are lines as bytes, or a job as a tuple, or an error."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take what has come."""
        self._rest += data

    def gets(self) -> Any:
        """The next answer, or False."""
        end = self._rest.find(b"\r\n")
        if end < 0:
            return False
        line = self._rest[:end]
        if not line.startswith(b"RESERVED "):
            self._rest = self._rest[end + 2 :]
            return hiredis.ReplyError(line.decode()) if line.startswith(_REFUSALS) else line
        _, job_id, length = line.split()
        begin = end + 2
        after = begin + int(length) + 2
        if len(self._rest) < after:
            return False
        body, self._rest = self._rest[begin : after - 2], self._rest[after:]
        return job_id, body
