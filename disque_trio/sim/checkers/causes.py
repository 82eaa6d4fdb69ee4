"""The rules that assign a cause to a duplicate, in their order (see `duplicates`)."""

from collections.abc import Callable
from typing import Final

from disque_trio.sim.checkers import propagation
from disque_trio.sim.checkers.messages import ACK, WORKING
from disque_trio.sim.checkers.obligations import MILLI
from disque_trio.sim.checkers.propagation import DuplicateCase, Outcome
from disque_trio.sim.checkers.records import NEVER, Ack
from disque_trio.sim.scenarios.plan import Micros

AHEAD: Final = 500 * MILLI
"""WILLQUEUE is sent this long before a requeue."""


_GIVEN_BACK: Final = ("nack", "enqueue", "release", "untied")

Rule = Callable[[DuplicateCase], bool]


def _asked(duplicate: DuplicateCase) -> bool:
    """D0: NACK, ENQUEUE or RELEASE came after the last lease, or the end of the connection to which
    that was tied, or DELJOB removed the ack everywhere."""
    if duplicate.root.cause in _GIVEN_BACK and duplicate.root.time >= duplicate.before.time:
        return True
    return duplicate.job.ack_deleted and not _is_known(duplicate)


def _lease_was_over(duplicate: DuplicateCase) -> bool:
    """D1: the lease was over when the job was queued again, and no node had applied an ack.

    An ack under way to a node, or waiting at a stopped one, does not count yet.
    """
    job, root = duplicate.job, duplicate.root
    if root.cause not in {"retry", "delay-over"}:
        return False
    done = job.first_ack if duplicate.case.has_node_rows else job.ack_invoked
    if done is not None and done < root.time:
        return False
    if not duplicate.case.obligations.has_lease and duplicate.before.queueing is not None:
        return True
    retry = 0 if job.options is None else job.options.retry
    before = duplicate.before
    if before.queueing is None and before.time > root.time and before.before is not None:
        # A WORKING that came after the job had been queued again is too late.
        before = before.before
    return root.time - before.time >= duplicate.case.obligations.lease(retry)


def _ack_was_cut_off(duplicate: DuplicateCase) -> bool:
    """D2: a cut or a loss lay between a node that had applied the ack and one that queued the job.

    Decided by messages, not by vector clocks: other messages may have gone round the cut by nodes
    that do not pass on the ack. `is_dominated` marks such duplicates. Nodes that have the ack from
    others count if those that received ACKJOB had no link either, or have forgotten the ack.
    """
    acks = duplicate.acks("ackjob")
    if not acks or _was_told_of_ack(duplicate, acks[0].time):
        return False
    if not _is_known(duplicate) and not _is_cut_yet(duplicate, acks):
        return False
    knowing = duplicate.acked_copies()
    ackers = {
        ack.node: ack.time
        for ack in reversed(acks)
        if ack.node in knowing or not knowing or _told_while_it_knew(duplicate, ack)
    }
    outcomes = _outcomes_of_ack(duplicate, ackers, propagation.of_recent_ack)
    if Outcome.BLOCKED in outcomes or Outcome.LATE in outcomes:
        return Outcome.BLOCKED in outcomes
    return Outcome.BLOCKED in _outcomes_of_ack(duplicate, knowing, propagation.of_recent_ack)


def _told_while_it_knew(duplicate: DuplicateCase, ack: Ack) -> bool:
    """Did the node send a message about the ack, not lost, before it forgot the ack?"""
    announcements = [
        duplicate.job.announcement(ack.node, node, ACK)
        for node in duplicate.nodes()
        if node != ack.node
    ]
    return any(
        announcement.sent >= ack.time and announcement.sent > announcement.lost
        for announcement in announcements
    )


def _is_cut_yet(duplicate: DuplicateCase, acks: list[Ack]) -> bool:
    """Did a cut, and not the forgetting, keep the nodes from announcing the ack?"""
    is_cut, since = duplicate.case.world.is_cut, duplicate.root.time
    return not (duplicate.job.acks_crashed or duplicate.job.acks_evicted) or any(
        is_cut(ack.node, queuer, since, duplicate.serve.time)
        for ack in acks
        for queuer in duplicate.nodes()
        if queuer != ack.node
    )


def _outcomes_of_ack(
    duplicate: DuplicateCase,
    knowing: dict[str, Micros],
    of_ack: Callable[[DuplicateCase, str, str, Micros], Outcome] = propagation.of_ack,
) -> list[Outcome]:
    return [
        of_ack(duplicate, node, queuer, since)
        for node, since in knowing.items()
        for queuer in duplicate.nodes()
        if node != queuer
    ]


