"""The bus messages: one class per type, in five shapes (original 5.3).

A message must not be changed after it is in an outbox. The sender's ID, port and flags are in the
frame around it (`Frame`). A class has all properties of its message: `NUMBER` is its type on the
bus, `NEEDS` the capability of nodes to which it is sent (0 for any), `LAYOUT` the parts of its
payload, for `wire.payloads`, and `detail` its text in a trace row. Its handler is the function
`on_<name>`, in one of the modules listed in `dispatch`. Docstrings state the meaning in the voice
of the sender.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final, get_args

import attrs

from disque_trio.statemachine import base
from disque_trio.statemachine.base import Body, JobId, Millis, NodeId
from disque_trio.statemachine.extensions import MAX_ERROR, MAX_GROUP, DeadState, Extensions
from disque_trio.statemachine.key_facts import ALWAYS, CANCELS, MAX_KEY, KeyFact
from disque_trio.statemachine.layout import (
    MARK,
    UINT32,
    Part,
    data,
    identities,
    identity,
    length,
    mark,
    truth,
    uint,
)

Names = dict[NodeId, str]
"""The names of nodes in a run."""


@attrs.define
class JobCopy:
    """A job in a message or a file: plain values (original 4.5).

    `etime` is the number as written: seconds left plus one on the bus, Unix seconds in storage.
    `delay` and `retry` are seconds. `flags`, `state` and `gc_attempt` are as in `base` and `job`.
    """

    id: JobId
    state: int
    gc_attempt: int
    flags: int
    replicas: int
    etime: int
    ctime: int
    delay: int
    retry: int
    nacks: int
    deliveries: int
    queue: bytes
    body: Body
    holders: tuple[NodeId, ...]
    extensions: Extensions | None = None
    """The data for which the original's layout has no room; None for most jobs."""
    due: Millis = 0
    """In our journal only: the end of its delay, in Unix milliseconds by the clock of the node that
    wrote it; 0 if unknown."""

    @property
    def snoozes(self) -> int:
        """As `Job.snoozes`."""
        return 0 if self.extensions is None else self.extensions.snoozes


@attrs.define
class Gossip:
    """An entry about one node, according to the sender. The times are the low 32 bits of Unix
    milliseconds."""

    id: NodeId
    ip: bytes
    port: int
    flags: int
    ping_sent: int = 0
    pong_received: int = 0
    bus_port: int = 0


@attrs.define
class BusMessage:
    """The base class of messages."""

    NUMBER: ClassVar[int] = -1
    NEEDS: ClassVar[int] = 0
    LAYOUT: ClassVar[tuple[Part, ...]] = ()
    """Empty for messages that `wire.payloads` encodes with functions."""

    def detail(self, _names: Names) -> str:
        """The content besides job and queue, for a trace row: numbers and marks."""
        words = []
        for part in self.LAYOUT:
            value = getattr(self, part.name)
            if part.form == UINT32:
                words.append(f"{part.name}={value}")
            elif part.form == MARK and value:
                words.append(part.name)
        return " ".join(words)


@attrs.define
class GossipMessage(BusMessage):
    """Shape of PING, PONG and MEET."""

    gossip: tuple[Gossip, ...] = ()

    def detail(self, names: Names) -> str:
        """The nodes of its entries."""
        return named([entry.id for entry in self.gossip], names)


@attrs.define
class Ping(GossipMessage):
    """Asks for a PONG on the same link."""

    NUMBER: ClassVar[int] = 0


@attrs.define
class Pong(GossipMessage):
    """The answer to PING and MEET. For nodes that announce `ZONES`, it has the sender's zone, name
    and digest of limits (ours)."""

    NUMBER: ClassVar[int] = 1

    zone: bytes = b""
    name: bytes = b""
    limits: bytes = b""


@attrs.define
class Meet(GossipMessage):
    """A PING that asks a node that does not know the sender to add it."""

    NUMBER: ClassVar[int] = 2


@attrs.define
class Fail(BusMessage):
    """A majority cannot reach this node."""

    NUMBER: ClassVar[int] = 3
    LAYOUT: ClassVar[tuple[Part, ...]] = (identity("node"),)

    node: NodeId

    def detail(self, names: Names) -> str:
        """The node."""
        return named([self.node], names)


