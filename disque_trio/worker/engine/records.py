"""Records of the engine: settings, outcomes, effects, jobs, connections.

Times are microseconds on the worker's monotonic clock.
"""

import enum
from collections import OrderedDict, deque
from typing import Final

import attrs

from disque_trio.worker.engine import timers
from disque_trio.worker.engine.timers import Timers

Micros = int
NEVER: Final[Micros] = timers.NEVER
SECOND: Final[Micros] = 1_000_000
MILLI: Final[Micros] = 1_000


class Stage(enum.Enum):
    """The stage of a job in the engine."""

    HELD = "delivered, but not begun"
    RUNNING = "its handler runs"
    WAITING = "failed, and held until its delay is over, for a node that has no NACK DELAY"
    SETTLING = "its handler has ended, and its outcome is not reported yet"


# In Python 3.11 each look-up of an enum member calls a function, a dozen times for each job.
HELD: Final = Stage.HELD
RUNNING: Final = Stage.RUNNING
WAITING: Final = Stage.WAITING
SETTLING: Final = Stage.SETTLING


@attrs.define(eq=False)
class Pace:
    """How fast the jobs of a queue end here, and their properties."""

    since: int
    count: int = 0
    """How many have ended since then."""
    before: int = 0
    """How many ended in the span before."""
    lease: int = 0
    """The lease of the last job that arrived."""
    body: int = 0
    """The expected size of the next one, in bytes."""
    has_once: bool = False
    """Jobs with RETRY 0 have arrived."""


# Settings.


@attrs.frozen(kw_only=True)
class Queue:
    """A queue to take jobs from."""

    name: bytes
    concurrency: int = 0
    """The maximum number of its jobs that run at the same time; 0 is the worker's own limit."""
    prefetch: int = 0
    """The maximum number of its jobs that are held without having begun."""
    limit: Micros = 0
    """How long a job may run; 0 is no limit."""
    weight: int = 1
    """The number of its jobs that begin in its turn, if the order of queues is not strict."""


@attrs.frozen(kw_only=True)
class Settings:
    """The settings of a worker."""

    nodes: tuple[str, ...]
    """Addresses, in order of preference."""
    queues: tuple[Queue, ...]
    concurrency: int = 10
    """The maximum number of jobs that run at the same time."""
    has_ties: bool = True
    """Ask nodes that support it to requeue the jobs when the connection ends."""
    is_plain: bool = False
    """Use the original's commands only, whatever the nodes support."""
    is_strict: bool = False
    """Begin jobs of a queue only while the queues before it have none; otherwise queues take
    turns."""
    is_burst: bool = False
    """Stop as soon as there are no jobs."""
    prefetch_window: Micros = 0
    """Hold no more jobs than end within this time at the rate of the last second; 0 is always
    `prefetch`."""
    drain: Micros = 25 * SECOND
    """How long jobs may continue after the order to stop."""
    abort: Micros = 3 * SECOND
    """How long cancelled jobs may take to end, after that."""


# Outcomes of a run.


@attrs.frozen
class Done:
    """The job is done: acknowledge it."""

    result: bytes | None = attrs.field(default=None, eq=False)
    """The result that nodes with this feature keep for `keep_s` seconds. It does not count in
    comparisons of outcomes."""
    keep_s: int = attrs.field(default=0, eq=False)


@attrs.frozen
class Retry:
    """It failed: it is redelivered after `delay`, which a policy has chosen; 0 is immediately, or
    after the job's own BACKOFF."""

    delay: Micros
    error: bytes = attrs.field(default=b"", eq=False)
    """The error, for nodes that keep it (NACK ERROR). It does not count in comparisons of
    outcomes."""


@attrs.frozen
class Dead:
    """It cannot succeed: it is kept as dead, with the reason."""

    reason: bytes
    error: bytes = attrs.field(default=b"", eq=False)
    """As in `Retry`."""


@attrs.frozen
class Release:
    """It was interrupted, has not begun or is snoozed: it is redelivered, without counting as a
    failure.

    With a delay the node counts it as a snooze. A node that has no such delay counts a failure.
    """

    delay: Micros | None = None
    """None is immediately."""


Outcome = Done | Retry | Dead | Release


class Reason(enum.Enum):
    """Why a handler is cancelled, or a job is abandoned."""

    LEASE_OVER = "the lease has ended"
    LOST = "the job was delivered to another worker"
    ACKED = "the job is acknowledged"
    DEAD = "the job is dead"
    TOO_LONG = "the time limit was exceeded"
    SHUTDOWN = "the worker stops"
    DONE_BEFORE = "this worker has already done the job"
    TWICE = "this worker already has the job"
    RELEASED = "the job has not started and is released"
    REFUSED = "no node accepts the outcome"
    UNKNOWN = "it is unknown whether a node received the outcome"
    NOT_KEPT = "the node stores no results, so only the client that added the job gets this one"
    RESULT_REFUSED = "the job is done, but the node refuses to store its result"


