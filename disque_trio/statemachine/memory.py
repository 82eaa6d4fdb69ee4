"""What a node's records weigh, kept up to date as they come and go (docs/memory.md).

The weights are what CPython needs for a record with everything that hangs on it: its slots, its
numbers, its id, its places in the tables and in the timer wheel. They lie between those of the pure
form, where a number may be an object of its own, and of the compiled form, where a record takes 16
bytes more. `benchmarks.memory` measures them against the resident size of a process. The account is
never computed by a walk: a job's weight is added when it enters the table, and subtracted when it
leaves.

Writes `Memory.held` and `Job.extensions` where a job gets other extensions.
"""

from collections import OrderedDict
from typing import Final

import attrs

from disque_trio.statemachine.base import ACKED, DEAD, DELIVERED, JobId, Millis
from disque_trio.statemachine.extensions import Extensions
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.timers import Timed

JOB_BYTES: Final = 421
"""A job without its body, and its share of the tables. Names of queues and lists of holders are
shared between jobs."""
SPILLED_BYTES: Final = 160
"""What a body leaves in memory when it is on disk."""
DUMMY_BYTES: Final = 545
QUEUE_BYTES: Final = 1258
SUPPLY_BYTES: Final = 600
"""A `Supply`: which other nodes have jobs of a queue."""
DEMAND_BYTES: Final = 560
"""A `Demand`: at which other nodes clients wait on a queue."""
ASKER_BYTES: Final = 160
CLIENT_BYTES: Final = 2800
"""A client in the machine and in the driver, without its buffered input and output."""
KEY_BYTES: Final = 330
"""An entry of the index of keys, without the key."""
SEARCH_BYTES: Final = 2200
"""What is asked about a key, for a client of SHOW KEY or CANCEL KEY, or for a job."""
KEPT_BYTES: Final = 700
"""A key that stays taken, likewise."""
RESULT_BYTES: Final = 700
"""A result that is kept, without its bytes, likewise."""
SLOT_BYTES: Final = 360
"""A slot of the timer wheel without its jobs' entries, with the moments that are shared by few
jobs. Jobs that come in quick succession share slots and moments."""
SPILLABLE_BYTES: Final = 100
TOMBSTONE_BYTES: Final = 150
RESEND_BYTES: Final = 8
"""An acknowledgement that is still to be sent again to a node that has returned."""
PURGE_BYTES: Final = 8
"""A job that a purge has not reached yet."""
TRACKED_DELIVERY_BYTES: Final = 350
"""A delivery with a token, tied to a connection."""
COUNT_BYTES: Final = 120
"""How many jobs of a queue are leased; a lease of a group with limits; a group that waits for a
place."""
GROUP_LIMIT_BYTES: Final = 1300
"""The limits of a group in use."""
WAITS_BYTES: Final = 600
"""The jobs of a queue that are delayed, or were read from the journal: that there are any,"""
SECOND_BYTES: Final = 150
"""and each second in which some of them are due."""
SCAN_BYTES: Final = 8
"""A name that a running iteration has not reached yet."""

NEVER: Final = 1 << 62


@attrs.define(eq=False, weakref_slot=False)
class Memory(Timed):
    """One node's account. Bytes; its timer runs while there is pressure."""

    held: int = 0
    """Of jobs and queues: the part that is kept up to date at every change."""
    rest: int = 0
    """Of everything else, as `pressure` last found it."""
    soft: int = 0
    """Above this, `held` is level 1, pressure: more than 75 % is used (`pressure`)."""
    hard: int = 0
    """Above this, `held` is level 2, shortage: more than 95 % is used (`pressure`)."""
    high_water: int = 0
    """The most that `held` was since a backlog last drained (`pressure`)."""
    peak: int = 0
    is_refused: bool = False
    """The system refuses the process more memory (`pressure`)."""
    surplus: int = 0
    """Resident bytes beyond the accounted ones at the last measurement, less a trial; 0 if it was
    never measured (`resident_size`)."""
    trial: tuple[int, int] | None = None
    """The resident and the accounted size when the trial that runs began (`resident_size`)."""
    trial_at: Millis = 0
    """When the next trial may begin (`resident_size`)."""
    trial_pause: Millis = 0
    """How long the last trial that failed has put off the next (`resident_size`)."""
    evicted: int = 0
    """How many jobs were evicted since the start (`pressure`)."""
    evictable: OrderedDict[JobId, Job] = attrs.Factory(OrderedDict)
    """Jobs that may be evicted, oldest first, without dummy acks (`lifecycle`). To find its oldest
    entry, a plain dictionary would step over all that have left it."""
    dummies: OrderedDict[JobId, Job] = attrs.Factory(OrderedDict)
    """The dummy acks, oldest first (`lifecycle`)."""
    spill_above: int = NEVER
    """Above this, bodies are to be spilled (`pressure`)."""
    spillable: dict[JobId, Job] | None = None
    """Jobs whose bodies might go to disk, None where there is no `spill-directory`
    (`spilling`)."""
    review_at: Millis = 0
    """When `rest` is to be computed again (`pressure`)."""
    spill_again: Millis = 0
    """Not before this moment, for the disk has failed (`spilling`)."""
    idle: list[bytes] = attrs.Factory(list)
    """Names of queues that `pressure` has still to check in this round."""


def of_job(job: Job) -> int:
    """What this job weighs."""
    body = job.body
    more = 0 if job.extensions is None else job.extensions.weight
    if isinstance(body, bytes):
        return JOB_BYTES + len(body) + more
    return DUMMY_BYTES if body is None else JOB_BYTES + SPILLED_BYTES + more


def put_extensions(memory: Memory, job: Job, extensions: Extensions) -> None:
    """Another record in place of the job's extensions, which other jobs may share."""
    memory.held += extensions.weight
    memory.held -= 0 if job.extensions is None else job.extensions.weight
    job.extensions = extensions


def is_evictable(job: Job) -> bool:
    """May it be evicted? True if acknowledged, or delivered and at-most-once."""
    if job.state == DEAD:
        return False
    return job.state == ACKED or (not job.retry and bool(job.flags & DELIVERED))


def of_key(name: tuple[bytes, bytes]) -> int:
    """What a job's entry in the index of keys weighs."""
    return KEY_BYTES + len(name[1])


def of_kept(name: tuple[bytes, bytes]) -> int:
    """What the key of a job that is gone weighs."""
    return KEPT_BYTES + len(name[0]) + len(name[1])


def of_result(queue: bytes, value: bytes) -> int:
    """What the result of a job of this queue weighs."""
    return RESULT_BYTES + len(queue) + len(value)


def of_queue(queue: Queue) -> int:
    """What this queue weighs, without its jobs."""
    supply = 0 if queue.supply is None else SUPPLY_BYTES
    return QUEUE_BYTES + len(queue.name) + supply


def of_demand(name: bytes, askers: int = 0) -> int:
    """What a `Demand` for this queue with so many askers weighs."""
    return DEMAND_BYTES + len(name) + askers * ASKER_BYTES
