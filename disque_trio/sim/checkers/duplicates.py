"""Why a job was delivered again: a cause for every duplicate.

From the serve back to the stay in a queue that enabled it, over the givers if the job moved, and
from there to what the nodes concerned did not know: the first rule that fits names the cause
(docs/guarantees.md, "Causes of duplicates").

Nodes lease jobs: a node that queues a job again should have known of the last *lease* (a delivery,
or a WORKING), and D1 requires that it was over. If a holder was not told of the lease, it is D4
where a cut, an outage or a loss blocked the message, D5 where the message was late.
"""

from typing import Final

import attrs

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.causes import RULES
from disque_trio.sim.checkers.intervals import Partition
from disque_trio.sim.checkers.propagation import DuplicateCase
from disque_trio.sim.checkers.records import Job, Lease, Queueing
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.sim.scenarios.vocabulary import DUPLICATE_CAUSES
from disque_trio.tracing.rows import Row

CAUSES: Final[dict[str, str]] = {
    "D0": "a consumer asked for it",
    "D1": "the lease was over, and no node knew that the job is done",
    "D2": "the acknowledgement was on the other side of a partition",
    "D3a": "the acknowledgement was lost in a crash",
    "D3b": "the acknowledgement was evicted for lack of memory",
    "D3c": "the acknowledgement was collected while an unlisted node had a replica",
    "D4": "two nodes queued it, and a partition or a loss stopped the messages between them",
    "D5": "two nodes queued it, and the messages between them were late",
    "D6": "the messages went to an incomplete list of holders",
    "D7": "a replica reached a node that had forgotten the job",
    "D8": "a replica was restored from the disk",
    "D9": "FASTACK could not reach a holder",
    "D10": "a clock was wrong",
    "D11": "it was acknowledged while it moved",
    "D12": "its ADDJOB had failed, and left replicas behind",
    "D13": "its producer added it twice",
    "DX": "nothing explains it",
}
UNAVOIDABLE: Final = ("D0", "D1", "D2", "D4", "D9", "D12")
"""Causes that no queue can avoid without waiting; D0 is wanted."""


@attrs.frozen
class Duplicate:
    """A second or later delivery of a job."""

    job: str
    time: Micros
    node: str
    client: str
    cause: str
    queued: Micros
    """When the job was queued for it."""
    leased: Micros
    """When it had been delivered or leased before."""
    is_after_ack: bool
    """It had been acknowledged by then."""
    is_dominated: bool
    """Messages of any kind could have told its node of the ack (by vector clocks)."""
    since_heal: Micros | None
    """How long after the last cut; 0 during a cut, None without any."""


def on_serve(case: Case, _row: Row, job: Job) -> None:
    """Find the cause of a serve that is not the first now, while messages under way are known."""
    serve = job.lease
    if serve is None or serve.before is None:
        return
    if serve.queueing is not None:
        duplicate = DuplicateCase(case, job, serve, serve.before, serve.queueing.chain())
        serve.cause = next(cause for cause, rule in RULES if rule(duplicate))
    else:
        serve.cause = "DX"


def forget(job: Job) -> None:
    """Drop the lease before the last: its successor has been judged."""
    if job.lease is not None and job.lease.before is not None:
        job.lease.before.before = None


def on_deliver(
    case: Case, row: Row, job: Job, serve: Lease, partition: Partition | None
) -> Duplicate:
    """A delivery after the first, with its cause. If a later serve has arrived before it, it
    repeats that one."""
    if partition is not None:
        partition.duplicates += 1
    case.mark("duplicate.any")
    is_after_ack = job.first_ack is not None and job.first_ack <= serve.time
    if is_after_ack:
        case.mark("duplicate.after_ack")
    before = serve.before or serve
    return Duplicate(
        job.id,
        row.time,
        row.node,
        row.client,
        serve.cause or job.first_cause or "DX",
        serve.time if serve.queueing is None else serve.queueing.root().time,
        before.time,
        is_after_ack,
        serve.is_dominated,
        case.world.since_heal(serve.time),
    )


def note_first(job: Job, serve: Lease) -> None:
    """Record the first delivery of a job, which need not be of its first serve."""
    job.first_cause = serve.cause


def unseen_serve(case: Case, row: Row, job: Job) -> Lease:
    """The trace has no serve: assume that the node has just queued the job by its retry timer."""
    copy = job.copies.get(row.node)
    stay = None if copy is None else copy.last_queueing
    stay = stay or Queueing(row.time, row.mono, row.node, "retry")
    serve = Lease(row.time, row.node, row.client, stay, job.expected_since, job.lease)
    serve.counted = (job.nacked, job.requeued)
    job.lease = serve
    job.serves += 1
    job.expected_since = row.time
    on_serve(case, row, job)
    forget(job)
    return serve


def describe(found: Duplicate, scenario: str) -> str:
    """The description of a duplicate that the scenario does not expect."""
    waited = (found.time - found.leased) / 1e6
    text = f"delivered again after {waited:.3f} s: {CAUSES[found.cause]} ({found.cause})"
    if found.cause not in DUPLICATE_CAUSES:
        return f"{text}; no scenario may expect that"
    return f"{text}; expect.duplicates of {scenario} does not have {found.cause}"
