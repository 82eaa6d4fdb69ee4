"""The cause of every repeated delivery.

A rule goes back from the serve to the enqueueing that enabled it, through the senders if the job
moved, and from there to the messages that the nodes had not received. The first rule that fits
names the cause (docs/guarantees.md, "Causes of duplicates").

Nodes lease jobs: a node that queues a job again should know the last *lease* (a delivery, or a
WORKING), and D1 requires that it had expired. If the message about the lease did not reach a
holder, the cause is D4 if a cut, an outage or a loss blocked it, and D5 if it was late.
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
    "D1": "the lease was over, and no node knew that the job was done",
    "D2": "the ack was on the other side of a partition",
    "D3a": "a crash lost the ack",
    "D3b": "the ack was evicted for lack of memory",
    "D3c": "the ack was collected while an unlisted node had a replica",
    "D4": "two nodes enqueued it, and a partition or message loss separated them",
    "D5": "two nodes enqueued it, and the messages between them were late",
    "D6": "the messages went to an incomplete list of holders",
    "D7": "a replica reached a node that had forgotten the job",
    "D8": "a dropped replica came back from the disk",
    "D9": "FASTACK could not reach a holder",
    "D10": "a clock was wrong",
    "D11": "it was acknowledged while it moved to another node",
    "D12": "its ADDJOB had failed, but left replicas behind",
    "D13": "its producer had added it twice",
    "DX": "nothing explains it",
}
UNAVOIDABLE: Final = ("D0", "D1", "D2", "D4", "D9", "D12")
"""Causes that no queue can avoid without waiting; D0 is intended."""


@attrs.frozen
class Duplicate:
    """A second or later delivery of a job."""

    job: str
    time: Micros
    node: str
    client: str
    cause: str
    queued: Micros
    """When the job was queued for this delivery."""
    leased: Micros
    """When the previous delivery or lease was."""
    is_after_ack: bool
    """Was the job acknowledged before its serve?"""
    is_dominated: bool
    """Could messages of any kind have informed its node of the ack (by vector clocks)?"""
    since_heal: Micros | None
    """The time since the last cut; 0 during a cut, None if there was none."""


def on_serve(case: Case, _row: Row, job: Job) -> None:
    """Find the cause of a repeated serve now, while messages in transit are recorded."""
    serve = job.lease
    if serve is None or serve.before is None:
        return
    if serve.queueing is not None:
        duplicate = DuplicateCase(case, job, serve, serve.before, serve.queueing.chain())
        serve.cause = next(cause for cause, rule in RULES if rule(duplicate))
    else:
        serve.cause = "DX"


def forget(job: Job) -> None:
    """Drop the lease before the last one: the last one has been judged."""
    if job.lease is not None and job.lease.before is not None:
        job.lease.before.before = None


def on_deliver(
    case: Case, row: Row, job: Job, serve: Lease, partition: Partition | None
) -> Duplicate:
    """Return the duplicate that a delivery after the first is, with its cause. If the delivery of a
    later serve arrived earlier, this one repeats that."""
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
    """Record the cause of the first delivery, which may be of a later serve than the first."""
    job.first_cause = serve.cause


def unseen_serve(case: Case, row: Row, job: Job) -> Lease:
    """Return a serve for a trace without serves: assume that the retry timer of the node has just
    queued the job."""
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
    """Describe a duplicate that the scenario does not expect."""
    waited = (found.time - found.leased) / 1e6
    text = f"delivered again after {waited:.3f} s: {CAUSES[found.cause]} ({found.cause})"
    if found.cause not in DUPLICATE_CAUSES:
        return f"{text}; no scenario may expect that"
    return f"{text}; expect.duplicates of {scenario} does not have {found.cause}"
