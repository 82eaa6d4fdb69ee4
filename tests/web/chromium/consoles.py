"""Consoles without a cluster, served as `disque-trio console` serves them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio

from disque_trio.cli.console import PROGRAM, _picture, _sandbox
from disque_trio.net.listeners import listen_for_browsers
from disque_trio.statemachine.config import Config
from disque_trio.terminal.options import parse
from disque_trio.web import site
from disque_trio.web.source import alone
from tests.cluster.processes import free_port
from tests.node.world import MemoryLog


@attrs.frozen
class Served:
    """The address, and the sandbox if there is one."""

    address: str
    sandbox: Any


@asynccontextmanager
async def serving(*argv: str, **config: Any) -> AsyncIterator[Served]:
    """With these arguments of the command line."""
    options, port = parse(PROGRAM, "", argv, {}).options, free_port()
    picture, sandbox = _picture(options), _sandbox(options)
    known = attrs.evolve(Config(port=0, web_port=port, bind=("127.0.0.1",)), **config)
    sockets = listen_for_browsers(known)
    try:
        async with trio.open_nursery() as nursery:
            subject = alone(known, None, MemoryLog(), picture, sandbox)
            nursery.start_soon(site.serve, subject, sockets)
            yield Served(f"http://127.0.0.1:{port}/", sandbox)
            nursery.cancel_scope.cancel()
    finally:
        for sock in sockets:
            sock.close()
