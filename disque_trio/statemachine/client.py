"""One client connection, as the machine sees it.

`blocked`, `queues`, `job` and the fields that go with them are written by `waiters` and
`replication`; identity and modes by `sessions` and the CLIENT commands.
"""

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from disque_trio.statemachine.base import ClientId, Millis, Reply
from disque_trio.statemachine.timers import Timed

if TYPE_CHECKING:
    from disque_trio.statemachine.job import Job
    from disque_trio.statemachine.state import NodeState


class Blocked(enum.Enum):
    """What a client waits for."""

    NO = "not blocked"
    JOBS = "GETJOB: a job in one of its queues"
    COPIES = "ADDJOB: enough copies of its job"
    CHORE = "the outcome of a chore"


class ReplyMode(enum.Enum):
    """CLIENT REPLY (reference 2.14)."""

    ON = "on"
    OFF = "off"
    SKIP_NEXT = "skip the next command"
    SKIP = "skip this command"


@attrs.define(eq=False)
class Client(Timed):
    """A connection: who it is, what it waits for."""

    id: ClientId
    address: bytes
    """``ip:port`` of the peer, or ``unix:<path>``."""
    created: Millis
    active: Millis
    """When it last sent a command."""
    authenticated: bool = False
    name: bytes = b""
    blocked: Blocked = Blocked.NO
    deadline: Millis = 0
    """When its wait ends; 0 is never."""
    queues: tuple[bytes, ...] = ()
    with_counters: bool = False
    job: "Job | None" = None
    widen_at: Millis = 0
    """When its job may go to one more node."""
    then: "Callable[[NodeState, Client, Any], Reply] | None" = None
    """Makes the reply of the outcome of its chore."""
    protocol: int = 2
    """The version of the Redis protocol that it was greeted in."""
    reply_mode: ReplyMode = ReplyMode.ON
    is_monitor: bool = False
    is_closing: bool = False
    is_unix: bool = False
    command: str = ""
    """The last command's name in lower case; empty before the first."""