# Effects.


@attrs.frozen
class Send:
    """Send a request on a connection, which opens with the first one."""

    link: int
    node: str
    words: tuple[bytes, ...]
    is_first: bool = False
    """It must be written before the handlers of this outbox start."""


@attrs.define  # one is made for each job, and a frozen one takes four times as long
class Start:
    """Run the handler of a job. `Engine.finished` must be called once when it has ended."""

    id: bytes
    queue: bytes
    body: bytes
    nacks: int
    additional_deliveries: int
    snoozes: int = 0
    """How often it was released with a delay, according to its node."""
    expires: Micros = NEVER
    """When it expires, according to its node; NEVER if unknown."""


@attrs.frozen
class Cancel:
    """Cancel the handler of a job, unless it has just ended. `Engine.finished` must still be
    called."""

    id: bytes
    why: Reason


@attrs.frozen
class Drop:
    """A delivery ends here without a run, or an outcome without a node that accepts it."""

    id: bytes
    why: Reason


@attrs.define
class Outbox:
    """Effects, to be carried out in this order."""

    cancels: list[Cancel] = attrs.Factory(list)
    sends: list[Send] = attrs.Factory(list)
    closes: list[int] = attrs.Factory(list)
    """Connections to close."""
    drops: list[Drop] = attrs.Factory(list)
    starts: list[Start] = attrs.Factory(list)


# The engine's knowledge.


@attrs.define(eq=False)
class Job:
    """A job in hand."""

    id: bytes
    queue: bytes
    body: bytes
    node: str
    """The node that delivered it."""
    link: int
    """The connection to which it is tied; 0 for none."""
    token: bytes
    """Empty if the node sends none."""
    nacks: int
    additional_deliveries: int
    is_once: bool
    """RETRY 0: there is no lease, and it is never redelivered."""
    lease: Micros
    """The length of a lease, as far as known."""
    end: Micros
    """When the current lease ends; NEVER for RETRY 0."""
    renew_at: Micros
    knows_lease: bool
    """False until a node of the original has reported RETRY."""
    snoozes: int = 0
    expires: Micros = NEVER
    """When it expires; NEVER if unknown."""
    stage: Stage = HELD
    lost: Reason | None = None
    """Why it does not belong to this worker any longer."""
    cancelled: Reason | None = None
    limit_at: Micros = NEVER
    """When its run exceeds the time limit."""
    nack_at: Micros = NEVER
    """When the delay after its failure ends; until then it is at stage WAITING."""
    outcome: Outcome = Done()
    is_asked: bool = False
    """A WORKING is pending."""
    is_given_back: bool = False
    """An outcome other than done was sent to a node, which may have carried it out: the lease has
    ended."""
    is_again: bool = False
    """It was redelivered while its cancelled handler was still running."""
    is_stuck: bool = False
    """Its handler was cancelled and does not end."""
    is_unbegun: bool = False
    """The node regards it as held, and must be notified when it begins."""
    is_doubtful: bool = False
    """A worker that held it before has ended, maybe because of it."""
    armed: Micros = NEVER
    """When its timer wakes the engine, at `due` or earlier; NEVER for no timer."""
    tries: int = 0
    """How many other nodes were tried."""

    @property
    def due(self) -> Micros:
        """When it needs attention."""
        found = min(self.end, self.renew_at)
        if self.stage is RUNNING and self.cancelled is None:
            return min(found, self.limit_at)
        return min(found, self.nack_at) if self.stage is WAITING else found


class Verb(enum.Enum):
    """The purpose of a request."""

    FEATURES = "INFO server"
    NAME = "CLIENT ID"
    TAKE = "GETJOB"
    RENEW = "WORKING"
    BEGIN = "BEGIN"
    REPORT = "ACKJOB, NACK, RELEASE or ENQUEUE"
    MIGRATE = "ADDJOB of a dead letter, before its job is acknowledged"
    WAKE = "CLIENT UNBLOCK"


@attrs.define(eq=False)
class Request:
    """A request without a reply."""

    verb: Verb
    sent: Micros
    due: Micros
    """When the node counts as not responding."""
    patience: Micros
    jobs: tuple[Job, ...] = ()
    count: int = 0
    """GETJOB: the maximum number of jobs in the reply."""
    names: tuple[bytes, ...] = ()
    """GETJOB: the queues."""
    is_quick: bool = False
    """GETJOB: without waiting."""
    is_whole: bool = False
    """GETJOB: all queues, and the full waiting time; an empty reply means that they are empty."""


