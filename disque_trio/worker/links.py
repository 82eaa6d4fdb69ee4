"""The driver's connections: each connects, sends its greeting, and then sends and reads until it
ends.

Requests of one turn are sent in one write, and replies of one read are passed on together.
Connections do not wait for each other.
"""

import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import anyio
import attrs
from anyio.abc import ByteStream, SocketAttribute

from disque_trio.client.address import Address
from disque_trio.client.errors import ConnectionFailedError, ended, lost
from disque_trio.client.naming import as_one_word
from disque_trio.client.streams import Connect
from disque_trio.statemachine.base import Failure, Reply
from disque_trio.wire.resp import ProtocolError, encode_request
from disque_trio.worker.parsing import Parser, make_parser

CONNECT_TIMEOUT_S: Final = 5.0
GRACE_S: Final = 1.0
"""How long sending the remaining requests may take when a connection is closed."""
READ_SIZE: Final = 1 << 16
_BROKEN: Final = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError)
_REFUSALS: Final = (b"NOAUTH", b"WRONGPASS", b"DENIED")


class Listener(Protocol):
    """Receives the events of connections."""

    def greeted(self, link: "Link", hello: Reply) -> None:
        """The node has answered HELLO with this reply."""
        ...

    def received(self, link: "Link", replies: Sequence[Reply]) -> None:
        """Replies have arrived, in the order of the requests."""
        ...

    def refused(self, link: "Link", error: str) -> None:
        """The node rejects this worker: its password or permissions are missing."""
        ...

    def lost(self, link: "Link", error: ConnectionFailedError | None) -> None:
        """The connection has ended; `error` is None if it was closed here."""
        ...


