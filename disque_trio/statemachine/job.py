"""The job record, its id, and the arithmetic of its deadlines (original 3 and 4).

Fields are written by: `lifecycle` (state, times, flags, counters), `copies` (holders),
`replication` (confirmed while it waits for copies), `repair` (confirmed while it is active or
queued), `acks` (confirmed and attempts while it is acked), `many` (confirmed likewise, and flags),
`shortcuts` (as `lifecycle`), `queue` and `groups` (in_line), `jobtable` (before and after),
`deadletters` (as `lifecycle`, and expires), `memory` (other `extensions` in the place of those that
the job was made with).
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
"""Requeue times are spread by up to this much either way, so that holders do not wake together."""
ANNOUNCE_AHEAD: Final[Millis] = 500
"""WILLQUEUE goes out this long before a requeue."""
STAMPS: Final = 1_000_000
"""Creation stamps in a millisecond."""
LAST_STAMP: Final = (1 << 64) - 1
"""The greatest that a message can carry. A peer may send any."""
MAX_GC_ATTEMPT: Final = 10
MAX_GC_WAIT: Final[Millis] = 180_000
_NO_ID: Final = b"not the id that ADDJOB answered: 40 characters, of which the first are D-"
_MAX_TTL_MINUTES: Final = 0xFFFF
_in_base64: Final = b2a_base64


@attrs.define(eq=False, weakref_slot=False)
class Job(Timed):
    """One job in this node, whatever its state. Times are monotonic milliseconds of this node.

    A dummy ack, made for an acknowledgement of a job that is not here, has no queue and no body.
    """

    id: JobId
    queue: bytes | None
    body: Body | None
    replicas: int
    made: Millis
    """By the wall clock of the creating node; with `number` the creation stamp."""
    number: int
    """Position among the jobs of that millisecond. Two numbers take 8 bytes, a combined one 48."""
    expires: Millis
    delay: Millis
    retry: Millis
    holders: tuple[NodeId, ...]
    """Nodes that may hold a copy ("nodes-delivered")."""
    requeue_at: Millis = 0
    """When this node queues it (again); 0 is never."""
    confirmed: tuple[NodeId, ...] | None = None
    """While wait-repl: nodes known to hold a copy. While acked: nodes known to hold it as acked.
    Otherwise None; or, while holders have been asked for a copy and have not answered, the
    others."""
    state: int = WAIT_REPL
    flags: int = 0
    nacks: int = 0
    deliveries: int = 0
    """Additional deliveries: how often it was queued again without a NACK."""
    extensions: Extensions | None = None
    """What it has beyond the original's record; None for a plain job."""
    gc_attempt: int = attrs.field(default=0, init=False)
    gc_at: Millis = 0
    """While acked: when its collection is tried next."""
    in_line: bool = attrs.field(default=False, init=False)
    """Its queue has an entry for it, live or stale."""
    before: "Job | None" = attrs.field(default=None, init=False, repr=False)
    """In the table: the job that came before it, and the next one."""
    after: "Job | None" = attrs.field(default=None, init=False, repr=False)

    @property
    def ctime(self) -> int:
        """The creation stamp as others see it."""
        made = self.made
        # In parts: the compiled form multiplies no more than 30 bits without a call.
        return ((made >> 20) * STAMPS << 20) + (made & 0xFFFFF) * STAMPS + self.number

    @property
    def delay_s(self) -> int:
        """Its delay as messages and records have it: in whole seconds, rounded up, so that it is
        never over too early."""
        return -(-self.delay // 1000)

    @property
    def priority(self) -> int:
        """The place in its queue is by this first; 0 for most jobs."""
        return 0 if self.extensions is None else self.extensions.priority

    @property
    def group(self) -> bytes | None:
        """Groups of a queue are served in turn; None for most jobs."""
        return None if self.extensions is None else self.extensions.group

    @property
    def dead_state(self) -> DeadState:
        """Is it dead, and how often was it redriven?"""
        return ALIVE if self.extensions is None else self.extensions.dead

    @property
    def snoozes(self) -> int:
        """How often RELEASE DELAY has let it wait."""
        return 0 if self.extensions is None else self.extensions.snoozes

    @property
    def error(self) -> LastError:
        """Of the last NACK that said one."""
        return NO_ERROR if self.extensions is None else self.extensions.error

    @property
    def is_dummy(self) -> bool:
        """An acknowledgement without a job (original 6.5)."""
        return self.queue is None


@attrs.define(eq=False, weakref_slot=False)
class PendingAdd:
    """An ADDJOB that waits for the copies of its job, or, once settled, for the answers before its
    own."""

    client: ClientId
    job: Job | None
    """None once it is settled."""
    deadline: Millis
    """When the wait ends; 0 is never."""
    widen_at: Millis
    """When its job may go to one more node."""
    size: int
    """Of the body of its job, in bytes."""
    is_silent: bool
    """CLIENT REPLY says that it shall not be answered."""
    reply: Reply = None
    """Its answer, once it is settled."""
    sync: int = 0
    """How many copies must be confirmed before it is answered."""


def needs(job: Job) -> int:
    """The capabilities that a node must have to keep the job."""
    return needs_of(job.delay, job.retry, job.extensions)


def had_its_turn(job: Job) -> bool:
    """Has this node queued or delivered this at-most-once job? Then it must not again."""
    return not job.retry and bool(job.flags & (DELIVERED | QUEUED_ONCE))


def was_ever_queued(job: Job) -> bool:
    """Has any node queued this job, as far as is known here?"""
    return bool(job.flags & (DELIVERED | QUEUED_ONCE) or job.deliveries or job.nacks or job.snoozes)


def may_be_queued(job: Job) -> bool:
    """True for an active job, but for an at-most-once job that has been queued before."""
    if job.state != ACTIVE or not job.requeue_at:
        return False
    return bool(job.retry) or not had_its_turn(job)


def next_wake(job: Job) -> Millis:
    """When the job timer must look at this job: the earliest of its deadlines (original 4.4)."""
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
    """How long the next attempt to collect an ack waits, before its spread."""
    return min(1000 << attempt, MAX_GC_WAIT)


def make_id(node: NodeId, bits: int, ttl_s: int, *, at_least_once: bool) -> JobId:
    """A job id of 144 random `bits` (original 3.2, but for original, defect 10)."""
    return id_with(id_start(node), bits, id_end(ttl_s, at_least_once))


def id_with(start: bytes, bits: int, end: bytes) -> JobId:
    """A job id of 144 random `bits` between what `id_start` and `id_end` have made."""
    return start + _in_base64(bits.to_bytes(18, "big"), newline=False) + end


@lru_cache(maxsize=128)
def id_end(ttl_s: int, is_at_least_once: bool) -> bytes:
    """The TTL field's parity tells the delivery semantics: odd is at least once."""
    minutes = min(ttl_s // 60, _MAX_TTL_MINUTES)
    return b"-%04x" % (minutes | 1 if is_at_least_once else minutes & ~1)


@lru_cache(maxsize=1 << 12)
def digest_of(holders: tuple[NodeId, ...]) -> int:
    """What nodes compare to see whether they know the same holders, whatever their order. Never
    0."""
    return crc32(b"".join(sorted(holders))) or 1


def is_well_formed(job_id: bytes) -> bool:
    """The shape that the original checks, no more (original 3.3)."""
    if len(job_id) != JOB_ID_LENGTH:
        return False
    return job_id[10] == job_id[35] == job_id[1] == 0x2D and job_id[0] == 0x44


def check_id(job_id: bytes) -> JobId:
    """The id itself. Raises CommandError BADID for any other shape."""
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
    """What the id says of the job's delivery semantics."""
    return bool(ttl_minutes(job_id) & 1)


def rank(node: NodeId, job_id: JobId) -> int:
    """A number by which all nodes order the nodes in the same way, which differs for each job."""
    return int.from_bytes(node, "big") ^ int.from_bytes((job_id[11:35] * 2)[:40], "big")


def wins(mine: NodeId, other: NodeId, job_id: JobId) -> bool:
    """Does `other` win, that is, keep a job that both have queued? The ids of the nodes decide,
    mixed with the id of the job (original 5.12)."""
    return rank(other, job_id) > rank(mine, job_id)