@attrs.define
class Suspect(BusMessage):
    """I have received no answer from this node for half the node timeout: ping it, too. As a vote:
    I suspect it. Ours, in large clusters."""

    NUMBER: ClassVar[int] = 37
    NEEDS: ClassVar[int] = base.WATCHES
    LAYOUT: ClassVar[tuple[Part, ...]] = (mark("is_vote", 1), identity("node"))

    node: NodeId
    is_vote: bool = False

    def detail(self, names: Names) -> str:
        """The node, and whether it is a vote."""
        return named([self.node], names) + (" vote" if self.is_vote else "")


@attrs.define
class JobsMessage(BusMessage):
    """Shape of REPLJOB and YOURJOBS."""

    copies: tuple[JobCopy, ...]

    def detail(self, names: Names) -> str:
        """Its jobs and the holders of each."""
        holders = ";".join([named(copy.holders, names) for copy in self.copies])
        ids = ",".join([copy.id.decode("latin-1") for copy in self.copies])
        return f"jobs={ids} holders={holders}"


@attrs.define
class ReplJob(JobsMessage):
    """Hold a copy of this one job; answer GOTJOB unless `no_reply`."""

    NUMBER: ClassVar[int] = 4
    NO_REPLY: ClassVar[int] = 1

    no_reply: bool = False

    def detail(self, names: Names) -> str:
        """As for all messages with jobs."""
        return JobsMessage.detail(self, names) + (" no-reply" if self.no_reply else "")


@attrs.define
class YourJobs(JobsMessage):
    """Take these jobs into your queue: the answer to NEEDJOBS.

    `more` is ours: the sender has more of them queued. Original nodes do not send it, and ignore
    it.
    """

    NUMBER: ClassVar[int] = 13
    MORE: ClassVar[int] = 16

    more: bool = False


@attrs.define
class JobMessage(BusMessage):
    """Shape of the messages about one job. In the original's layout, a number follows the id; most
    messages do not use it."""

    id: JobId


@attrs.define
class GotJob(JobMessage):
    """I hold a copy."""

    NUMBER: ClassVar[int] = 5


@attrs.define
class Enqueue(JobMessage):
    """Enqueue your copy, now or after `delay` seconds."""

    NUMBER: ClassVar[int] = 6
    LAYOUT: ClassVar[tuple[Part, ...]] = (uint("delay", 32),)

    delay: int = 0


@attrs.define
class Queued(JobMessage):
    """I have enqueued the job: postpone yours. `nack` and `redelivery` give the reason.

    `told` is ours: by command of a client, so a running lease ends. Original nodes do not send it,
    and ignore it.
    """

    NUMBER: ClassVar[int] = 7
    LAYOUT: ClassVar[tuple[Part, ...]] = (
        mark("nack", 2),
        mark("redelivery", 4),
        mark("told", 8),
    )

    nack: bool = False
    redelivery: bool = False
    told: bool = False

    def detail(self, _names: Names) -> str:
        """The reason."""
        reason = "nack" if self.nack else "redelivery" if self.redelivery else ""
        return "by-client" if self.told else reason


@attrs.define
class SetAck(JobMessage):
    """The job is acknowledged. My list of holders has `holders` nodes.

    `digest` is ours, for nodes with the capability DIGESTS: the digest of this list
    (`job.digest_of`), or 0 for none.
    """

    NUMBER: ClassVar[int] = 8
    LAYOUT: ClassVar[tuple[Part, ...]] = (uint("holders", 32), uint("digest", 32))
    MOST_WITH_DIGEST: ClassVar[int] = 0xFF
    """With a digest, the greatest `holders`: the digest is in its field, and the number in the
    message flags."""

    holders: int
    digest: int = 0

    def detail(self, _names: Names) -> str:
        """How many nodes."""
        return f"holders={self.holders}"


@attrs.define
class WillQueue(JobMessage):
    """I will enqueue the job in half a second, unless another holder has it queued, delivered or
    acked."""

    NUMBER: ClassVar[int] = 9


