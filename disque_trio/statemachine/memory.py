"""What a node's records weigh, kept up to date as they come and go (docs/memory.md).

The weights are what CPython needs for a record with everything that hangs on it: its slots, its
numbers, its id, its places in the tables and in the timer wheel. `benchmarks.memory` measures
them against the resident size of a process. Nothing is ever walked: a job is charged when it comes
into the table, and is let off when it leaves.
"""

from collections import OrderedDict
from typing import Final

import attrs

from disque_trio.statemachine.base import ACKED, DELIVERED, JobId, Millis
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.timers import Timed

JOB_BYTES: Final = 436
"""A job without its body, and its share of the tables. Names of queues and lists of holders are
shared between jobs."""
SPILLED_BYTES: Final = 160
"""What a body leaves in memory when it is on disk."""
DUMMY_BYTES: Final = 610
QUEUE_BYTES: Final = 1296
SUPPLY_BYTES: Final = 600
"""That other nodes have jobs of a queue."""
DEMAND_BYTES: Final = 560
"""A queue for which other nodes have clients that wait."""
ASKER_BYTES: Final = 160
CLIENT_BYTES: Final = 2800
"""A client in the machine and in the shell, without what it has sent or is owed."""
SLOT_BYTES: Final = 560
"""A slot of the timer wheel beyond its jobs' entries, and the moments that its jobs share with few:
where jobs come in quick succession, many are in each slot and most moments are shared."""
SPILLABLE_BYTES: Final = 100
TOMBSTONE_BYTES: Final = 150
RESEND_BYTES: Final = 8
"""An acknowledgement that is still to be sent again to a node that has returned."""
SCAN_BYTES: Final = 8
"""A name that a running iteration has still to come to."""

NEVER: Final = 1 << 62


@attrs.define(eq=False, weakref_slot=False)
class Memory(Timed):
    """One node's account. Bytes; its timer runs while there is pressure."""

    held: int = 0
    """Of jobs and queues: the part that is kept up to date at every change."""
    rest: int = 0
    """Of everything else, as `pressure` last found it."""
    soft: int = 0
    """`held` beyond this is pressure: more than 75 % is used (`pressure`)."""
    hard: int = 0
    """`held` beyond this is want: more than 95 % is used (`pressure`)."""
    high_water: int = 0
    """The most that `held` was since it last was much and then little (`pressure`)."""
    peak: int = 0
    evicted: int = 0
    """How many jobs were evicted since the start (`pressure`)."""
    evictable: OrderedDict[JobId, Job] = attrs.Factory(OrderedDict)
    """What may be dropped for want of memory, oldest first, but for dummy acks (`lifecycle`). A
    plain dictionary would go over all that have left it to find the oldest."""
    dummies: OrderedDict[JobId, Job] = attrs.Factory(OrderedDict)
    """The dummy acks, oldest first (`lifecycle`)."""
    spill_above: int = NEVER
    """`held` beyond this asks for bodies to be spilled (`pressure`)."""
    spillable: dict[JobId, Job] | None = None
    """Jobs whose bodies might go to disk, None where there is no `spill-directory`
    (`spilling`)."""
    review_at: Millis = 0
    """When the rest is to be weighed again (`pressure`)."""
    spill_again: Millis = 0
    """Not before this moment, for the disk has failed (`spilling`)."""
    idle: list[bytes] = attrs.Factory(list)
    """Names of queues that `pressure` has still to look at on its round."""


def of_job(job: Job) -> int:
    """What this job weighs."""
    body = job.body
    if isinstance(body, bytes):
        return JOB_BYTES + len(body)
    return DUMMY_BYTES if body is None else JOB_BYTES + SPILLED_BYTES


def is_evictable(job: Job) -> bool:
    """May it go for want of memory? Acknowledged, or to be delivered once at most, and it was."""
    return job.state == ACKED or (not job.retry and bool(job.flags & DELIVERED))


def of_queue(queue: Queue) -> int:
    """What this queue weighs, without its jobs."""
    supply = 0 if queue.supply is None else SUPPLY_BYTES
    return QUEUE_BYTES + len(queue.name) + supply


def of_demand(name: bytes, askers: int = 0) -> int:
    """What it weighs that clients of so many other nodes wait for jobs of this queue."""
    return DEMAND_BYTES + len(name) + askers * ASKER_BYTES
