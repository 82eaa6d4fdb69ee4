"""How an event loop learns which of its sockets are ready: epoll, kqueue, or a Trio task for each
of them.

All three are level-triggered: every poll reports an event until it has been handled. Masks have
poll(2)'s bits on every system. `ERR` and `HUP` are reported whether they are asked for or not.
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
    """This system does not have what `multiplexing-api` names. The text says what it has."""


class Poller(Protocol):
    """Descriptors, and which events are waited for. One task uses it."""

    def register(self, fd: int, events: int, /) -> None:
        """Watch a new descriptor. If a closed one had the same number, that is forgotten."""

    def modify(self, fd: int, events: int, /) -> None:
        """Watch it for these events from now on."""

    def unregister(self, fd: int, /) -> None:
        """Forget a descriptor that is about to be closed."""

    def poll(self, seconds: float, most: int, /) -> list[tuple[int, int]]:
        """Ready descriptors and masks, `most` at the most; waits for so long if there are none."""

    def wait(self) -> Awaitable[None]:
        """Wait in a Trio task until `poll` would have something. May be cancelled."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """The context in which `poll` and `wait` work."""

    def close(self) -> None:
        """Forget everything. The descriptors stay open."""


NAMES: Final = ("epoll", "kqueue", "tasks")
"""The best first."""


def available() -> Sequence[str]:
    """What this system has. `tasks` needs only Trio."""
    return [name for name in NAMES if name == "tasks" or hasattr(select, name)]


def resolve(wanted: str) -> str:
    """What `multiplexing-api` asks for; `auto` is the best there is. Raises MultiplexingError."""
    found = available()
    if wanted == "auto":
        return found[0]
    if wanted not in found:
        raise MultiplexingError(
            f"multiplexing-api {wanted}: this system has no {wanted}; it has "
            f"{' and '.join(found)}: name one of these, or leave the choice to 'auto'"
        )
    return wanted
