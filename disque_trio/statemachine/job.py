"""The job record, its id, and the arithmetic of its deadlines (original 3 and 4).

Fields are written by: `lifecycle` (state, times, flags, counters), `copies` (holders),
`replication` (confirmed while it waits for copies), `repair` (confirmed while it is active or
queued), `acks` (confirmed and attempts while it is acked), `many` (confirmed likewise, and flags),
`shortcuts` (as `lifecycle`), `queue` and `groups` (in_line), `jobtable` (before and after),
`deadletters` (as `lifecycle`, and expires), `memory` (replacements of the initial `extensions`).
"""

from binascii import b2a_base64, crc32
from functools import lru_cache
from typing import Final

import attrs

from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    BCAST_WILLQUEUE,
    DELIVERED,
    FOREVER,
    JOB_ID_LENGTH,
    QUEUED_ONCE,
    WAIT_REPL,
    Body,
    ClientId,
    CommandError,
    JobId,
    Millis,
    NodeId,
    Reply,
    id_start,
)
from disque_trio.statemachine.extensions import (
    ALIVE,
    NO_ERROR,
    DeadState,
    Extensions,
    LastError,
    needs_of,
)
from disque_trio.statemachine.suggestions import shown
from disque_trio.statemachine.timers import Timed

DESYNC: Final[Millis] = 250
"""Requeue times vary at random by up to this much either way, so that holders do not requeue a job
at the same time."""
ANNOUNCE_AHEAD: Final[Millis] = 500
"""WILLQUEUE is sent this long before a requeue."""
STAMPS: Final = 1_000_000
"""The number of creation stamps per millisecond."""
LAST_STAMP: Final = (1 << 64) - 1
"""The greatest creation stamp in a message. A peer may send any."""
MAX_GC_ATTEMPT: Final = 10
MAX_GC_WAIT: Final[Millis] = 180_000
_NO_ID: Final = b"not the id that ADDJOB answered: 40 characters, of which the first are D-"
_MAX_TTL_MINUTES: Final = 0xFFFF
_in_base64: Final = b2a_base64


