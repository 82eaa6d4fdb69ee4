"""A Python process of Spark that connects to Spark before it imports PySpark.

Spark waits ten seconds for such a process to connect, which cannot be set, and then fails the
query. PySpark connects after it has imported everything: 0.4 s of processor time, which a busy
machine may take longer than ten seconds to give. The script of `python.launcher` runs this file as
`python -P -S connecting.py -m MODULE`, where it needs a twentieth of that. Once Spark has accepted
the connection, it waits as long as the imports take.

This file imports the standard library alone, and little of it.
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
    """A connection to Spark at the path of a socket, or at a port and told the secret.

    Raises OSError where there is none, ConnectionError where Spark does not accept the secret.
    """
    if isinstance(where, str):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(where)
        return connection
    is_six = os.environ.get("SPARK_PREFER_IPV6", "").lower() == "true"
    connection = socket.socket(socket.AF_INET6 if is_six else socket.AF_INET)
    connection.connect(("::1" if is_six else "127.0.0.1", where))
    said = (secret or "").encode()
    connection.sendall(len(said).to_bytes(_SIZE) + said)
    reply = _read(connection, int.from_bytes(_read(connection, _SIZE)))
    if reply != b"ok":
        raise ConnectionError(f"Spark at port {where} answers the secret with {reply!r}, not ok")
    return connection


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("Spark has ended the connection before it accepted the secret")
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
