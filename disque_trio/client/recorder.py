"""Records requests and replies of clients, so that `disque-trio sim judge` can check a cluster
(docs/histories.md).

A recorder observes the bytes of connections. So it records everything that was sent and received,
including repeated requests, and replies that nothing waited for.
"""

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Final

import attrs

from disque_trio.client.address import Address
from disque_trio.statemachine.base import Reply
from disque_trio.tracing.histories import (
    begin_line,
    fault_line,
    header_line,
    is_recorded,
    lost_line,
    reply_line,
)
from disque_trio.wire.resp import ProtocolError, ReplyParser

_DISCONNECTED: Final = "disconnected"


class Recorder:
    """Appends the calls of clients to a file. Any number of clients, threads and processes may use
    one recorder or one file.

    A line is written when a request is sent, and another one when its reply has arrived, each
    immediately, so the record of a killed process is complete. Times are Unix times that never
    decrease.
    """

    def __init__(self, path: str | os.PathLike[str], *, has_all_faults: bool = False) -> None:
        """With `has_all_faults` the caller promises to record every fault of the cluster by
        `fault`. Raises `OSError` if the file cannot be written."""
        self.path = Path(path)
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        self._lock = threading.Lock()
        self._begin()
        if not os.fstat(self._file).st_size:
            self._write(header_line(has_all_faults=has_all_faults))

    def _begin(self) -> None:
        """Use a new client name in this process."""
        self._process = os.getpid()
        self._client = f"{socket.gethostname()}-{self._process}-{token_hex(4)}"
        self._numbers = count(1)
        self._offset = time.time() - time.monotonic()

    def close(self) -> None:
        """Close the file. Clients must not use the recorder after that."""
        os.close(self._file)

    @contextmanager
    def fault(self, kind: str, *, node: str = "", loses_memory: bool = False) -> Iterator[None]:
        """Record that the cluster has a fault within the block, such as a partition or a node that
        is down. With `loses_memory` the node may have lost jobs."""
        at = self._now()
        try:
            yield
        finally:
            memory = "lost" if loses_memory else "kept"
            with self._lock:
                self._write(fault_line(kind, at, self._now(), node=node, memory=memory))

    def tap(self, address: Address) -> "Tap":
        """A tap for a connection to this node."""
        return Tap(self, str(address))

    # For taps.

    def begin(self, node: str, words: Sequence[bytes]) -> tuple[str, int]:
        """Record a request. Returns the client's name and the number of the call."""
        with self._lock:
            if self._process != os.getpid():
                self._begin()
            call = self._client, next(self._numbers)
            self._write(begin_line(*call, self._now(), node, words))
        return call

    def reply(self, call: tuple[str, int], reply: Reply) -> None:
        """Record the reply to a call."""
        with self._lock:
            self._write(reply_line(*call, self._now(), reply))

    def lost(self, call: tuple[str, int]) -> None:
        """Record that a call has no reply."""
        with self._lock:
            self._write(lost_line(*call, self._now(), _DISCONNECTED))

    def _now(self) -> float:
        return self._offset + time.monotonic()

    def _write(self, line: bytes) -> None:
        os.write(self._file, line)


@attrs.define(eq=False)
class Tap:
    """Observes one connection: requests and their replies, in order."""

    _recorder: Recorder
    _node: str
    _requests: ReplyParser = attrs.field(init=False, factory=ReplyParser)
    """Parses requests, which are arrays of words, as replies may be."""
    _replies: ReplyParser = attrs.field(init=False, factory=ReplyParser)
    _unanswered: deque[tuple[str, int] | None] = attrs.field(init=False, factory=deque)
    """Calls without a reply; None for a request that is not recorded."""

    def sent(self, data: bytes) -> None:
        """The client sends these bytes."""
        for words in self._requests.feed(data):
            if isinstance(words, list):
                request = [word for word in words if isinstance(word, bytes)]
                call = self._recorder.begin(self._node, request) if is_recorded(request) else None
                self._unanswered.append(call)

    def received(self, data: bytes) -> None:
        """The client has received these bytes."""
        try:
            replies = self._replies.feed(data)
        except ProtocolError:  # the client detects it, too, and closes the connection
            self.closed()
            return
        for reply in replies:
            call = self._unanswered.popleft() if self._unanswered else None
            if call is not None:
                self._recorder.reply(call, reply)

    def closed(self) -> None:
        """The connection is closed, so no more replies are read."""
        while self._unanswered:
            if (call := self._unanswered.popleft()) is not None:
                self._recorder.lost(call)
