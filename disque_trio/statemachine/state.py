"""Everything that a node knows, in one flat record (docs/design.md, "The machine"). No methods."""

import enum
import random
from collections.abc import Iterator

import attrs

from disque_trio.statemachine.base import ClientId, Failure, JobId, Millis, NodeId
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.cluster import Cluster
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.events import Event
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.jobtable import JobTable, Walk
from disque_trio.statemachine.latency import LatencyMonitor
from disque_trio.statemachine.memory import Memory
from disque_trio.statemachine.outbox import Outbox
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.slowlog import Slowlog
from disque_trio.statemachine.stats import Facts, Stats
from disque_trio.statemachine.timers import Timed, Timers
from disque_trio.statemachine.tombstones import Tombstones


@attrs.define(eq=False, weakref_slot=False)
class Cron(Timed):
    """The one owner of the cluster's heartbeat in the timer wheel."""

    runs: int = 0


@attrs.define(eq=False, weakref_slot=False)
class Repair(Timed):
    """How far the repair of copies has come. `repair` writes it."""

    members: tuple[NodeId, ...] = ()
    """Who was in the node table when it was last looked at."""
    targets: tuple[NodeId, ...] = ()
    """Who could be given copies then."""
    failing: dict[NodeId, Millis] = attrs.Factory(dict)
    """Since when the nodes that fail do."""
    lost: tuple[NodeId, ...] = ()
    """Those that have been failing for too long."""
    changed_at: Millis = 0
    """When a node was last found lost."""
    has_changes: bool = False
    """No pass has begun since."""
    walk: Walk | None = None
    """The jobs of the running pass that are still to be looked at; None between passes."""
    found: int = 0
    """How many of the others have too few holders."""
    under: int = 0
    """What the last whole pass found, less what was repaired since."""
    again: Millis = 0
    """When another pass makes sense."""
    awaited: dict[JobId, Millis] = attrs.Factory(dict)
    """Jobs with copies under way, and until when they are waited for."""
    silent: dict[NodeId, Millis] = attrs.Factory(dict)
    """Nodes that did not answer, and until when they are asked last."""


@attrs.define(eq=False, weakref_slot=False)
class Resend(Timed):
    """Acknowledgements that are sent again to nodes that have returned. `resend` writes it."""

    ids: list[JobId] = attrs.Factory(list)
    """The jobs of the running pass that are still to be looked at; empty between passes."""
    to: tuple[NodeId, ...] = ()
    """To whom they are sent."""
    returned: dict[NodeId, None] = attrs.Factory(dict)
    """Who has returned since the pass began."""


class Offer(enum.Enum):
    """What a node that is interested in a queue knows of the jobs here."""

    NONE = "nothing"
    MADE = "an offer is on its way, and has not been answered"
    KNOWN = "it has answered, and asks when a client waits"


@attrs.define(eq=False, weakref_slot=False)
class Demand(Timed):
    """The nodes whose clients wait for jobs of one queue. `offering` writes it."""

    name: bytes
    askers: "dict[NodeId, Asker]" = attrs.Factory(dict)
    """In the order in which they are offered jobs."""
    pending: NodeId = b""
    """Who has been offered jobs and is waited for; empty while nobody is."""
    pause: Millis = 500
    """How long to wait before offers that were not answered are made again."""
    again_at: Millis = 0


@attrs.define(eq=False, weakref_slot=False)
class Asker:
    """One node with clients that wait. `offering` writes it."""

    offer: Offer = Offer.NONE
    until: Millis = 0
    """When it is taken to have lost interest."""
    credit: int = 0
    """For so many more clients, which waited when it last asked, jobs may go without an offer."""
    credit_until: Millis = 0


@attrs.define(eq=False, weakref_slot=False)
class Greetings(Timed):
    """Nodes to which a new link leads, and the queues of which they have still to be told.
    `federation` writes it."""

    names: dict[NodeId, list[bytes]] = attrs.Factory(dict)
    again: dict[NodeId, Millis] = attrs.Factory(dict)
    """Nodes that are to be told once more, and when."""
    began: Millis = 0
    """When a link last came up."""


def _tombstones(node: "NodeState") -> Tombstones:
    return Tombstones(node.facts.tombstones)


@attrs.define(eq=False)
class NodeState:
    """What every verb takes first. Each field names the module that writes it."""

    config: Config
    """`commands.config`, by replacing it whole."""
    rng: random.Random
    mono: Millis
    """`machine`: both clocks, set once per input."""
    wall: Millis
    micros: int
    cluster: Cluster
    """`membership` and its rooms; see `cluster`."""
    facts: Facts
    stats: Stats
    jobs: JobTable = attrs.Factory(JobTable)
    """`lifecycle`."""
    tombstones: Tombstones = attrs.Factory(_tombstones, takes_self=True)
    queues: dict[bytes, Queue] = attrs.Factory(dict)
    """`lifecycle`."""
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
    """`replication`: what chance has said of which nodes get copies, and when."""
    adding: int = 0
    adding_bytes: int = 0
    """`pending_adds`: how many ADDJOBs wait for copies, and the bytes of their jobs' bodies."""
    ready: dict[bytes, Queue] = attrs.Factory(dict)
    """`lifecycle` adds, `delivery` serves: queues with jobs and, maybe, waiting clients."""
    demands: dict[bytes, Demand] = attrs.Factory(dict)
    """`offering`: at which other nodes clients wait, by queue."""
    unmet: dict[bytes, bool] = attrs.Factory(dict)
    """`lifecycle` and `federation`: queues that may have jobs but no clients, or clients but no
    jobs, to be looked at when the inputs of a batch are in. Has a client asked in vain?"""
    greetings: Greetings = attrs.Factory(Greetings)
    is_recording: bool = False
    is_recording_queues: bool = False
    """Is it recorded, too, when a job comes into a queue and when it leaves it?"""
    was_stopped: bool = False
    """Does the journal that is read end as that of a node that was stopped in order?"""
    """`journaling`: is there a journal?"""
    refusal: Failure | None = None
    """`recovery` and `journaling`: why commands are refused, LOADING or MISCONF."""
    recovered: dict[JobId, Job] = attrs.Factory(dict)
    """`recovery`: what the journal says, until it has been read to its end."""
    recovering: Iterator[Job] | None = None
    memory: Memory = attrs.Factory(Memory)
    timers: Timers = attrs.Factory(Timers)
    cron: Cron = attrs.Factory(Cron)
    repair: Repair = attrs.Factory(Repair)
    resend: Resend = attrs.Factory(Resend)
    pause_timer: Timed = attrs.Factory(Timed)
    slowlog: Slowlog = attrs.Factory(Slowlog)
    latency: LatencyMonitor = attrs.Factory(LatencyMonitor)
    scans: dict[int, list[bytes]] = attrs.Factory(dict)
    """`commands.scans`: the names of queues of running iterations, the one unused longest first."""
    job_scans: dict[int, tuple[Walk, int]] = attrs.Factory(dict)
    """`commands.scans`: running walks over the jobs, and how many each has seen; as `scans`."""
    last_scan: int = 0
    trace: list[Event] | None = None
    """`trace` adds, the driver takes; None while nobody traces."""
    out: Outbox = attrs.Factory(Outbox)