@attrs.define(eq=False)
class Link:
    """A connection. Create it in the event loop."""

    number: int
    node: str
    """The engine's name for the node."""
    address: Address
    listener: Listener
    name: str = ""
    """The name of the connection in CLIENT LIST."""
    _unsent: list[bytes] = attrs.field(init=False, factory=list)
    _greeting: deque[bytes] = attrs.field(init=False, factory=deque)
    """Commands of the greeting that have no reply yet."""
    _has_more: anyio.Event = attrs.field(init=False, factory=anyio.Event)
    _scope: anyio.CancelScope = attrs.field(init=False, factory=anyio.CancelScope)
    _is_closing: bool = attrs.field(init=False, default=False)
    _has_answered: bool = attrs.field(init=False, default=False)
    _refusal: Failure | None = attrs.field(init=False, default=None)
    """The last reply to the greeting, if it is an error."""
    _error: ConnectionFailedError | None = attrs.field(init=False, default=None)
    _fd: int | None = attrs.field(init=False, default=None)
    """The descriptor of the socket, once it is open, if bytes are written to it unchanged."""
    _is_writing: bool = attrs.field(init=False, default=True)
    """Does the writer have bytes that must be sent first?"""
    _written: list[Callable[[], object]] = attrs.field(init=False, factory=list)
    """Called when all unsent requests have been written."""

    def send(self, words: Sequence[bytes]) -> None:
        """Queue a request, which `flush` sends with others once the connection is open."""
        self._unsent.append(encode_request(words))

    def flush(self) -> bool:
        """Write the unsent requests. Returns False if a task must write the rest.

        A direct write costs less than a task, and does not delay what must be written first.
        """
        if self._fd is not None and not self._is_writing and self._write_now(self._fd):
            return True
        self._has_more.set()
        return False

    def when_written(self, written: Callable[[], object]) -> None:
        """Call this when all unsent requests have been written, or when the connection ends before
        that."""
        self._written.append(written)

    def _write_now(self, fd: int) -> bool:
        """Write unsent requests as far as possible without waiting. Returns whether all are
        written."""
        data = b"".join(self._unsent)
        self._unsent.clear()
        try:
            count = os.write(fd, data)
        except BlockingIOError:
            count = 0
        except OSError:  # the reader reports the error
            count = len(data)
        if count < len(data):
            self._unsent.append(data[count:])
        return count == len(data)

    def close(self) -> None:
        """Close the connection when the remaining requests have been sent, after at most
        `GRACE_S`."""
        self._is_closing = True
        self._has_more.set()
        self._scope.deadline = anyio.current_time() + GRACE_S

    async def serve(self, connect: Connect, secret: Callable[[], bytes | None]) -> None:
        """Connect, and serve the connection until it ends."""
        try:
            with self._scope:
                await self._converse(await connect(self.address, CONNECT_TIMEOUT_S), secret())
        except ConnectionFailedError as error:
            self._error = error
        self._fd = None
        self._call_written()
        self.listener.lost(self, None if self._is_closing else self._error)

    async def _converse(self, stream: ByteStream, password: bytes | None) -> None:
        auth = [] if password is None else [(b"AUTH", password)]
        name = [(b"CLIENT", b"SETNAME", as_one_word(self.name))] if self.name else []
        for words in reversed([*auth, (b"HELLO",), *name]):
            self._greeting.appendleft(words[0])
            self._unsent.insert(0, encode_request(words))
        self._has_more.set()
        if self.address.tls is None:
            raw = stream.extra(SocketAttribute.raw_socket, None)
            self._fd = None if raw is None else raw.fileno()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read, stream)
                await self._write(stream)
                tasks.cancel_scope.cancel()
        finally:
            await anyio.aclose_forcefully(stream)

    async def _write(self, stream: ByteStream) -> None:
        while self._error is None and (self._unsent or not self._is_closing):
            await self._has_more.wait()
            self._has_more = anyio.Event()
            data = b"".join(self._unsent)
            self._unsent.clear()
            self._is_writing = True
            try:
                if data:
                    await stream.send(data)
            except _BROKEN as error:
                self._fail(error)
            self._is_writing = False
            if not self._unsent:
                self._call_written()

    def _call_written(self) -> None:
        calls, self._written = self._written, []
        for call in calls:
            call()

    async def _read(self, stream: ByteStream) -> None:
        parser = make_parser()
        while self._error is None:
            try:
                await self._read_on(stream, parser)
            except anyio.EndOfStream:
                self._fail(None)
            except ProtocolError as error:
                self._fail(OSError(f"it does not use Disque's protocol: {error}"))
            except _BROKEN as error:
                self._fail(error)

    async def _read_on(self, stream: ByteStream, parser: Parser) -> None:
        while self._error is None:
            replies = parser.feed(await stream.receive(READ_SIZE))
            if self._greeting:
                replies = self._hear_greeting(replies)
            if replies:
                self._has_answered = True
                self._look_for_refusals(replies)
                self.listener.received(self, replies)

    def _hear_greeting(self, replies: list[Reply]) -> list[Reply]:
        """Process the replies to the greeting, and return the remaining ones."""
        count = min(len(replies), len(self._greeting))
        for reply in replies[:count]:
            word = self._greeting.popleft()
            self._has_answered, self._refusal = True, None
            if isinstance(reply, Failure):
                self._refusal = reply
                self._look_for_refusals([reply])
            elif word == b"HELLO":
                self.listener.greeted(self, reply)
        return replies[count:]

    def _look_for_refusals(self, replies: list[Reply]) -> None:
        for reply in replies:
            if isinstance(reply, Failure) and reply.text.startswith(_REFUSALS):
                self.listener.refused(self, reply.text.decode(errors="backslashreplace"))

    def _fail(self, error: BaseException | None) -> None:
        if self._error is None and self._greeting and self._refusal is not None:
            # A node without capacity for a client sends its refusal as the first reply.
            self._error = ended(str(self.address), self._refusal)
        if self._error is None:
            self._error = lost(
                str(self.address),
                error if isinstance(error, OSError) else None,
                has_answered=self._has_answered or self.address.path is not None,
                has_tls=self.address.tls is not None,
            )
        self._has_more.set()
