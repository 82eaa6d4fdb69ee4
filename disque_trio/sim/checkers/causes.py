"""The rules that assign a cause to a duplicate, in their order (see `duplicates`).

The rules about acknowledgements are in `ack_causes`.
"""

from collections.abc import Callable
from typing import Final

from disque_trio.sim.checkers import ack_causes, propagation
from disque_trio.sim.checkers.messages import ACK, WORKING
from disque_trio.sim.checkers.obligations import MILLI, SECOND
from disque_trio.sim.checkers.propagation import DuplicateCase, Outcome
from disque_trio.sim.checkers.records import NEVER
from disque_trio.sim.scenarios.plan import Micros

AHEAD: Final = 500 * MILLI
"""WILLQUEUE is sent this long before a requeue."""


_ORDERED: Final = 3 * SECOND
"""The longest time from ENQUEUE QUEUE to the enqueueing of a job: the node asks other holders
first."""
_GIVEN_BACK: Final = ("nack", "enqueue", "release", "untied", "unbegun", "redriven", "backed-off")

Rule = Callable[[DuplicateCase], bool]


def _asked(duplicate: DuplicateCase) -> bool:
    """D0: a NACK, ENQUEUE, RELEASE, ENQUEUE QUEUE or the end of a tied connection followed the last
    lease; or DELJOB removed the ack everywhere."""
    if duplicate.root.cause in _GIVEN_BACK and duplicate.root.time >= duplicate.before.time:
        return True
    if duplicate.root.cause == "retry" and _was_ordered(duplicate):
        return True
    return duplicate.job.ack_deleted and not duplicate.acked_copies()


def _was_ordered(duplicate: DuplicateCase) -> bool:
    """Did ENQUEUE QUEUE end the period, at a node that may have lost the lease in a crash?"""
    root = duplicate.root
    orders = duplicate.case.enqueues.get((root.node, duplicate.job.queue), ())
    return any(0 <= root.time - sent <= _ORDERED for sent in orders)


def _lease_was_over(duplicate: DuplicateCase) -> bool:
    """D1: the lease had expired when the job was queued again, and no node had applied an ack.

    An ack in transit, or waiting at a stopped node, does not count.
    """
    job, root = duplicate.job, duplicate.root
    if root.cause not in {"retry", "delay-over", "followed"}:
        return False
    done = job.first_ack if duplicate.case.has_node_rows else job.ack_invoked
    if done is not None and done < root.time:
        return False
    if not duplicate.case.obligations.has_lease and duplicate.before.queueing is not None:
        return True
    retry = 0 if job.options is None else job.options.retry
    before = duplicate.before
    if before.queueing is None and before.time > root.time and before.before is not None:
        # A WORKING after the job had been queued again is too late.
        before = before.before
    return root.time - before.time >= duplicate.case.obligations.lease(retry)


def _lease_was_cut_off(duplicate: DuplicateCase) -> bool:
    """D4: a cut, an outage or a loss separated the nodes that knew of the lease from those that
    queued the job. The node that granted the lease is examined first."""
    if _knew_of_lease(duplicate):
        return False
    for node in duplicate.nodes_of_lease():
        outcomes = [
            propagation.of_lease(duplicate, node, queuer)
            for queuer in duplicate.nodes()
            if queuer != node
        ]
        if Outcome.BLOCKED in outcomes or Outcome.LATE in outcomes:
            return Outcome.BLOCKED in outcomes
    return False


def _knew_of_lease(duplicate: DuplicateCase) -> bool:
    """Did the first node that queued the job, or the serving node, learn of the lease in time?

    If so, it should have dequeued the job. QUEUED does not count: after it, one of the two nodes
    keeps the job in its queue.
    """
    if _had_received_lease(
        duplicate, duplicate.root.node, duplicate.before.time, duplicate.root_end
    ):
        return True
    stay = duplicate.chain[0]
    return len(duplicate.chain) > 1 and _had_received_lease(
        duplicate, stay.node, stay.time, duplicate.serve.time
    )


def _had_received_lease(duplicate: DuplicateCase, node: str, after: Micros, until: Micros) -> bool:
    """Did the node learn of the lease between these times?"""
    lease = duplicate.before
    if lease.node == node:
        return after <= lease.time < until
    return any(
        announcement.got >= lease.time and after <= announcement.got_at < until
        for announcement in (
            duplicate.job.announcement(lease.node, node, sort) for sort in (WORKING, ACK)
        )
    )