@attrs.define
class GotAck(JobMessage):
    """I confirm the acknowledgement. `known`: I have a record of the job."""

    NUMBER: ClassVar[int] = 10
    LAYOUT: ClassVar[tuple[Part, ...]] = (truth("known"),)

    known: bool

    def detail(self, _names: Names) -> str:
        """Whether the sender has a record of the job."""
        return "known" if self.known else "unknown"


@attrs.define
class DelJob(JobMessage):
    """Drop the job, in any state."""

    NUMBER: ClassVar[int] = 11


@attrs.define
class Working(JobMessage):
    """A worker has the job: postpone yours, and remove it from your queue."""

    NUMBER: ClassVar[int] = 14


@attrs.define
class Postponed(BusMessage):
    """No node may enqueue the job for `wait` ms, because of a NACK or RELEASE with a delay.
    Ours."""

    NUMBER: ClassVar[int] = 25
    NEEDS: ClassVar[int] = base.POSTPONES
    NEW: ClassVar[int] = 2
    SNOOZED: ClassVar[int] = 128
    """Only to nodes that announce `SNOOZES`."""

    id: JobId
    wait: Millis
    nacks: int
    """The number of NACKs, according to the sender."""
    is_new: bool = False
    """The NACK is new. Without this and `is_snooze`, the message is a repetition for a node that
    may have missed it."""
    snoozes: int = 0
    """The number of RELEASEs with a delay, according to the sender; for nodes with the capability
    SNOOZES."""
    is_snooze: bool = False
    """The RELEASE is new."""

    def detail(self, _names: Names) -> str:
        """The wait, and the counts of NACKs and snoozes."""
        snoozes = f" snoozes={self.snoozes}" if self.snoozes else ""
        new = " new" if self.is_new or self.is_snooze else ""
        return f"wait={self.wait} nacks={self.nacks}{snoozes}{new}"


@attrs.define
class Holders(BusMessage):
    """My list of holders of the job. Ours."""

    NUMBER: ClassVar[int] = 19
    NEEDS: ClassVar[int] = base.LISTS
    LAYOUT: ClassVar[tuple[Part, ...]] = (identity("id"), identities("holders"))

    id: JobId
    holders: tuple[NodeId, ...]

    def detail(self, names: Names) -> str:
        """The nodes."""
        return f"holders={named(self.holders, names)}"


@attrs.define
class AckHolders(Holders):
    """GOTACK with my list of holders, if the SETACK has the digest of another list. Ours."""

    NUMBER: ClassVar[int] = 38
    NEEDS: ClassVar[int] = base.DIGESTS


_COUNTED_QUEUE: Final = (uint("count", 32), length("queue"), data("queue"))
_QUEUE_AND_GROUP: Final = (length("queue"), data("queue"), data("group", MAX_GROUP))


@attrs.define
class QueueMessage(BusMessage):
    """Shape of the messages about a queue."""

    queue: bytes


@attrs.define
class NeedJobs(QueueMessage):
    """Send me up to `count` jobs of this queue.

    `waits` is ours: clients are waiting for them now. Original nodes ignore it.
    """

    NUMBER: ClassVar[int] = 12
    LAYOUT: ClassVar[tuple[Part, ...]] = (*_COUNTED_QUEUE, mark("waits", 32))

    count: int
    waits: bool = False


@attrs.define
class Waiting(QueueMessage):
    """`count` clients wait for jobs of this queue: send HAVEJOBS when you have some. With 0: no
    client waits now, but your offer is noted. Ours."""

    NUMBER: ClassVar[int] = 17
    NEEDS: ClassVar[int] = base.MEETS
    LAYOUT: ClassVar[tuple[Part, ...]] = _COUNTED_QUEUE

    count: int


@attrs.define
class HaveJobs(QueueMessage):
    """I have `count` jobs of this queue for which no client waits here. With 0: I have none for
    you. Ours."""

    NUMBER: ClassVar[int] = 18
    NEEDS: ClassVar[int] = base.MEETS
    LAYOUT: ClassVar[tuple[Part, ...]] = _COUNTED_QUEUE

    count: int


