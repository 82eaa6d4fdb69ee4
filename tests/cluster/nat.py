"""A router that translates addresses, without iptables: it accepts connections where an announced
address is dialled, and dials the bound address in another network namespace.

    python nat.py RULES

`RULES` is a JSON list of [namespace to listen in, address, port, namespace to dial in, source,
address, port]. It prints `ready` once it listens, and ends with its standard input. A connection
comes out with the given source address, as one that a router masquerades. It is to run as root of
the user namespace that owns the namespaces.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import socket
import sys
from typing import Final

_NEW_NET: Final = 0x40000000
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def enter(namespace: str) -> None:
    """Let this thread be in that namespace. What it opens stays there, wherever the thread goes."""
    handle = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        if _LIBC.setns(handle, _NEW_NET):
            raise OSError(ctypes.get_errno(), f"setns {namespace}")
    finally:
        os.close(handle)


def socket_in(namespace: str) -> socket.socket:
    """A socket in that namespace."""
    enter(namespace)
    found = socket.socket()
    found.setblocking(False)
    return found


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError, RuntimeError):
        writer.write_eof()


async def _translate(inward: socket.socket, namespace: str, source: str, target: object) -> None:
    with contextlib.suppress(OSError):
        outward = socket_in(namespace)
        try:
            outward.bind((source, 0))
            await asyncio.get_running_loop().sock_connect(outward, target)  # type: ignore[arg-type]
        except OSError:
            outward.close()
            raise
        near = await asyncio.open_connection(sock=inward)
        far = await asyncio.open_connection(sock=outward)
        await asyncio.gather(_pass(near[0], far[1]), _pass(far[0], near[1]))
        far[1].close()
        near[1].close()
        return
    inward.close()


async def _accept(listener: socket.socket, namespace: str, source: str, target: object) -> None:
    tasks = set()
    while True:
        inward, _ = await asyncio.get_running_loop().sock_accept(listener)
        inward.setblocking(False)
        task = asyncio.create_task(_translate(inward, namespace, source, target))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def main() -> None:
    accepting = []
    for inside, address, port, outside, source, host, far in json.loads(sys.argv[1]):
        listener = socket_in(inside)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(128)
        accepting.append(asyncio.create_task(_accept(listener, outside, source, (host, far))))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    for each in accepting:
        each.cancel()


if __name__ == "__main__":
    asyncio.run(main())
