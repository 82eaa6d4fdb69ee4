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
    """How far a job has come."""

    HELD = "delivered, and not begun"
    RUNNING = "its handler runs"
    WAITING = "failed, and held until its delay is over, for a node that has no NACK DELAY"
    SETTLING = "its handler has ended, and a node is to learn the outcome"


# In Python 3.11 each look-up of a member in an enum calls a function: a dozen for each job.
HELD: Final = Stage.HELD
RUNNING: Final = Stage.RUNNING
WAITING: Final = Stage.WAITING
SETTLING: Final = Stage.SETTLING


@attrs.define(eq=False)
class Pace:
    """How fast the jobs of a queue end here, and what they are like."""

    since: int
    count: int = 0
    """How many have ended since then."""
    before: int = 0
    """How many ended in the span before."""
    lease: int = 0
    """Of the last job that came."""
    body: int = 0
    """Bytes that the next one may have."""
    has_once: bool = False
    """Jobs with RETRY 0 have come."""


# Settings.


@attrs.frozen(kw_only=True)
class Queue:
    """A queue to take jobs from."""

    name: bytes
    concurrency: int = 0
    """How many of its jobs run at the same time at most; 0 is as many as the worker runs."""
    prefetch: int = 0
    """How many more of its jobs may be held that have not begun, at most."""
    limit: Micros = 0
    """How long a job may run; 0 is for ever."""
    weight: int = 1
    """How many of its jobs begin in its turn, if the order of queues is not strict."""


@attrs.frozen(kw_only=True)
class Settings:
    """What a worker is asked to do."""

    nodes: tuple[str, ...]
    """Addresses, in order of preference."""
    queues: tuple[Queue, ...]
    concurrency: int = 10
    """How many jobs run at the same time at most."""
    has_ties: bool = True
    """Ask nodes that can to give the jobs back when the connection ends."""
    is_plain: bool = False
    """Use the original's commands only, whatever the nodes can."""
    is_strict: bool = False
    """Begin jobs of a queue only while those before it have none; otherwise queues take turns."""
    is_burst: bool = False
    """Stop as soon as there are no jobs."""
    prefetch_window: Micros = 0
    """Hold no more jobs than end within this time, at the pace of the last second; 0 is `prefetch`
    always."""
    drain: Micros = 25 * SECOND
    """How long jobs may run on after the order to stop."""
    abort: Micros = 3 * SECOND
    """How long cancelled jobs may take to end, after that."""


# Outcomes of a run.


@attrs.frozen
class Done:
    """The job is done: acknowledge it."""

    result: bytes | None = attrs.field(default=None, eq=False)
    """What nodes that know results keep of it, for `keep_s` seconds. Outcomes are equal whatever
    it is."""
    keep_s: int = attrs.field(default=0, eq=False)


@attrs.frozen
class Retry:
    """It failed: it is delivered again after `delay`, which a policy has chosen; 0 is at once, or
    as the job's own BACKOFF says."""

    delay: Micros
    error: bytes = attrs.field(default=b"", eq=False)
    """Why, for a node that keeps it: NACK ERROR. Outcomes are equal whatever it is."""


@attrs.frozen
class Dead:
    """It can never be done: it is kept as dead, with the reason."""

    reason: bytes
    error: bytes = attrs.field(default=b"", eq=False)
    """As of `Retry`."""


@attrs.frozen
class Release:
    """It was interrupted, has not begun or is snoozed: it is delivered again, which is no failure.

    With a delay the node counts it as a snooze. A node that has no such delay counts a failure.
    """

    delay: Micros | None = None
    """None is at once."""


Outcome = Done | Retry | Dead | Release


class Reason(enum.Enum):
    """Why a handler is cancelled, or a job is given up."""

    LEASE_OVER = "the lease is over"
    LOST = "the job was given to another worker"
    ACKED = "the job is acknowledged"
    DEAD = "the job is dead"
    TOO_LONG = "the time limit is over"
    SHUTDOWN = "the worker stops"
    DONE_BEFORE = "this worker has done it before"
    TWICE = "this worker has it already"
    RELEASED = "the job has not begun and is given back"
    REFUSED = "no node accepts the outcome"
    UNKNOWN = "whether a node has learned the outcome is unknown"
    NOT_KEPT = "the node keeps no results, so only the client that added the job gets this one"
    RESULT_REFUSED = "the job is done, but the node refuses to keep its result"


