"""PING, in a module of its own that is compiled (`compiling.modules`), because it is as frequent as
the commands for jobs."""

from typing import Final

from disque_trio.statemachine.base import CommandError, Reply, Status
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commands.usage import wrong_number
from disque_trio.statemachine.state import NodeState

_PONG: Final = Status(b"PONG")


def ping(_node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """PING [text]."""
    if len(args) > 2:
        raise CommandError(wrong_number("ping", "[message]"))
    return args[1] if len(args) == 2 else _PONG
