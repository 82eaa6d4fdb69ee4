"""Multiplexing: how an event loop detects ready sockets: with epoll, kqueue, or a Trio task for
each socket.

All three are level-triggered: every poll reports an event until it has been handled. Masks have the
bits of poll(2) on every system. `ERR` and `HUP` are always reported.
"""

import select
from collections.abc import Awaitable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

IN: Final = 0x1
OUT: Final = 0x4
ERR: Final = 0x8
HUP: Final = 0x10
RDHUP: Final = 0x2000
"""The other side will send nothing more."""


class MultiplexingError(Exception):
    """This system does not support the value of `multiplexing-api`. The text lists the supported
    ones."""


class Poller(Protocol):
    """A set of descriptors, with the events to wait for. One task uses it."""

    def register(self, fd: int, events: int, /) -> None:
        """Watch a new descriptor. An earlier, closed one with the same number is forgotten."""

    def modify(self, fd: int, events: int, /) -> None:
        """Watch the descriptor for these events from now on."""

    def unregister(self, fd: int, /) -> None:
        """Forget a descriptor that is about to be closed."""

    def poll(self, seconds: float, most: int, /) -> list[tuple[int, int]]:
        """Return at most `most` ready descriptors with their masks. If there are none, wait up to
        `seconds`."""

    def wait(self) -> Awaitable[None]:
        """Wait in a Trio task until `poll` would return an event. May be cancelled."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """The context in which `poll` and `wait` work."""

    def close(self) -> None:
        """Forget all descriptors. They stay open."""


NAMES: Final = ("epoll", "kqueue", "tasks")
"""The best one first."""


def available() -> Sequence[str]:
    """Return the names that this system supports. `tasks` needs only Trio."""
    return [name for name in NAMES if name == "tasks" or hasattr(select, name)]


def resolve(wanted: str) -> str:
    """Return the name for a value of `multiplexing-api`; `auto` is the best one. Raise
    MultiplexingError."""
    found = available()
    if wanted == "auto":
        return found[0]
    if wanted not in found:
        raise MultiplexingError(
            f"multiplexing-api {wanted}: this system has no {wanted}; it has "
            f"{' and '.join(found)}: name one of these, or leave the choice to 'auto'"
        )
    return wanted
