"""Words that every module shares: identities, time, job states, flags and replies.

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
"""One bus connection of this node, numbered from 1 as links come; 0 is no link."""
Millis = int
"""Milliseconds: a duration, or a moment on the monotonic clock unless a name says wall."""

FOREVER: Final[Millis] = 1 << 61
NODE_ID_LENGTH: Final = 40
JOB_ID_LENGTH: Final = 40
LAST_PORT: Final = 65_535
MAX_SECONDS: Final = 0xFFFF_FFFF
"""What a serialized job can say of its expiry."""
ORIGINAL_PERIOD_S: Final = (1 << 31) // 1000
"""The longest DELAY and RETRY that original nodes can count, in 32-bit milliseconds: 24.8 days."""
LONGEST_PERIOD_S: Final = 10 * 366 * 86_400
"""The longest that is taken, and the longest KEEP: ten years."""
MAX_RESULT: Final = 64 << 20
"""Bytes of a result of a job, whatever `result-max-bytes` says."""
MAX_INTEGER: Final = (1 << 63) - 1
"""Of a word of a request."""


@attrs.define
class Now:
    """The two clocks, read together by the driver (decision 3).

    `mono` never goes back and serves every timer. `wall` is Unix time and serves what crosses
    machines: creation stamps and what people see. `micros` is the rest of the wall clock below
    a millisecond, for TIME and MONITOR.
    """

    mono: Millis
    wall: Millis
    micros: int = 0


# Job states, with the numbers that serialized jobs carry (original 4.1).
WAIT_REPL: Final = 0
ACTIVE: Final = 1
QUEUED: Final = 2
ACKED: Final = 3
DEAD: Final = 4
"""Ours: kept, and delivered to nobody (decision 71)."""
STATE_NAMES: Final = (b"wait-repl", b"active", b"queued", b"acked", b"dead")

# Job flags, likewise.
BCAST_QUEUED: Final = 1
"""The next enqueue is announced with QUEUED."""
BCAST_WILLQUEUE: Final = 2
"""The next requeue is announced with WILLQUEUE, half a second ahead."""
DELIVERED: Final = 4
"""This node has handed the job out at least once."""
QUEUED_ONCE: Final = 8
"""An at-most-once job has been in this node's queue; of another job, it has been in the queue of a
node that has said so. Never leaves the node."""
RECORDED: Final = 16
"""In the journal only: the node that wrote this at-most-once job also records its delivery."""
TAKEN: Final = 16
"""The last that was said of this at-least-once job is that another node has given it to a worker.
Never leaves the node."""
LEASED: Final = 32
"""This node has given the lease that runs, or ran last. Never leaves the node."""
GIVEN: Final = 64
"""This node has given the job to a node that the other holders may not know. Never leaves the
node."""
GROWN: Final = 128
"""This node has learned of a holder that the others may not know, and has not told them yet. Never
leaves the node."""
DELAYED: Final = 256
"""This node is to queue it when its delay is over: that of ADDJOB, or that of a NACK or RELEASE
here. In memory only."""
POSTPONED: Final = 512
"""A NACK or RELEASE has postponed it, here or elsewhere: nobody is to queue it before
(`postponing`). In memory only."""
RESTORED: Final = 1024
"""It was read from the journal, and waits here for the end of its RETRY, as nothing is known of it
since. In memory only."""
LAPSED: Final = 2048
"""The lease that this node gave last is over, and the job is not queued again yet: all holders are
warned half a second before. In memory only."""
DELIVERED_HERE: Final = LEASED | LAPSED
"""A job with one of these counts as leased: from its delivery until it is queued again."""
RETURNING: Final = 4096
"""It was queued when the node ended, and is queued again once the other holders have been asked.
Until then its last record says that it is queued. In memory only."""
TRACED: Final = 8192
"""What happens to it here is written down (`trace`). In memory only. It is the highest flag, so
that a comparison finds it."""
STORED_FLAGS: Final = 0xFF
"""What a record of the journal has room for."""
CARRIED_FLAGS: Final = BCAST_QUEUED | BCAST_WILLQUEUE
"""The flags that a message may carry (original 4.5)."""

FORMAT: Final = 4
"""The number of everything that nodes write, send and announce (docs/versions.md). It is raised in
the first version that writes or sends something which the one before does not know. Versions from
before there was a number count as 0."""

VERSION_SIZE: Final = 14
"""How much of the name of its version a node announces."""

# Capabilities of nodes, which a frame's header announces (docs/bus.md).

BATCHES: Final = 1
"""It reads many messages about jobs in one frame (`wire.batches`)."""
MEETS: Final = 2
"""It tells which clients wait and which jobs there are: WAITING, HAVEJOBS."""
LISTS: Final = 4
"""It understands HOLDERS."""
EXTENDS: Final = 8
"""It reads and keeps job extensions (`extensions`)."""
PURGES: Final = 16
"""It understands PURGE."""
CLAIMS: Final = 32
"""It answers KEYCLAIM: which jobs have a key."""
BURIES: Final = 64
"""It keeps dead jobs, and understands JOBSTATE."""
POSTPONES: Final = 128
"""It understands POSTPONED."""
SNOOZES: Final = 256
"""It reads a POSTPONED that says how often the job was snoozed."""
ZONES: Final = 512
"""Its PONG names its zone, to nodes that announce this."""
LONG_WAITS: Final = 1024
"""It reads a POSTPONED whose wait has more than 32 bits of milliseconds, which are 49.7 days."""
ERRORS: Final = 2048
"""It keeps the last error of a job, and understands JOBERROR."""
RESULTS: Final = 4096
"""It keeps results of jobs, and understands RESULT."""
LIMITS: Final = 8192
"""It keeps the limits of queues, and delivers within them: QUEUELIMIT, LIMITPOLL and the like."""
WATCHES: Final = 16384
"""It pings few others in a large cluster, and understands SUSPECT (`watchers`)."""
DIGESTS: Final = 32768
"""It compares lists of holders by the digest in SETACK, and understands ACKHOLDERS. The last bit of
the header: later features are told by the format that a peer announces."""
CAPABILITIES: Final = (
    BATCHES | MEETS | LISTS | EXTENDS | PURGES | CLAIMS | BURIES | POSTPONES | SNOOZES
    | ZONES | LONG_WAITS | ERRORS | RESULTS | LIMITS | WATCHES | DIGESTS
)  # fmt: skip
"""What a node of ours announces, in PING, PONG and MEET."""
KEEPS_ALL: Final = EXTENDS | BURIES
"""It keeps every job of ours."""

# Queue pause bits (original 2.9).
PAUSE_IN: Final = 1
PAUSE_OUT: Final = 2

# Node flags, with the numbers that gossip carries (original 5.2).
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
    """In a `Lengthy`: so many of the values after it are an array."""

    count: int


class Lengthy:
    """A reply that is made while the client reads it, so that neither the other clients nor the
    memory of the node notice how much it is (`lengthy`).

    `parts` gives some of its values at a time, in the order of the protocol; no value is work that
    has no result yet. `left` estimates how many bytes are still to be made, and how many of them
    are in memory only for this reply. `work` is what it has cost to begin, as the number of bytes
    of other replies that cost as much. The rest may be made between any inputs, or never.
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
    """Stands for a body that the driver has written to disk (docs/memory.md).

    `bytes(it)` reads the body, and raises OSError if that fails. The machine never reads it: it
    passes it on in replies and messages, and the encoder reads. When nothing refers to it any more,
    its place on disk is free.
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
"""What a command answers; None is the null bulk string."""


def id_start(node: NodeId) -> bytes:
    """How the ids of a node's jobs begin."""
    return b"D-%b-" % node[:8]


def map_for(protocol: int, items: dict[bytes, Reply]) -> Reply:
    """Names and values as that version of the protocol has them: a map, or an array of both in
    turn."""
    if protocol == 3:
        return Map(items)
    return [part for pair in items.items() for part in pair]


def set_for(protocol: int, items: list[Reply]) -> Reply:
    """What has no order as that version of the protocol has it: a set, or an array."""
    return Set(items) if protocol == 3 else items


class CommandError(Exception):
    """A client's mistake: raised by a handler, answered as a `Failure`."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text)
        self.text = text


SYNTAX_ERROR: Final = b"ERR syntax error"
NOT_AN_INTEGER: Final = b"ERR value is not an integer or out of range"
