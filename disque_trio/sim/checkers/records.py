"""The records that the judge keeps of each job: copies, deliveries, acknowledgements, messages."""

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
"""How often the job was redriven, and whether it is dead. Of two states the greater one is
newer."""
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
    """One stay of the job in the queue of a node."""

    time: Micros
    mono: Millis
    node: str
    cause: str
    given_by: "Queueing | None" = None
    """The stay in the sender's queue, if the job was imported."""
    given_at: Micros = NEVER

    def root(self) -> "Queueing":
        """Return the first stay: its cause is why the job was queued at the first sender."""
        queueing = self
        while queueing.given_by is not None:
            queueing = queueing.given_by
        return queueing

    def chain(self) -> "list[Queueing]":
        """Return this stay and those of the senders, the last one first."""
        found = [self]
        while (giver := found[-1].given_by) is not None:
            found.append(giver)
        return found


@attrs.define(eq=False)
class Turns:
    """The deliveries of the groups of a queue at a node, within one priority (S37)."""

    events: int = 0
    waiting: dict[int, deque[tuple[int, str, Queueing]]] = attrs.Factory(dict)
    """By group: the event since which each job has waited, longest first. It may contain jobs that
    no longer wait."""
    served: dict[int, int] = attrs.Factory(dict)
    """By group: the event of its last turn."""
    perhaps_served: dict[int, int] = attrs.Factory(dict)
    """By group: the event of the last turn that it certainly or possibly had."""

    def begin(self) -> int:
        """Return the number of the next event."""
        self.events += 1
        return self.events


@attrs.define(eq=False)
class Lease:
    """A lease: a worker has the job from this time on, because of a delivery or a WORKING."""

    time: Micros
    node: str
    client: str = ""
    queueing: Queueing | None = None
    """The stay that the delivery ended; None for a WORKING."""
    expected_since: Micros = NEVER
    """When the delivery could first be expected."""
    before: "Lease | None" = None
    """The previous lease; dropped once the duplicate has its cause."""
    cause: str = ""
    """The cause, if the delivery is a duplicate, or would be if earlier ones had not been lost."""
    is_dominated: bool = False
    """Could an acknowledgement have reached its node through any other node or client?"""
    counted: tuple[int, int] | None = (0, 0)
    """How often the job had been enqueued before, by NACKs and otherwise, not counting the first
    time. None if the copy of the serving node may count events twice, because the counters that it
    received with the job were reported to it again."""
    counted_here: tuple[int, int] = (0, 0)
    """Lower bounds of the same counts: the events at the serving node alone."""


