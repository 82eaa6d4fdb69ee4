"""Requests of agents to the engine.

The engine asks an agent for its `deadline`, wakes it then, and passes it replies and lost
connections. The agent appends its requests to `actions`; the engine takes them after each call and
carries them out in order. An agent numbers its connections. Each opens with its first request, and
carries one request at a time or a pipeline of requests.
"""

from typing import Final, Protocol

import attrs

from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.base import Reply

PATIENCE: Final[Micros] = 5_000_000
"""How much longer than the command's own timeout an agent waits for a reply."""
RECONNECT: Final[Micros] = 500_000
"""How long a consumer waits before it connects again."""


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
    """The cause in the rows of lost requests; `quit` if the agent disconnects without a timeout."""
    has_row: bool = False
    """Does the end of the connection have its own row, because jobs may be tied to it?"""


@attrs.define
class WriteRow:
    """Write a row about the agent that no reply causes."""

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
        """Return when to wake the agent; NEVER if it only waits for replies."""

    def wake(self, now: Micros) -> None:
        """The deadline has passed."""

    def answered(self, now: Micros, connection: int, reply: Reply) -> None:
        """The reply to a request on this connection has arrived."""

    def lost(self, now: Micros, connection: int) -> None:
        """The node has ended the connection, or is unreachable."""

    def settle(self) -> None:
        """The chaos has ended: ack every job from now on."""

    def is_idle(self) -> bool:
        """Does the agent have no job and no pending add?"""