@attrs.define(eq=False)
class Link:
    """A connection."""

    number: int
    node: str
    is_fetch: bool
    opened: Micros
    requests: deque[Request] = attrs.Factory(deque)
    client: int | None = None
    """Its client id at the node, for CLIENT UNBLOCK."""
    wake_at: Micros = 0
    """When its GETJOB may be interrupted again; 0 for immediately, NEVER while a CLIENT UNBLOCK is
    pending."""

    @property
    def taking(self) -> Request | None:
        """Its pending GETJOB, if any."""
        return next((each for each in self.requests if each.verb is Verb.TAKE), None)


@attrs.define(eq=False)
class Node:
    """The engine's knowledge of a node."""

    name: str
    features: frozenset[bytes] | None = None
    announced: frozenset[bytes] | None = None
    """`features` are those of its current process, None until it has reported them; `announced` are
    the last ones that any of its processes reported."""
    rests_until: Micros = 0
    """It does not respond: other nodes are used until then."""
    refuses_until: Micros = 0
    """It delivers no jobs until then, for example because it is leaving."""
    failures: int = 0
    has_lost_results: bool = False
    """Was it logged that it keeps no results?"""
    fetch: Link | None = None
    control: Link | None = None


@attrs.define(eq=False)
class Trial:
    """Jobs that may have killed a worker, which begin alone (`suspects`)."""

    waiting: list[Job] = attrs.Factory(list)
    """Held; they begin as soon as no other job runs or is held."""
    since: Micros = 0
    """When they were selected."""
    running: list[Job] = attrs.Factory(list)
    """While these run, no other job begins or is held."""
    ends_at: Micros = 0
    most: int = 1
    """How many may run together."""
    have_come: bool = True  # some may be held
    is_expecting: bool = False
    """The last jobs that arrived were suspects, so the next ones may be."""


class Phase(enum.Enum):
    """The phase of the worker."""

    RUNNING = "takes and runs jobs"
    QUIET = "takes no new jobs, and runs those that it holds"
    DRAINING = "takes no new jobs, and waits for running ones"
    ABORTING = "has cancelled all handlers"
    STOPPED = "has stopped"


@attrs.define(eq=False)
class State:
    """A worker."""

    settings: Settings
    order: list[str]
    """The nodes, in order of preference."""
    nodes: dict[str, Node]
    queues: dict[bytes, Queue]
    phase: Phase = Phase.RUNNING
    phase_ends: Micros = NEVER
    last_turn: Micros = 0
    paused_at: Micros = 0
    """The time of the last turn before this process was stopped for long."""
    doubted_until: Micros = -1
    """Until when it reads replies that may have arrived in that time."""
    home: str = ""
    """The node from which jobs are taken; empty for none."""
    jobs: dict[bytes, Job] = attrs.Factory(dict)
    held: dict[bytes, Job] = attrs.Factory(dict)
    """Jobs at stage HELD, in order of arrival."""
    running: dict[bytes, int] = attrs.Factory(dict)
    """By queue: the number of running jobs."""
    in_hand: dict[bytes, int] = attrs.Factory(dict)
    """By queue: the number of running or held jobs."""
    stuck: dict[bytes, int] = attrs.Factory(dict)
    """By queue: the number of cancelled handlers that still run. They count for no limit."""
    paces: dict[bytes, Pace] = attrs.Factory(dict)
    """By queue."""
    may_have: dict[bytes, bool] = attrs.Factory(dict)
    """By queue: may the node `asked` have more of its jobs?"""
    asked: str = ""
    turn: int = 0
    """The number of jobs that have arrived, for the turns of queues."""
    credits: dict[bytes, int] = attrs.Factory(dict)
    """By queue: the unused part of its share."""
    trial: Trial = attrs.Factory(Trial)
    timers: Timers[Job] = attrs.Factory(Timers)
    links: dict[int, Link] = attrs.Factory(dict)
    last_link: int = 0
    unsent: dict[str, list[Job]] = attrs.Factory(dict)
    """By node: jobs whose outcome must be sent to it."""
    linger_until: Micros = NEVER
    """When these are sent."""
    done: OrderedDict[bytes, Done] = attrs.Factory(OrderedDict)
    """Jobs that were done here recently, oldest first."""
    origins: dict[bytes, str] = attrs.Factory(dict)
    """The nodes, by the beginning of their ids."""
    begun: list[tuple[Micros, Job]] = attrs.Factory(list)
    """Jobs whose beginning must be reported to nodes, and from when on."""
    begin_at: Micros = NEVER
    begun_count: int = 0
    out: Outbox = attrs.Factory(Outbox)