# Effects.


@attrs.frozen
class Send:
    """Send a request on a connection, which opens with the first one."""

    link: int
    node: str
    words: tuple[bytes, ...]
    is_first: bool = False
    """It is to be written before the handlers of this outbox start."""


@attrs.define  # one is made for each job, and a frozen one takes four times as long
class Start:
    """Run the handler of a job. `Engine.finished` is due in the end, once."""

    id: bytes
    queue: bytes
    body: bytes
    nacks: int
    additional_deliveries: int
    snoozes: int = 0
    """How often it was released with a delay, as its node has told."""
    expires: Micros = NEVER
    """When its life ends, as its node has told; NEVER if it has not."""


@attrs.frozen
class Cancel:
    """End the handler of a job soon, if it has not just ended. `Engine.finished` is still due."""

    id: bytes
    why: Reason


@attrs.frozen
class Drop:
    """A delivery ends here without a run, or an outcome without a node that knows of it."""

    id: bytes
    why: Reason


@attrs.define
class Outbox:
    """Effects, to be carried out in this order."""

    cancels: list[Cancel] = attrs.Factory(list)
    sends: list[Send] = attrs.Factory(list)
    closes: list[int] = attrs.Factory(list)
    """Connections to end."""
    drops: list[Drop] = attrs.Factory(list)
    starts: list[Start] = attrs.Factory(list)


# What the engine knows.


@attrs.define(eq=False)
class Job:
    """A job in hand."""

    id: bytes
    queue: bytes
    body: bytes
    node: str
    """Which node has delivered it."""
    link: int
    """The connection to which it is tied; 0 for none."""
    token: bytes
    """Empty if the node gives none."""
    nacks: int
    additional_deliveries: int
    is_once: bool
    """RETRY 0: there is no lease, and it is never delivered again."""
    lease: Micros
    """How long a lease lasts, as far as is known."""
    end: Micros
    """When this one ends; NEVER for RETRY 0."""
    renew_at: Micros
    knows_lease: bool
    """False until a node of the original has told RETRY."""
    snoozes: int = 0
    expires: Micros = NEVER
    """When its life ends; NEVER if no node has told."""
    stage: Stage = HELD
    lost: Reason | None = None
    """Why it does not belong to this worker any more."""
    cancelled: Reason | None = None
    limit_at: Micros = NEVER
    """When its run is too long."""
    nack_at: Micros = NEVER
    """When the delay after its failure is over; it waits until then at stage WAITING."""
    outcome: Outcome = Done()
    is_asked: bool = False
    """A WORKING is under way."""
    is_given_back: bool = False
    """A node has been told an outcome other than done, and may have obeyed: the lease is over."""
    is_again: bool = False
    """It came again while its cancelled handler still ran."""
    is_stuck: bool = False
    """Its handler does not end though it was cancelled."""
    is_unbegun: bool = False
    """The node takes it for held, and is to be told when it begins."""
    is_doubtful: bool = False
    """A worker that had it before has ended, maybe because of it."""
    armed: Micros = NEVER
    """When its timer wakes the engine, at `due` or before; NEVER for no timer."""
    tries: int = 0
    """How often another node had to be asked."""

    @property
    def due(self) -> Micros:
        """When it needs attention."""
        found = min(self.end, self.renew_at)
        if self.stage is RUNNING and self.cancelled is None:
            return min(found, self.limit_at)
        return min(found, self.nack_at) if self.stage is WAITING else found


class Verb(enum.Enum):
    """What a request is for."""

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
    """When the node counts as silent."""
    patience: Micros
    jobs: tuple[Job, ...] = ()
    count: int = 0
    """GETJOB: how many jobs may come."""
    names: tuple[bytes, ...] = ()
    """GETJOB: of these queues."""
    is_quick: bool = False
    """GETJOB: it does not wait."""
    is_whole: bool = False
    """GETJOB: it names all queues, for its full time: after an empty reply they are empty."""