@attrs.define
class Pause(QueueMessage):
    """Set the pause bits of this queue."""

    NUMBER: ClassVar[int] = 15
    LAYOUT: ClassVar[tuple[Part, ...]] = (uint("bits", 32), length("queue"), data("queue"))

    bits: int


@attrs.define
class Purge(QueueMessage):
    """Acknowledge all jobs of this queue that you have queued, or all that are dead. Ours."""

    NUMBER: ClassVar[int] = 20
    NEEDS: ClassVar[int] = base.PURGES
    """With `dead` it also needs `BURIES`: other nodes would purge the queued jobs instead."""
    LAYOUT: ClassVar[tuple[Part, ...]] = (data("queue"), mark("dead", 64))

    dead: bool = False


@attrs.define
class KeyClaim(BusMessage):
    """Which jobs of this queue have this key, or had it? Ours; answered with KEYANSWER.

    With a `stamp`, the question is from an ADDJOB for a new job with this `id` and creation stamp.
    Without one, it is from a search, and the answer omits the job `id`.
    """

    NUMBER: ClassVar[int] = 21
    NEEDS: ClassVar[int] = base.CLAIMS
    LAYOUT: ClassVar[tuple[Part, ...]] = (
        uint("number", 64),
        uint("round", 32),
        identity("id"),
        uint("stamp", 64),
        identity("about"),
        length("queue"),
        data("queue"),
        data("key", MAX_KEY),
    )

    number: int
    """The sender's number of the question; `round` counts its repetitions."""
    round: int
    id: JobId
    stamp: int
    about: JobId
    """A job on whose end the answer must report, even if its key is unknown to the receiver;
    `NO_JOB` for none."""
    queue: bytes
    key: bytes

    def detail(self, _names: Names) -> str:
        """The number of the question, and the key."""
        return f"number={self.number}/{self.round} key={self.key.decode('utf-8', 'replace')}"


@attrs.define
class KeyAnswer(BusMessage):
    """My facts about the jobs with the key. Ours."""

    NUMBER: ClassVar[int] = 22
    NEEDS: ClassVar[int] = base.CLAIMS

    number: int
    round: int
    facts: tuple[KeyFact, ...]

    def detail(self, _names: Names) -> str:
        """The number of the question, and the word of each fact."""
        facts = ",".join([f"{fact.id.decode('latin-1')}:{fact.word}" for fact in self.facts])
        return f"number={self.number}/{self.round} facts={facts}"


@attrs.define
class KeyCancel(BusMessage):
    """End this job, which has or had the key, and free the key at once: it is cancelled, is
    replaced, or yields to an earlier job. Ours."""

    NUMBER: ClassVar[int] = 30
    NEEDS: ClassVar[int] = base.CLAIMS
    LAYOUT: ClassVar[tuple[Part, ...]] = (
        identity("id"),
        uint("unless", 8, CANCELS),
        length("queue"),
        data("queue"),
        data("key", MAX_KEY),
    )

    id: JobId
    queue: bytes
    key: bytes
    unless: int = ALWAYS

    def detail(self, _names: Names) -> str:
        """The key."""
        return f"key={self.key.decode('utf-8', 'replace')}"


@attrs.define
class JobState(BusMessage):
    """My state of a job that is dead or has been redriven. It expires in `left` ms. Ours."""

    NUMBER: ClassVar[int] = 23
    NEEDS: ClassVar[int] = base.BURIES

    id: JobId
    left: Millis
    state: DeadState

    def detail(self, _names: Names) -> str:
        """The state, the count of redrives, and the remaining time."""
        word = "dead" if self.state.is_dead else "alive"
        return f"{word} redriven={self.state.epoch} left={self.left}"


@attrs.define
class JobError(BusMessage):
    """The error with which a worker returned the job by NACK (`extensions.LastError`). Ours."""

    NUMBER: ClassVar[int] = 31
    NEEDS: ClassVar[int] = base.ERRORS
    LAYOUT: ClassVar[tuple[Part, ...]] = (
        identity("id"),
        uint("at", 64),
        data("text", MAX_ERROR),
    )

    id: JobId
    at: Millis
    text: bytes

    def detail(self, _names: Names) -> str:
        """When it failed."""
        return f"at={self.at}"


