"""The bus messages: one class per type, in five shapes (original 5.3).

A message is never changed once it is in an outbox. The sender's ID, port and flags travel in
the frame around it (`Frame`), the byte layouts are in `wire.frames`.
"""

from collections.abc import Sequence
from typing import Any

import attrs

from disque_trio.statemachine.base import Body, JobId, Millis, NodeId
from disque_trio.statemachine.extensions import DeadState, Extensions
from disque_trio.statemachine.keyfacts import ALWAYS, KeyFact


@attrs.define
class JobCopy:
    """A job as it crosses machines or lies in a file: plain numbers, nothing live (original 4.5).

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
    """What the original's layout has no place for; None for most jobs."""
    due: Millis = 0
    """In our journal only: when its delay is over, in Unix milliseconds by the clock of the node
    that wrote it; 0 if it does not say."""

    @property
    def snoozes(self) -> int:
        """As `Job.snoozes`."""
        return 0 if self.extensions is None else self.extensions.snoozes


@attrs.define
class Gossip:
    """What the sender knows of one node. The times are the low 32 bits of its milliseconds."""

    id: NodeId
    ip: bytes
    port: int
    flags: int
    ping_sent: int = 0
    pong_received: int = 0
    bus_port: int = 0


@attrs.define
class GossipMessage:
    """Shape of PING, PONG and MEET."""

    gossip: tuple[Gossip, ...] = ()


@attrs.define
class Ping(GossipMessage):
    """Are you there? Answered with PONG on the same link."""


@attrs.define
class Pong(GossipMessage):
    """I am here, in this zone (ours, for nodes that announce `ZONES`)."""

    zone: bytes = b""


@attrs.define
class Meet(GossipMessage):
    """A PING that asks a node that does not know the sender to add it."""


@attrs.define
class Fail:
    """A majority cannot reach this node."""

    node: NodeId


@attrs.define
class JobsMessage:
    """Shape of REPLJOB and YOURJOBS."""

    copies: tuple[JobCopy, ...]


@attrs.define
class ReplJob(JobsMessage):
    """Hold a copy of this one job; answer GOTJOB unless `no_reply`."""

    no_reply: bool = False


@attrs.define
class YourJobs(JobsMessage):
    """Take these jobs into your queue: the answer to NEEDJOBS.

    `more` is ours: the sender has more of them queued. Original nodes do not send it, and ignore
    it.
    """

    more: bool = False


@attrs.define
class JobMessage:
    """Shape of the messages about one job."""

    id: JobId


@attrs.define
class GotJob(JobMessage):
    """I hold a copy."""


@attrs.define
class Enqueue(JobMessage):
    """Queue your copy, now or after `delay` seconds."""

    delay: int = 0


@attrs.define
class Queued(JobMessage):
    """I have queued it: postpone yours. Says whether it was a NACK or a redelivery.

    `told` is ours: a client wanted it queued, so a lease that runs is over. Original nodes do not
    send it, and ignore it.
    """

    nack: bool = False
    redelivery: bool = False
    told: bool = False


@attrs.define
class SetAck(JobMessage):
    """The job is acknowledged; I know of `holders` nodes that may have a copy."""

    holders: int


@attrs.define
class WillQueue(JobMessage):
    """I will queue it in half a second, unless another holder has it queued, delivered or acked."""


@attrs.define
class GotAck(JobMessage):
    """I know that the job is acknowledged; `known` says whether I have a record of it."""

    known: bool


@attrs.define
class DelJob(JobMessage):
    """Drop the job, whatever its state."""


@attrs.define
class Working(JobMessage):
    """A worker has it: postpone yours, and do not keep it queued."""


@attrs.define
class Postponed:
    """Nobody is to queue the job for so many milliseconds: a client wants it so (NACK or RELEASE,
    with a delay). Ours."""

    id: JobId
    wait: Millis
    nacks: int
    """How often it has been given back by NACK, as the sender counts."""
    is_new: bool = False
    """The NACK has just come. Without this and `is_snooze` it is repeated for a node that may not
    have heard it."""
    snoozes: int = 0
    """How often the job has been given back by RELEASE DELAY, likewise; for nodes that have the
    capability SNOOZES."""
    is_snooze: bool = False
    """The RELEASE has just come."""


@attrs.define
class Holders:
    """These nodes may hold a copy of the job, as far as I know. Ours."""

    id: JobId
    holders: tuple[NodeId, ...]


@attrs.define
class QueueMessage:
    """Shape of the messages about a queue."""

    queue: bytes


@attrs.define
class NeedJobs(QueueMessage):
    """Send me up to `count` jobs of this queue.

    `waits` is ours: clients wait for them at this moment. Original nodes ignore it.
    """

    count: int
    waits: bool = False


