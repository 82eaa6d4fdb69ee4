"""One connection of the asynchronous client: requests of many tasks, answered in order.

It has no task of its own: of the tasks that wait for replies, one reads for all. Requests that
tasks send at the same time are one write. If the task of a request is cancelled, its reply is
dropped.
"""

import select
import socket
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import anyio
import attrs
from anyio.abc import ByteStream, SocketAttribute

from disque_trio.client.address import Address
from disque_trio.client.errors import LostError, lost
from disque_trio.client.settings import PROBE_S
from disque_trio.statemachine.base import Reply
from disque_trio.wire.resp import ProtocolError, ReplyParser, encode_request

LET_GO_S: Final = 5.0
"""How long a node may take to end the wait of a client, in seconds."""
_CHUNK: Final = 1 << 16


@attrs.define(eq=False)
class _Batch:
    """Requests that were sent together, and their replies so far."""

    missing: int
    replies: list[Reply] = attrs.Factory(list)


@attrs.define(eq=False)
class Link:
    """A connection over a stream."""

    address: Address
    stream: ByteStream
    patience_s: float
    """How long a reply or a write may take, in seconds."""
    client_id: int | None = None
    """The node's id of the connection, if it was requested."""
    was_used: bool = False
    """Was it used for a request before?"""
    was_silent: bool = attrs.field(init=False, default=False)
    """Has it ended because no reply arrived in time?"""
    _received_at: float = attrs.field(init=False, factory=anyio.current_time)
    _parser: ReplyParser = attrs.field(init=False, factory=ReplyParser)
    _awaited: deque[_Batch] = attrs.field(init=False, factory=deque)
    _unsent: list[bytes] = attrs.field(init=False, factory=list)
    _is_writing: bool = attrs.field(init=False, default=False)
    _reading: anyio.Lock = attrs.field(init=False, factory=lambda: anyio.Lock(fast_acquire=True))
    _end: LostError | None = attrs.field(init=False, default=None)
    _has_answered: bool = attrs.field(init=False, default=False)

    @property
    def is_open(self) -> bool:
        """Is it open? Detects an end that was not read yet."""
        if self._end is not None:
            return False
        return bool(self._awaited) or not _has_something(self.stream)

    async def probe(self) -> None:
        """Send a PING if the connection was idle for long. Raises `LostError`."""
        if not self._awaited and anyio.current_time() - self._received_at > PROBE_S:
            await self.ask([(b"PING",)])

    async def ask(
        self, requests: Sequence[Sequence[bytes]], limit_s: float | None = None
    ) -> list[Reply]:
        """Send requests and return their replies, within `limit_s` or `patience_s` seconds. Raises
        `LostError`; the outcome is then unknown."""
        if limit_s is None:
            limit_s = self.patience_s
        self._raise_end()
        batch = _Batch(len(requests))
        self._awaited.append(batch)
        self._unsent += [encode_request(words) for words in requests]
        with anyio.move_on_after(limit_s) as limit:
            await self._send()
            while batch.missing and self._end is None:
                async with self._reading:
                    if batch.missing and self._end is None:
                        await self._receive()
        if limit.cancelled_caught:
            self.was_silent = True
            await self._fail(TimeoutError())
        if batch.missing:
            self._raise_end(() if self.was_silent else batch.replies)
        return batch.replies

    async def let_go(self) -> list[Reply]:
        """Close the connection while a request waits in the node. Returns the replies that arrive
        before the end."""
        batch = self._awaited[0] if self._awaited else _Batch(0)
        with anyio.move_on_after(LET_GO_S, shield=True):
            if self.address.tls is None:  # TLS has no end of one direction
                with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await self.stream.send_eof()
                while self._end is None and batch.missing:
                    await self._receive()
        with anyio.CancelScope(shield=True):
            await self.close()
        return batch.replies

    async def rest(self) -> list[Reply]:
        """The replies to the request of a cancelled task. Raises `LostError`."""
        batch = self._awaited[0] if self._awaited else _Batch(0)
        while self._end is None and batch.missing:
            await self._receive()
        if batch.missing:
            self._raise_end()
        return batch.replies

    async def close(self) -> None:
        """Close the connection; pending requests fail."""
        await self._fail(None)

    def abandon(self) -> None:
        """Shut down the socket without an event loop, after the loop of the stream has ended."""
        raw = self.stream.extra(SocketAttribute.raw_socket, None)
        if self._end is None and raw is not None:
            with suppress(OSError, TypeError):  # uvloop closes it, and allows nothing else
                raw.shutdown(socket.SHUT_RDWR)

    async def _send(self) -> None:
        """Send unsent requests, also those of other tasks, unless another task is sending.

        It cannot be cancelled, because half a request would make the connection unusable for all
        tasks.
        """
        if self._is_writing:
            return
        self._is_writing = True
        try:
            while self._unsent and self._end is None:
                data = b"".join(self._unsent)
                self._unsent.clear()
                with anyio.fail_after(self.patience_s, shield=True):
                    await self.stream.send(data)
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            await self._fail(error)
        finally:
            self._is_writing = False

    async def _receive(self) -> None:
        try:
            data = await self.stream.receive(_CHUNK)
            replies = self._parser.feed(data)
        except anyio.EndOfStream:
            await self._fail(None)
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            await self._fail(error)
        except ProtocolError as error:
            await self._fail(OSError(f"it does not use Disque's protocol: {error}"))
        else:
            self._has_answered = True
            self._received_at = anyio.current_time()
            self._take(replies)

    def _take(self, replies: list[Reply]) -> None:
        for reply in replies:
            batch = self._awaited[0]
            batch.replies.append(reply)
            batch.missing -= 1
            if not batch.missing:
                self._awaited.popleft()

    async def _fail(self, error: BaseException | None) -> None:
        if self._end is None:
            cause = error if isinstance(error, OSError) else None
            has_tls = self.address.tls is not None
            is_node = self._has_answered or self.address.path is not None
            self._end = lost(str(self.address), cause, has_answered=is_node, has_tls=has_tls)
        await anyio.aclose_forcefully(self.stream)

    def _raise_end(self, replies: Sequence[Reply] = ()) -> None:
        if self._end is not None:
            end = self._end
            raise LostError(end.reason, end.template, replies, is_there=end.is_there)


def _has_something(stream: ByteStream) -> bool:
    """Are there data, or the end of the stream? A node sends nothing to a client without requests;
    session data of TLS arrive before the first reply."""
    raw = stream.extra(SocketAttribute.raw_socket, None)
    if raw is None:
        return False
    poll = select.poll()
    poll.register(raw.fileno(), select.POLLIN)
    return bool(poll.poll(0))
