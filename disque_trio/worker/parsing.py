"""Selects the parser of nodes' replies: hiredis if it is installed, otherwise this project's."""

from collections.abc import Callable
from typing import Protocol

from disque_trio.statemachine.base import Failure, Reply
from disque_trio.wire.resp import ProtocolError, ReplyParser

try:
    import hiredis
except ImportError:  # the extra `fast` is not installed
    hiredis = None  # type: ignore[assignment]


class Parser(Protocol):
    """Parses a node's bytes, in pieces of any size."""

    def __init__(self) -> None: ...

    def feed(self, data: bytes) -> list[Reply]:
        """The replies that these bytes complete. Raises ProtocolError."""
        ...


class FastParser:
    """A parser in C. It returns simple strings as bytes, like other strings, and null arrays as
    None, like other nulls."""

    __slots__ = ("_reader",)

    def __init__(self) -> None:
        self._reader = hiredis.Reader(replyError=_failure)  # type: ignore[arg-type]

    def feed(self, data: bytes) -> list[Reply]:
        """The replies that these bytes complete. Raises ProtocolError."""
        reader = self._reader
        replies = []
        try:
            reader.feed(data)
            while (reply := reader.gets()) is not False:
                replies.append(reply)
        except hiredis.ProtocolError as error:
            raise ProtocolError(str(error).encode()) from error
        return replies


def _failure(text: str) -> Failure:
    return Failure(text.encode())


make_parser: Callable[[], Parser] = ReplyParser if hiredis is None else FastParser
"""Creates the parser of a new connection."""
