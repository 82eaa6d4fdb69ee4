"""What a row of the command table says."""

import enum
from collections.abc import Callable

import attrs

from disque_trio.statemachine.base import Reply
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.state import NodeState

Handler = Callable[[NodeState, Client, list[bytes]], Reply]


class Flag(enum.Flag):
    """Properties that COMMAND shows, in its order."""

    WRITE = enum.auto()
    READONLY = enum.auto()
    DENYOOM = enum.auto()
    ADMIN = enum.auto()
    LOADING = enum.auto()
    FAST = enum.auto()


@attrs.frozen
class Command:
    """One command. `arity` counts the name; negative is "at least", 0 is anything."""

    name: str
    handler: Handler
    arity: int
    flags: Flag
    usage: str
    summary: str

    def takes(self, count: int) -> bool:
        """Is this the right number of words?"""
        return self.arity in (count, 0) or count >= -self.arity > 0
