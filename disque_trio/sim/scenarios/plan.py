"""A plan: all data of one run, derived from a scenario and a seed.

A plan can be written to a file, run in any engine, and shrunk item by item, because adds, consumers
and faults do not depend on each other. Times are microseconds since the run began.
"""

from functools import reduce
from operator import and_
from typing import Any

import attrs

from disque_trio.sim.scenarios.apps import AppsPlan
from disque_trio.sim.scenarios.versions import NEWEST, VERSIONS
from disque_trio.statemachine.joboptions import AUTO, OPTIONS

Micros = int
Span = tuple[Micros, Micros]
"""The smallest and the largest value; a draw is uniform."""


@attrs.frozen(kw_only=True)
class Latency:
    """The latency of messages: `fast` for most, and `slow` with probability `p_slow`."""

    fast: Span = (500, 2_000)
    slow: Span = (100_000, 2_000_000)
    p_slow: float = 0.0


@attrs.frozen(kw_only=True)
class LinkPlan:
    """The behaviour of links. Stream links are FIFO and lose only a suffix when they break."""

    model: str = "stream"
    """`stream` or `hostile`."""
    latency: Latency = Latency()
    drop: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    """Probabilities per message; hostile links only."""
    bytes_per_second: int = 0
    """0 is unlimited."""
    batches: bool = False
    """Messages that are sent on a link at the same moment arrive together, as one batch."""


@attrs.frozen(kw_only=True)
class ClockPlan:
    """The deviation of one node's clocks from true time."""

    drift_ppm: int = 0
    wall_offset_ms: int = 0


@attrs.frozen(kw_only=True)
class Add:
    """One ADDJOB by an open-loop producer. Milliseconds and seconds are as in the command."""

    at: Micros
    node: int
    """The node that receives the request, from 1."""
    producer: str
    queue: str
    body: str
    size: int = 0
    """The body is padded with dots to this size."""
    timeout_ms: int = 1000
    replicate: int | None = None
    sync: int | None = None
    """A number, or `joboptions.AUTO`."""
    delay_s: float | None = None
    retry_s: int | None = None
    ttl_s: int | None = None
    maxlen: int | None = None
    is_async: bool = False
    priority: int | None = None
    group: str | None = None
    limit: int | None = None
    unique: str | None = None
    keep_s: int | None = None
    if_exists: str | None = None
    backoff_s: int | None = None
    max_backoff_s: int | None = None
    again: int = 0
    """How often the producer repeats it, at the next node, if a connection ends without a reply."""
    dies_after: Micros | None = None
    """How long after sending this request the producer drops the connection with all requests
    without a reply; None is never."""
    pipeline: int = 1
    """The most requests without a reply on its connection, this one included."""

    @property
    def options(self) -> dict[str, Any]:
        """The options by their names in `OPTIONS`; times in seconds, and SYNC AUTO as its word."""
        values = {option.name: getattr(self, option.planned) for option in OPTIONS}
        return values | {"sync": "AUTO"} if self.sync == AUTO else values


@attrs.frozen(kw_only=True)
class Consumer:
    """A closed-loop worker: takes jobs, works, and ends each as its mix determines. Or, of kind
    `engine`, the engine of the worker library, whose handlers end as the mix determines.

    The mix gives relative weights to: ackjob, together (one ACKJOB of all jobs in hand), fastack,
    nack, nack-delay, none (forgets the job), die (drops its connection with the job in hand and
    reconnects), result (ACKJOB RESULT), elsewhere (acks at another node), result-elsewhere,
    fastack-elsewhere, nack-elsewhere, working-elsewhere, working (asks for a renewal, then acks),
    deljob, dequeue, release, release-delay, bury, stall (its process stops for a while; engines
    only).
    """

    name: str
    node: int
    queues: tuple[str, ...]
    kind: str = "loop"
    """`loop` or `engine`."""
    count: int = 1
    """GETJOB's COUNT; for an engine, how many jobs run at the same time."""
    prefetch: int = 0
    """How many more jobs an engine holds."""
    prefetch_window: Micros = 0
    """The engine holds at most the jobs that end in this time; 0 is `prefetch` always."""
    strict: bool = False
    """Does an engine run its queues in their order?"""
    limit: Micros = 0
    """How long a job of an engine may run; 0 is unlimited."""
    stall: Span = (0, 0)
    """How long the process of an engine stops."""
    poll_ms: int = 1000
    """GETJOB's TIMEOUT; 0 is repeated NOHANG."""
    polls: tuple[int, int] = (0, 0)
    """After how many GETJOBs it disconnects, drawn for each visit; 0 is never."""
    visit: Span = (0, 0)
    """After how long it disconnects, also while a GETJOB waits; 0 is never."""
    away: Span = (0, 0)
    """How long until it connects again."""
    roams: bool = False
    """Does it connect to a random node each time, until the end of the chaos?"""
    meta: bool = False
    """Does it use WITHMETA, and send the tokens with WORKING, NACK and RELEASE?"""
    tied: bool = False
    """Does it use TIED?"""
    held: bool = False
    """Does it use HELD as well, and send BEGIN when it starts to work on a job?"""
    work: Span = (5_000, 50_000)
    delay_ms: tuple[int, int] = (1_000, 5_000)
    """DELAY of nack-delay and release-delay, drawn for each."""
    mix: tuple[tuple[str, float], ...] = (("ackjob", 1.0),)
    start: Micros = 0
    stop: Micros = 0
    """When it ends; 0 is the end of the run."""