@attrs.define
class Result(BusMessage):
    """SETACK with the result of the job (`results`). Ours."""

    NUMBER: ClassVar[int] = 32
    NEEDS: ClassVar[int] = base.RESULTS
    LAYOUT: ClassVar[tuple[Part, ...]] = (
        identity("id"), uint("holders", 32), uint("digest", 32),
        uint("at", 64), uint("left", 64), data("value"),
    )  # fmt: skip

    id: JobId
    holders: int
    """As in SETACK."""
    at: Millis
    """When the result was set, by the wall clock of the node of the ACKJOB."""
    left: Millis
    """How long the result is still kept."""
    value: bytes
    digest: int = 0
    """As in SETACK."""

    def detail(self, _names: Names) -> str:
        """The fields of SETACK, the time of the result, and how long it is kept."""
        return f"holders={self.holders} at={self.at} left={self.left}"


def _limits(of: str = "") -> tuple[Part, ...]:
    """The parts for limits of a queue or, with the prefix "group_", of its groups."""
    leases, rate = uint(f"{of}concurrency", 32), uint(f"{of}rate", 32)
    return leases, rate, uint(f"{of}period", 64), uint(f"{of}burst", 32)


@attrs.define
class QueueLimit(QueueMessage):
    """My setting of the limits of this queue. Ours."""

    NUMBER: ClassVar[int] = 33
    NEEDS: ClassVar[int] = base.LIMITS
    LAYOUT: ClassVar[tuple[Part, ...]] = (
        uint("epoch", 64), *_limits(), uint("loose", 8), *_limits("group_"), data("queue"),
    )  # fmt: skip

    epoch: Millis
    concurrency: int
    rate: int
    period: Millis
    burst: int
    loose: int
    """1 if each side of a partition may use the whole limits."""
    group_concurrency: int = 0
    group_rate: int = 0
    group_period: Millis = 0
    group_burst: int = 0

    def detail(self, _names: Names) -> str:
        """The limits."""
        rate = f"rate={self.rate}/{self.period} burst={self.burst}"
        text = f"concurrency={self.concurrency} {rate}" + " loose" * bool(self.loose)
        if not (self.group_concurrency or self.group_rate):
            return text
        rate = f"group-rate={self.group_rate}/{self.group_period} group-burst={self.group_burst}"
        return f"{text} group-concurrency={self.group_concurrency} {rate}"


@attrs.define
class LimitPoll(QueueMessage):
    """I am the keeper of the limits of this queue or group: send LIMITREPORT. Ours."""

    NUMBER: ClassVar[int] = 34
    NEEDS: ClassVar[int] = base.LIMITS
    LAYOUT: ClassVar[tuple[Part, ...]] = (uint("number", 32), *_QUEUE_AND_GROUP)

    number: int
    group: bytes = b""
    """Empty for the queue as a whole."""


@attrs.define
class LimitReport(QueueMessage):
    """I have `used` running leases, may have `slots`, and could deliver `wanted` more jobs. Ours;
    answered with LIMITGRANT."""

    NUMBER: ClassVar[int] = 35
    NEEDS: ClassVar[int] = base.LIMITS
    LAYOUT: ClassVar[tuple[Part, ...]] = (
        uint("number", 32), uint("poll", 32), uint("used", 32), uint("slots", 32),
        uint("wanted", 32), uint("retry", 64), uint("moved", 8, (0, 1)), *_QUEUE_AND_GROUP,
    )  # fmt: skip

    number: int
    poll: int
    """The poll with which the receiver may grant the sender's part of the limits; 0 for none."""
    used: int
    slots: int
    wanted: int
    retry: Millis
    """The longest RETRY of the jobs that the sender has delivered or enqueued."""
    moved: int = 0
    """1: another keeper had the sender's part before this poll."""
    group: bytes = b""


