"""The records that the judge keeps for each job: copies, deliveries, acknowledgements, messages."""

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
"""How often the job was redriven, and whether it is dead. The greater of two values applies."""
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
    """`ok`, `refused` or `unknown`; empty while the request is pending."""
    answered: Micros = FOREVER
    job: str = ""
    was_leaving: bool = False
    """The node was leaving, so it accepted only jobs that other nodes would hold."""


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
    """The deliveries of the groups of a queue at a node, within one priority (S37)."""

    events: int = 0
    waiting: dict[int, deque[tuple[int, str, Queueing]]] = attrs.Factory(dict)
    """By group: since which event a job has waited, longest first. It may contain jobs that no
    longer wait."""
    served: dict[int, int] = attrs.Factory(dict)
    """By group: the event of its last turn."""
    perhaps_served: dict[int, int] = attrs.Factory(dict)
    """The same, with turns that it may have had."""

    def begin(self) -> int:
        """The number of the next event."""
        self.events += 1
        return self.events


@attrs.define(eq=False)
class Lease:
    """A worker holds the job from this time on, because of a delivery or a WORKING."""

    time: Micros
    node: str
    client: str = ""
    queueing: Queueing | None = None
    """None for a request of more time."""
    expected_since: Micros = NEVER
    """When it could have been expected first."""
    before: "Lease | None" = None
    """The lease before; dropped once the duplicate has its cause."""
    cause: str = ""
    """Of the duplicate that the delivery is, unless the ones before were lost on the way."""
    is_dominated: bool = False
    """Its node might have known of an acknowledgement, by way of some third node or client."""
    counted: tuple[int, int] | None = (0, 0)
    """How often the job had been enqueued until then, by NACKs and otherwise, after the first time.
    None if the server's copy may count twice, because the counters that it received with the job
    were reported to it again."""
    counted_here: tuple[int, int] = (0, 0)
    """A lower bound of the same counts at the server's copy: its own node's actions alone."""


@attrs.define(eq=False)
class Copy:
    """A node's copy of the job."""

    node: str
    since: Micros
    cause: str
    mono: Millis = 0
    """The node's monotonic clock at that time."""
    wall: Millis = 0
    """Its wall clock when the record was written; a journal counts the TTL from it."""
    is_dummy: bool = False
    base: Millis | None = None
    """By the node's monotonic clock, when it would expire with a TTL of 0; None if unknown."""
    lowest_base: Millis | None = None
    """The smallest possible value, if the node may have used any of several messages of a batch."""
    state: State = ALIVE
    """According to its node."""
    is_waiting: bool = False
    """It became dead or was redriven while its ADDJOB waited for replicas, and the ADDJOB still
    waits."""
    is_acked: bool = False
    acked_at: Micros = NEVER
    acked_by: str = ""
    acked_stamp: Stamp = ()
    queueing: Queueing | None = None
    """While it is queued."""
    queued_at: Micros = NEVER
    """When it was last enqueued. A stay that a stop of the node interrupted began earlier."""
    unqueued_at: Micros = NEVER
    """When it last left the queue, or when a stay interrupted by a stop ended."""
    last_queueing: Queueing | None = None
    interrupted: Queueing | None = None
    """Its stay in the queue when its process ended, if that stay continues. It ends when the job is
    enqueued again, or when its node learns that a worker has the job or that it waits: then a new
    period begins."""
    ack_received_at: Micros = NEVER
    """When it last received an acknowledgement."""
    came_counted: bool = False
    """The job had been requeued before."""
    counted: tuple[int, int] = (0, 0)
    """How often its node has enqueued it because of NACKs, and because of RETRY."""
    is_late: bool = False
    """The node had held the job before, or had reported that it does not know it."""
    not_held_at: Micros = NEVER
    """When it last did so."""
    came_from: str = ""
    """The node that sent it; none if it is from no message."""
    is_offline: bool = False
    """The node is down; the copy may be on its disk."""
    confirmed_at: Micros = NEVER
    """When its node first reported that it holds the job; and that the job is acknowledged."""
    ack_confirmed_at: Micros = NEVER
    left: Millis = 0
    """As its node reported on arrival: the time until it expires, and until it is enqueued; 0 is
    never."""
    left_since: Micros = NEVER
    left_wall: Millis = 0
    """When it died or was redriven, which is when the remaining time was measured; by its node's
    wall clock, which a journal uses for it."""
    due: Millis = 0
    due_by: Micros = FOREVER
    """By when it must be queued, or postponed anew (L8)."""
    armed_at: Micros = NEVER
    postponed_at: Micros = NEVER
    """When its node last learned that a NACK delays it; and until when it waits at most."""
    waits_until: Micros = NEVER
    was_handed_out: bool = False
    """It was restored after an orderly stop, and a worker may hold it (S21)."""
    before: "Copy | None" = None
    """The copy before the crash, until everything is loaded."""
    sent_at: Micros = NEVER
    first_sent_at: Micros = NEVER
    """When its message was sent at the latest, and created at the earliest; `since` without a
    message."""

    def begin_period(self, time: Micros) -> None:
        """Its node learns that a worker holds the job, or that it waits."""
        if self.interrupted is not None:
            self.interrupted = None
            self.unqueued_at = time