@attrs.frozen(kw_only=True)
class Observer:
    """A client that queries nodes: any node, one query after another."""

    name: str
    every: Span
    """The time from one query to the next; drawn for each."""
    queues: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Administrator:
    """A client that sends administrative commands: to any node, one after another.

    The mix gives relative weights to: purge (PURGE, sometimes on all nodes), unblock (CLIENT
    UNBLOCK of any connection), wait (WAITJOB for some job), cancel (ACKJOB of a queued job),
    redrive (REDRIVE), enqueue (ENQUEUE QUEUE), purge-dead (PURGE DEAD, sometimes on all nodes).
    """

    name: str
    every: Span
    """The time from one command to the next; drawn for each."""
    queues: tuple[str, ...]
    mix: tuple[tuple[str, float], ...]


@attrs.frozen(kw_only=True)
class Limit:
    """One QUEUE LIMIT of the operator; NONE without a limit. A node that is down or stopped at that
    time does not receive it."""

    at: Micros
    node: int
    queue: str
    concurrency: int = 0
    rate: int = 0
    per_s: int = 1
    burst: int = 0
    is_loose: bool = False
    group_concurrency: int = 0
    group_rate: int = 0
    group_per_s: int = 1
    group_burst: int = 0


@attrs.frozen(kw_only=True)
class Fault:
    """One fault: what, when or upon which event, where, for how long.

    `kind` is one of `fault_kinds.IN_PLANS`. A partition separates `groups` from each other. Other
    faults of links affect `links`, or, if there are none, all links from and to `nodes`. For a
    drop, `mode` is the name of the message. For a join, `nodes` has one entry for each new node.
    """

    kind: str
    at: Micros = 0
    hold: Micros = 0
    """The time until it is undone; 0 is until the heal at the end."""
    nodes: tuple[int, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    links: tuple[tuple[int, int], ...] = ()
    mode: str = ""
    amount: int = 0
    """Milliseconds, or parts per million of a rate or a share (`fault_kinds.Unit`)."""
    when: str = ""
    """A kind of row, with the message's name after a dot for send and recv; in place of `at`."""
    nth: int = 1
    """The number of the event, counted per fault from `at`."""
    target: str = ""
    """`event.node` or `event.peer`: the node of the event, in place of `nodes`."""
    count: int = 1
    """The most occurrences of a triggered fault."""
    queue: str = ""
    """The queue; pause-queue only."""


@attrs.frozen(kw_only=True)
class Expect:
    """The expected results of the run."""

    lost: int = 0
    must_lose: bool = False
    """A negative control: the run must lose jobs, to show that the checkers can fail."""
    duplicates: tuple[str, ...] = ()
    """Causes that may occur; any other fails the run. If empty, none may occur."""
    sometimes: tuple[str, ...] = ()
    """Marks that must be hit at least once in the seeds of a sweep."""


@attrs.frozen(kw_only=True)
class Plan:
    """One run."""

    scenario: str
    seed: int
    nodes: int
    link: LinkPlan = LinkPlan()
    clocks: tuple[ClockPlan, ...] = ()
    """By node; missing clocks are true."""
    config: tuple[tuple[str, str], ...] = ()
    """Directives of every node, as in disque.conf."""
    zones: tuple[str, ...] = ()
    """The `replica-zone` of the nodes, assigned in turn; empty if they have none."""
    adds: tuple[Add, ...] = ()
    consumers: tuple[Consumer, ...] = ()
    observers: tuple[Observer, ...] = ()
    administrators: tuple[Administrator, ...] = ()
    limits: tuple[Limit, ...] = ()
    apps: AppsPlan | None = None
    """The app that runs in the cluster; `testing.apps` then runs the plan."""
    faults: tuple[Fault, ...] = ()
    chaos: Micros = 60_000_000
    """When faults end and everything heals."""
    heal: str = "full"
    """`full`, or `core`: a majority is healed, and the other nodes keep their faults."""
    drain: Micros = 0
    """How long the run continues after the heal; 0 is computed from the workload (bound B)."""
    sync: Span = (200, 5_000)
    """The duration of a disk's sync, if nodes keep a journal (`appendonly` in `config`)."""
    knobs: tuple[tuple[str, int], ...] = ()
    """Constants of the nodes with another value than the default (`statemachine.knobs`)."""
    versions: tuple[tuple[str, ...], ...] = ()
    """By node: the versions of its lives (`versions.VERSIONS`), the last one also for all further
    lives. Nodes that join have the current version."""
    forming: str = "known"
    """`known`: nodes start with each other in their tables; `meet`: the first meets the others."""
    codec_every: int = 64
    """One in this many messages goes through the byte codec; 1 is each."""
    vector_clocks: bool = True
    expect: Expect = Expect()

    def zone(self, number: int) -> str:
        """Return the zone of the node with this number, also if it joins later; empty for none."""
        return self.zones[(number - 1) % len(self.zones)] if self.zones else ""

    def capabilities_of(self, number: int) -> tuple[int, ...]:
        """Return the capabilities of the versions of this node's lives; empty for the current
        version."""
        lives = self.versions[number - 1] if number <= len(self.versions) else ()
        return tuple(VERSIONS[name] for name in lives)

    @property
    def shared_capabilities(self) -> int:
        """The capabilities of all versions that run at any time."""
        return reduce(and_, (VERSIONS[name] for lives in self.versions for name in lives), NEWEST)
