"""Resolves host names in threads: the system's resolver may block for half a minute."""

import socket
from collections.abc import Callable
from functools import partial
from typing import Final

import trio

from disque_trio.statemachine.chores import Lookup

PATIENCE_S: Final = 10.0
"""How long a lookup may take; its thread may continue after that."""
_MOST_THREADS: Final = 8


class Resolver:
    """The `Resolver` of a server."""

    def __init__(self, resolve: Callable[[str], tuple[str, ...]] | None = None) -> None:
        """`resolve` may block; it raises OSError."""
        self._resolve = resolve or resolve_name
        self._limiter = trio.CapacityLimiter(_MOST_THREADS)

    def look_up(self, name: str, then: Callable[[Lookup], None]) -> None:
        """Start to look up a name, in a Trio task."""
        trio.lowlevel.spawn_system_task(self._look_up, name, then)

    async def _look_up(self, name: str, then: Callable[[Lookup], None]) -> None:
        lookup = Lookup(error=f"the resolver has not answered for {PATIENCE_S:.0f} s")
        with trio.move_on_after(PATIENCE_S):
            try:
                lookup = await trio.to_thread.run_sync(
                    partial(self._outcome, name), abandon_on_cancel=True, limiter=self._limiter
                )
            except RuntimeError as error:  # there is no memory for a thread
                lookup = Lookup(error=str(error))
        then(lookup)

    def _outcome(self, name: str) -> Lookup:
        try:
            return Lookup(self._resolve(name))
        except (OSError, UnicodeError) as error:
            return Lookup(error=getattr(error, "strerror", None) or str(error))


def resolve_name(name: str) -> tuple[str, ...]:
    """Return the addresses of a name, in the system's order of preference. Blocks. Raise
    OSError."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    # A scope, as in fe80::1%eth0, has no meaning for other nodes.
    return tuple(dict.fromkeys(str(place[0]) for *_, place in found if "%" not in str(place[0])))
