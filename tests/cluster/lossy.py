"""A way to a server on which the answer to the first ADDJOB is lost, and the connection with it."""

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator
from typing import Final

from tests.cluster.talk import LOOPBACK

_CHUNK: Final = 1 << 16


@contextlib.contextmanager
def lossy(port: int) -> Iterator[int]:
    """The port of the way; it ends with the block."""
    done = threading.Event()
    lost = threading.Event()
    with socket.create_server((LOOPBACK, 0)) as listener:
        listener.settimeout(0.1)
        ways: list[threading.Thread] = []

        def accept() -> None:
            while not done.is_set():
                with contextlib.suppress(TimeoutError):
                    client, _ = listener.accept()
                    way = threading.Thread(target=_carry, args=(client, port, lost, done))
                    ways.append(way)
                    way.start()

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        try:
            yield listener.getsockname()[1]
        finally:
            done.set()
            acceptor.join()
            for way in ways:
                way.join()


def _carry(client: socket.socket, port: int, lost: threading.Event, done: threading.Event) -> None:
    """Carry bytes both ways until one end goes, or the first answer to an ADDJOB has come."""
    with (
        client,
        socket.create_connection((LOOPBACK, port)) as server,
        selectors.DefaultSelector() as ready,
        contextlib.suppress(OSError),
    ):
        ready.register(client, selectors.EVENT_READ, server)
        ready.register(server, selectors.EVENT_READ, client)
        is_last = False
        while not done.is_set():
            for key, _ in ready.select(0.1):
                source = key.fileobj
                assert isinstance(source, socket.socket)
                data = source.recv(_CHUNK)
                if not data or (is_last and source is server):
                    return
                if source is client and b"ADDJOB" in data and not lost.is_set():
                    lost.set()
                    is_last = True
                key.data.sendall(data)
