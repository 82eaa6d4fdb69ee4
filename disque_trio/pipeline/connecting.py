"""A Python process of Spark that connects to Spark before it imports PySpark.

Spark fails the query if such a process has not connected within ten seconds; the limit cannot be
set. PySpark connects after all its imports, which take 0.4 s of processor time: on a busy machine
that can be more than ten seconds. The script of `python.launcher` runs this file as `python -P -S
connecting.py -m MODULE`, which needs a twentieth of that to connect. Once Spark has accepted the
connection, it waits as long as the imports take.

This file imports only a few modules of the standard library, because each takes time.
"""

import os
import runpy
import site
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

_SIZE: Final = 4
"""Bytes of the length before a string, most significant first."""

_Connect = Callable[[str | int, str | None], tuple[Any, socket.socket]]


def main() -> None:
    """Connect, then run the module as `python -m` does."""
    where = os.environ.get("PYTHON_WORKER_FACTORY_SOCK_PATH") or int(
        os.environ["PYTHON_WORKER_FACTORY_PORT"]
    )
    connection = connected(where, os.environ.get("PYTHON_WORKER_FACTORY_SECRET"))
    sys.path.insert(0, os.getcwd())
    site.main()
    util: Any = import_module("pyspark.util")
    util.local_connect_and_auth = handing_over(connection, where, util.local_connect_and_auth)
    sys.argv[:] = sys.argv[2:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def connected(where: str | int, secret: str | None) -> socket.socket:
    """Connect to Spark: to a Unix socket, or to a port with the secret.

    Raises OSError if nothing listens, ConnectionError if Spark does not accept the secret.
    """
    if isinstance(where, str):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(where)
        return connection
    is_six = os.environ.get("SPARK_PREFER_IPV6", "").lower() == "true"
    connection = socket.socket(socket.AF_INET6 if is_six else socket.AF_INET)
    connection.connect(("::1" if is_six else "127.0.0.1", where))
    encoded = (secret or "").encode()
    connection.sendall(len(encoded).to_bytes(_SIZE) + encoded)
    reply = _read(connection, int.from_bytes(_read(connection, _SIZE)))
    if reply != b"ok":
        raise ConnectionError(f"Spark at port {where} replied {reply!r} to the secret, not ok")
    return connection


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("Spark closed the connection before it accepted the secret")
        data += part
    return data


def handing_over(connection: socket.socket, where: str | int, connect: _Connect) -> _Connect:
    """PySpark's `local_connect_and_auth` whose first call for this place gets this connection."""
    waiting = [connection]

    def local_connect_and_auth(
        conn_info: str | int, auth_secret: str | None
    ) -> tuple[Any, socket.socket]:
        if conn_info != where or not waiting:
            return connect(conn_info, auth_secret)
        size = int(os.environ.get("SPARK_BUFFER_SIZE", "65536"))
        return waiting[0].makefile("rwb", size), waiting.pop()

    return local_connect_and_auth


if __name__ == "__main__":
    main()