def _was_told_of_ack(duplicate: DuplicateCase, since: Micros) -> bool:
    """Had the serving process received the ack before it queued the job?"""
    server, stay = duplicate.serve.node, duplicate.chain[0]
    since = max(since, duplicate.case.world.started_at(server))
    return any(
        receiver == server
        and sort == ACK
        and announcement.got >= since
        and announcement.got_at < stay.time
        for (_, receiver, sort), announcement in duplicate.job.announcements.items()
    )


def _ack_crashed(duplicate: DuplicateCase) -> bool:
    """D3a: all nodes that had applied the ack have crashed, or were silent because of their
    disks."""
    world, since = (
        duplicate.case.world,
        duplicate.serve.time - duplicate.case.obligations.calm_after,
    )
    can_tell = any(
        copy.is_acked and not world.was_mute(copy.node, since, duplicate.serve.time)
        for copy in duplicate.job.copies.values()
    )
    return bool(duplicate.acks("ackjob") and duplicate.job.acks_crashed) and not can_tell


def _is_known(duplicate: DuplicateCase) -> bool:
    """Does any node still have the job as acknowledged?"""
    return any(copy.is_acked for copy in duplicate.job.copies.values())


def _ack_evicted(duplicate: DuplicateCase) -> bool:
    """D3b: the ack was evicted for want of memory, and no node has it any more."""
    return bool(duplicate.acks("ackjob") and duplicate.job.acks_evicted) and not _is_known(
        duplicate
    )


def _ack_collected(duplicate: DuplicateCase) -> bool:
    """D3c: the ack was collected while a node that queued the job still had its copy."""
    over = duplicate.job.collected_over
    return bool(duplicate.acks("ackjob")) and any(node in over for node in duplicate.nodes())


def _acked_in_flight(duplicate: DuplicateCase) -> bool:
    """D11: the giver applied an ack after it had given the job away.

    If the job was served meanwhile, two nodes had queued it, and D4 or D5 applies.
    """
    return any(
        ack.node == giver.node and duplicate.before.time <= taken.given_at <= ack.time
        for taken, giver in zip(duplicate.chain, duplicate.chain[1:], strict=False)
        for ack in duplicate.acks("ackjob")
    )