def _message_was_late(duplicate: DuplicateCase) -> bool:
    """D5: a message was in transit, or one of the nodes was stopped, without a cut."""
    if ack_causes.acked_in_flight(duplicate):
        return False
    if ack_causes.ack_is_late(duplicate):
        return True
    if _copy_came_again(duplicate):
        return True
    if _knew_of_lease(duplicate):
        return False
    if not duplicate.case.has_messages:
        apart = abs(duplicate.root.time - duplicate.before.time)
        return apart <= 2 * duplicate.case.obligations.latency + AHEAD
    return any(
        propagation.of_lease(duplicate, node, queuer) is Outcome.LATE
        for node in duplicate.nodes_of_lease()
        for queuer in duplicate.nodes()
        if queuer != node
    )


def _copy_came_again(duplicate: DuplicateCase) -> bool:
    """Did YOURJOBS arrive twice, at a node that no longer had a record of its delivery, because a
    client had deleted the job there (DELJOB) or because nodes keep no leases? The duplicated
    message has no sending time of its own. That node may have given the job on."""
    job, stay = duplicate.job, duplicate.root
    copy = job.copies.get(stay.node)
    if copy is None or stay.cause != "import" or stay.given_at != NEVER:
        return False
    obligations = duplicate.case.obligations
    if not (obligations.has_lease or obligations.is_stream) and duplicate.before.node == stay.node:
        return True
    return copy.is_late and copy.not_held_at == job.withdrawn.get(stay.node)


def _copy_was_late(duplicate: DuplicateCase) -> bool:
    """D7: a late copy reached a node that had dropped the acknowledged job, and the node queued it
    again.

    A node does not count if it dropped the job before the first ack, or because a client deleted it
    there (DELJOB), or because its ADDJOB failed: it had no ack.
    """
    job = duplicate.job
    if not job.acks:
        return False
    first = min(ack.time for ack in job.acks)
    copies = [job.copies.get(node) for node in duplicate.nodes()]
    return any(
        copy.is_late
        and not copy.is_dummy
        and first <= copy.not_held_at != job.withdrawn.get(copy.node)
        for copy in copies
        if copy is not None
    )


def _came_from_disk(duplicate: DuplicateCase) -> bool:
    """D8: a node that queued the job had dropped its copy and loaded it again from its journal; or
    another node had, and no ack has followed.

    It does not excuse if the disk must still have the record of the drop, because it was synced or
    the process was only killed.
    """
    job = duplicate.job
    copies = [job.copies.get(node) for node in duplicate.nodes() if node not in job.drop_on_disk]
    if any(copy is not None and copy.is_late and copy.cause == "loaded" for copy in copies):
        return True
    return job.resurrected_at != NEVER and all(ack.time <= job.resurrected_at for ack in job.acks)


def _clock_was_wrong(duplicate: DuplicateCase) -> bool:
    """D10: the clock of the node that queued the job changed between the lease and the
    enqueueing."""
    times = duplicate.case.world.wrong_clocks.get(duplicate.root.node, ())
    return any(duplicate.before.time <= time <= duplicate.root.time for time in times)


def _add_had_failed(duplicate: DuplicateCase) -> bool:
    """D12: the ADDJOB was refused, or its producer does not know the outcome."""
    add = duplicate.job.add
    return add is not None and add.outcome in {"unknown", "refused"}


def _unexplained(_duplicate: DuplicateCase) -> bool:
    """DX: no other rule fits."""
    return True


RULES: Final[tuple[tuple[str, Rule], ...]] = (
    ("D0", _asked),
    ("D1", _lease_was_over),
    ("D8", _came_from_disk),
    ("D2", ack_causes.ack_was_cut_off),
    ("D3a", ack_causes.ack_crashed),
    ("D3b", ack_causes.ack_evicted),
    ("D7", _copy_was_late),
    ("D3c", ack_causes.ack_collected),
    ("D4", _lease_was_cut_off),
    ("D5", _message_was_late),
    ("D6", ack_causes.list_was_short),
    ("D9", ack_causes.fastack_was_cut_off),
    ("D10", _clock_was_wrong),
    ("D11", ack_causes.acked_in_flight),
    ("D12", _add_had_failed),
    ("D3b", ack_causes.ack_evicted_early),
    ("DX", _unexplained),
)
"""D7 and D8 precede the rules of which they are special cases."""
