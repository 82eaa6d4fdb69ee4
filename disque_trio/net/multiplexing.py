"""How a hub learns which of its sockets are ready: epoll, kqueue, or a Trio task for each of them.

All three are level-triggered: an event comes up in every poll until it has been dealt with. Masks
have poll(2)'s bits on every system. `ERR` and `HUP` come up whether they are asked for or not.
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
    """`multiplexing-api` names what this system does not have: which, and what it has."""


class Poller(Protocol):
    """Descriptors, and what each of them is waited for. One task uses it."""

    def register(self, fd: int, events: int, /) -> None:
        """Watch a new descriptor. If a closed one had the same number, that is forgotten."""

    def modify(self, fd: int, events: int, /) -> None:
        """Watch it for these events from now on."""

    def unregister(self, fd: int, /) -> None:
        """Forget a descriptor that is about to be closed."""

    def poll(self, seconds: float, most: int, /) -> list[tuple[int, int]]:
        """Descriptors and masks that are ready. May wait for so long, and give the rest later."""

    def wait(self) -> Awaitable[None]:
        """Wait, as a Trio task, until `poll` would have something. May be cancelled."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """While this is entered, there are events."""

    def close(self) -> None:
        """Forget everything. The descriptors stay open."""


NAMES: Final = ("epoll", "kqueue", "tasks")
"""The best first."""


def available() -> Sequence[str]:
    """What this system has. Whatever has Trio has tasks."""
    return [name for name in NAMES if name == "tasks" or hasattr(select, name)]


def resolve(wanted: str) -> str:
    """The way that `multiplexing-api` asks for, `auto` being the best. Raises MultiplexingError."""
    found = available()
    if wanted == "auto":
        return found[0]
    if wanted not in found:
        raise MultiplexingError(
            f"multiplexing-api {wanted}: this system has no {wanted}; it has "
            f"{' and '.join(found)}: name one of these, or leave the choice to 'auto'"
        )
    return wanted