def _lease_was_cut_off(duplicate: DuplicateCase) -> bool:
    """D4: a cut, an outage or a loss lay between the nodes that knew of the lease and those that
    queued the job. The node that gave the lease is examined first."""
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

    Then it should have unqueued the job. QUEUED does not count: after it, one of the two nodes
    keeps the job queued.
    """
    if _was_told_of_lease(
        duplicate, duplicate.root.node, duplicate.before.time, duplicate.root_end
    ):
        return True
    stay = duplicate.chain[0]
    return len(duplicate.chain) > 1 and _was_told_of_lease(
        duplicate, stay.node, stay.time, duplicate.serve.time
    )


def _was_told_of_lease(duplicate: DuplicateCase, node: str, after: Micros, until: Micros) -> bool:
    """Was the node told of the lease between these times?"""
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
    """D5: a message was under way, or one of the nodes was stopped, without a cut."""
    if _acked_in_flight(duplicate):
        return False
    if _ack_is_late(duplicate):
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


def _ack_is_late(duplicate: DuplicateCase) -> bool:
    """The announcement of the ack came too late, or one of the two nodes was stopped, which ends
    links. For FASTACK, only if nothing else hindered it (D9)."""
    acks = duplicate.acks("ackjob")
    if acks and not _was_told_of_ack(duplicate, acks[0].time):
        knowing = duplicate.acked_copies() | {ack.node: ack.time for ack in reversed(acks)}
        if Outcome.LATE in _outcomes_of_ack(duplicate, knowing) or _is_passed_on_late(
            duplicate, knowing
        ):
            return True
    return any(
        propagation.of_ack(duplicate, ack.node, queuer, ack.time) is Outcome.LATE
        and not propagation.was_hindered(duplicate, ack.node, queuer, ack.time)
        for ack in duplicate.acks("fastack")
        for queuer in duplicate.nodes()
        if queuer != ack.node
    )


def _is_passed_on_late(duplicate: DuplicateCase, knowing: dict[str, Micros]) -> bool:
    return any(
        propagation.is_ack_passed_on_late(duplicate, node, queuer, since)
        for node, since in knowing.items()
        for queuer in duplicate.nodes()
        if node != queuer
    )


def _list_was_short(duplicate: DuplicateCase) -> bool:
    """D6: no node that knew of the ack or of the lease had a node that queued the job in its list
    of holders, nor announced the ack to one."""
    if not duplicate.case.has_messages:
        return False
    knowing = _knowing(duplicate)
    nodes = duplicate.nodes()
    if any(
        ack.kind == "fastack" and ack.node not in duplicate.job.listed
        for ack in duplicate.job.acks
        if ack.time <= duplicate.serve.time
    ):
        # Without a copy, FASTACK is sent to all nodes: the list plays no part.
        return False
    fastacks = duplicate.acks("fastack")
    if any(_has_missed_list(duplicate, ack, node) for ack in fastacks for node in nodes):
        return False
    if any(node in {duplicate.before.node, *knowing} for node in nodes):
        return False
    sources = dict.fromkeys(node for ack in fastacks for node in duplicate.sources(ack))
    return not any(
        node in duplicate.job.listed.get(one, ()) or _has_told_of_ack(duplicate, one, node)
        for one in knowing
        for node in sources or nodes
    )


def _has_missed_list(duplicate: DuplicateCase, ack: Ack, node: str) -> bool:
    """Did the node of FASTACK lack this holder in its list because a fault kept the list from it?

    The node that added the job sends the list once, and FASTACK does not wait for it.
    """
    job = duplicate.job
    added = job.listed.get(job.origin, ())
    if job.created_at is None or node not in added or node in job.listed.get(ack.node, ()):
        return False
    return propagation.was_hindered(duplicate, job.origin, ack.node, job.created_at, ack.time)


def _has_told_of_ack(duplicate: DuplicateCase, one: str, other: str) -> bool:
    """Did a node announce the ack? One without a copy, and so without a list, sends it to all."""
    return duplicate.job.announcement(one, other, ACK).sent >= duplicate.before.time


def _knowing(duplicate: DuplicateCase) -> list[str]:
    """The nodes that should have announced the ack, or the lease if there is no ack."""
    acks = [ack.node for ack in duplicate.job.acks if ack.time <= duplicate.serve.time]
    knowing = [copy.node for copy in duplicate.job.copies.values() if copy.is_acked and acks]
    return list(dict.fromkeys(acks + knowing)) or [duplicate.before.node]


def _copy_was_late(duplicate: DuplicateCase) -> bool:
    """D7: a late copy reached a node that had dropped the job with its ack, and queued it again.

    A node that dropped the job before the first ack, or because a client deleted it there (DELJOB)
    or its ADDJOB failed, does not count: it knew of no ack.
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
    another node had, and no ack has come since.

    A drop whose record the disk must still have, synced or after a mere kill, is no excuse.
    """
    job = duplicate.job
    copies = [job.copies.get(node) for node in duplicate.nodes() if node not in job.drop_on_disk]
    if any(copy is not None and copy.is_late and copy.cause == "loaded" for copy in copies):
        return True
    return job.resurrected_at != NEVER and all(ack.time <= job.resurrected_at for ack in job.acks)


def _fastack_was_cut_off(duplicate: DuplicateCase) -> bool:
    """D9: DELJOB was lost, or there was no link for it or for the list of holders.

    Nodes may have their copies, since then, from the one that was not told.
    """
    return any(
        ack.node != node
        and (
            _has_missed_list(duplicate, ack, node)
            or propagation.was_hindered(duplicate, ack.node, node, ack.time, until)
            or duplicate.job.announcement(ack.node, node, ACK).lost >= ack.time
        )
        for ack in duplicate.acks("fastack")
        for node, until in duplicate.sources(ack).items()
    )


def _clock_was_wrong(duplicate: DuplicateCase) -> bool:
    """D10: the clock of the node that queued the job changed between the lease and the queueing."""
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
    ("D2", _ack_was_cut_off),
    ("D3a", _ack_crashed),
    ("D3b", _ack_evicted),
    ("D7", _copy_was_late),
    ("D3c", _ack_collected),
    ("D4", _lease_was_cut_off),
    ("D5", _message_was_late),
    ("D6", _list_was_short),
    ("D9", _fastack_was_cut_off),
    ("D10", _clock_was_wrong),
    ("D11", _acked_in_flight),
    ("D12", _add_had_failed),
    ("DX", _unexplained),
)
"""D7 and D8 come before the rules of which they are special cases."""
