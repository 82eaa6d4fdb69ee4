"""The process of the nodes: ``python -m disque_trio.testing.server.child 3`` runs three.

It writes their ports to its standard output when they have joined. It ends when its standard input
is closed, which also happens if the process that started it is killed.
"""

import contextlib
import os
import random
import sys
import tempfile
import threading
from typing import Final

import trio

from disque_trio.net.file_limits import raise_file_limit
from disque_trio.net.listeners import ListenError
from disque_trio.node import Node
from disque_trio.serving.up import live, node
from disque_trio.statemachine.config import Config

LOOPBACK: Final = "127.0.0.1"
_PORTS: Final = range(11_000, 21_000)
"""Ports below the ephemeral ports of the kernel; the ports of the bus are 10,000 higher, and below
them, too."""
_ATTEMPTS: Final = 200


def main() -> None:
    """Run this many nodes until the standard input is closed."""
    count = int(sys.argv[1])
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    raise_file_limit(count * 1000)
    with contextlib.ExitStack() as cleanup:
        nodes = [_node(cleanup) for _ in range(count)]
        trio.run(live, nodes, lambda: _print_ports(nodes))


def _end_with_stdin() -> None:
    while os.read(0, 1024):
        pass
    os._exit(0)


def _node(cleanup: contextlib.ExitStack) -> Node:
    for _ in range(_ATTEMPTS):
        port = random.choice(_PORTS)
        config = Config(port=port, bind=(LOOPBACK,), dir=tempfile.gettempdir(), loglevel="warning")
        # No file is written there: nodes have no journal and no nodes.conf.
        with contextlib.suppress(ListenError):
            return node(config, None, cleanup)
    raise SystemExit(f"no free port from {_PORTS[0]} to {_PORTS[-1]}: end what uses them")


def _print_ports(nodes: list[Node]) -> None:
    ports = " ".join(str(node.state.config.port) for node in nodes)
    sys.stdout.write(f"{ports}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
