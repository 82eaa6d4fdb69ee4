"""`--pipe`: sends standard input to the node unchanged, and counts the replies.

Requests may be RESP or lines of text. They are not parsed here, so a million jobs take no longer
than the node needs for them. A PING with a random argument marks the end of the replies.
"""

import os
import select
from typing import Final

import attrs

from disque_trio.client.connection import Connection
from disque_trio.statemachine.base import Failure, Reply
from disque_trio.terminal.output import complain
from disque_trio.wire.resp import encode_request

_CHUNK: Final = 1 << 16


@attrs.define(eq=False)
class Pipe:
    """One transfer from a file descriptor to a node."""

    connection: Connection
    source: int
    replies: int = 0
    errors: int = 0
    _mark: bytes = attrs.field(init=False, factory=lambda: os.urandom(20).hex().encode())
    _unsent: bytes = attrs.field(init=False, default=b"")
    _has_more: bool = attrs.field(init=False, default=True)
    _is_line_open: bool = attrs.field(init=False, default=False)
    _is_done: bool = attrs.field(init=False, default=False)

    def run(self) -> bool:
        """Transfer everything and wait for the last reply; False if any of them was an error."""
        while not self._is_done:
            self._turn()
        return not self.errors

    def _turn(self) -> None:
        node = self.connection.fileno()
        wants = [self.source] if self._has_more and not self._unsent else []
        readable, writable, _ = select.select([node, *wants], [node] if self._unsent else [], [])
        if node in readable:
            self._count(self.connection.received())
        if self.source in readable:
            self._fill()
        if writable and not self._is_done:
            self._unsent = self._unsent[self.connection.send_some(self._unsent) :]

    def _fill(self) -> None:
        data = os.read(self.source, _CHUNK)
        if data:
            self._unsent = data
            self._is_line_open = not data.endswith(b"\n")
        else:
            self._has_more = False
            self._unsent = b"\r\n" * self._is_line_open + encode_request([b"PING", self._mark])

    def _count(self, replies: list[Reply]) -> None:
        for reply in replies:
            if reply == self._mark:
                self._is_done = True
                return
            self.replies += 1
            if isinstance(reply, Failure):
                self.errors += 1
                complain(reply.text.decode(errors="replace"))
