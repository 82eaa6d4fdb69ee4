"""What the judge knows of each job: its copies, deliveries, acknowledgements and messages."""

from collections import deque

import attrs

from disque_trio.sim.checkers.obligations import Options, is_at_least_once
from disque_trio.sim.checkers.waits import Wait
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.base import Millis

NEVER: Micros = -(1 << 62)
FOREVER: Micros = 1 << 62
Stamp = tuple[int, ...]
State = tuple[int, bool]
"""How often the job was redriven, and whether it is dead: of two the greater holds."""
ALIVE: State = (0, False)


@attrs.define(eq=False)
class Add:
    """One ADDJOB of a client."""

    ref: int
    client: str
    node: str
    queue: str
    invoked: Micros
    options: Options
    outcome: str = ""
    """`ok`, `refused`, `unknown`; empty while it lasts."""
    answered: Micros = FOREVER
    job: str = ""
    was_leaving: bool = False
    """The node was about to leave, and took only what others would hold."""


@attrs.define(eq=False)
class Queueing:
    """One stay in the queue of one node."""

    time: Micros
    mono: Millis
    node: str
    cause: str
    given_by: "Queueing | None" = None
    """The stay in the giver's queue, if the job was imported."""
    given_at: Micros = NEVER

    def root(self) -> "Queueing":
        """The first queueing: why the job was queued at the first giver."""
        queueing = self
        while queueing.given_by is not None:
            queueing = queueing.given_by
        return queueing

    def chain(self) -> "list[Queueing]":
        """This queueing and those of the givers, the last first."""
        found = [self]
        while (giver := found[-1].given_by) is not None:
            found.append(giver)
        return found


@attrs.define(eq=False)
class Turns:
    """What the groups of a queue get at a node, within one priority (S37)."""

    events: int = 0
    waiting: dict[int, deque[tuple[int, str, Queueing]]] = attrs.Factory(dict)
    """By group: since which event a job waits, the one that waits longest first; with some that do
    not any more."""
    served: dict[int, int] = attrs.Factory(dict)
    """By group: the event of its last turn."""

    def begin(self) -> int:
        """The number of the next event."""
        self.events += 1
        return self.events


@attrs.define(eq=False)
class Lease:
    """A worker has the job from this time on: a delivery, or a WORKING."""

    time: Micros
    node: str
    client: str = ""
    queueing: Queueing | None = None
    """None for a request of more time."""
    expected_since: Micros = NEVER
    """Since when it might have been expected."""
    before: "Lease | None" = None
    """The lease before; dropped once the duplicate has its cause."""
    cause: str = ""
    """Of the duplicate that the delivery is, unless the ones before were lost on the way."""
    is_dominated: bool = False
    """Its node might have known of an acknowledgement, by way of some third node or client."""
    counted: tuple[int, int] | None = (0, 0)
    """By then, how often the job was queued by NACKs, and otherwise after the first time. None if
    the server's copy may count twice: it came with counters, of which it was told once more."""
    counted_here: tuple[int, int] = (0, 0)
    """The same of the server's copy alone, by what its node did itself: it counts no less."""


