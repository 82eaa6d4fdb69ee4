"""A client that blocks, for tests: one request, one reply, types kept apart."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import attrs

from disque_trio.statemachine.base import NULL_ARRAY, Failure, JobId, Reply, Status
from disque_trio.wire.resp import ReplyParser, encode_request

LOOPBACK: Final = "127.0.0.1"
PATIENCE_S: Final = 60.0
"""A reply that takes longer does not come."""

Word = str | bytes | int


class RefusedError(Exception):
    """The server has answered with an error; its text starts with the error's code."""


class ClosedError(ConnectionError):
    """The server has ended the connection."""


@attrs.frozen
class Delivery:
    """One job as GETJOB gives it."""

    queue: bytes
    id: JobId
    body: bytes


class Client:
    """One connection. Nothing waits longer than `patience_s`."""

    def __init__(self, port: int, patience_s: float = PATIENCE_S, host: str = LOOPBACK) -> None:
        self._socket = socket.create_connection((host, port), patience_s)
        self._parser = ReplyParser()
        self._replies: list[Reply] = []
        self.is_usable = True
        """False once it has failed: what comes now may answer an earlier request."""

    def close(self) -> None:
        """Disconnect. Replies that have not been read are lost."""
        self.is_usable = False
        self._socket.close()

    def send(self, *words: Word) -> None:
        """A request whose reply is read later, if at all."""
        self.send_raw(request(*words))

    def send_raw(self, data: bytes) -> None:
        """Bytes that may be no request."""
        try:
            self._socket.sendall(data)
        except OSError:
            self.is_usable = False
            raise

    def reply(self) -> Reply:
        """The next reply, which may be a `Failure`."""
        while not self._replies:
            self._replies += self._parser.feed(self._more())
        return self._replies.pop(0)

    def receive(self) -> Reply:
        """The next reply; a `Failure` is raised as `RefusedError`."""
        reply = self.reply()
        if isinstance(reply, Failure):
            raise RefusedError(reply.text.decode())
        return reply

    def _more(self) -> bytes:
        try:
            data = self._socket.recv(1 << 16)
            if not data:
                raise ClosedError("closed by the server")
        except OSError:
            self.is_usable = False
            raise
        return data

    def call(self, *words: Word) -> Reply:
        """A request and its reply."""
        self.send(*words)
        return self.receive()

    # Replies of a known type.

    def number(self, *words: Word) -> int:
        """Call for an integer."""
        reply = self.call(*words)
        assert isinstance(reply, int), reply
        return reply

    def text(self, *words: Word) -> bytes:
        """Call for a string, simple or bulk."""
        return as_text(self.call(*words))

    def items(self, *words: Word) -> list[Reply]:
        """Call for an array; the null array is an empty one."""
        return as_items(self.call(*words))

    # Disque's commands, as far as many tests use them.

    def add(self, queue: str, body: Word, *options: Word, timeout: int = 5000) -> JobId:
        """ADDJOB."""
        return self.text("ADDJOB", queue, body, timeout, *options)

    def get(self, queue: str, count: int = 1, timeout: int | None = None) -> list[Delivery]:
        """GETJOB, which hangs only if it has a timeout."""
        how = ("NOHANG",) if timeout is None else ("TIMEOUT", timeout)
        return deliveries(self.items("GETJOB", *how, "COUNT", count, "FROM", queue))

    def show(self, job: JobId) -> dict[str, Reply]:
        """SHOW by name; empty if the job is unknown here."""
        reply = self.call("SHOW", job)
        return {} if reply is None else as_pairs(reply)

    def state(self, job: JobId) -> bytes:
        """The state of this node's copy, or nothing."""
        shown = self.show(job)
        return as_text(shown["state"]) if shown else b""

    def registered_jobs(self) -> int:
        """Job records in this node, acknowledged ones and dummy acks included."""
        return int(self.info("jobs")["registered_jobs"])

    def info(self, section: str) -> dict[str, str]:
        """The fields of a section of INFO."""
        lines = self.text("INFO", section).decode().split("\r\n")
        return dict(line.split(":", 1) for line in lines if ":" in line)


@contextmanager
def connection(port: int, patience_s: float = PATIENCE_S) -> Iterator[Client]:
    """A client for as long as the block lasts."""
    client = Client(port, patience_s)
    try:
        yield client
    finally:
        client.close()


def request(*words: Word) -> bytes:
    """A request's bytes."""
    return encode_request([as_word(word) for word in words])


def as_word(word: Word) -> bytes:
    """A word of a request as its bytes."""
    return word if isinstance(word, bytes) else str(word).encode()


def as_text(reply: Reply) -> bytes:
    """A string, simple or bulk."""
    if isinstance(reply, Status):
        return reply.text
    assert isinstance(reply, bytes), reply
    return reply


def as_items(reply: Reply) -> list[Reply]:
    """An array; the null array is an empty one."""
    if reply is NULL_ARRAY:
        return []
    assert isinstance(reply, list), reply
    return reply


def as_pairs(reply: Reply) -> dict[str, Reply]:
    """A flat array of names and values."""
    items = as_items(reply)
    return {
        as_text(name).decode(): value for name, value in zip(items[::2], items[1::2], strict=True)
    }


def deliveries(items: list[Reply]) -> list[Delivery]:
    """What GETJOB answered, without counters."""
    rows = [[as_text(part) for part in as_items(item)[:3]] for item in items]
    return [Delivery(*row) for row in rows]
