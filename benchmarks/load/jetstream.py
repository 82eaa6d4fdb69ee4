"""The dialect of NATS JetStream: a work queue stream, and a pull consumer with explicit acks."""

import json
import os
import socket
from collections.abc import Sequence
from typing import Any, Final

import attrs
import hiredis

from benchmarks.load.dialects import Ask, Dialect, Job

STREAM: Final = b"bench"
CONSUMER: Final = b"workers"
_NEXT: Final = b"$JS.API.CONSUMER.MSG.NEXT.%b.%b" % (STREAM, CONSUMER)
_PATIENCE_NS: Final = 100_000_000_000
"""Requests for jobs expire after a run has ended."""


@attrs.frozen
class JetStream(Dialect):
    """Subjects of one stream. The acknowledgement of a job has no reply."""

    inbox: bytes = b""
    """Where replies to this connection go."""

    def connected(self, connection: socket.socket) -> "JetStream":
        """CONNECT, and a subscription to the inbox."""
        inbox = b"_INBOX." + os.urandom(8).hex().encode()
        options = b'{"verbose":false,"headers":true,"no_responders":true}'
        connection.sendall(b"CONNECT %b\r\nSUB %b 1\r\n" % (options, inbox))
        return JetStream(inbox)

    def reader(self) -> "NatsReader":
        """A parser of messages."""
        return NatsReader()

    def request(self, subject: bytes, body: bytes) -> bytes:
        """A message that is replied to."""
        return b"PUB %b %b %d\r\n%b\r\n" % (subject, self.inbox, len(body), body)

    def control(self, action: str, facts: dict[str, Any]) -> Ask:
        """A request to JetStream itself."""
        return self.request(b"$JS.API." + action.encode(), json.dumps(facts).encode()), 1

    def add(self, queue: bytes, body: bytes, _options: Sequence[bytes] = ()) -> bytes:
        """PUB, acknowledged by the stream."""
        return self.request(b"%b.%b" % (STREAM, queue), body)

    def get(self, queue: bytes, count: int) -> Ask:
        """A pull, which waits only if there are fewer."""
        return self.block(queue, count, None), 1

    def block(self, _queue: bytes, count: int, taken: int | None) -> bytes:
        """A pull of as many as were taken of those pulled before."""
        batch = count if taken is None else taken
        return self.request(_NEXT, b'{"batch":%d,"expires":%d}' % (batch, _PATIENCE_NS))

    def ack(self, ids: Sequence[bytes]) -> Ask:
        """One message for each."""
        return b"".join([b"PUB %b 4\r\n+ACK\r\n" % id for id in ids]), 0


class NatsReader:
    """Replies are the bodies of messages; the jobs that came at once are one list, at the end."""

    def __init__(self) -> None:
        self._data = b""
        self._at = 0
        self._jobs: list[Job] = []

    def feed(self, data: bytes) -> None:
        """Take received bytes."""
        self._data = self._data[self._at :] + data
        self._at = 0

    def gets(self) -> Any:
        """The next reply, or False."""
        while (words := self._line()) is not None:
            match words:
                case [b"MSG", _, _, ack, size]:
                    self._jobs.append((ack, self._body(size)))
                case [b"MSG", _, _, size]:
                    body = self._body(size)
                    return hiredis.ReplyError(body.decode()) if b'"error":' in body else body
                case [b"HMSG", *_, size] | [b"-ERR" as size, *_]:
                    said = self._body(size) if size != b"-ERR" else b" ".join(words)
                    return hiredis.ReplyError(said.decode())
        jobs, self._jobs = self._jobs, []
        return jobs or False

    def _line(self) -> list[bytes] | None:
        """The words of the next line, if what belongs to it is there, too."""
        end = self._data.find(b"\r\n", self._at)
        if end < 0:
            return None
        words = self._data[self._at : end].split()
        size = int(words[-1]) + 2 if words[0] in {b"MSG", b"HMSG"} else 0
        if len(self._data) < end + 2 + size:
            return None
        self._at = end + 2
        return words

    def _body(self, size: bytes) -> bytes:
        begin, self._at = self._at, self._at + int(size) + 2
        return self._data[begin : self._at - 2]
