import socket
import struct

import pytest

from disque_trio.client.address import Tls
from disque_trio.client.tls import secured

HANG_UP = struct.pack("ii", 1, 0)
"""Linger for no time: closing sends a reset."""


def test_a_node_that_hung_up_before_the_handshake_leaves_no_socket_behind() -> None:
    """A warning of an unclosed socket would fail this test."""
    with socket.create_server(("127.0.0.1", 0)) as node:
        stream = socket.create_connection(node.getsockname())
        accepted, _ = node.accept()
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, HANG_UP)
        accepted.close()

        with pytest.raises(ConnectionResetError):
            secured(stream, Tls(is_insecure=True), "127.0.0.1")
