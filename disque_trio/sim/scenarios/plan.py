"""A plan: all data of one run, made from a scenario and a seed.

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
"""From, to; a draw is uniform."""


@attrs.frozen(kw_only=True)
class Latency:
    """How long messages travel: mostly `fast`, with probability `p_slow` `slow`."""

    fast: Span = (500, 2_000)
    slow: Span = (100_000, 2_000_000)
    p_slow: float = 0.0


@attrs.frozen(kw_only=True)
class LinkPlan:
    """How links behave. Stream links are FIFO and lose only a suffix when they break."""

    model: str = "stream"
    """`stream` or `hostile`."""
    latency: Latency = Latency()
    drop: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    """Probabilities per message; hostile links only."""
    bytes_per_second: int = 0
    """0 is no limit."""
    batches: bool = False
    """Messages that are sent on a link at the same moment arrive together, as one batch."""


@attrs.frozen(kw_only=True)
class ClockPlan:
    """One node's clocks against true time."""

    drift_ppm: int = 0
    wall_offset_ms: int = 0


@attrs.frozen(kw_only=True)
class Add:
    """One ADDJOB by an open-loop producer. Milliseconds and seconds as the command takes them."""

    at: Micros
    node: int
    """Which node is asked, from 1."""
    producer: str
    queue: str
    body: str
    size: int = 0
    """The body is filled with dots up to so many bytes."""
    timeout_ms: int = 1000
    replicate: int | None = None
    sync: int | None = None
    """Or `joboptions.AUTO`."""
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
    """How often the producer sends it again, at the next node, if a connection ends without a
    reply."""
    dies_after: Micros | None = None
    """How long after sending this one the producer drops the connection with all requests that
    have no reply; None is never."""
    pipeline: int = 1
    """How many requests without a reply, this one included, its connection may have."""

    @property
    def options(self) -> dict[str, Any]:
        """By their names in `OPTIONS`; times in seconds, and SYNC AUTO as its word."""
        values = {option.name: getattr(self, option.planned) for option in OPTIONS}
        return values | {"sync": "AUTO"} if self.sync == AUTO else values


@attrs.frozen(kw_only=True)
class Consumer:
    """A closed-loop worker: takes jobs, works, then does what its mix says. Or, of kind `engine`,
    the engine of the worker library, whose handlers end as the mix says.

    The mix gives relative weights to: ackjob, together (one ACKJOB of all jobs in hand), fastack,
    nack, nack-delay, none (forgets the job), die (drops its connection with the job in hand and
    comes back), result (ACKJOB RESULT), elsewhere (acks at another node), result-elsewhere,
    fastack-elsewhere, nack-elsewhere,
    working-elsewhere, working (asks for time, then
    acks), deljob, dequeue, release, release-delay, bury, stall (its process stops for a while;
    engines only).
    """

    name: str
    node: int
    queues: tuple[str, ...]
    kind: str = "loop"
    """`loop` or `engine`."""
    count: int = 1
    """GETJOB's COUNT; of an engine, how many jobs run at the same time."""
    prefetch: int = 0
    """How many more jobs an engine holds."""
    prefetch_window: Micros = 0
    """No more than end in this time; 0 is `prefetch` always."""
    strict: bool = False
    """An engine runs its queues in their order."""
    limit: Micros = 0
    """How long a job of an engine may run; 0 is for ever."""
    stall: Span = (0, 0)
    """How long the process of an engine stops."""
    poll_ms: int = 1000
    """GETJOB's TIMEOUT; 0 is NOHANG, again and again."""
    polls: tuple[int, int] = (0, 0)
    """After how many GETJOBs it disconnects, drawn for each visit; 0 is never."""
    visit: Span = (0, 0)
    """After how long it does, also while a GETJOB waits; 0 is never."""
    away: Span = (0, 0)
    """How long until it connects again."""
    roams: bool = False
    """It connects to any node then; to `node` once the chaos has ended."""
    meta: bool = False
    """It asks WITHMETA, and sends the tokens with WORKING, NACK and RELEASE."""
    tied: bool = False
    """It asks TIED."""
    held: bool = False
    """It asks HELD as well, and begins each job when it works on it."""
    work: Span = (5_000, 50_000)
    delay_ms: tuple[int, int] = (1_000, 5_000)
    """DELAY of nack-delay and release-delay, drawn for each."""
    mix: tuple[tuple[str, float], ...] = (("ackjob", 1.0),)
    start: Micros = 0
    stop: Micros = 0
    """0 is the end of the run."""