@attrs.define(eq=False)
class Copy:
    """A node's copy of the job."""

    node: str
    since: Micros
    cause: str
    mono: Millis = 0
    """The node's monotonic clock at that time."""
    wall_until: Millis | None = None
    """When the record expires, by the node's wall clock, from which a journal counts; None if
    unknown."""
    is_dummy: bool = False
    base: Millis | None = None
    """When the copy would expire with a TTL of 0, by the node's monotonic clock; None if
    unknown."""
    lowest_base: Millis | None = None
    """The smallest possible value, if the node may have used any of several messages of a batch."""
    state: State = ALIVE
    """The state that the node has recorded."""
    is_waiting: bool = False
    """It became dead or was redriven while its ADDJOB waited for replicas, and the ADDJOB still
    waits."""
    is_acked: bool = False
    acked_at: Micros = NEVER
    acked_by: str = ""
    acked_stamp: Stamp = ()
    queueing: Queueing | None = None
    """The current stay in the queue; None if it is not queued."""
    queued_at: Micros = NEVER
    """When it was last enqueued. A stay that a stop of the node interrupted began earlier."""
    unqueued_at: Micros = NEVER
    """When it last left the queue, or when a stay interrupted by a stop ended."""
    last_queueing: Queueing | None = None
    interrupted: Queueing | None = None
    """Its stay in the queue when its process ended, if that stay continues. The stay ends when the
    job is enqueued again, or when the node learns of a lease or a delay of the job, which begins a
    new period."""
    ack_received_at: Micros = NEVER
    """When the node last received an acknowledgement."""
    came_counted: bool = False
    """The job had been requeued before."""
    counted: tuple[int, int] = (0, 0)
    """How often its node has enqueued it because of NACKs, and because of RETRY."""
    is_late: bool = False
    """The node had held the job before, or had reported that it does not have it."""
    not_held_at: Micros = NEVER
    """When the node last dropped the job, or reported that it does not have it."""
    is_back: bool = False
    """Had the node, or the one that sent the copy, dropped the job and then lost the record of the
    drop in a power failure?"""
    came_from: str = ""
    """The node that sent the copy; empty if it did not come in a message."""
    source: tuple[str, Micros] = ("", NEVER)
    """The node that sent the copy, if any, and when. A copy that is loaded keeps that of the one
    that was written."""
    is_offline: bool = False
    """The node is down; the copy may be on its disk."""
    confirmed_at: Micros = NEVER
    """When its node first reported that it holds the job. `ack_confirmed_at`: that the job is
    acknowledged."""
    ack_confirmed_at: Micros = NEVER
    left: Millis = 0
    """On arrival, by its node: the time until it expires. `due`: the time until it is enqueued; 0
    is never."""
    left_since: Micros = NEVER
    left_wall: Millis = 0
    """When the remaining life was last measured: when the job died or was redriven. `left_wall` is
    the node's wall clock then, from which a journal counts."""
    due: Millis = 0
    due_by: Micros = FOREVER
    """When it must be queued, or postponed again (L8)."""
    armed_at: Micros = NEVER
    """When its period began."""
    postponed_at: Micros = NEVER
    """When its node last learned that a NACK delays it. `waits_until` is the latest end of the
    delay."""
    waits_until: Micros = NEVER
    was_handed_out: bool = False
    """It was restored after an orderly stop, and a worker may have it (S21)."""
    before: "Copy | None" = None
    """The copy before the crash, until the journal is loaded."""
    sent_at: Micros = NEVER
    first_sent_at: Micros = NEVER
    """The latest time of sending of its message. `first_sent_at`: the earliest time of its
    creation. Both are `since` without a message."""

    def begin_period(self, time: Micros) -> None:
        """The node learns that a worker has the job, or that the job is delayed."""
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
    """When the last one was sent. `first_sent`: when the first one was created."""
    base: Millis | None
    """The greatest value that the node may have used (see `Copy.base`)."""
    lowest_base: Millis | None
    """The smallest such value."""


@attrs.define(eq=False)
class Give:
    """A job in transit to a node that requested it."""

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
    """For FASTACK: nodes to which its node may have had no link because a PING was not answered."""


@attrs.define(eq=False)
class Announcement:
    """The last message of one type about the job from one node to another, by time of sending."""

    sent: Micros = NEVER
    got: Micros = NEVER
    got_at: Micros = NEVER
    lost: Micros = NEVER
    swallowed: Micros = NEVER
    """When the last message was sent that was lost although its link stayed up."""

    def is_under_way(self) -> bool:
        """Is a message in transit? Links keep the order."""
        return self.sent > max(self.got, self.lost)


@attrs.define(eq=False)
class Request:
    """A client's request about a job, without a reply yet."""

    time: Micros
    is_alone: bool = True
    """Is it the only such request for this job at this node?"""
    is_of_many: bool = False
    """It names several jobs, so the reply is a total."""


@attrs.define(eq=False)
class Question:
    """A PING without an answer (see `silence`)."""

    time: Micros
    ref: int
    has_arrived: bool = False
    answer: int = 0
    """The number of the PONG; 0 until it is sent."""
    is_lost: bool = False
    """The PING or its PONG was lost."""
    follows_lost: bool = False
    """The last PING on the previous link, which the node has closed, was lost as well."""
    since: Micros = FOREVER
    """When the first unanswered PING was sent, on this link or an earlier one."""