@attrs.define(eq=False)
class Link:
    """A connection."""

    number: int
    node: str
    is_fetch: bool
    opened: Micros
    requests: deque[Request] = attrs.Factory(deque)
    client: int | None = None
    """Its number in the node, for CLIENT UNBLOCK."""
    wake_at: Micros = 0
    """When its GETJOB may be ended again; 0 for at once, NEVER while a CLIENT UNBLOCK is under
    way."""

    @property
    def taking(self) -> Request | None:
        """Its GETJOB, if one is under way."""
        return next((each for each in self.requests if each.verb is Verb.TAKE), None)


@attrs.define(eq=False)
class Node:
    """What is known of a node."""

    name: str
    features: frozenset[bytes] | None = None
    announced: frozenset[bytes] | None = None
    """What its process has said that it can, None until then; and what any has said last."""
    rests_until: Micros = 0
    """It does not answer: others are asked until then."""
    refuses_until: Micros = 0
    """It gives no jobs, because it leaves, for example."""
    failures: int = 0
    has_lost_results: bool = False
    """Was it reported that it keeps none?"""
    fetch: Link | None = None
    control: Link | None = None


@attrs.define(eq=False)
class Trial:
    """Suspects, which begin alone (`suspects`)."""

    waiting: list[Job] = attrs.Factory(list)
    """They are held, and begin as soon as nothing else runs or is held."""
    since: Micros = 0
    """When they were chosen."""
    running: list[Job] = attrs.Factory(list)
    """While these are on trial, nothing else begins or is held."""
    ends_at: Micros = 0
    most: int = 1
    """How many may be on trial together."""
    have_come: bool = True  # some may be held
    is_expecting: bool = False
    """The last jobs that came were suspects, so the next ones may be."""


class Phase(enum.Enum):
    """What the worker does."""

    RUNNING = "takes and runs jobs"
    QUIET = "takes none, and runs those in hand"
    DRAINING = "takes none, and lets those run that have begun"
    ABORTING = "has cancelled all handlers"
    STOPPED = "is over"


@attrs.define(eq=False)
class State:
    """A worker."""

    settings: Settings
    order: list[str]
    """Nodes in order of preference."""
    nodes: dict[str, Node]
    queues: dict[bytes, Queue]
    phase: Phase = Phase.RUNNING
    phase_ends: Micros = NEVER
    last_turn: Micros = 0
    paused_at: Micros = 0
    """When the last turn was before this process was silent for long,"""
    doubted_until: Micros = -1
    """and until when it reads what may have come meanwhile."""
    home: str = ""
    """The node from which jobs are taken; empty for none."""
    jobs: dict[bytes, Job] = attrs.Factory(dict)
    held: dict[bytes, Job] = attrs.Factory(dict)
    """Those at stage HELD, in order of arrival."""
    running: dict[bytes, int] = attrs.Factory(dict)
    """By queue: how many run."""
    in_hand: dict[bytes, int] = attrs.Factory(dict)
    """By queue: how many run or are held."""
    stuck: dict[bytes, int] = attrs.Factory(dict)
    """By queue: how many run on though they were cancelled. They count for no limit."""
    paces: dict[bytes, Pace] = attrs.Factory(dict)
    """By queue."""
    may_have: dict[bytes, bool] = attrs.Factory(dict)
    """By queue: whether the node `asked` may have more of its jobs."""
    asked: str = ""
    turn: int = 0
    """How many jobs have come, for the turn of queues."""
    credits: dict[bytes, int] = attrs.Factory(dict)
    """By queue: how much of its share it has not had."""
    trial: Trial = attrs.Factory(Trial)
    timers: Timers[Job] = attrs.Factory(Timers)
    links: dict[int, Link] = attrs.Factory(dict)
    last_link: int = 0
    unsent: dict[str, list[Job]] = attrs.Factory(dict)
    """By node: jobs whose outcome it is to learn."""
    linger_until: Micros = NEVER
    """When these are sent."""
    done: OrderedDict[bytes, Done] = attrs.Factory(OrderedDict)
    """Jobs that were done here lately, oldest first."""
    origins: dict[bytes, str] = attrs.Factory(dict)
    """By the beginning of a node's id: which node it is."""
    begun: list[tuple[Micros, Job]] = attrs.Factory(list)
    """Those of which nodes are to be told that they begin, and from when on."""
    begin_at: Micros = NEVER
    begun_count: int = 0
    out: Outbox = attrs.Factory(Outbox)
