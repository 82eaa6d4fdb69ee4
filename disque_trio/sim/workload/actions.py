"""What agents request of the engine.

The engine asks an agent for its `deadline`, wakes it then, and tells it of replies and of lost
connections. The agent appends its requests to `actions`; the engine takes them after each call
and carries them out in order. An agent numbers its connections; each opens with its first request,
and carries one request at a time or a pipeline of them.
"""

from typing import Final, Protocol

import attrs

from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.base import Reply

PATIENCE: Final[Micros] = 5_000_000
"""How much longer than the command's own timeout an agent waits for a reply."""
RECONNECT: Final[Micros] = 500_000
"""How long a consumer rests before it connects again."""


@attrs.define
class SendRequest:
    """Send a request on a connection."""

    connection: int
    node: int
    words: list[bytes]


@attrs.define
class Disconnect:
    """End a connection. Requests without a reply are lost; no `lost` follows."""

    connection: int
    cause: str = "timeout"
    """For the rows of lost requests; `quit` if the agent ends it without a timeout."""
    has_row: bool = False
    """It has a row of its own, because jobs may be tied to the connection."""


@attrs.define
class WriteRow:
    """Write a row about the agent that no reply would cause."""

    kind: str
    job: str = ""
    queue: str = ""
    cause: str = ""
    detail: str = ""


Action = SendRequest | Disconnect | WriteRow


class Agent(Protocol):
    """An agent, as engines use it."""

    name: str
    actions: list[Action]

    def deadline(self) -> Micros:
        """When it wants to be woken; NEVER if it only waits for replies."""

    def wake(self, now: Micros) -> None:
        """The deadline has come."""

    def answered(self, now: Micros, connection: int, reply: Reply) -> None:
        """The reply to what it asked on this connection."""

    def lost(self, now: Micros, connection: int) -> None:
        """The node has ended the connection, or is unreachable."""

    def settle(self) -> None:
        """The chaos has ended: ack every job from now on."""

    def is_idle(self) -> bool:
        """Has it no job and no pending add?"""
