"""Everything that a node knows, in one flat record (docs/design.md, "The machine"). No methods."""

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
    """The nodes that could be given copies then."""
    failing: dict[NodeId, Millis] = attrs.Factory(dict)
    """Failing nodes, and since when they fail."""
    lost: tuple[NodeId, ...] = ()
    """Nodes that have been failing for longer than `replica-repair-after`."""
    changed_at: Millis = 0
    """When members or lost nodes last changed."""
    has_changes: bool = False
    """No pass has begun since then."""
    walk: Walk | None = None
    """The jobs that the running pass has still to check; None between passes."""
    found: int = 0
    """How many of those checked have too few holders."""
    under: int = 0
    """What the last whole pass found, less what was repaired since."""
    found_lacking: int = 0
    lacking: int = 0
    """The same of jobs with too few holders that are not failing now."""
    found_reported: int = 0
    reported: int = 0
    """The same of those that this node reports: one of the holders that are left counts a job."""
    down: tuple[NodeId, ...] = ()
    """The failing nodes when that pass began."""
    again: Millis = 0
    """When the next pass may begin."""
    awaited: dict[JobId, Millis] = attrs.Factory(dict)
    """Jobs with copies under way, and until when their GOTJOB is awaited."""
    listed: dict[JobId, tuple[NodeId, ...]] = attrs.Factory(dict)
    """Those of them whose creator is lost, and their holders before: these may have copies."""
    silent: dict[NodeId, Millis] = attrs.Factory(dict)
    """Nodes that did not answer, and until when they are asked last."""
    trailing: dict[JobId, Millis] = attrs.Factory(dict)
    """New jobs whose ADDJOB has been answered before all copies were confirmed, and until when the
    rest is awaited; earlier moments first. `replication` adds to it."""


@attrs.define(eq=False, weakref_slot=False)
class Resend(Timed):
    """Acknowledged and dead jobs of which nodes that have returned are told. `resend` writes it."""

    ids: list[JobId] = attrs.Factory(list)
    """The jobs that the running pass has still to check; empty between passes."""
    queues: list[bytes] = attrs.Factory(list)
    """The queues whose dead jobs it has still to list."""
    to: tuple[NodeId, ...] = ()
    """The nodes that this pass serves."""
    returned: dict[NodeId, None] = attrs.Factory(dict)
    """The nodes that have returned since it began."""


@attrs.define(eq=False, weakref_slot=False)
class KeptResult(Timed):
    """What ACKJOB RESULT said of a job. `results` makes it, and nobody changes it."""

    id: JobId
    queue: bytes
    """Empty if it is not known here."""
    at: Millis
    """When it was given, by the wall clock of the node of the ACKJOB."""
    until: Millis
    value: bytes

    @property
    def order(self) -> tuple[Millis, bytes]:
        """Of two results of one job that with the smaller order holds."""
        return self.at, self.value


@attrs.define(eq=False, weakref_slot=False)
class TrackedDelivery:
    """The last delivery of a job at this node, if the consumer has asked for more than the job.
    `tracked_deliveries` writes it."""

    token: bytes
    """Empty if it was given to somebody since who has not asked for a token."""
    attempt: int
    """How often the job had been queued again by then."""
    client: Client | None = None
    """To whose connection it is tied."""
    is_orphan: bool = False
    """That connection has ended."""
    is_held: bool = False
    """The consumer holds the job, and has not begun."""
    is_given_back: bool = False
    """The consumer has given the job back, by the token."""
    was_unbegun: bool = False
    """A consumer before this one has held the job, and has ended without BEGIN."""


@attrs.define(eq=False, weakref_slot=False)
class Purging(Timed):
    """Jobs that are still to be acknowledged, or redriven. `purging` writes it."""

    jobs: "dict[tuple[bytes, Sweep], list[Job]]" = attrs.Factory(dict)
    """By queue, the one that is delivered first, or died first, at the end of its list."""


@attrs.define(eq=False, weakref_slot=False)
class EnqueueOrder:
    """ENQUEUE QUEUE of one client. `enqueuing` writes it."""

    name: bytes
    count: int
    """How many jobs at most; 0 is all."""
    client: Client
    walk: Walk | None = None
    """The jobs that have still to be looked at; None before it begins."""
    found: int = 0
    is_over: bool = False
    is_answered_later: bool = False


@attrs.define(eq=False, weakref_slot=False)
class Enqueuing(Timed):
    """Orders that are still to be carried out. `enqueuing` writes it."""

    orders: list[EnqueueOrder] = attrs.Factory(list)


