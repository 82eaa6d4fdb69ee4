"""A node that a test plays, in the event loop of the worker: no socket, no thread, no waiting."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence

import anyio
import attrs
from anyio.abc import ByteStream

from disque_trio.client.address import Address
from disque_trio.client.errors import ConnectionFailedError
from disque_trio.statemachine.base import NULL_ARRAY, OK, Reply
from disque_trio.wire.replies import encode_reply
from disque_trio.wire.requests import RequestParser
from tests.parsing import all_requests

FEATURES = (b"withmeta", b"tokens", b"release", b"unblock", b"nack-delay", b"dead-letters")


def job(
    number: int,
    queue: bytes = b"q",
    ms: int = 60_000,
    body: bytes = b"",
    *,
    nacks: int = 0,
    was_unbegun: bool = False,
) -> Reply:
    """A job as GETJOB WITHMETA shows it; the number is in its id."""
    told: list[Reply] = [b"nacks", nacks, b"additional-deliveries", 0, b"lease-ms", ms]
    told += [b"token", b"a" * 20]
    if was_unbegun:
        told += [b"unbegun", 1]
    return [queue, id_of(number), body or b"%d" % number, *told]


def id_of(number: int) -> bytes:
    """The id of that job."""
    return b"D-11111111-%024d-05a1" % number


@attrs.define(eq=False)
class PlayedStream(ByteStream):
    """A connection to the node, as the worker sees it."""

    node: "PlayedNode"
    writes: list[list[list[bytes]]] = attrs.Factory(list)
    """The requests of each write."""
    _parser: RequestParser = attrs.field(factory=RequestParser)
    _data: bytearray = attrs.field(factory=bytearray)
    _has_ended: bool = False
    _changed: anyio.Event = attrs.field(factory=anyio.Event)

    async def send(self, item: bytes) -> None:
        """The worker writes."""
        await anyio.lowlevel.checkpoint()
        if self._has_ended:
            raise anyio.BrokenResourceError
        requests = all_requests(self._parser, item)
        self.writes.append(requests)
        for request in requests:
            self.node.asked(self, request)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """The worker reads."""
        while not self._data and not self._has_ended:
            await self._changed.wait()
            self._changed = anyio.Event()
        if not self._data:
            raise anyio.EndOfStream
        data = bytes(self._data[:max_bytes])
        del self._data[:max_bytes]
        return data

    async def send_eof(self) -> None:
        """Workers do not."""

    async def aclose(self) -> None:
        """The worker hangs up."""
        self.end()

    def answer(self, reply: Reply) -> None:
        """The node answers."""
        self._data += encode_reply(reply)
        self._changed.set()

    def end(self) -> None:
        """The node hangs up."""
        self._has_ended = True
        self._changed.set()


@attrs.define(eq=False)
class PlayedNode:
    """Delivers what the test gives it, and remembers what it is told."""

    port: int = 7711
    features: Sequence[bytes] = FEATURES
    answers: Mapping[bytes, Reply | Callable[[], Reply]] = attrs.Factory(dict)
    """By command, in place of what is usual."""
    requests: list[list[bytes]] = attrs.Factory(list)
    streams: list[PlayedStream] = attrs.Factory(list)
    is_down: bool = False
    _jobs: deque[Reply] = attrs.Factory(deque)
    _waiting: dict[PlayedStream, int] = attrs.Factory(dict)
    _told: anyio.Event | None = None

    @property
    def address(self) -> Address:
        """Where it listens."""
        return Address(port=self.port)

    def connected(self) -> ByteStream:
        """A worker connects."""
        if self.is_down:
            raise ConnectionFailedError(f"no node at {self.address}")
        stream = PlayedStream(self)
        self.streams.append(stream)
        return stream

    def asked(self, stream: PlayedStream, request: list[bytes]) -> None:
        """A worker asks."""
        self.requests.append(request)
        if self._told is not None:
            self._told.set()
        word = request[0]
        if word in self.answers:
            answer = self.answers[word]
            stream.answer(answer() if callable(answer) else answer)
        elif word == b"GETJOB":
            self._waiting[stream] = int(request[request.index(b"COUNT") + 1])
            self._serve()
        else:
            stream.answer(self._usual(request))

    def _usual(self, request: list[bytes]) -> Reply:
        match request:
            case [b"INFO", *_]:
                return b"# Server\r\nfeatures:%b\r\n" % b",".join(self.features)
            case [b"HELLO"]:
                return [1, b"%040d" % self.port]
            case [b"CLIENT", b"ID"]:
                return self.streams.index(self.streams[-1]) + 1
            case [b"CLIENT", b"UNBLOCK", _]:
                waiting, self._waiting = self._waiting, {}
                for stream in waiting:
                    stream.answer(NULL_ARRAY)
                return len(waiting)
            case [b"WORKING", *ids]:
                return [60] * len(ids) if len(ids) > 1 else 60
            case [b"AUTH", _]:
                return OK
        return len(request) - 1

    def give(self, *jobs: Reply) -> None:
        """Queue jobs."""
        self._jobs += jobs
        self._serve()

    def _serve(self) -> None:
        for stream, count in list(self._waiting.items()):
            if not self._jobs:
                return
            del self._waiting[stream]
            stream.answer([self._jobs.popleft() for _ in range(min(count, len(self._jobs)))])

    def hang_up(self) -> None:
        """End all connections."""
        self._waiting.clear()
        for stream in self.streams:
            stream.end()

    def told(self, word: bytes) -> list[list[bytes]]:
        """The requests with this command."""
        return [request for request in self.requests if request[0] == word]

    async def is_told(self, word: bytes) -> list[bytes]:
        """Wait for a request with this command, and take it out."""
        while not self.told(word):
            self._told = anyio.Event()
            await self._told.wait()
        found = self.told(word)[0]
        self.requests.remove(found)
        return found
