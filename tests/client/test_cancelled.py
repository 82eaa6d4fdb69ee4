"""Jobs that are on their way while the task that asked for them is cancelled."""

import anyio
import attrs
import pytest
from anyio.abc import ByteStream

from disque_trio.client.address import Address, Cluster, Tls
from disque_trio.client.client import Client
from disque_trio.statemachine.base import Reply
from disque_trio.wire.replies import encode_reply
from disque_trio.wire.requests import RequestParser
from tests.parsing import all_requests

ID = b"D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
JOB: Reply = [[b"q", ID, b"body", b"nacks", 0, b"additional-deliveries", 0]]


@attrs.define(eq=False)
class Node:
    """Answers GETJOB only when its client lets go, with a job that was on its way."""

    features: bytes
    is_slow_at: bytes = b""
    """The command that it does not answer."""
    connections: "list[Connection]" = attrs.Factory(list)
    waiting: "Connection | None" = None
    requests: list[list[bytes]] = attrs.Factory(list)
    waits: anyio.Event = attrs.Factory(anyio.Event)

    async def connect(self, _address: Address, _timeout_s: float) -> ByteStream:
        self.connections.append(Connection(self))
        return self.connections[-1]

    def answer(self, words: list[bytes], connection: "Connection") -> bytes:
        self.requests.append(words)
        if words[0] == self.is_slow_at:
            self.waits.set()
            return b""
        match words:
            case [b"HELLO"]:
                return encode_reply([1, b"a" * 40])
            case [b"INFO", _]:
                return encode_reply(b"features:" + self.features)
            case [b"GETJOB", *_]:
                self.waiting = connection
                self.waits.set()
                return b""
            case [b"WAITJOB", *_]:
                self.waits.set()
                return b""
            case [b"CLIENT", b"ID"]:
                return encode_reply(7)
            case [b"CLIENT", b"UNBLOCK", b"7"]:
                assert self.waiting is not None
                self.waiting.arrive(JOB)
        return encode_reply(1)


@attrs.define(eq=False)
class Connection(ByteStream):
    """A stream to the node, in memory."""

    node: Node
    _requests: RequestParser = attrs.field(init=False, factory=RequestParser)
    _unread: bytearray = attrs.field(init=False, factory=bytearray)
    _arrived: anyio.Event = attrs.field(init=False, factory=anyio.Event)
    _is_over: bool = attrs.field(init=False, default=False)
    is_closed: bool = attrs.field(init=False, default=False)

    async def send(self, item: bytes) -> None:
        for words in all_requests(self._requests, item):
            self._unread += self.node.answer(words, self)
        self._arrived.set()

    def arrive(self, reply: Reply) -> None:
        self._unread += encode_reply(reply)
        self._arrived.set()

    async def send_eof(self) -> None:
        self._is_over = True
        self.arrive(JOB)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        while not self._unread:
            if self._is_over:
                raise anyio.EndOfStream
            self._arrived = anyio.Event()
            await self._arrived.wait()
        data = bytes(self._unread[:max_bytes])
        del self._unread[:max_bytes]
        return data

    async def aclose(self) -> None:
        self._is_over = self.is_closed = True


def cancelled(features: bytes, backend: str, tls: Tls | None = None) -> list[list[bytes]]:
    """What is sent after a GETJOB whose task is cancelled."""
    seen: list[list[bytes]] = []

    async def main() -> None:
        node = Node(features)
        client = Client(Cluster([Address(tls=tls)]), discover=False, connect=node.connect, name="")
        async with client, anyio.create_task_group() as group:
            group.start_soon(client.getjob, "q")
            await node.waits.wait()
            group.cancel_scope.cancel()
        seen.extend(node.requests)

    anyio.run(main, backend=backend)
    at = next(at for at, words in enumerate(seen) if words[0] == b"GETJOB")
    return [words for words in seen[at + 1 :] if words[0] not in {b"HELLO", b"INFO"}]


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_a_job_that_was_not_begun_goes_back_uncounted(backend: str) -> None:
    assert cancelled(b"tokens,release", backend) == [[b"RELEASE", ID]]


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_an_original_node_queues_it_again(backend: str) -> None:
    assert cancelled(b"", backend) == [[b"ENQUEUE", ID]]


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_over_tls_the_wait_is_ended_by_another_connection(backend: str) -> None:
    assert cancelled(b"tokens,release,unblock", backend, Tls()) == [
        [b"CLIENT", b"UNBLOCK", b"7"],
        [b"RELEASE", ID],
    ]


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_over_tls_an_original_node_is_told_nothing(backend: str) -> None:
    assert cancelled(b"", backend, Tls()) == []


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
@pytest.mark.parametrize("tls", [None, Tls()])
def test_another_wait_is_given_up_at_once(backend: str, tls: Tls | None) -> None:
    node = Node(b"unblock")

    async def main() -> None:
        client = Client(Cluster([Address(tls=tls)]), discover=False, connect=node.connect, name="")
        async with client, anyio.create_task_group() as group:
            group.start_soon(client.waitjob, ID.decode())
            await node.waits.wait()
            group.cancel_scope.cancel()

    anyio.run(main, backend=backend)

    assert node.requests[-1][0] == b"WAITJOB"


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
@pytest.mark.parametrize("command", [b"HELLO", b"INFO", b"CLIENT", b"GETJOB"])
def test_a_connection_is_closed_whenever_its_task_is_cancelled(
    backend: str, command: bytes
) -> None:
    node = Node(b"tokens,release", is_slow_at=command)

    async def main() -> None:
        where = Cluster([Address(tls=Tls())])
        client = Client(where, discover=False, connect=node.connect, name="")
        async with client:
            async with anyio.create_task_group() as group:
                group.start_soon(client.getjob, "q")
                await node.waits.wait()
                group.cancel_scope.cancel()
            assert [each.is_closed for each in node.connections] == [True]

    anyio.run(main, backend=backend)