@attrs.define
class LimitGrant(QueueMessage):
    """You may have `slots` running leases, and deliver `tokens` more jobs: the answer to the report
    with this number. Ours."""

    NUMBER: ClassVar[int] = 36
    NEEDS: ClassVar[int] = base.LIMITS
    LAYOUT: ClassVar[tuple[Part, ...]] = (
        uint("number", 32), uint("slots", 32), uint("tokens", 32), *_QUEUE_AND_GROUP,
    )  # fmt: skip

    number: int
    slots: int
    tokens: int
    group: bytes = b""


AboutJob = GotJob | Enqueue | Queued | SetAck | WillQueue | GotAck | DelJob | Working


@attrs.define
class Many:
    """The same message about several jobs, in order. `said` is the message about the first one.

    Ours. It is equivalent to its single messages (`singles`); the machine handles them in one pass
    (`many`). On the bus it is a run in a batch.
    """

    said: AboutJob
    ids: Sequence[JobId]


@attrs.define
class Batch:
    """Several messages about jobs, in order: REPLJOB, those of shape `JobMessage`, and `Many`.

    Ours. The driver assembles it, for nodes that announce BATCHES (`wire.batches`).
    """

    messages: "tuple[Message, ...]"


Message = (
    Ping | Pong | Meet | Fail | ReplJob | YourJobs | AboutJob | NeedJobs | Pause | Many | Batch
    | Waiting | HaveJobs | Holders | AckHolders | Purge | KeyClaim | KeyAnswer | KeyCancel
    | JobState | Postponed | JobError | Result | Suspect
    | QueueLimit | LimitPoll | LimitReport | LimitGrant
)  # fmt: skip


ALL_MESSAGES: Final[tuple[type[BusMessage], ...]] = tuple(
    [kind for kind in get_args(Message) if issubclass(kind, BusMessage)]
)
"""All classes of messages, without `Many` and `Batch`, which contain messages."""


def name_of(kind: type) -> str:
    """The name of a message in rows, faults and events."""
    return kind.__name__.lower()


MESSAGES: Final[tuple[str, ...]] = tuple([name_of(kind) for kind in ALL_MESSAGES])
"""The names of all messages."""


def named(nodes: Iterable[NodeId], names: Names) -> str:
    """The names of these nodes; `?` for unknown ones."""
    return ",".join([names.get(node, "?") for node in nodes])


def count_of(message: Message) -> int:
    """The number of single messages that it stands for."""
    return len(message.ids) if isinstance(message, Many) else 1


def singles(message: Message) -> Sequence[Message]:
    """The single messages that it stands for; the message itself if it is neither `Many` nor
    `Batch`."""
    if isinstance(message, Batch):
        return [single for each in message.messages for single in singles(each)]
    if isinstance(message, Many):
        _, *rest = attrs.astuple(message.said, recurse=False)
        make: Any = type(message.said)
        return [make(id, *rest) for id in message.ids]
    return (message,)


def one_of(message: Message, id: JobId) -> Message:
    """The part of a message that is about this job."""
    if isinstance(message, Many):
        _, *rest = attrs.astuple(message.said, recurse=False)
        make: Any = type(message.said)
        single: Message = make(id, *rest)
        return single
    if isinstance(message, YourJobs):
        return YourJobs(tuple([each for each in message.copies if each.id == id]), message.more)
    return message


@attrs.define
class Frame:
    """A message or batch, with the fields of its header about the sender (original 5.2).

    `flags` are the sender's own node flags. `capabilities` is the number in the header's first
    two reserved bytes, which original nodes write as zero and ignore.
    """

    sender: NodeId
    port: int
    flags: int
    message: Message
    capabilities: int = 0
    incarnation: int = 0
    """In PING, PONG and MEET of our nodes: the sender's incarnation (`identity`)."""
    format: int = 0
    """In the same messages: the sender's format number (`base.FORMAT`)."""
    version: bytes = b""
    """In the same messages: the name of the sender's version, at most 14 bytes."""
    ip: bytes = b""
    """In the same messages: the announced address of the sender; empty for that of the link."""
    bus_port: int = 0

    @property
    def content(self) -> Sequence[Message]:
        """The message, or the messages of the batch."""
        message = self.message
        return message.messages if isinstance(message, Batch) else (message,)

    @property
    def messages(self) -> Sequence[Message]:
        """As `content`, but single messages."""
        return singles(self.message)