@attrs.define(eq=False, weakref_slot=False)
class Job(Timed):
    """One job in this node, in any state. Times are monotonic milliseconds of this node.

    A dummy ack, which keeps the acknowledgement of a job that is not here, has no queue and no
    body.
    """

    id: JobId
    queue: bytes | None
    body: Body | None
    replicas: int
    made: Millis
    """Creation time by the wall clock of the creating node; with `number`, the creation stamp."""
    number: int
    """The position among the jobs of that millisecond. Two numbers take 8 bytes, a combined one
    takes 48."""
    expires: Millis
    delay: Millis
    retry: Millis
    holders: tuple[NodeId, ...]
    """Nodes that may hold a copy ("nodes-delivered")."""
    requeue_at: Millis = 0
    """When this node enqueues or requeues it; 0 is never."""
    confirmed: tuple[NodeId, ...] | None = None
    """In state wait-repl: nodes that have confirmed a copy. In state acked: nodes that have
    confirmed the acknowledgement. Otherwise None or, while some holders have not confirmed that
    they have a copy, the other holders."""
    state: int = WAIT_REPL
    flags: int = 0
    nacks: int = 0
    deliveries: int = 0
    """Additional deliveries: the number of requeues without a NACK."""
    extensions: Extensions | None = None
    """The data beyond the original's record; None for a plain job."""
    gc_attempt: int = attrs.field(default=0, init=False)
    gc_at: Millis = 0
    """In state acked: the time of the next attempt to collect it."""
    in_line: bool = attrs.field(default=False, init=False)
    """Its queue has an entry for it, live or stale."""
    before: "Job | None" = attrs.field(default=None, init=False, repr=False)
    """In the table's linked list: the previous job, and `after` the next one."""
    after: "Job | None" = attrs.field(default=None, init=False, repr=False)

    @property
    def ctime(self) -> int:
        """The creation stamp, as in messages and replies."""
        made = self.made
        # In parts: the compiled form multiplies no more than 30 bits without a call.
        return ((made >> 20) * STAMPS << 20) + (made & 0xFFFFF) * STAMPS + self.number

    @property
    def delay_s(self) -> int:
        """The delay in messages and records: whole seconds, rounded up, so that it never ends
        early."""
        return -(-self.delay // 1000)

    @property
    def priority(self) -> int:
        """Jobs of a queue are ordered by this first; 0 for most jobs."""
        return 0 if self.extensions is None else self.extensions.priority

    @property
    def group(self) -> bytes | None:
        """Groups of a queue are served in turn; None for most jobs."""
        return None if self.extensions is None else self.extensions.group

    @property
    def dead_state(self) -> DeadState:
        """Whether it is dead, and how often it was redriven."""
        return ALIVE if self.extensions is None else self.extensions.dead

    @property
    def snoozes(self) -> int:
        """How often RELEASE DELAY has postponed it."""
        return 0 if self.extensions is None else self.extensions.snoozes

    @property
    def error(self) -> LastError:
        """The error of the last NACK with ERROR."""
        return NO_ERROR if self.extensions is None else self.extensions.error

    @property
    def is_dummy(self) -> bool:
        """Is it an acknowledgement without a job (original 6.5)?"""
        return self.queue is None


@attrs.define(eq=False, weakref_slot=False)
class PendingAdd:
    """An ADDJOB that waits for replicas or, once settled, for the replies to earlier requests of
    the client."""

    client: ClientId
    job: Job | None
    """None once it is settled."""
    deadline: Millis
    """When the wait ends; 0 is never."""
    widen_at: Millis
    """When its job may be sent to one more node."""
    size: int
    """The size of the job's body, in bytes."""
    is_silent: bool
    """CLIENT REPLY suppresses the reply."""
    reply: Reply = None
    """The reply, once it is settled."""
    sync: int = 0
    """How many copies must be confirmed before the reply."""


def needs(job: Job) -> int:
    """The capabilities that a node must have to keep the job."""
    return needs_of(job.delay, job.retry, job.extensions)


def had_its_turn(job: Job) -> bool:
    """Has this node enqueued or delivered this at-most-once job, so that it must not do so
    again?"""
    return not job.retry and bool(job.flags & (DELIVERED | QUEUED_ONCE))


def was_ever_queued(job: Job) -> bool:
    """Has any node enqueued this job, according to this node?"""
    return bool(job.flags & (DELIVERED | QUEUED_ONCE) or job.deliveries or job.nacks or job.snoozes)


def may_be_queued(job: Job) -> bool:
    """True for an active job, except an at-most-once job that has been enqueued before."""
    if job.state != ACTIVE or not job.requeue_at:
        return False
    return bool(job.retry) or not had_its_turn(job)


def next_wake(job: Job) -> Millis:
    """When the job timer is due: the earliest of the job's deadlines (original 4.4)."""
    wake = job.expires
    if job.state == ACKED:
        due = job.gc_at
    elif job.state == WAIT_REPL or not job.requeue_at:
        return wake
    elif job.flags & BCAST_WILLQUEUE:
        due = job.requeue_at - ANNOUNCE_AHEAD
    else:
        due = job.requeue_at
    return min(wake, due)


def gc_wait(attempt: int) -> Millis:
    """The wait before the next attempt to collect an acknowledged job, before random variation."""
    return min(1000 << attempt, MAX_GC_WAIT)


def make_id(node: NodeId, bits: int, ttl_s: int, *, at_least_once: bool) -> JobId:
    """A job id with 144 random `bits` (original 3.2, but see original, defect 10)."""
    return id_with(id_start(node), bits, id_end(ttl_s, at_least_once))


def id_with(start: bytes, bits: int, end: bytes) -> JobId:
    """A job id with 144 random `bits` between the results of `id_start` and `id_end`."""
    return start + _in_base64(bits.to_bytes(18, "big"), newline=False) + end


@lru_cache(maxsize=128)
def id_end(ttl_s: int, is_at_least_once: bool) -> bytes:
    """The end of an id: the TTL in minutes. An odd number marks at-least-once delivery, an even one
    at-most-once."""
    minutes = min(ttl_s // 60, _MAX_TTL_MINUTES)
    return b"-%04x" % (minutes | 1 if is_at_least_once else minutes & ~1)


@lru_cache(maxsize=1 << 12)
def digest_of(holders: tuple[NodeId, ...]) -> int:
    """A digest with which nodes compare lists of holders, independent of their order. Never 0."""
    return crc32(b"".join(sorted(holders))) or 1


def is_well_formed(job_id: bytes) -> bool:
    """Does the id pass the original's check, which covers only length and separators (original
    3.3)?"""
    if len(job_id) != JOB_ID_LENGTH:
        return False
    return job_id[10] == job_id[35] == job_id[1] == 0x2D and job_id[0] == 0x44


def check_id(job_id: bytes) -> JobId:
    """The id itself. Raises CommandError BADID if it is malformed."""
    if not is_well_formed(job_id):
        raise CommandError(b"BADID Invalid Job ID format. %b is %b" % (shown(job_id), _NO_ID))
    return job_id


def ttl_minutes(job_id: JobId) -> int:
    """The TTL field; a digit that is not hexadecimal counts as 0 (original 3.3)."""
    minutes = 0
    for digit in job_id[36:40].lower():
        minutes = minutes * 16 + max(0, b"0123456789abcdef".find(digit))
    return minutes


def ttl_range(job_id: JobId) -> tuple[Millis, Millis]:
    """The shortest and the longest TTL, in milliseconds, with which a job gets this id."""
    minutes = ttl_minutes(job_id)
    even = minutes & ~1
    return even * 60_000, FOREVER if minutes >= _MAX_TTL_MINUTES - 1 else (even + 2) * 60_000


def is_at_least_once(job_id: JobId) -> bool:
    """Does the id mark at-least-once delivery?"""
    return bool(ttl_minutes(job_id) & 1)


def rank(node: NodeId, job_id: JobId) -> int:
    """A number by which all nodes sort nodes in the same order for a job; the order differs per
    job."""
    return int.from_bytes(node, "big") ^ int.from_bytes((job_id[11:35] * 2)[:40], "big")


def wins(mine: NodeId, other: NodeId, job_id: JobId) -> bool:
    """Does `other` win, that is, keep a job that both nodes have queued? Determined by the IDs of
    the nodes and of the job (original 5.12)."""
    return rank(other, job_id) > rank(mine, job_id)
