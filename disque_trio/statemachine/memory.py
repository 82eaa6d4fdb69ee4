"""Memory accounting: the sizes of a node's records, updated as they are added and dropped
(docs/memory.md).

The constants are the memory that CPython needs for a record with everything that belongs to it:
slots, numbers, id, entries in tables and in the timer wheel. They are between the sizes of the pure
form, where a number may be an object of its own, and of the compiled form, where a record takes 16
bytes more. `benchmarks.memory` compares them with the resident size of a process. The total is
never computed by a walk: a job's size is added when it enters the table, and subtracted when it
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
"""A job without its body, including its entries in tables. Jobs share names of queues and lists of
holders."""
SPILLED_BYTES: Final = 160
"""The memory of a body that is on disk."""
DUMMY_BYTES: Final = 545
QUEUE_BYTES: Final = 1258
SUPPLY_BYTES: Final = 600
"""A `Supply`: the other nodes with jobs of a queue."""
DEMAND_BYTES: Final = 560
"""A `Demand`: the other nodes where clients wait on a queue."""
ASKER_BYTES: Final = 160
CLIENT_BYTES: Final = 2800
"""A client in the machine and in the driver, without its buffered input and output."""
KEY_BYTES: Final = 330
"""An entry of the index of keys, without the key."""
SEARCH_BYTES: Final = 2200
"""A `Search` for a key, of a client of SHOW KEY or CANCEL KEY, or of a job."""
KEPT_BYTES: Final = 700
"""A key that stays reserved, without the names of queue and key."""
RESULT_BYTES: Final = 700
"""A kept result, without its value and the name of the queue."""
SLOT_BYTES: Final = 360
"""A slot of the timer wheel without the entries of its jobs, with the times that few jobs share.
Jobs that arrive in quick succession share slots and times."""
SPILLABLE_BYTES: Final = 100
TOMBSTONE_BYTES: Final = 150
RESEND_BYTES: Final = 8
"""An acknowledgement that must still be resent to a node that has returned."""
PURGE_BYTES: Final = 8
"""A job that a running purge has not reached yet."""
TRACKED_DELIVERY_BYTES: Final = 350
"""A delivery with a token, tied to a connection."""
COUNT_BYTES: Final = 120
"""A count of the leased jobs of a queue; a lease of a group with limits; a group that waits for a
place."""
GROUP_LIMIT_BYTES: Final = 1300
"""The limits of a group in use."""
WAITS_BYTES: Final = 600
"""A backlog: the delayed jobs of a queue, or those that were read from the journal."""
SECOND_BYTES: Final = 150
"""Each second of a backlog in which jobs are due."""
SCAN_BYTES: Final = 8
"""A name that a running iteration has not reached yet."""

NEVER: Final = 1 << 62


@attrs.define(eq=False, weakref_slot=False)
class Memory(Timed):
    """The memory account of a node, in bytes. Its timer runs while there is pressure."""

    held: int = 0
    """The size of jobs and queues: the part that every change updates."""
    rest: int = 0
    """The size of everything else, as last computed by `pressure`."""
    soft: int = 0
    """If `held` is above this, the level is 1, pressure: more than 75 % is used (`pressure`)."""
    hard: int = 0
    """If `held` is above this, the level is 2, shortage: more than 95 % is used (`pressure`)."""
    high_water: int = 0
    """The maximum of `held` since a backlog was last drained (`pressure`)."""
    peak: int = 0
    is_refused: bool = False
    """The system refuses more memory to the process (`pressure`)."""
    surplus: int = 0
    """Resident bytes beyond the accounted ones at the last measurement, less a trial; 0 before the
    first one (`resident_size`)."""
    trial: tuple[int, int] | None = None
    """The resident and the accounted size at the beginning of the running trial
    (`resident_size`)."""
    trial_at: Millis = 0
    """When the next trial may begin (`resident_size`)."""
    trial_pause: Millis = 0
    """The pause after the last failed trial (`resident_size`)."""
    evicted: int = 0
    """How many jobs were evicted since the start (`pressure`)."""
    evictable: OrderedDict[JobId, Job] = attrs.Factory(OrderedDict)
    """Jobs that may be evicted, oldest first, without dummy acks (`lifecycle`). In a plain
    dictionary, finding the oldest entry would step over all deleted ones."""
    dummies: OrderedDict[JobId, Job] = attrs.Factory(OrderedDict)
    """The dummy acks, oldest first (`lifecycle`)."""
    spill_above: int = NEVER
    """If `held` is above this, bodies are spilled (`pressure`)."""
    spillable: dict[JobId, Job] | None = None
    """Jobs whose bodies may be spilled; None without a `spill-directory` (`spilling`)."""
    review_at: Millis = 0
    """When `rest` is computed next (`pressure`)."""
    spill_again: Millis = 0
    """The earliest time of the next attempt to spill, after a failure of the disk (`spilling`)."""
    idle: list[bytes] = attrs.Factory(list)
    """Names of queues that `pressure` must still check in this round."""


def of_job(job: Job) -> int:
    """The accounted size of this job."""
    body = job.body
    more = 0 if job.extensions is None else job.extensions.weight
    if isinstance(body, bytes):
        return JOB_BYTES + len(body) + more
    return DUMMY_BYTES if body is None else JOB_BYTES + SPILLED_BYTES + more


def put_extensions(memory: Memory, job: Job, extensions: Extensions) -> None:
    """Replace the job's extensions, a record that other jobs may share."""
    memory.held += extensions.weight
    memory.held -= 0 if job.extensions is None else job.extensions.weight
    job.extensions = extensions


def is_evictable(job: Job) -> bool:
    """May it be evicted? True if acknowledged, or delivered and at-most-once."""
    if job.state == DEAD:
        return False
    return job.state == ACKED or (not job.retry and bool(job.flags & DELIVERED))


def of_key(name: tuple[bytes, bytes]) -> int:
    """The accounted size of a job's entry in the index of keys."""
    return KEY_BYTES + len(name[1])


def of_kept(name: tuple[bytes, bytes]) -> int:
    """The accounted size of a key that stays reserved."""
    return KEPT_BYTES + len(name[0]) + len(name[1])


def of_result(queue: bytes, value: bytes) -> int:
    """The accounted size of a kept result."""
    return RESULT_BYTES + len(queue) + len(value)


def of_queue(queue: Queue) -> int:
    """The accounted size of this queue, without its jobs."""
    supply = 0 if queue.supply is None else SUPPLY_BYTES
    return QUEUE_BYTES + len(queue.name) + supply


def of_demand(name: bytes, askers: int = 0) -> int:
    """The accounted size of a `Demand` for this queue with `askers` askers."""
    return DEMAND_BYTES + len(name) + askers * ASKER_BYTES
