"""The rows of the command table."""

import enum
import sys
from collections.abc import Callable
from typing import Final

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


_PLAIN: Final = (
    "ping", "addjob", "getjob", "ackjob", "fastack", "nack", "working", "enqueue", "dequeue",
    "deljob", "show", "qlen", "qpeek",
)  # fmt: skip
_WIDE: Final = (
    "getjob", "qpeek", "qscan", "jscan", "info", "config", "client", "command", "cluster",
    "slowlog", "latency", "trace", "debug",
)  # fmt: skip

_LOOKS: Final = (
    "qpeek", "qscan", "jscan", "qlen", "qstat", "show", "info", "slowlog", "hello", "command",
    "time", "ping", "echo",
)  # fmt: skip


_BEGINS: Final = (
    "addjob", "getjob", "ackjob", "fastack", "nack", "working", "release", "enqueue", "dequeue",
    "deljob",
)  # fmt: skip


@attrs.frozen
class Command:
    """One command. `arity` is the number of words, including the name; negative is a minimum, 0 is
    any number."""

    name: str
    handler: Handler
    arity: int
    flags: Flag
    usage: str
    summary: str
    least: int = attrs.field(init=False)
    """The minimum number of words, including the name; `most` is the maximum."""
    most: int = attrs.field(init=False)
    may_change: bool = attrs.field(init=False)
    """Can it change jobs, so that its reply must wait for the journal?"""
    is_plain: bool = attrs.field(init=False)
    """Does it change nothing that is checked before each request (`pipelines`)?"""
    is_look: bool = attrs.field(init=False)
    """Does it change nothing, so that it may be aborted at any point?"""
    is_wide: bool = attrs.field(init=False)
    """Might it take milliseconds, because it reads or returns much?"""

    marks_beginning: bool = attrs.field(init=False)
    """Does the handler set `NodeState.begun` before it changes anything?"""

    def is_whole(self, node: NodeState, args: list[bytes]) -> bool:
        """Is an aborted request without effect, so that nothing has changed?"""
        return self.is_look or (self.marks_beginning and node.begun is not args)

    def takes(self, count: int) -> bool:
        """Is this the right number of words?"""
        return self.least <= count <= self.most

    @least.default
    def _at_least(self) -> int:
        return abs(self.arity)

    @most.default
    def _at_most(self) -> int:
        return self.arity if self.arity > 0 else sys.maxsize

    @may_change.default
    def _writes(self) -> bool:
        return Flag.WRITE in self.flags

    @is_plain.default
    def _is_among_the_plain(self) -> bool:
        return self.name in _PLAIN

    @is_wide.default
    def _is_among_the_wide(self) -> bool:
        return self.name in _WIDE

    @marks_beginning.default
    def _marks_beginning(self) -> bool:
        return self.name in _BEGINS

    @is_look.default
    def _is_among_the_looks(self) -> bool:
        return self.name in _LOOKS
