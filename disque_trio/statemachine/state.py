"""Everything that a node knows, in one flat record (ARCHITECTURE, decision 2). No methods."""

import random
from collections.abc import Iterator

import attrs

from disque_trio.statemachine.base import FOREVER, ClientId, Failure, JobId, Millis, NodeId
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
    news_at: Millis = 0
    """When a node was last found lost."""
    has_news: bool = False
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


@attrs.define(eq=False, weakref_slot=False)
class Ask:
    """That another node has asked for jobs of a queue in vain. `federation` writes it."""

    count: int = 1
    many_until: Millis = -FOREVER
    """Until when so many are worth giving."""
    one_until: Millis = -FOREVER
    """Until when one is."""
    one_at: Millis = -FOREVER
    """When it last asked for one."""


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
    tombstones: Tombstones = attrs.Factory(Tombstones)
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
    """`additions`: how many ADDJOBs wait for copies, and how large the bodies of their jobs are."""
    ready: dict[bytes, Queue] = attrs.Factory(dict)
    """`lifecycle` adds, `delivery` serves: queues with jobs and, maybe, waiting clients."""
    asked: dict[bytes, dict[NodeId, Ask]] = attrs.Factory(dict)
    """`federation`: who has asked for jobs of queues that had none."""
    offers: dict[bytes, None] = attrs.Factory(dict)
    """`lifecycle` adds, `federation` serves: those of these queues that have jobs now."""
    is_recording: bool = False
    is_recording_queues: bool = False
    """Is it recorded, too, when a job comes into a queue and when it leaves it?"""
    was_stopped: bool = False
    """Does the journal that is read end as that of a node that was stopped in order?"""
    """`journaling`: is there a journal?"""
    hindrance: Failure | None = None
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
