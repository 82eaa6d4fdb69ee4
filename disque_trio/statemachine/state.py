"""The state of a node, in one flat record (docs/design.md, "The machine"). No methods."""

import enum
import random
from collections.abc import Generator, Iterator

import attrs

from disque_trio.statemachine.backlog import Backlog
from disque_trio.statemachine.base import (
    KEEPS_ALL,
    ClientId,
    Failure,
    JobId,
    Millis,
    NodeId,
    Reply,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.cluster import Cluster
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.endings import Endings
from disque_trio.statemachine.events import Event
from disque_trio.statemachine.job import Job, PendingAdd
from disque_trio.statemachine.jobtable import JobTable, Walk
from disque_trio.statemachine.jobtraces import JobTraces, sampling
from disque_trio.statemachine.keys import Keys
from disque_trio.statemachine.knobs import Knobs
from disque_trio.statemachine.limit import Limit
from disque_trio.statemachine.memory import Memory
from disque_trio.statemachine.outbox import Outbox
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.stats import Facts, LatencyMonitor, Slowlog, Stats
from disque_trio.statemachine.tally import Tally
from disque_trio.statemachine.timers import Timed, Timers
from disque_trio.statemachine.tombstones import Tombstones


@attrs.define(eq=False, weakref_slot=False)
class Cron(Timed):
    """The one owner of the cluster's heartbeat in the timer wheel."""

    runs: int = 0


@attrs.define(eq=False, weakref_slot=False)
class Repair(Timed):
    """The progress of the repair of copies. `repair` writes it."""

    members: tuple[NodeId, ...] = ()
    """The node table's members at the last check."""
    targets: tuple[NodeId, ...] = ()
    """The nodes that could receive copies at that time."""
    failing: dict[NodeId, Millis] = attrs.Factory(dict)
    """Failing nodes, and since when they have been failing."""
    lost: tuple[NodeId, ...] = ()
    """Nodes that have been failing for longer than `replica-repair-after`."""
    changed_at: Millis = 0
    """When members or lost nodes last changed."""
    has_changes: bool = False
    """No pass has begun since then, or since a copy arrived with too few holders (`copies`)."""
    walk: Walk | None = None
    """The jobs that the running pass must still check; None between passes."""
    found: int = 0
    """How many of those checked have too few holders."""
    under: int = 0
    """The result of the last whole pass, minus later repairs."""
    found_lacking: int = 0
    lacking: int = 0
    """`found` and `under` for jobs that have too few holders if failing ones are excluded."""
    found_reported: int = 0
    reported: int = 0
    """`found_lacking` and `lacking` for jobs that this node reports: only one of the remaining
    holders reports a job."""
    down: tuple[NodeId, ...] = ()
    """The failing nodes when that pass began."""
    again: Millis = 0
    """When the next pass may begin."""
    awaited: dict[JobId, Millis] = attrs.Factory(dict)
    """Jobs with copies in transit, and until when their GOTJOB is awaited."""
    listed: dict[JobId, tuple[NodeId, ...]] = attrs.Factory(dict)
    """The jobs among them whose creator is lost, and their former holders, which may have
    copies."""
    silent: dict[NodeId, Millis] = attrs.Factory(dict)
    """Nodes that did not answer, and until when they are selected only as a last resort."""
    trailing: dict[JobId, Millis] = attrs.Factory(dict)
    """New jobs with a reply to ADDJOB before all copies were confirmed, and until when the rest is
    awaited; earliest first. `replication` adds to it."""


@attrs.define(eq=False, weakref_slot=False)
class Resend(Timed):
    """Acknowledged and dead jobs that are announced to nodes that have returned. `resend` writes
    it."""

    ids: list[JobId] = attrs.Factory(list)
    """The jobs that the running pass must still check; empty between passes."""
    queues: list[bytes] = attrs.Factory(list)
    """The queues whose dead jobs it must still list."""
    to: tuple[NodeId, ...] = ()
    """The nodes that this pass serves."""
    returned: dict[NodeId, None] = attrs.Factory(dict)
    """The nodes that have returned since it began."""


@attrs.define(eq=False, weakref_slot=False)
class KeptResult(Timed):
    """The result of a job, from ACKJOB RESULT. `results` creates it; it is immutable."""

    id: JobId
    queue: bytes
    """Empty if unknown here."""
    at: Millis
    """The time of the ACKJOB, by the wall clock of its node."""
    until: Millis
    value: bytes

    @property
    def order(self) -> tuple[Millis, bytes]:
        """If a job has two results, the one with the smaller order applies."""
        return self.at, self.value


@attrs.define(eq=False, weakref_slot=False)
class TrackedDelivery:
    """The last delivery of a job at this node, if the consumer requested a token or a tie.
    `tracked_deliveries` writes it."""

    token: bytes
    """Empty if the job was delivered since to a consumer that did not request a token."""
    attempt: int
    """How often the job had been requeued until then."""
    client: Client | None = None
    """The client to whose connection it is tied."""
    is_orphan: bool = False
    """That connection has ended."""
    is_held: bool = False
    """The consumer holds the job and has not begun it."""
    is_given_back: bool = False
    """The consumer has returned the job, by the token."""
    was_unbegun: bool = False
    """An earlier consumer held the job and ended without BEGIN."""


@attrs.define(eq=False, weakref_slot=False)
class Purging(Timed):
    """Jobs that must still be acknowledged, or redriven. `purging` writes it."""

    jobs: "dict[tuple[bytes, Sweep], list[Job]]" = attrs.Factory(dict)
    """By queue; the job that is delivered first, or died first, is at the end of its list."""


@attrs.define(eq=False, weakref_slot=False)
class EnqueueOrder:
    """ENQUEUE QUEUE of one client. `enqueuing` writes it."""

    name: bytes
    count: int
    """How many jobs at most; 0 is all."""
    client: Client
    walk: Walk | None = None
    """The jobs that must still be examined; None before it begins."""
    found: int = 0
    is_over: bool = False
    is_answered_later: bool = False


@attrs.define(eq=False, weakref_slot=False)
class Enqueuing(Timed):
    """Orders that must still be carried out. `enqueuing` writes it."""

    orders: list[EnqueueOrder] = attrs.Factory(list)


@attrs.define(eq=False, weakref_slot=False)
class LongCommand:
    """A command about many jobs that has steps left."""

    client: Client
    steps: Generator[None, None, Reply]
    needs_client: bool
    """Does it end when the client disconnects?"""


class Sweep(enum.Enum):
    """An operation on all jobs of a queue."""

    PURGE = "acknowledge what is queued"
    PURGE_DEAD = "acknowledge what is dead"
    REDRIVE = "queue what is dead"


class Offer(enum.Enum):
    """The state of an offer of jobs of a queue to another node."""

    NONE = "nothing"
    MADE = "an offer was sent and has not been answered"
    KNOWN = "it has answered, and will ask when a client waits"


@attrs.define(eq=False, weakref_slot=False)
class Demand(Timed):
    """The nodes whose clients wait for jobs of one queue. `offering` writes it."""

    name: bytes
    askers: "dict[NodeId, Asker]" = attrs.Factory(dict)
    """In the order in which they are offered jobs."""
    pending: NodeId = b""
    """The node whose answer to an offer is pending; empty for none."""
    pause: Millis = 500
    """How long to wait before unanswered offers are repeated."""
    again_at: Millis = 0


@attrs.define(eq=False, weakref_slot=False)
class Asker:
    """One node with clients that wait. `offering` writes it."""

    offer: Offer = Offer.NONE
    until: Millis = 0
    """When its WAITING expires."""
    credit: int = 0
    """Jobs that may be sent without an offer: the number of clients that its last request left
    without a job."""
    credit_until: Millis = 0


@attrs.define(eq=False, weakref_slot=False)
class QueueAnnouncements(Timed):
    """Nodes with a new link, and the queues that must still be announced to them.
    `queue_announcements` writes it."""

    names: dict[NodeId, list[bytes]] = attrs.Factory(dict)
    again: dict[NodeId, Millis] = attrs.Factory(dict)
    """Nodes to which they are announced once more, and when."""
    since: dict[NodeId, Millis] = attrs.Factory(dict)
    """The time of the first answer of each node that may not have this one in its table yet."""
    began: Millis = 0
    """When a link last came up."""


def _table(node: "NodeState") -> JobTable:
    return JobTable(node.jobs)


def _tombstones(node: "NodeState") -> Tombstones:
    return Tombstones(node.facts.knobs.tombstones)


def _knobs(node: "NodeState") -> Knobs:
    return node.facts.knobs


def _endings(node: "NodeState") -> Endings:
    return Endings(node.config.ended_jobs)


def _timers(node: "NodeState") -> Timers:
    return Timers(node.facts.knobs.empty_slots)


def _traces(node: "NodeState") -> JobTraces:
    return sampling(node.config.trace_sample)


@attrs.define(eq=False)
class NodeState:
    """The whole state of a node. The docstring of each field names the module that writes it."""

    config: Config
    """`commands.config`, by replacing it whole."""
    rng: random.Random
    mono: Millis
    """`machine`: both clocks, set once per input."""
    wall: Millis
    micros: int
    cluster: Cluster
    """`membership` and the modules below it; see `cluster`."""
    facts: Facts
    stats: Stats
    knobs: Knobs = attrs.Factory(_knobs, takes_self=True)
    """No module: constants of this process."""
    tally: Tally = attrs.Factory(Tally)
    jobs: dict[JobId, Job] = attrs.Factory(dict)
    """Only `table` changes it, for `lifecycle`."""
    table: JobTable = attrs.Factory(_table, takes_self=True)
    tombstones: Tombstones = attrs.Factory(_tombstones, takes_self=True)
    queues: dict[bytes, Queue] = attrs.Factory(dict)
    """`lifecycle`."""
    delayed: dict[bytes, Backlog] = attrs.Factory(dict)
    """`counts`: the number of jobs of a queue that wait here for the end of their delay; no entry
    for none."""
    leased: dict[bytes, int] = attrs.Factory(dict)
    """`counts`: the number of leased jobs of a queue; no entry for none."""
    restored: dict[bytes, Backlog] = attrs.Factory(dict)
    """`counts`: the number of jobs of a queue that wait for the end of their RETRY after a restart;
    no entry for none."""
    due_seconds: int = 0
    """`counts`: the number of seconds by which `delayed` and `restored` count, for the memory
    estimate."""
    unqueued: dict[bytes, int] = attrs.Factory(dict)
    """`counts`: the number of active jobs of a queue here; no entry for none. It includes those of
    the three fields above, and jobs that other nodes have queued or delivered, that had their only
    delivery (RETRY 0), or that wait for their key."""
    dead: dict[bytes, dict[JobId, Job]] = attrs.Factory(dict)
    """`counts`: the dead jobs of a queue, in the order of their deaths; no entry for none."""
    clients: dict[ClientId, Client] = attrs.Factory(dict)
    """`sessions`."""
    monitors: dict[ClientId, Client] = attrs.Factory(dict)
    """`sessions`."""
    paused: dict[ClientId, Client] = attrs.Factory(dict)
    """`sessions`: clients that sent requests during a CLIENT PAUSE."""
    paused_until: Millis = 0
    """`sessions`: when CLIENT PAUSE ends."""
    last_client: ClientId = 0
    last_made: Millis = 0
    last_number: int = 0
    """`stamps`: the last creation stamp that was assigned."""
    drawn_at: Millis = -1
    drawn: float = 0.0
    """`replication`: the random number that orders the nodes for copies, and when it was drawn."""
    adding: dict[JobId, PendingAdd] = attrs.Factory(dict)
    adding_bytes: int = 0
    """`pending_adds`: the ADDJOBs that wait for copies, by job, and the bytes of their bodies."""
    tracked: dict[JobId, TrackedDelivery] = attrs.Factory(dict)
    """`tracked_deliveries`: deliveries with a token, or tied to a connection."""
    results: dict[JobId, KeptResult] = attrs.Factory(dict)
    """`results`: the results of jobs that are acknowledged or gone."""
    awaited: dict[JobId, dict[ClientId, Client]] = attrs.Factory(dict)
    """`waiters`: the clients that wait for the end of a job."""
    ended: dict[JobId, bytes] = attrs.Factory(dict)
    """`lifecycle` adds, `waiters` replies: the outcomes of jobs in `awaited`; empty if a job has
    left."""
    endings: Endings = attrs.Factory(_endings, takes_self=True)
    """`lifecycle` adds, `pressure` removes: the latest jobs that have ended."""
    acker: bytes = b""
    """`commands.jobs`: the client that has acknowledged or deleted jobs last."""
    ready: dict[bytes, Queue] = attrs.Factory(dict)
    """`lifecycle` adds, `delivery` serves: queues with jobs and, maybe, waiting clients."""
    demands: dict[bytes, Demand] = attrs.Factory(dict)
    """`offering`: the other nodes at which clients wait, by queue."""
    limits: dict[bytes, Limit] = attrs.Factory(dict)
    """`limiting`: the queues that have, or had, limits."""
    limits_digest: bytes | None = None
    """`limiting`: the digest of their settings; None until it is needed after a change."""
    group_limits: dict[tuple[bytes, bytes], Limit] = attrs.Factory(dict)
    """`limiting`: the limits of groups in use, by queue and group."""
    placeless: dict[tuple[bytes, bytes], None] = attrs.Factory(dict)
    """`limiting`: the groups that are parked because too many others are in use."""
    group_leases: dict[JobId, Limit] = attrs.Factory(dict)
    """`counts`: the running leases of such groups."""
    freed: dict[tuple[bytes, bytes], Limit] = attrs.Factory(dict)
    """`counts`: the groups with a lease that has ended, for `keeping.settle`."""
    short: dict[bytes, Limit] = attrs.Factory(dict)
    """`limiting`: limits for which clients wait, with jobs here."""
    pending_queues: dict[bytes, bool] = attrs.Factory(dict)
    """`lifecycle` and `federation`: queues that may have jobs but no clients, or clients but no
    jobs, for `federation.settle`. The value is true if a client found the queue empty."""
    announcements: QueueAnnouncements = attrs.Factory(QueueAnnouncements)
    is_recording: bool = False
    """`journaling`: is there a journal?"""
    is_recording_queues: bool = False
    """`journaling`: does the journal also record when a job enters or leaves a queue?"""
    is_stopping: bool = False
    """`journaling`: is that because of a controlled stop?"""
    was_stopped: bool = False
    """`recovery`: does the journal that is being loaded end with a controlled stop?"""
    queues_note: bytes = b""
    """`recovery`: the last note about queues in the journal that is being loaded."""
    refusal: Failure | None = None
    """`recovery`, `sessions` and `identity`: why commands are refused (LOADING, MISCONF,
    DUPLICATEID)."""
    recovered: dict[JobId, Job] = attrs.Factory(dict)
    """`recovery`: the jobs of the journal, until all of it is loaded."""
    recovering: Iterator[Job] | None = None
    expired: dict[JobId, None] = attrs.Factory(dict)
    """`recovery`: the expired jobs of the journal, until all of it is loaded."""
    memory: Memory = attrs.Factory(Memory)
    keys: Keys = attrs.Factory(Keys)
    timers: Timers = attrs.Factory(_timers, takes_self=True)
    cron: Cron = attrs.Factory(Cron)
    repair: Repair = attrs.Factory(Repair)
    resend: Resend = attrs.Factory(Resend)
    purging: Purging = attrs.Factory(Purging)
    enqueuing: Enqueuing = attrs.Factory(Enqueuing)
    long_commands: list[LongCommand] = attrs.Factory(list)
    """Commands in progress; the first one has waited longest."""
    pause_timer: Timed = attrs.Factory(Timed)
    slowlog: Slowlog = attrs.Factory(Slowlog)
    latency: LatencyMonitor = attrs.Factory(LatencyMonitor)
    scans: dict[int, list[bytes]] = attrs.Factory(dict)
    """`commands.scans`: the names of queues of running iterations, least recently used first."""
    job_scans: dict[int, tuple[Walk, int]] = attrs.Factory(dict)
    """`commands.scans`: running iterations over the jobs, and how many jobs each has visited; least
    recently used first."""
    last_scan: int = 0
    begun: list[bytes] | None = None
    """Set by the commands listed in `rows`: the last request that began to change something."""
    trace: list[Event] | None = None
    """`trace` adds, the driver takes; None unless all jobs are traced."""
    traces: JobTraces = attrs.Factory(_traces, takes_self=True)
    """`trace`: the traces of single jobs."""
    out: Outbox = attrs.Factory(Outbox)

    @property
    def capabilities(self) -> int:
        """The capabilities that this node announces in PING, PONG and MEET, and uses."""
        return self.config.capabilities & self.facts.capabilities

    @property
    def keeps_extensions(self) -> bool:
        """Can jobs with extensions be kept?"""
        return self.capabilities & KEEPS_ALL == KEEPS_ALL