@attrs.frozen(kw_only=True)
class Observer:
    """A client that asks nodes what they have: any node, one query after the other."""

    name: str
    every: Span
    """How long from one query to the next; drawn for each."""
    queues: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Administrator:
    """A client that orders nodes about: any node, one order after the other.

    The mix gives relative weights to: purge (PURGE, at times on all nodes), unblock (CLIENT UNBLOCK
    of any connection), wait (WAITJOB for some job), cancel (ACKJOB of a job that is queued),
    redrive (REDRIVE), enqueue (ENQUEUE QUEUE), purge-dead (PURGE DEAD, at times on all nodes).
    """

    name: str
    every: Span
    """How long from one order to the next; drawn for each."""
    queues: tuple[str, ...]
    mix: tuple[tuple[str, float], ...]


@attrs.frozen(kw_only=True)
class Limit:
    """One QUEUE LIMIT of the operator; NONE without a limit. A node that is down or stopped then
    does not get it."""

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

    `kind` is one of `fault_kinds.IN_PLANS`. A partition lets `groups` talk only within themselves.
    Other faults of links affect `links`; without any, all links from and to `nodes`. Of a drop,
    `mode` names the message. As many nodes join as `nodes` names.
    """

    kind: str
    at: Micros = 0
    hold: Micros = 0
    """How long until it is undone; 0 is until the heal at the end."""
    nodes: tuple[int, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    links: tuple[tuple[int, int], ...] = ()
    mode: str = ""
    amount: int = 0
    """Milliseconds, or parts per million of a rate or a share (`fault_kinds.Unit`)."""
    when: str = ""
    """A trace kind, with the message's name after a dot for send and recv; instead of `at`."""
    nth: int = 1
    """The number of the event, counted per fault from `at`."""
    target: str = ""
    """`event.node` or `event.peer`: the node of the event, instead of `nodes`."""
    count: int = 1
    """How often a triggered fault may happen."""
    queue: str = ""
    """Which queue; pause-queue only."""


@attrs.frozen(kw_only=True)
class Expect:
    """What the run must show."""

    lost: int = 0
    must_lose: bool = False
    """A control arm: a run that must lose jobs, to show that the checkers can fail."""
    duplicates: tuple[str, ...] = ()
    """Causes that may occur; any other fails the run. Empty is none at all."""
    sometimes: tuple[str, ...] = ()
    """Marks that must be hit at least once over the seeds of a sweep."""


@attrs.frozen(kw_only=True)
class Plan:
    """One run."""

    scenario: str
    seed: int
    nodes: int
    link: LinkPlan = LinkPlan()
    clocks: tuple[ClockPlan, ...] = ()
    """By node; missing ones are true."""
    config: tuple[tuple[str, str], ...] = ()
    """Directives of every node, as in disque.conf."""
    zones: tuple[str, ...] = ()
    """`replica-zone` of the nodes, which are dealt out by turns; empty: they name none."""
    adds: tuple[Add, ...] = ()
    consumers: tuple[Consumer, ...] = ()
    observers: tuple[Observer, ...] = ()
    administrators: tuple[Administrator, ...] = ()
    limits: tuple[Limit, ...] = ()
    apps: AppsPlan | None = None
    """The app that runs in the cluster: then `testing.apps` plays the plan."""
    faults: tuple[Fault, ...] = ()
    chaos: Micros = 60_000_000
    """When faults end and everything heals."""
    heal: str = "full"
    """`full`, or `core`: a majority that keeps the faults among the others."""
    drain: Micros = 0
    """How long after the heal the run goes on; 0 is computed from the workload (bound B)."""
    sync: Span = (200, 5_000)
    """How long a disk takes to sync, where nodes keep a journal (`appendonly` in `config`)."""
    knobs: tuple[tuple[str, int], ...] = ()
    """Constants of the nodes that have another value than the default (`statemachine.knobs`)."""
    versions: tuple[tuple[str, ...], ...] = ()
    """By node, the versions of its lives (`versions.VERSIONS`), the last one for ever; those that
    join are of ours."""
    forming: str = "known"
    """`known`: nodes start with each other in their tables; `meet`: the first meets the others."""
    codec_every: int = 64
    """One message in so many goes through the byte codec; 1 is each."""
    vector_clocks: bool = True
    expect: Expect = Expect()

    def zone(self, number: int) -> str:
        """The zone of the node with this number, also of one that joins; empty for none."""
        return self.zones[(number - 1) % len(self.zones)] if self.zones else ""

    def capabilities_of(self, number: int) -> tuple[int, ...]:
        """What the versions of this node's lives have; empty for ours."""
        lives = self.versions[number - 1] if number <= len(self.versions) else ()
        return tuple(VERSIONS[name] for name in lives)

    @property
    def shared_capabilities(self) -> int:
        """What all versions that run at any time have."""
        return reduce(and_, (VERSIONS[name] for lives in self.versions for name in lives), NEWEST)