@attrs.define(eq=False, weakref_slot=False)
class LongCommand:
    """A command about many jobs of which steps are left."""

    client: Client
    steps: Generator[None, None, Reply]
    needs_client: bool
    """Does it end when the client disconnects?"""


class Sweep(enum.Enum):
    """What is done with all jobs of a queue."""

    PURGE = "acknowledge what is queued"
    PURGE_DEAD = "acknowledge what is dead"
    REDRIVE = "queue what is dead"


class Offer(enum.Enum):
    """What a node that is interested in a queue knows of the jobs here."""

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
    """The node whose answer to an offer is awaited; empty if there is none."""
    pause: Millis = 500
    """How long to wait before offers that were not answered are made again."""
    again_at: Millis = 0


@attrs.define(eq=False, weakref_slot=False)
class Asker:
    """One node with clients that wait. `offering` writes it."""

    offer: Offer = Offer.NONE
    until: Millis = 0
    """When its WAITING expires."""
    credit: int = 0
    """Jobs that may be given without an offer: clients that its last request left without one."""
    credit_until: Millis = 0


@attrs.define(eq=False, weakref_slot=False)
class QueueAnnouncements(Timed):
    """Nodes with a new link, and the queues that have still to be announced to them.
    `federation` writes it."""

    names: dict[NodeId, list[bytes]] = attrs.Factory(dict)
    again: dict[NodeId, Millis] = attrs.Factory(dict)
    """Nodes that are to be told once more, and when."""
    since: dict[NodeId, Millis] = attrs.Factory(dict)
    """When those that may not know this one yet answered for the first time."""
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
    """The whole state of a node. Each field names the module that writes it."""

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
    """Nobody: constants of this process."""
    tally: Tally = attrs.Factory(Tally)
    jobs: dict[JobId, Job] = attrs.Factory(dict)
    """Changed by `table` alone, for `lifecycle`."""
    table: JobTable = attrs.Factory(_table, takes_self=True)
    tombstones: Tombstones = attrs.Factory(_tombstones, takes_self=True)
    queues: dict[bytes, Queue] = attrs.Factory(dict)
    """`lifecycle`."""
    delayed: dict[bytes, Backlog] = attrs.Factory(dict)
    """`counts`: the jobs of a queue that wait here for the end of their delay; none is no entry."""
    leased: dict[bytes, int] = attrs.Factory(dict)
    """`counts`: how many are with workers to whom this node has given them, likewise."""
    restored: dict[bytes, Backlog] = attrs.Factory(dict)
    """`counts`: those that wait for the end of their RETRY after a restart, likewise."""
    due_seconds: int = 0
    """`counts`: how many seconds `delayed` and `restored` count by, for the account of memory."""
    unqueued: dict[bytes, int] = attrs.Factory(dict)
    """`counts`: how many active jobs of a queue are here, likewise: those of the three above; and
    those that other nodes have queued or given to workers, that had their one delivery (RETRY 0),
    or that are held back by their key."""
    dead: dict[bytes, dict[JobId, Job]] = attrs.Factory(dict)
    """`counts`: the dead jobs of a queue, the one that died first first; none is no entry."""
    clients: dict[ClientId, Client] = attrs.Factory(dict)
    """`sessions`."""
    monitors: dict[ClientId, Client] = attrs.Factory(dict)
    """`sessions`."""
    paused: dict[ClientId, Client] = attrs.Factory(dict)
    """`sessions`: clients that had input while CLIENT PAUSE held it back."""
    paused_until: Millis = 0
    """`sessions`: when CLIENT PAUSE ends."""
    last_client: ClientId = 0
    last_made: Millis = 0
    last_number: int = 0
    """`replication`: the last creation stamp given out."""
    drawn_at: Millis = -1
    drawn: float = 0.0
    """`replication`: the random number that orders the nodes for copies, and when it was drawn."""
    adding: dict[JobId, PendingAdd] = attrs.Factory(dict)
    adding_bytes: int = 0
    """`pending_adds`: the ADDJOBs that wait for copies, by job, and the bytes of their bodies."""
    tracked: dict[JobId, TrackedDelivery] = attrs.Factory(dict)
    """`tracked_deliveries`: deliveries with a token, or tied to a connection."""
    results: dict[JobId, KeptResult] = attrs.Factory(dict)
    """`results`: what ACKJOB RESULT has said, of jobs that are acknowledged or gone."""
    awaited: dict[JobId, dict[ClientId, Client]] = attrs.Factory(dict)
    """`waiters`: the clients that wait for the end of a job."""
    ended: dict[JobId, bytes] = attrs.Factory(dict)
    """`lifecycle` adds, `waiters` tells: what became of such jobs; empty if they have left."""
    endings: Endings = attrs.Factory(_endings, takes_self=True)
    """`lifecycle` adds, `pressure` tidies: the latest jobs that have ended."""
    acker: bytes = b""
    """`commands.jobs`: the client that has acknowledged or deleted jobs last."""
    ready: dict[bytes, Queue] = attrs.Factory(dict)
    """`lifecycle` adds, `delivery` serves: queues with jobs and, maybe, waiting clients."""
    demands: dict[bytes, Demand] = attrs.Factory(dict)
    """`offering`: at which other nodes clients wait, by queue."""
    limits: dict[bytes, Limit] = attrs.Factory(dict)
    """`limiting`: the queues that have, or had, limits."""
    group_limits: dict[tuple[bytes, bytes], Limit] = attrs.Factory(dict)
    """`limiting`: those of groups in use, by queue and group."""
    placeless: dict[tuple[bytes, bytes], None] = attrs.Factory(dict)
    """`limiting`: the groups that are parked because too many others are in use."""
    group_leases: dict[JobId, Limit] = attrs.Factory(dict)
    """`counts`: the leases of such groups that run here."""
    freed: dict[tuple[bytes, bytes], Limit] = attrs.Factory(dict)
    """`counts`: the groups of which one has ended, for `keeping.settle`."""
    short: dict[bytes, Limit] = attrs.Factory(dict)
    """`limiting`: those whose clients wait for them, and whose jobs are here."""
    pending_queues: dict[bytes, bool] = attrs.Factory(dict)
    """`lifecycle` and `federation`: queues that may have jobs but no clients, or clients but no
    jobs, for `federation.settle`. The value says whether a client asked in vain."""
    announcements: QueueAnnouncements = attrs.Factory(QueueAnnouncements)
    is_recording: bool = False
    """`journaling`: is there a journal?"""
    is_recording_queues: bool = False
    """`journaling`: is it also recorded when a job enters or leaves a queue?"""
    is_stopping: bool = False
    """`journaling`: is that because of a controlled stop?"""
    was_stopped: bool = False
    """`recovery`: does the journal that is read end with a controlled stop?"""
    queues_note: bytes = b""
    """`recovery`: the last note about queues in the journal that is read."""
    refusal: Failure | None = None
    """`recovery`, `sessions` and `identity`: why commands are refused (LOADING, MISCONF,
    DUPLICATEID)."""
    recovered: dict[JobId, Job] = attrs.Factory(dict)
    """`recovery`: the jobs of the journal, until it has been read to its end."""
    recovering: Iterator[Job] | None = None
    expired: dict[JobId, None] = attrs.Factory(dict)
    """`recovery`: the jobs of the journal that have expired, until it has been read to its end."""
    memory: Memory = attrs.Factory(Memory)
    keys: Keys = attrs.Factory(Keys)
    timers: Timers = attrs.Factory(_timers, takes_self=True)
    cron: Cron = attrs.Factory(Cron)
    repair: Repair = attrs.Factory(Repair)
    resend: Resend = attrs.Factory(Resend)
    purging: Purging = attrs.Factory(Purging)
    enqueuing: Enqueuing = attrs.Factory(Enqueuing)
    long_commands: list[LongCommand] = attrs.Factory(list)
    """Those that are being carried out; the first one has waited longest."""
    pause_timer: Timed = attrs.Factory(Timed)
    slowlog: Slowlog = attrs.Factory(Slowlog)
    latency: LatencyMonitor = attrs.Factory(LatencyMonitor)
    scans: dict[int, list[bytes]] = attrs.Factory(dict)
    """`commands.scans`: the names of queues of running iterations, the one unused longest first."""
    job_scans: dict[int, tuple[Walk, int]] = attrs.Factory(dict)
    """`commands.scans`: running walks over the jobs, and how many each has seen; as `scans`."""
    last_scan: int = 0
    begun: list[bytes] | None = None
    """The commands that `rows` names: the last request that has begun to change something."""
    trace: list[Event] | None = None
    """`trace` adds, the driver takes; None while not all jobs are traced."""
    traces: JobTraces = attrs.Factory(_traces, takes_self=True)
    """`trace`: of single jobs."""
    out: Outbox = attrs.Factory(Outbox)

    @property
    def capabilities(self) -> int:
        """What this node announces in PING, PONG and MEET, and uses with others."""
        return self.config.capabilities & self.facts.capabilities

    @property
    def keeps_extensions(self) -> bool:
        """Can jobs with extensions be kept?"""
        return self.capabilities & KEEPS_ALL == KEEPS_ALL
