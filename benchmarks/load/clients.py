"""Connections of one process: each carries on a conversation, all of them by one epoll."""

import select
import socket
import time
from collections.abc import Callable, Generator, Iterable
from typing import Any, Final

import hiredis

from benchmarks.load.dialects import Ask, Dialect

LOOPBACK: Final = "127.0.0.1"
_AT_ONCE: Final = 1 << 18
"""Bytes that are read at once."""
_TICK_S: Final = 0.1
"""How often one looks whether it is over while nothing comes."""

Conversation = Generator[Ask, list[Any], None]
"""Yields what it asks, and is sent all the answers."""


class Client:
    """A connection."""

    def __init__(self, port: int, dialect: Dialect) -> None:
        self.socket = socket.create_connection((LOOPBACK, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = dialect.reader()
        self._due = 0
        self._got: list[Any] = []

    def ask(self, ask: Ask) -> None:
        """Send, and expect so many answers more."""
        data, due = ask
        self._due += due
        self.socket.sendall(data)

    def receive(self) -> list[Any] | None:
        """Read what has come: all the answers that are due, or None as long as some are not there.

        An answer that is an error is raised.
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


def connect(port: int, dialect: Dialect, count: int) -> list[Client]:
    """So many connections."""
    return [Client(port, dialect) for _ in range(count)]


def converse(
    pairs: Iterable[tuple[Client, Conversation]],
    limit_s: float,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Carry on all conversations until each has ended, or until it is over."""
    deadline = time.monotonic() + limit_s
    epoll = select.epoll()
    running: dict[int, tuple[Client, Conversation]] = {}
    for client, conversation in pairs:
        ask = next(conversation, None)
        if ask is not None:
            running[client.socket.fileno()] = client, conversation
            epoll.register(client.socket.fileno(), select.EPOLLIN)
            client.ask(ask)
    while running and not is_over():
        for fd, _ in epoll.poll(_TICK_S):
            client, conversation = running[fd]
            answers = client.receive()
            if answers is None:
                continue
            try:
                client.ask(conversation.send(answers))
            except StopIteration:
                epoll.unregister(fd)
                del running[fd]
        if time.monotonic() > deadline:
            raise TimeoutError(f"not done within {limit_s:g} s")
    epoll.close()
