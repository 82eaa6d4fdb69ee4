"""Clients that send the caller's requests: the operator, and clients of tests."""

from collections import deque
from collections.abc import Callable, Iterable

import attrs

from disque_trio.sim.scenarios.plan import Micros
from disque_trio.sim.workload.actions import Action, Disconnect, SendRequest
from disque_trio.sim.workload.visits import NEVER
from disque_trio.statemachine.base import Failure, Reply

Word = str | bytes | int
Refused = Callable[[Failure], None]
"""Called if a node refuses the request."""


@attrs.define(eq=False)
class Pending:
    """A pending request. It is done when its reply arrives, or its connection is lost."""

    words: tuple[Word, ...]
    refused: Refused | None = None
    is_done: bool = False
    is_lost: bool = False
    reply: Reply = None


class Operator:
    """Sends requests over one connection for each node, and keeps the replies."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.actions: list[Action] = []
        self._pending: dict[int, deque[Pending]] = {}

    def ask(self, node: int, words: Iterable[Word], refused: Refused | None = None) -> Pending:
        """Send a request to a node; requests to the same node get their replies in order."""
        pending = Pending(tuple(words), refused)
        self._pending.setdefault(node, deque()).append(pending)
        self.actions.append(SendRequest(node, node, [_bytes(word) for word in pending.words]))
        return pending

    def hang_up(self, node: int) -> None:
        """End the connection to a node."""
        self.actions.append(Disconnect(node))
        self._lose(node)

    def deadline(self) -> Micros:
        """Return NEVER: it waits for replies without a timeout."""
        return NEVER

    def wake(self, now: Micros) -> None:
        """Do nothing: it is never called, because there is no deadline."""

    def answered(self, now: Micros, connection: int, reply: Reply) -> None:  # noqa: ARG002
        """Keep the reply."""
        pending = self._pending[connection].popleft()
        pending.reply = reply
        pending.is_done = True
        if pending.refused is not None and isinstance(reply, Failure):
            pending.refused(reply)

    def lost(self, now: Micros, connection: int) -> None:  # noqa: ARG002
        """Record that the requests on this connection get no reply."""
        self._lose(connection)

    def _lose(self, connection: int) -> None:
        for pending in self._pending.pop(connection, ()):
            pending.is_done = pending.is_lost = True

    def settle(self) -> None:
        """Do nothing: the caller decides what is sent."""

    def is_idle(self) -> bool:
        """Is no reply pending?"""
        return not any(self._pending.values())


def _bytes(word: Word) -> bytes:
    return word if isinstance(word, bytes) else str(word).encode()