@attrs.define(eq=False)
class Incoming:
    """The copies of a job that a node received in one batch, and the sender of the first one."""

    time: Micros
    sender: str
    first_sent: Micros
    sent: Micros
    """When the first one was created, and the last one sent."""
    base: Millis | None
    """The greatest value that the node may have used (see `Copy.base`)."""
    lowest_base: Millis | None
    """The smallest such value."""


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
    """An acknowledgement that a node has recorded."""

    time: Micros
    node: str
    kind: str
    """`ackjob` or `fastack`."""
    stamp: Stamp = ()
    unlinked: tuple[str, ...] = ()
    """For FASTACK: nodes to which its node may have had no link, because PING was not answered."""


@attrs.define(eq=False)
class Announcement:
    """The last message of one type about the job from one node to another, by time of sending."""

    sent: Micros = NEVER
    got: Micros = NEVER
    got_at: Micros = NEVER
    lost: Micros = NEVER
    swallowed: Micros = NEVER
    """The last message that was lost although its link stayed up."""

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
    """The PING of the previous link, which the node has closed, was lost as well."""
    since: Micros = FOREVER
    """When the first unanswered PING was sent, on this link or an earlier one."""


@attrs.define(eq=False)
class Job:
    """Everything that the judge knows about one job."""

    id: str
    first_seen: Micros
    is_at_least_once: bool = attrs.field(init=False)
    queue: str = ""
    add: Add | None = None
    """Once the ADDJOB that created it is known."""
    created_at: Micros | None = None
    """When its first record was written."""
    origin: str = ""
    serial: int = 0
    """Its number among the jobs of its origin."""
    first_record: str = ""
    """Its options according to its first record, and in how many milliseconds it expires; 0 if
    unknown."""
    life: Millis = 0
    queue_length_at_add: int = 0
    """The length of its queue at its origin when it was created, where that may matter."""
    copies: dict[str, Copy] = attrs.Factory(dict)
    destroyed: int = 0
    """Copies that faults have destroyed since the job was created, and that were not re-created."""
    lost_on: dict[str, Micros] = attrs.Factory(dict)
    """Where, whether re-created or not, and when last."""
    state: State = ALIVE
    """The greatest value that any node has known, and since when."""
    state_since: Micros = NEVER
    lives_until: Micros | None = None
    """When it expires at the earliest, if it died or was redriven."""
    tries: int = 0
    """How often it was requeued since it was added or redriven, as LIMIT counts; when it was
    requeued last; and how often two holders did so at the same time."""
    tried_at: Micros = NEVER
    races: int = 0
    ended: Micros | None = None
    """When it was acknowledged, deleted or expired."""
    ended_by: str = ""
    first_queueing: Queueing | None = None
    serves: int = 0
    unsent_serves: int = 0
    """How many of these never left the node, or never reached its disk, because of a crash."""
    open_serves: list[Lease] = attrs.Factory(list)
    """Deliveries that have not arrived yet."""
    lease: Lease | None = None
    deliveries: int = 0
    first_delivered: Micros = NEVER
    first_cause: str = ""
    """Why the delivery that arrived first was a duplicate, if it overtook one that was served
    earlier."""
    expected_since: Micros = NEVER
    """Since when its next delivery can be expected."""
    unqueued_at: Micros = NEVER
    """When it last left the queue of some node."""
    was_recalled: bool = False
    """A slow WORKING took it out of a queue and restarted its period. Delivery may be delayed by
    that once for each job."""
    served: list[tuple[Micros, str, str]] = attrs.Factory(list)
    """When it was served, by which node and to which client, where workers have tokens."""
    untied: dict[str, Micros] = attrs.Factory(dict)
    """By node: when the connection to which its delivery was tied ended."""
    ties_due: dict[str, Micros] = attrs.Factory(dict)
    """By node: when its consumer closed that connection, which the node notices later."""
    ack_invoked: Micros | None = None
    acks: list[Ack] = attrs.Factory(list)
    wait: Wait | None = None
    """The last such NACK, unless a client has ended the wait."""
    asked_again: Micros = NEVER
    """When a client last returned it (NACK, ENQUEUE)."""
    ack_deleted: bool = False
    """A client deleted the record of an acknowledgement (DELJOB)."""
    gives: list[Give] = attrs.Factory(list)  # under way
    announcements: dict[tuple[str, str, str], Announcement] = attrs.Factory(dict)
    """By sender, receiver and type."""
    incoming: dict[tuple[str, str], Incoming] = attrs.Factory(dict)
    """By node and message: the data just received."""
    dropped: dict[str, Micros] = attrs.Factory(dict)
    """When a node has last dropped its copy."""
    not_held: dict[str, Micros] = attrs.Factory(dict)
    """When a node last dropped it, or reported that it does not know it."""
    withdrawn: dict[str, Micros] = attrs.Factory(dict)
    """When DELJOB or a failed ADDJOB last removed a copy that was not acknowledged there."""
    end_reported: dict[str, Micros] = attrs.Factory(dict)
    """When a node first reported that no worker there has the job any longer: acknowledged or
    gone."""
    drop_on_disk: dict[str, None] = attrs.Factory(dict)
    """Nodes that restored it from disk although they must have recorded that they dropped it."""
    collected_over: dict[str, None] = attrs.Factory(dict)
    """Nodes that had a copy, unacknowledged, when another collected the ack."""
    acks_crashed: int = 0
    acks_evicted: int = 0
    resurrected_at: Micros = NEVER
    """When a node last restored a copy from disk that it had dropped."""
    may_delete: dict[str, str] = attrs.Factory(dict)
    """Nodes that may send DELJOB, and why."""
    asked_gc: dict[tuple[str, str], int] = attrs.Factory(dict)
    """By collector and holder: 1 while the holder's confirmation is awaited, 2 afterwards."""
    gc_holders: dict[str, int] = attrs.Factory(dict)
    """By collector: the number of holders in its last message."""
    losses: dict[str, None] = attrs.Factory(dict)
    """Excuses for an at-most-once job that is never delivered."""
    last_event: Micros = NEVER
    """When it was last created, enqueued, served or acknowledged at any node."""
    first_ack: Micros | None = None
    counters: dict[str, list[tuple[Micros, int, int]]] = attrs.Factory(dict)
    """By node, in order of serving: the time, and the NACKs and additional deliveries it
    reported."""
    nacked: int = 0
    requeued: int = 0  # other than by NACKs, and after the first time
    listed: dict[str, dict[str, Micros]] = attrs.Factory(dict)
    """By node: which holders it knows, and since when."""
    moved_on: dict[str, int] = attrs.Factory(dict)
    """By node: the creation stamp of its copy, if that differs from the first record's."""
    unlisted: dict[str, list[str]] = attrs.Factory(dict)
    """By node: holders that the list it has restored from disk may lack."""
    perhaps_listed: dict[str, list[str]] = attrs.Factory(dict)
    """Holders named to a node while a disk error may have prevented it from recording them, or
    before it loaded its copy from disk."""
    last_news: dict[str, Micros] = attrs.Factory(dict)
    """By node: when it last heard that another has queued, given out or postponed the job."""
    sent_to: dict[str, None] = attrs.Factory(dict)
    """The nodes to which a copy of the new job was sent."""
    confirmed_in: dict[str, None] = attrs.Factory(dict)
    """The zones in which it had copies when its ADDJOB was answered."""
    transfers: dict[tuple[str, str], Micros] = attrs.Factory(dict)
    """By giver and receiver: when the job was last sent to be enqueued there."""
    put_off: dict[str, Micros] = attrs.Factory(dict)
    """By holder: when the job, whose stay restarted its period, last left the core."""
    requests: dict[tuple[str, str], dict[tuple[str, int], Request]] = attrs.Factory(dict)
    """By node and verb: pending requests."""
    done: dict[tuple[str, str], Micros] = attrs.Factory(dict)
    """By node and verb: when that last happened; and by node, when its record was last removed."""
    gone: dict[str, Micros] = attrs.Factory(dict)
    key: tuple[str, int] | None = None
    """Its queue, and the CRC-32 of its key, if it has one."""
    keep: Micros = 0
    twins: "list[Job]" = attrs.Factory(list)
    """Jobs with the same key that existed at the same time."""
    earlier: "list[Job]" = attrs.Factory(list)
    """Jobs with the same key that existed when it was added, and that it follows."""
    followers: "list[Job]" = attrs.Factory(list)
    """The jobs that follow it."""
    double_queued_since: Micros | None = None
    """Since when it has been queued at two nodes."""

    def __attrs_post_init__(self) -> None:
        self.is_at_least_once = is_at_least_once(self.id)

    @property
    def options(self) -> Options | None:
        """The request; None while it is unknown."""
        return None if self.add is None else self.add.options

    @property
    def is_added(self) -> bool:
        """Has its producer received a reply with its id?"""
        return self.add is not None and self.add.outcome == "ok"

    @property
    def must_be_retained(self) -> bool:
        """Must it survive W-1 losses? (S1)"""
        options = self.options
        return bool(options and self.is_added and options.retry and not options.is_async)

    @property
    def is_dead(self) -> bool:
        """Do the nodes with the latest state know that it is dead? Then no node may deliver it."""
        return max([copy.state for copy in self.copies.values()], default=ALIVE)[1]

    def holders(self) -> int:
        """How many nodes hold a copy."""
        return sum(not copy.is_dummy for copy in self.copies.values())

    def announcement(self, sender: str, receiver: str, sort: str) -> Announcement:
        """The last such message; one without times if there was none."""
        return self.announcements.get((sender, receiver, sort)) or Announcement()


@attrs.define(eq=False)
class KeptResult:
    """A result that a node must keep."""

    since: Micros
    until: Micros


@attrs.define(eq=False)
class SentResult:
    """An ACKJOB RESULT."""

    time: Micros
    keep: Micros
