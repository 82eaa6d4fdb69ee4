"""The connections of one process: each has a conversation, all on one epoll."""

import select
import socket
import time
from collections.abc import Callable, Generator, Iterable
from typing import Any, Final

import hiredis

from benchmarks.load.dialects import Ask, Dialect

LOOPBACK: Final = "127.0.0.1"
_AT_ONCE: Final = 1 << 18
"""Bytes per read."""
_TICK_S: Final = 0.1
"""How often the end condition is checked while nothing comes."""

Conversation = Generator[Ask, list[Any], None]
"""Yields requests, and is sent all their replies."""


class Client:
    """A connection."""

    def __init__(self, port: int, dialect: Dialect) -> None:
        self.socket = socket.create_connection((LOOPBACK, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.dialect = dialect.connected(self.socket)
        self._reader = self.dialect.reader()
        self._due = 0
        self._got: list[Any] = []

    def ask(self, ask: Ask) -> None:
        """Send requests."""
        data, due = ask
        self._due += due
        if data:
            self.socket.sendall(data)

    def receive(self) -> list[Any] | None:
        """Read. Returns all the replies that are due, or None while some are missing.

        A reply that is an error is raised.
        """
        data = self.socket.recv(_AT_ONCE)
        if not data:
            raise ConnectionError("the server has hung up")
        reader, got = self._reader, self._got
        reader.feed(data)
        while (answer := reader.gets()) is not False:
            if isinstance(answer, hiredis.ReplyError):
                raise answer
            got.append(answer)
        if len(got) < self._due:
            return None
        self._got, self._due = [], 0
        return got

    def call(self, ask: Ask) -> list[Any]:
        """Send requests, and wait for their replies."""
        self.ask(ask)
        while (got := self.receive()) is None:
            pass
        return got


def connect(port: int, dialect: Dialect, count: int) -> list[Client]:
    """Open `count` connections."""
    return [Client(port, dialect) for _ in range(count)]


def converse(
    pairs: Iterable[tuple[Client, Conversation]],
    limit_s: float,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Run all conversations until each has ended, or `is_over` returns True."""
    deadline = time.monotonic() + limit_s
    running: dict[int, tuple[Client, Conversation]] = {}
    with select.epoll() as epoll:
        for client, conversation in pairs:
            if _go_on(client, conversation, None):
                running[client.socket.fileno()] = client, conversation
                epoll.register(client.socket.fileno(), select.EPOLLIN)
        while running and not is_over():
            for fd, _ in epoll.poll(_TICK_S):
                client, conversation = running[fd]
                answers = client.receive()
                if answers is not None and not _go_on(client, conversation, answers):
                    epoll.unregister(fd)
                    del running[fd]
            if time.monotonic() > deadline:
                raise TimeoutError(f"not done within {limit_s:g} s")


def _go_on(client: Client, conversation: Conversation, answers: Any) -> bool:
    """Send the next requests, and those after them if they have no replies. False at the end."""
    due = 0
    while not due:
        try:
            ask = conversation.send(answers)
        except StopIteration:
            return False
        client.ask(ask)
        answers, due = [], ask[1]
    return True