@attrs.define(eq=False)
class Job:
    """The history of one job, as far as the judge has seen it."""

    id: str
    first_seen: Micros
    is_at_least_once: bool = attrs.field(init=False)
    queue: str = ""
    add: Add | None = None
    """The ADDJOB that created it; None while unknown."""
    created_at: Micros | None = None
    """When its first record was written."""
    origin: str = ""
    serial: int = 0
    """Its number among the jobs of its origin."""
    first_record: str = ""
    """Its options in its first record. `life`: in how many milliseconds it expires; 0 if
    unknown."""
    life: Millis = 0
    queue_length_at_add: int = 0
    """The length of its queue at its origin when it was created, where that may matter."""
    copies: dict[str, Copy] = attrs.Factory(dict)
    destroyed: int = 0
    """Copies that faults have destroyed since the job was created, and that were not re-created."""
    lost_on: dict[str, Micros] = attrs.Factory(dict)
    """By node that lost a copy, re-created or not: when it last did."""
    state: State = ALIVE
    """The greatest state that any node has had. `state_since`: since when."""
    state_since: Micros = NEVER
    lives_until: Micros | None = None
    """Its earliest expiry, if it died or was redriven."""
    tries: int = 0
    """How often it was requeued since it was added or redriven, as LIMIT counts. `tried_at`: when
    it last was. `races`: how often two holders did so at the same time."""
    tried_at: Micros = NEVER
    races: int = 0
    ended: Micros | None = None
    """When it was acknowledged, deleted or expired."""
    ended_by: str = ""
    first_queueing: Queueing | None = None
    serves: int = 0
    unsent_serves: int = 0
    """The number of serves that never left the node, or never reached its disk, because of a
    crash."""
    open_serves: list[Lease] = attrs.Factory(list)
    """Serves that have not arrived yet."""
    lease: Lease | None = None
    deliveries: int = 0
    first_delivered: Micros = NEVER
    first_cause: str = ""
    """The cause of the delivery that arrived first, if it overtook an earlier serve."""
    expected_since: Micros = NEVER
    """Since when its next delivery can be expected."""
    unqueued_at: Micros = NEVER
    """When it last left the queue of any node."""
    was_recalled: bool = False
    """A slow WORKING removed it from a queue and restarted its period. This may delay the delivery
    of a job once."""
    served: list[tuple[Micros, str, str]] = attrs.Factory(list)
    """The serves, with time, node and client, if workers have tokens."""
    untied: dict[str, Micros] = attrs.Factory(dict)
    """By node: when the connection to which its delivery was tied ended."""
    ties_due: dict[str, Micros] = attrs.Factory(dict)
    """By node: when its consumer closed that connection, which the node detects later."""
    ack_invoked: Micros | None = None
    redriven_at: Micros = NEVER
    """When REDRIVE last restarted its TTL."""
    acks: list[Ack] = attrs.Factory(list)
    wait: Wait | None = None
    """The last NACK or RELEASE with a delay, unless a client has ended the delay."""
    asked_again: Micros = NEVER
    """When a client last returned it (NACK, ENQUEUE)."""
    ack_deleted: bool = False
    """A client deleted the record of an acknowledgement (DELJOB)."""
    gives: list[Give] = attrs.Factory(list)  # in transit
    announcements: dict[tuple[str, str, str], Announcement] = attrs.Factory(dict)
    """By sender, receiver and type."""
    incoming: dict[tuple[str, str], Incoming] = attrs.Factory(dict)
    """By node and message: the copies received in the last batch."""
    dropped: dict[str, Micros] = attrs.Factory(dict)
    """By node: when it last dropped its copy."""
    not_held: dict[str, Micros] = attrs.Factory(dict)
    """By node: when it last dropped the job, or reported that it does not have it."""
    withdrawn: dict[str, Micros] = attrs.Factory(dict)
    """By node: when DELJOB or a failed ADDJOB last removed a copy that was not acknowledged."""
    end_reported: dict[str, Micros] = attrs.Factory(dict)
    """By node: when it first reported that the job has ended there: acknowledged or gone."""
    drop_on_disk: dict[str, None] = attrs.Factory(dict)
    """Nodes that restored the job from disk although they must have recorded its drop."""
    collected_over: dict[str, None] = attrs.Factory(dict)
    """Nodes with an unacknowledged copy when another node collected the ack."""
    acks_crashed: int = 0
    acks_evicted: int = 0
    resurrected_at: Micros = NEVER
    """When a node last restored a copy from disk that it had dropped."""
    may_delete: dict[str, str] = attrs.Factory(dict)
    """Nodes that may send DELJOB, and why."""
    asked_gc: dict[tuple[str, str], int] = attrs.Factory(dict)
    """By collector and holder: 1 while the holder's confirmation is awaited, 2 afterwards."""
    asked_before: dict[tuple[str, str], None] = attrs.Factory(dict)
    """The same before the collection restarted: the holder may still answer."""
    gc_holders: dict[str, int] = attrs.Factory(dict)
    """By collector: the number of holders in its last message."""
    losses: dict[str, None] = attrs.Factory(dict)
    """Excuses for a job with at-most-once delivery that is never delivered."""
    last_event: Micros = NEVER
    """When it was last created, enqueued, served or acknowledged at any node."""
    first_ack: Micros | None = None
    counters: dict[str, list[tuple[Micros, int, int]]] = attrs.Factory(dict)
    """By node, in order of serving: the time, and the reported NACKs and additional deliveries."""
    nacked: int = 0
    requeued: int = 0  # other than by NACKs, and after the first time
    listed: dict[str, dict[str, Micros]] = attrs.Factory(dict)
    """By node: the holders that it has listed, and since when."""
    moved_on: dict[str, int] = attrs.Factory(dict)
    """By node: the creation stamp of its copy, if it differs from the first record's."""
    unlisted: dict[str, list[str]] = attrs.Factory(dict)
    """By node: holders that the list restored from disk may lack."""
    perhaps_listed: dict[str, list[str]] = attrs.Factory(dict)
    """By node: holders that it may not have listed, because they were named while its disk was
    faulty, by the former identity of a node, or before it loaded its copy from disk."""
    last_news: dict[str, Micros] = attrs.Factory(dict)
    """By node: when it last received a message that another node has queued, delivered or postponed
    the job."""
    restarted: dict[str, Micros] = attrs.Factory(dict)
    """By node: when it last received QUEUED or WORKING after POSTPONED in one batch."""
    sent_to: dict[str, None] = attrs.Factory(dict)
    """The nodes to which a copy of the new job was sent."""
    confirmed_in: dict[str, None] = attrs.Factory(dict)
    """The zones in which it had copies when its ADDJOB got its reply."""
    transfers: dict[tuple[str, str], Micros] = attrs.Factory(dict)
    """By sender and receiver: when the job was last sent to be enqueued there."""
    put_off: dict[str, Micros] = attrs.Factory(dict)
    """By holder whose period restarted with a stay of the job: when the job then left the core."""
    requests: dict[tuple[str, str], dict[tuple[str, int], Request]] = attrs.Factory(dict)
    """By node and verb: pending requests."""
    done: dict[tuple[str, str], Micros] = attrs.Factory(dict)
    """By node and verb: when its effect last happened. `gone`: by node, when its record was last
    removed."""
    gone: dict[str, Micros] = attrs.Factory(dict)
    key: tuple[str, int] | None = None
    """Its queue, and the CRC-32 of its key, if it has one."""
    keep: Micros = 0
    key_freed: dict[str, None] = attrs.Factory(dict)
    """Nodes that have sent or received KEYCANCEL for it: they may have freed its key."""
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
        """The options of its ADDJOB; None while unknown."""
        return None if self.add is None else self.add.options

    @property
    def is_added(self) -> bool:
        """Has its producer received a reply with its id?"""
        return self.add is not None and self.add.outcome == "ok"

    @property
    def must_be_retained(self) -> bool:
        """Must it survive W-1 losses (S1)?"""
        options = self.options
        return bool(options and self.is_added and options.retry and not options.is_async)

    @property
    def is_dead(self) -> bool:
        """Do the nodes with the latest state have it as dead? Then no node may deliver it."""
        return max([copy.state for copy in self.copies.values()], default=ALIVE)[1]

    def holders(self) -> int:
        """Return the number of nodes that hold a copy."""
        return sum(not copy.is_dummy for copy in self.copies.values())

    def announcement(self, sender: str, receiver: str, sort: str) -> Announcement:
        """Return the last such message; one without times if there was none."""
        return self.announcements.get((sender, receiver, sort)) or Announcement()


@attrs.define(eq=False)
class KeptResult:
    """A result that a node must keep."""

    since: Micros
    until: Micros


@attrs.define(eq=False)
class SentResult:
    """A pending ACKJOB with RESULT."""

    time: Micros
    keep: Micros
