"""Definitions that every module shares: identities, time, job states, flags and replies.

Level 0 of the ladder: imports nothing of the package.
"""

import enum
from collections.abc import Callable, Generator
from typing import Final

import attrs

NodeId = bytes
"""40 lower-case hexadecimal digits."""
JobId = bytes
"""40 bytes, ``D-<node>-<random>-<ttl>``; the layout is in `job`."""
ClientId = int
"""A client connection of this process, numbered from 1."""
LinkId = int
"""One bus connection of this node, numbered from 1 in order of creation; 0 is no link."""
Millis = int
"""Milliseconds: a duration, or a time on the monotonic clock unless the name has `wall`."""

FOREVER: Final[Millis] = 1 << 61
NODE_ID_LENGTH: Final = 40
JOB_ID_LENGTH: Final = 40
LAST_PORT: Final = 65_535
MAX_SECONDS: Final = 0xFFFF_FFFF
"""The greatest expiry that a serialized job can have."""
ORIGINAL_PERIOD_S: Final = (1 << 31) // 1000
"""The longest DELAY and RETRY that original nodes can count, in 32-bit milliseconds: 24.8 days."""
LONGEST_PERIOD_S: Final = 10 * 366 * 86_400
"""The longest DELAY, RETRY and KEEP that nodes accept: ten years."""
MAX_RESULT: Final = 64 << 20
"""The maximum size of a job's result, in bytes, regardless of `result-max-bytes`."""
MAX_INTEGER: Final = (1 << 63) - 1
"""The maximum size of a word of a request, in bytes."""


@attrs.define
class Now:
    """The two clocks, read together by the driver (decision 3).

    `mono` never goes back, and every timer uses it. `wall` is Unix time, for data that other
    machines or people read, such as creation stamps. `micros` is the part of the wall clock below a
    millisecond, for TIME and MONITOR.
    """

    mono: Millis
    wall: Millis
    micros: int = 0


# Job states, with their numbers in serialized jobs (original 4.1).
WAIT_REPL: Final = 0
ACTIVE: Final = 1
QUEUED: Final = 2
ACKED: Final = 3
DEAD: Final = 4
"""Ours: kept, and not delivered (decision 71)."""
STATE_NAMES: Final = (b"wait-repl", b"active", b"queued", b"acked", b"dead")

# Job flags, with their numbers in serialized jobs.
BCAST_QUEUED: Final = 1
"""This node announces its next enqueue with QUEUED."""
BCAST_WILLQUEUE: Final = 2
"""This node announces its next requeue with WILLQUEUE, half a second ahead."""
DELIVERED: Final = 4
"""This node has delivered the job at least once."""
QUEUED_ONCE: Final = 8
"""For an at-most-once job: it has been in this node's queue. For an at-least-once job: it has been
in the queue of this or a reporting node. Never leaves the node."""
RECORDED: Final = 16
"""In the journal only: the node that wrote this at-most-once job also records its delivery."""
TAKEN: Final = 16
"""According to the last report about this at-least-once job, another node has delivered it. Never
leaves the node."""
LEASED: Final = 32
"""The current or last lease belongs to a delivery by this node. Never leaves the node."""
GIVEN: Final = 64
"""This node has sent the job to a node that the other holders may not have in their lists. Never
leaves the node."""
GROWN: Final = 128
"""This node's list has a holder that the others may lack, and this node has not announced it yet.
Never leaves the node."""
DELAYED: Final = 256
"""This node must enqueue the job when its delay ends (from ADDJOB, or from a NACK or RELEASE here).
In memory only."""
POSTPONED: Final = 512
"""A NACK or RELEASE at any node has postponed the job: no node may enqueue it earlier
(`postponing`). In memory only."""
RESTORED: Final = 1024
"""The job was loaded from the journal, and waits for the end of its RETRY, because no other node
has reported on it since. In memory only."""
LAPSED: Final = 2048
"""The lease of this node's last delivery has ended, but the job is not requeued yet: WILLQUEUE
precedes the requeue by half a second. In memory only."""
DELIVERED_HERE: Final = LEASED | LAPSED
"""A job with one of these flags counts as leased: from its delivery until it is requeued."""
RETURNING: Final = 4096
"""The job was queued when the node stopped, and is requeued once the other holders have answered.
Until then, its last record in the journal is the enqueue. In memory only."""
TRACED: Final = 8192
"""Its events here are traced (`trace`). In memory only. It is the highest flag, so a comparison
detects it."""
STORED_FLAGS: Final = 0xFF
"""The flags that fit into a record of the journal."""
CARRIED_FLAGS: Final = BCAST_QUEUED | BCAST_WILLQUEUE
"""The flags that a message may carry (original 4.5)."""

FORMAT: Final = 4
"""The format number that nodes write, send and announce (docs/versions.md). A version that writes
or sends something unknown to the previous one increments it. Versions that announce no number count
as 0."""

VERSION_SIZE: Final = 14
"""The maximum length of the version name that a node announces, in bytes."""

# Capabilities of nodes, which a frame's header announces (docs/bus.md).

