"""One client connection, as the machine sees it.

`blocked`, `queues`, `awaited` and the fields that go with them are written by `waiters`,
`pending_adds` by the module of that name; identity and modes by `sessions` and the CLIENT commands;
`awaits` by the driver.
"""

import enum
from collections.abc import Callable
from typing import Any, Final

import attrs

from disque_trio.statemachine.base import ClientId, JobId, Millis, Reply
from disque_trio.statemachine.job import Job, PendingAdd
from disque_trio.statemachine.timers import Timed

COUNTERS: Final = 1
"""GETJOB WITHCOUNTERS: each job's numbers of NACKs and of additional deliveries."""
META: Final = 2
"""GETJOB WITHMETA: names and values that describe each delivery."""
TIED: Final = 4
"""GETJOB TIED: the leases end with the connection."""
HELD: Final = 8
"""GETJOB HELD: the jobs are held until BEGIN."""


class Blocked(enum.Enum):
    """What a client waits for."""

    NO = "not blocked"
    JOBS = "GETJOB: a job in one of its queues"
    JOB = "WAITJOB: the end of a job"
    COPIES = "ADDJOB: enough copies of its job, or of each of its jobs"
    KEY = "SHOW KEY, CANCEL KEY: what the other nodes know of a key"
    ENQUEUE = "ENQUEUE QUEUE: all jobs to have been looked at"
    STEPS = "a command about many jobs: the rest of them"
    CHORE = "the outcome of a chore"


WAITS: Final = (Blocked.JOBS, Blocked.JOB)
"""The waits of GETJOB and WAITJOB, which may end at any moment without a result."""


class ReplyMode(enum.Enum):
    """CLIENT REPLY (original 2.14)."""

    ON = "on"
    OFF = "off"
    SKIP_NEXT = "skip the next command"
    SKIP = "skip this command"
    REFUSED = "carry out nothing up to EXEC: MULTI was refused"
    REFUSED_OFF = "likewise, and answer nothing"


@attrs.define(eq=False)
class Client(Timed):
    """A client connection: its identity, and what it waits for."""

    id: ClientId
    address: bytes
    """``ip:port`` of the peer, or ``unix:<path>``."""
    created: Millis
    active: Millis
    """When it last sent a command."""
    authenticated: bool = False
    name: bytes = b""
    library: bytes = b""
    library_version: bytes = b""
    """Set by CLIENT SETINFO, as is `library`."""
    blocked: Blocked = Blocked.NO
    deadline: Millis = 0
    """When its wait ends; 0 is never."""
    queues: tuple[bytes, ...] = ()
    wants: int = 0
    """The options of its GETJOB: COUNTERS, META, TIED, HELD."""
    tied: dict[JobId, Job] | None = None
    """Jobs whose leases end with this connection. `tracked_deliveries` writes it."""
    awaited: JobId = b""
    """The job whose end it waits for."""
    wants_result: bool = False
    """It also waits for the job's result."""
    pending_adds: list[PendingAdd] = attrs.Factory(list)
    """While it waits for replicas: its unanswered ADDJOBs, in order."""
    most_pending: int = 0
    """The greatest length of `pending_adds` since the client was last resumed."""
    then: "Callable[[Any, Client, Any], Reply] | None" = None
    """Makes the reply from the node's state, the client and the outcome of its chore."""
    protocol: int = 2
    """The version of the Redis protocol that it has selected with HELLO."""
    reply_mode: ReplyMode = ReplyMode.ON
    is_monitor: bool = False
    is_closing: bool = False
    is_unix: bool = False
    wrong_passwords: int = 0
    """The number of wrong passwords that it has sent."""
    command: str = ""
    """The last command's name in lower case; empty before the first."""
    awaits: int = 0
    """The last batch of the journal for which its replies had to wait."""