@attrs.define
class Waiting(QueueMessage):
    """So many clients wait for jobs of this queue: tell me when you have some. With 0: no client
    waits now, but I know that you have jobs. Ours."""

    count: int


@attrs.define
class HaveJobs(QueueMessage):
    """I have so many jobs of this queue for which no client waits here. With 0: I have none to
    give. Ours."""

    count: int


@attrs.define
class Pause(QueueMessage):
    """Set the pause bits of this queue."""

    bits: int


AboutJob = GotJob | Enqueue | Queued | SetAck | WillQueue | GotAck | DelJob | Working


@attrs.define
class Many:
    """The same message about several jobs, in order: `said` is that about the first of them.

    Ours. It means the same as its messages one by one, which `singles` gives, and the machine
    handles all of them in one pass (`many`). On the bus it is a run of a batch.
    """

    said: AboutJob
    ids: Sequence[JobId]


@attrs.define
class Purge(QueueMessage):
    """Acknowledge all jobs of this queue that you have queued, or all that are dead. Ours."""

    dead: bool = False


@attrs.define
class KeyClaim:
    """Which jobs of this queue have this key, or had it? Ours; answered with KEYANSWER.

    With a `stamp` an ADDJOB asks that would give the key to a new job of this `id` and creation
    stamp. Without one somebody only wants to know; the answer leaves out the job `id`.
    """

    number: int
    """The sender's number for what it asks, and for how often it has asked."""
    round: int
    id: JobId
    stamp: int
    about: JobId
    """A job that the answer is to tell of even if this node knows no key of it; empty for none."""
    queue: bytes
    key: bytes


@attrs.define
class KeyAnswer:
    """All that I know of the jobs with that key. Ours."""

    number: int
    round: int
    facts: tuple[KeyFact, ...]


@attrs.define
class KeyCancel:
    """A client has cancelled this job, which has or had the key, or has replaced it: it ends, and
    the key is free at once. Ours."""

    id: JobId
    queue: bytes
    key: bytes
    unless: int = ALWAYS


@attrs.define
class JobState:
    """The job is dead, or has been redriven, as far as I know. It expires in `left`. Ours."""

    id: JobId
    left: Millis
    state: DeadState


@attrs.define
class Batch:
    """Several messages about jobs, in order: REPLJOB, those of shape `JobMessage`, and `Many`.

    Ours. The driver puts it together for nodes that announce that they read it (`wire.batches`).
    """

    messages: "tuple[Message, ...]"


Message = (
    Ping | Pong | Meet | Fail | ReplJob | YourJobs | AboutJob | NeedJobs | Pause | Many | Batch
    | Waiting | HaveJobs | Holders | Purge | KeyClaim | KeyAnswer | KeyCancel
    | JobState | Postponed
)  # fmt: skip


def count_of(message: Message) -> int:
    """How many messages it stands for."""
    return len(message.ids) if isinstance(message, Many) else 1


def singles(message: Message) -> Sequence[Message]:
    """The messages that it stands for, each about one job; most stand for themselves."""
    if isinstance(message, Batch):
        return [single for each in message.messages for single in singles(each)]
    if isinstance(message, Many):
        _, *rest = attrs.astuple(message.said, recurse=False)
        make: Any = type(message.said)
        return [make(id, *rest) for id in message.ids]
    return (message,)


def one_of(message: Message, id: JobId) -> Message:
    """Of a message about several jobs, what it says of this one of them."""
    if isinstance(message, Many):
        _, *rest = attrs.astuple(message.said, recurse=False)
        make: Any = type(message.said)
        said: Message = make(id, *rest)
        return said
    if isinstance(message, YourJobs):
        return YourJobs(tuple([each for each in message.copies if each.id == id]), message.more)
    return message


@attrs.define
class Frame:
    """A message, or a batch, with what its header says of the sender (original 5.2).

    `flags` are the sender's own node flags. `capabilities` is the number in the header's first
    two reserved bytes, which original nodes write as zero and ignore.
    """

    sender: NodeId
    port: int
    flags: int
    message: Message
    capabilities: int = 0
    incarnation: int = 0
    """In PING, PONG and MEET of our nodes: which process says it (`identity`)."""
    format: int = 0
    """Likewise: the number of its formats (`base.FORMAT`);"""
    version: bytes = b""
    """and what its version is called, at most 14 bytes."""
    ip: bytes = b""
    """Likewise: where other nodes are to reach the sender; empty: where the link comes from."""
    bus_port: int = 0

    @property
    def content(self) -> Sequence[Message]:
        """Its message, or those of its batch."""
        message = self.message
        return message.messages if isinstance(message, Batch) else (message,)

    @property
    def messages(self) -> Sequence[Message]:
        """The same, each about one job."""
        return singles(self.message)