BATCHES: Final = 1
"""It reads many messages about jobs in one frame (`wire.batches`)."""
MEETS: Final = 2
"""It understands WAITING and HAVEJOBS, which report waiting clients and queued jobs."""
LISTS: Final = 4
"""It understands HOLDERS."""
EXTENDS: Final = 8
"""It reads and keeps job extensions (`extensions`)."""
PURGES: Final = 16
"""It understands PURGE."""
CLAIMS: Final = 32
"""It answers KEYCLAIM with the jobs that have a key."""
BURIES: Final = 64
"""It keeps dead jobs, and understands JOBSTATE."""
POSTPONES: Final = 128
"""It understands POSTPONED."""
SNOOZES: Final = 256
"""It reads a POSTPONED with the number of snoozes."""
ZONES: Final = 512
"""Its PONG has its zone, for nodes that announce this capability."""
LONG_WAITS: Final = 1024
"""It reads a POSTPONED whose wait has more than 32 bits of milliseconds (49.7 days)."""
ERRORS: Final = 2048
"""It keeps the last error of a job, and understands JOBERROR."""
RESULTS: Final = 4096
"""It keeps results of jobs, and understands RESULT."""
LIMITS: Final = 8192
"""It keeps the limits of queues, and delivers within them: QUEUELIMIT, LIMITPOLL and the like."""
WATCHES: Final = 16384
"""In a large cluster it pings only the nodes that it watches, and it understands SUSPECT
(`watchers`)."""
DIGESTS: Final = 32768
"""It compares lists of holders by the digest in SETACK, and understands ACKHOLDERS. This is the
last bit of the header: later features depend on the format that a peer announces."""
CAPABILITIES: Final = (
    BATCHES | MEETS | LISTS | EXTENDS | PURGES | CLAIMS | BURIES | POSTPONES | SNOOZES
    | ZONES | LONG_WAITS | ERRORS | RESULTS | LIMITS | WATCHES | DIGESTS
)  # fmt: skip
"""The capabilities that our nodes announce in PING, PONG and MEET."""
KEEPS_ALL: Final = EXTENDS | BURIES
"""The capabilities needed to keep any job of ours."""

# Queue pause bits (original 2.9).
PAUSE_IN: Final = 1
PAUSE_OUT: Final = 2

# Node flags, with their numbers in gossip (original 5.2).
PFAIL: Final = 1
FAIL: Final = 2
MYSELF: Final = 4
HANDSHAKE: Final = 8
NOADDR: Final = 16
MEET: Final = 32
DELETED: Final = 64
LEAVING: Final = 128


@attrs.define
class Status:
    """A RESP simple string, such as ``+OK``."""

    text: bytes


@attrs.define
class Failure:
    """A RESP error; the text starts with its code, such as ``ERR syntax error``."""

    text: bytes


@attrs.define
class Map:
    """A RESP3 map; `map_for` makes one for clients that know it."""

    items: dict[bytes, "Reply"]


@attrs.define
class Set:
    """A RESP3 set; `set_for` makes one for clients that know it."""

    items: "list[Reply]"


class Special(enum.Enum):
    """Replies that are neither a value nor a text."""

    NULL_ARRAY = "*-1"
    PENDING = "the client waits: its reply comes later"
    SILENCE = "no reply at all"


NULL_ARRAY: Final = Special.NULL_ARRAY
PENDING: Final = Special.PENDING
SILENCE: Final = Special.SILENCE

OK: Final = Status(b"OK")


@attrs.define
class Opening:
    """In a `Lengthy`: the next `count` values form an array."""

    count: int


class Lengthy:
    """A reply that is produced while the client reads it. A long one neither delays other clients
    nor occupies memory (`lengthy`).

    `parts` yields lists of values in protocol order; a list is empty if a step had no result yet.
    `left` estimates the remaining bytes, and how many of them are in memory only for this reply.
    `work` is the initial cost, in bytes of a reply with the same cost. The driver may advance
    `parts` between any inputs, or drop it.
    """

    __slots__ = ("left", "parts", "work")

    def __init__(
        self,
        parts: Generator[list["Reply"], None, None],
        work: int = 0,
        left: Callable[[], tuple[int, int]] = lambda: (0, 0),
    ) -> None:
        self.parts = parts
        self.left = left
        self.work = work


class Spilled:
    """A placeholder for a body that the driver has written to disk (docs/memory.md).

    `bytes(it)` reads the body, and raises OSError if that fails. The machine never reads it: it
    forwards it in replies and messages, and the encoder reads it. Its place on disk is freed with
    the last reference.
    """

    __slots__ = ("length",)

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __bool__(self) -> bool:
        return self.length > 0

    def __bytes__(self) -> bytes:
        raise NotImplementedError


Body = bytes | Spilled

Reply = (
    int | bytes | None | Spilled | Status | Failure | Special | Map | Set | list["Reply"]
    | Lengthy | Opening
)  # fmt: skip
"""The reply to a command; None is the null bulk string."""


def id_start(node: NodeId) -> bytes:
    """The prefix of the ids of a node's jobs."""
    return b"D-%b-" % node[:8]


def map_for(protocol: int, items: dict[bytes, Reply]) -> Reply:
    """A map in RESP3; in RESP2, an array of alternating names and values."""
    if protocol == 3:
        return Map(items)
    return [part for pair in items.items() for part in pair]


def set_for(protocol: int, items: list[Reply]) -> Reply:
    """A set in RESP3; an array in RESP2."""
    return Set(items) if protocol == 3 else items


class CommandError(Exception):
    """An error of a client's request: raised by a handler, sent as a `Failure`."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text)
        self.text = text


SYNTAX_ERROR: Final = b"ERR syntax error"
NOT_AN_INTEGER: Final = b"ERR value is not an integer or out of range"