@attrs.define(eq=False)
class Copy:
    """A node's copy of the job."""

    node: str
    since: Micros
    cause: str
    mono: Millis = 0
    """The node's monotonic clock at that time."""
    wall: Millis = 0
    """And its wall clock when the record was made, by which a journal counts its TTL."""
    is_dummy: bool = False
    base: Millis | None = None
    """By the node's monotonic clock, when it would expire with a TTL of 0; None if unknown."""
    lowest_base: Millis | None = None
    """The smallest one possible, if the node may have taken one of several messages of a batch."""
    state: State = ALIVE
    """As its node knows it."""
    is_waiting: bool = False
    """It was known to be dead, or redriven, while its ADDJOB waited for copies, and still waits."""
    is_acked: bool = False
    acked_at: Micros = NEVER
    acked_by: str = ""
    acked_stamp: Stamp = ()
    queueing: Queueing | None = None
    """While it is queued."""
    queued_at: Micros = NEVER
    """When it last came into the queue: a stay that a stop has interrupted began before that."""
    unqueued_at: Micros = NEVER
    """When it last left the queue, or a stay that a stop had interrupted ended."""
    last_queueing: Queueing | None = None
    interrupted: Queueing | None = None
    """Its stay in the queue when its process ended, if that goes on, until it is queued again, or
    its node learns that somebody has the job, or that it waits: then a new period begins."""
    ack_received_at: Micros = NEVER
    """When it was last told of an acknowledgement."""
    came_counted: bool = False
    """The job had been queued again before."""
    counted: tuple[int, int] = (0, 0)
    """How often its node has queued it by NACKs, and because of RETRY."""
    is_late: bool = False
    """The node had had the job before, or had said that it knows nothing of it."""
    not_held_at: Micros = NEVER
    """When it last did so."""
    came_from: str = ""
    """The node that sent it; none if it is from no message."""
    is_offline: bool = False
    """The node is down; the copy may be on its disk."""
    confirmed_at: Micros = NEVER
    """When its node first told anybody that it has it; and that it is acknowledged."""
    ack_confirmed_at: Micros = NEVER
    left: Millis = 0
    """As its node said when it came: how long until it expires, and is queued; 0 is never."""
    left_since: Micros = NEVER
    left_wall: Millis = 0
    """When it died or was redriven, from when on that much was left; by its node's wall clock, by
    which that counts in a journal."""
    due: Millis = 0
    due_by: Micros = FOREVER
    """By when it must be queued, or postponed anew (L8)."""
    armed_at: Micros = NEVER
    postponed_at: Micros = NEVER
    """When its node was last told that a NACK lets it wait; and until when it waits at most."""
    waits_until: Micros = NEVER
    was_handed_out: bool = False
    """It has come back after a stop in order, and a worker may have it (S21)."""
    before: "Copy | None" = None
    """What it was before the crash, until all is loaded."""
    sent_at: Micros = NEVER
    first_sent_at: Micros = NEVER
    """When its message was sent at the latest, and made at the earliest; `since` if from none."""

    def begin_period(self, time: Micros) -> None:
        """Its node learns that somebody has the job, or that it waits."""
        if self.interrupted is not None:
            self.interrupted = None
            self.unqueued_at = time


@attrs.define(eq=False)
class Incoming:
    """The copies of a job that a node has received in one batch, and the sender of the first."""

    time: Micros
    sender: str
    first_sent: Micros
    sent: Micros
    """When the first of them was made, and the last was sent."""
    base: Millis | None
    """The greatest of those that the node may have taken (see `Copy.base`)."""
    lowest_base: Millis | None
    """The smallest of them."""


@attrs.define(eq=False)
class Give:
    """A job on its way to a node that asked."""

    time: Micros
    node: str
    receiver: str
    queueing: Queueing | None
    base: Millis | None


@attrs.define(eq=False)
class Ack:
    """An acknowledgement that a node has taken note of."""

    time: Micros
    node: str
    kind: str
    """`ackjob` or `fastack`."""
    stamp: Stamp = ()
    unlinked: tuple[str, ...] = ()
    """Of FASTACK: nodes to which its node may have had no link, for want of an answer to PING."""


@attrs.define(eq=False)
class Announcement:
    """The last message of some sort about the job from one node to another, by time of sending."""

    sent: Micros = NEVER
    got: Micros = NEVER
    got_at: Micros = NEVER
    lost: Micros = NEVER
    swallowed: Micros = NEVER
    """The last that was lost though its link stayed up."""

    def is_under_way(self) -> bool:
        """Is one still expected? Links keep order."""
        return self.sent > max(self.got, self.lost)


@attrs.define(eq=False)
class Request:
    """A client's request about a job, without a reply yet."""

    time: Micros
    is_alone: bool = True
    """Is it the only such request for this job at this node?"""
    is_of_many: bool = False
    """It names several jobs, so the reply is their total."""


@attrs.define(eq=False)
class Question:
    """A PING that has no answer yet (see `silence`)."""

    time: Micros
    ref: int
    has_arrived: bool = False
    answer: int = 0
    """The number of the PONG; 0 until it is sent."""
    is_lost: bool = False
    """It was lost, or its answer."""
    follows_lost: bool = False
    """So was that of the link before, which the node has closed."""
    since: Micros = FOREVER
    """When the first PING was sent that has no answer yet: this one, or one on a link before."""


