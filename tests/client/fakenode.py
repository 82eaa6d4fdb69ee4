"""A node made of a dictionary, on a real socket and in a thread of its own."""

import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from disque_trio.statemachine.base import Failure, Reply, Status
from disque_trio.wire.replies import encode_reply
from disque_trio.wire.requests import RequestParser
from tests.parsing import all_requests

Answer = list[Reply] | bytes | None
"""Replies, or bytes to send as they are; None hangs up."""
Answers = Mapping[bytes, Answer | Callable[[], Answer]]
PONG = Status(b"PONG")


@attrs.define(eq=False)
class FakeNode:
    """Answers by the name of the command what the test put there, and remembers the requests."""

    answers: Answers
    features: Sequence[bytes] = ()
    """What INFO says that it knows, unless there is an answer to INFO; an original knows none."""
    requests: list[list[bytes]] = attrs.Factory(list)
    names: list[bytes] = attrs.Factory(list)
    """Of connections (CLIENT SETNAME), which are no requests here."""
    connections: list[socket.socket] = attrs.Factory(list)
    _listener: socket.socket = attrs.field(init=False)
    _acceptor: threading.Thread = attrs.field(init=False)
    _threads: list[threading.Thread] = attrs.Factory(list)
    port: int = 0
    path: str | None = None
    """A Unix socket instead of the port."""
    refusal: bytes = b""
    """What it tells every connection, whatever that asks, before it ends it."""

    def start(self) -> None:
        """Listen; on the same port again after `stop`."""
        if self.path is None:
            self._listener = socket.create_server(("127.0.0.1", self.port))
            self.port = self._listener.getsockname()[1]
        else:
            self._listener = socket.create_server(self.path, family=socket.AF_UNIX)
        self._acceptor = threading.Thread(target=self._accept)
        self._acceptor.start()

    def stop(self) -> None:
        """Hang up and listen no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._listener.close()
        self.hang_up()
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def hang_up(self) -> None:
        """End every connection."""
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections.append(connection)
                thread = threading.Thread(target=self._serve, args=[connection])
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        parser = RequestParser()
        with connection, contextlib.suppress(OSError):
            if self.refusal:
                connection.sendall(self.refusal)
                connection.shutdown(socket.SHUT_WR)
            while data := connection.recv(65536):
                if self.refusal:
                    continue
                for args in all_requests(parser, data):
                    if args[:2] == [b"CLIENT", b"SETNAME"]:
                        self.names.append(args[2])
                    else:
                        self.requests.append(args)
                    answer = self._answer(args)
                    if answer is None:
                        return
                    connection.sendall(answer)

    def _answer(self, args: list[bytes]) -> bytes | None:
        name = args[0].upper()
        if name == b"PING" and name not in self.answers:
            return encode_reply(args[1] if len(args) > 1 else PONG)
        if name == b"INFO" and name not in self.answers:
            return encode_reply(b"# Server\r\nfeatures:%b\r\n" % b",".join(self.features))
        answer = self.answers.get(name, [Failure(b"ERR unknown command '%b'" % args[0])])
        if callable(answer):
            answer = answer()
        if isinstance(answer, list):
            return b"".join(encode_reply(reply) for reply in answer)
        return answer


@contextlib.contextmanager
def fake_node(
    answers: Answers,
    *,
    features: Sequence[bytes] = (),
    path: str | None = None,
    refusal: bytes = b"",
) -> Iterator[FakeNode]:
    """A running node that answers so, and PING as nodes do."""
    node = FakeNode(answers, features, path=path, refusal=refusal)
    node.start()
    try:
        yield node
    finally:
        node.stop()


def press_ctrl_c() -> bytes:
    """Interrupt the client; as an answer it is none at all."""
    ident = threading.main_thread().ident
    assert ident is not None
    signal.pthread_kill(ident, signal.SIGINT)
    return b""