@attrs.define(eq=False)
class Job:
    """What is known of one job."""

    id: str
    first_seen: Micros
    is_at_least_once: bool = attrs.field(init=False)
    queue: str = ""
    add: Add | None = None
    """Once it is known which ADDJOB made it."""
    created_at: Micros | None = None
    """When its first record was made."""
    origin: str = ""
    serial: int = 0
    """Its number among the jobs of its origin."""
    first_record: str = ""
    """What the first record of it said of its options, and in how many milliseconds it expires; 0
    if that is not known."""
    life: Millis = 0
    queue_length_at_add: int = 0
    """How many jobs its queue had at its origin when it was made, where that may matter."""
    copies: dict[str, Copy] = attrs.Factory(dict)
    destroyed: int = 0
    """Copies that faults have destroyed since it was born, and that have not been made again."""
    lost_on: dict[str, None] = attrs.Factory(dict)
    """The nodes whose copies they were, made again or not."""
    state: State = ALIVE
    """The greatest that any node has known, and since when."""
    state_since: Micros = NEVER
    lives_until: Micros | None = None
    """When it expires at the earliest, if it died or was redriven."""
    tries: int = 0
    """How often it was queued again since it was added or redriven, as LIMIT counts; when that last
    was; and how often two holders did so at once."""
    tried_at: Micros = NEVER
    races: int = 0
    ended: Micros | None = None
    """When it was acknowledged, deleted or expired."""
    ended_by: str = ""
    first_queueing: Queueing | None = None
    serves: int = 0
    unsent_serves: int = 0
    """How many of these a crash has kept from leaving the node, and from its disk."""
    open_serves: list[Lease] = attrs.Factory(list)
    """Deliveries that have not arrived yet."""
    lease: Lease | None = None
    deliveries: int = 0
    first_delivered: Micros = NEVER
    first_cause: str = ""
    """Why the delivery that came first was a duplicate, if it has overtaken one served before."""
    expected_since: Micros = NEVER
    """Since when its delivery may be expected (again)."""
    unqueued_at: Micros = NEVER
    """When it last left the queue of some node."""
    was_recalled: bool = False
    """A slow WORKING has taken it out of a queue, and begun its period anew. Once in a job's life
    delivery may wait for that."""
    served: list[tuple[Micros, str, str]] = attrs.Factory(list)
    """When it was served, by which node and to whom; where workers have tokens."""
    untied: dict[str, Micros] = attrs.Factory(dict)
    """By node: when the connection ended to which its delivery was tied."""
    ties_due: dict[str, Micros] = attrs.Factory(dict)
    """By node: when its consumer has ended that connection, of which the node has to learn."""
    ack_invoked: Micros | None = None
    acks: list[Ack] = attrs.Factory(list)
    wait: Wait | None = None
    """The last such NACK, unless a client has ended its wait."""
    asked_again: Micros = NEVER
    """When a client last gave it back (NACK, ENQUEUE)."""
    ack_deleted: bool = False
    """A client has deleted the record of an ack (DELJOB)."""
    gives: list[Give] = attrs.Factory(list)  # under way
    announcements: dict[tuple[str, str, str], Announcement] = attrs.Factory(dict)
    """By sender, receiver and sort."""
    incoming: dict[tuple[str, str], Incoming] = attrs.Factory(dict)
    """By node and message: what it has just received."""
    dropped: dict[str, Micros] = attrs.Factory(dict)
    """When a node has last dropped its copy."""
    not_held: dict[str, Micros] = attrs.Factory(dict)
    """When a node has last dropped it, or said that it knows nothing of it."""
    withdrawn: dict[str, Micros] = attrs.Factory(dict)
    """When DELJOB, or a failed ADDJOB, has last removed a copy that was not acknowledged there."""
    end_reported: dict[str, Micros] = attrs.Factory(dict)
    """When a node has first told anybody that nobody there works on it any more: acked, or gone."""
    drop_on_disk: dict[str, None] = attrs.Factory(dict)
    """Nodes that have it back from their disks, and must have written down that they dropped it."""
    collected_over: dict[str, None] = attrs.Factory(dict)
    """Nodes that had a copy, unacknowledged, when another collected the ack."""
    acks_crashed: int = 0
    acks_evicted: int = 0
    resurrected_at: Micros = NEVER
    """When a node last had a copy back from its disk that it had dropped."""
    may_delete: dict[str, str] = attrs.Factory(dict)
    """Nodes that may send DELJOB, and why."""
    asked_gc: dict[tuple[str, str], int] = attrs.Factory(dict)
    """By collector and holder: 1 while the holder's confirmation is awaited, 2 afterwards."""
    gc_holders: dict[str, int] = attrs.Factory(dict)
    """By collector: how many holders it last said there were."""
    losses: dict[str, None] = attrs.Factory(dict)
    """What may excuse that a job of at most one delivery never comes."""
    last_event: Micros = NEVER
    """When its record was last made, queued, served or acknowledged somewhere."""
    first_ack: Micros | None = None
    counters: dict[str, list[tuple[Micros, int, int]]] = attrs.Factory(dict)
    """By node, in order of serving: when, and which NACKs and additional deliveries it told."""
    nacked: int = 0
    requeued: int = 0  # other than by NACKs, and after the first time
    listed: dict[str, dict[str, Micros]] = attrs.Factory(dict)
    """By node: who has a copy, as far as it has been told, and since when it knows."""
    perhaps_listed: dict[str, list[str]] = attrs.Factory(dict)
    """Who was named to a node while trouble with its disk may have kept it from learning it, or
    before it loaded its copy from the disk."""
    sent_to: dict[str, None] = attrs.Factory(dict)
    """Who was sent a copy of the new job."""
    confirmed_in: dict[str, None] = attrs.Factory(dict)
    """The zones in which it had copies when its ADDJOB was answered."""
    transfers: dict[tuple[str, str], Micros] = attrs.Factory(dict)
    """By giver and receiver: when the job was last sent to be queued there."""
    put_off: dict[str, Micros] = attrs.Factory(dict)
    """By holder: when the job, whose stay began its period anew, last went out of the core."""
    requests: dict[tuple[str, str], dict[tuple[str, int], Request]] = attrs.Factory(dict)
    """By node and verb: those that are under way."""
    done: dict[tuple[str, str], Micros] = attrs.Factory(dict)
    """By node and verb: when that was last done; and by node, when its record was last gone."""
    gone: dict[str, Micros] = attrs.Factory(dict)
    key: tuple[str, int] | None = None
    """Its queue, and the CRC-32 of its key, if it has one."""
    keep: Micros = 0
    twins: "list[Job]" = attrs.Factory(list)
    """Jobs with the same key that lived at the same time."""
    earlier: "list[Job]" = attrs.Factory(list)
    """Jobs with the same key that lived when it was added, and that it follows."""
    followers: "list[Job]" = attrs.Factory(list)
    """The jobs that follow it."""
    double_queued_since: Micros | None = None
    """Since when two nodes have it queued."""

    def __attrs_post_init__(self) -> None:
        self.is_at_least_once = is_at_least_once(self.id)

    @property
    def options(self) -> Options | None:
        """What was asked; None while nobody knows."""
        return None if self.add is None else self.add.options

    @property
    def is_added(self) -> bool:
        """Has its producer been told that it exists?"""
        return self.add is not None and self.add.outcome == "ok"

    @property
    def must_be_retained(self) -> bool:
        """Must it survive W-1 losses? (S1)"""
        options = self.options
        return bool(options and self.is_added and options.retry and not options.is_async)

    @property
    def is_dead(self) -> bool:
        """Do those who know most of it know that it is dead? Nobody is to deliver it then."""
        return max([copy.state for copy in self.copies.values()], default=ALIVE)[1]

    def holders(self) -> int:
        """How many nodes have a copy."""
        return sum(not copy.is_dummy for copy in self.copies.values())

    def announcement(self, sender: str, receiver: str, sort: str) -> Announcement:
        """The last such message; one without times if there was none."""
        return self.announcements.get((sender, receiver, sort)) or Announcement()


@attrs.define(eq=False)
class KeptResult:
    """A result that a node has to keep."""

    since: Micros
    until: Micros


@attrs.define(eq=False)
class SentResult:
    """An ACKJOB RESULT."""

    time: Micros
    keep: Micros
