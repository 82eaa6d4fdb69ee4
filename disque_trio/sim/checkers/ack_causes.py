"""The causes of duplicates that concern an acknowledgement: D2, D3, D6, D9, D11, and the part of D5
that concerns acknowledgements (see `causes`)."""

from collections.abc import Callable

from disque_trio.sim.checkers import propagation
from disque_trio.sim.checkers.messages import ACK
from disque_trio.sim.checkers.obligations import DESYNC, MILLI
from disque_trio.sim.checkers.propagation import DuplicateCase, Outcome
from disque_trio.sim.checkers.records import Ack
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.job import gc_wait


def ack_was_cut_off(duplicate: DuplicateCase) -> bool:
    """D2: a cut or a loss separated a node that had applied the ack from one that queued the job.

    The rule examines messages, not vector clocks: other messages may have passed around the cut
    through nodes that do not forward the ack. `is_dominated` marks such duplicates. Nodes that
    received the ack from other nodes count if the nodes that received ACKJOB had no link either, or
    have forgotten the ack.
    """
    acks = duplicate.acks("ackjob")
    if not acks or _had_received_ack(duplicate, acks[0].time):
        return False
    if not duplicate.acked_copies() and not _is_cut_yet(duplicate, acks):
        return False
    knowing = duplicate.acked_copies()
    ackers = {
        ack.node: ack.time
        for ack in reversed(acks)
        if ack.node in knowing or not knowing or _announced_while_it_knew(duplicate, ack)
    }
    outcomes = _outcomes_of_ack(duplicate, ackers, propagation.of_recent_ack)
    if Outcome.BLOCKED in outcomes or Outcome.LATE in outcomes:
        return Outcome.BLOCKED in outcomes
    return Outcome.BLOCKED in _outcomes_of_ack(duplicate, knowing, propagation.of_recent_ack)


def _announced_while_it_knew(duplicate: DuplicateCase, ack: Ack) -> bool:
    """Did the node, before it forgot the ack, send a message about it that was not lost?"""
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
    """Did a cut, and not a loss of the ack, keep the nodes from announcing the ack?"""
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


def _had_received_ack(duplicate: DuplicateCase, since: Micros) -> bool:
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


def ack_crashed(duplicate: DuplicateCase) -> bool:
    """D3a: all nodes that had applied the ack have crashed or are down, or sent nothing because of
    a faulty disk. A FASTACK counts if a node that queued the job had received it, although it is
    announced only once, and has lost it in a crash."""
    world, since = (
        duplicate.case.world,
        duplicate.serve.time - duplicate.case.obligations.calm_after,
    )
    may_know = any(
        copy.is_acked
        and not copy.is_offline
        and not world.was_mute(copy.node, since, duplicate.serve.time)
        for copy in duplicate.job.copies.values()
    )
    is_applied = bool(duplicate.acks("ackjob")) or any(
        duplicate.has_received(ack, node, by)
        for ack in duplicate.acks("fastack")
        for node, by in duplicate.sources(ack).items()
    )
    return is_applied and duplicate.job.acks_crashed > 0 and not may_know


def ack_evicted(duplicate: DuplicateCase) -> bool:
    """D3b: a node evicted the ack for lack of memory, and no other node has it."""
    return _was_ack_evicted(duplicate) and not duplicate.acked_copies()


def ack_evicted_early(duplicate: DuplicateCase) -> bool:
    """D3b if no other cause applies: a node evicted the ack, and the nodes that it had told have
    not had the time to announce it themselves."""
    ours, acks = duplicate.case.obligations, duplicate.acks("ackjob")
    if not _was_ack_evicted(duplicate) or _had_received_ack(duplicate, acks[0].time):
        return False
    due = duplicate.serve.time - ours.longest(gc_wait(0) * MILLI + DESYNC) - ours.spread_delay
    return all(
        copy.acked_by == "setack" and copy.acked_at >= due
        for copy in duplicate.job.copies.values()
        if copy.is_acked
    )


def _was_ack_evicted(duplicate: DuplicateCase) -> bool:
    return bool(duplicate.acks("ackjob") and duplicate.job.acks_evicted)


def ack_collected(duplicate: DuplicateCase) -> bool:
    """D3c: the ack was collected while a node that queued the job still had its copy."""
    over = duplicate.job.collected_over
    return bool(duplicate.acks("ackjob")) and any(node in over for node in duplicate.nodes())


def acked_in_flight(duplicate: DuplicateCase) -> bool:
    """D11: a node applied an ack after it had moved the job to another node.

    If the job was served meanwhile, two nodes had queued it, and D4 or D5 applies.
    """
    return any(
        ack.node == giver.node and duplicate.before.time <= taken.given_at <= ack.time
        for taken, giver in zip(duplicate.chain, duplicate.chain[1:], strict=False)
        for ack in duplicate.acks("ackjob")
    )


def ack_is_late(duplicate: DuplicateCase) -> bool:
    """D5: the announcement of the ack arrived too late, or one of the two nodes was stopped, which
    closes links. A FASTACK counts only if nothing else kept its DELJOB away (D9)."""
    acks = duplicate.acks("ackjob")
    if acks and not _had_received_ack(duplicate, acks[0].time):
        knowing = duplicate.acked_copies() | {ack.node: ack.time for ack in reversed(acks)}
        if Outcome.LATE in _outcomes_of_ack(duplicate, knowing) or _is_passed_on_late(
            duplicate, knowing
        ):
            return True
    return any(
        propagation.of_fastack(duplicate, ack, queuer) is Outcome.LATE
        and not propagation.was_fastack_kept(duplicate, ack, queuer, duplicate.serve.time)
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


def list_was_short(duplicate: DuplicateCase) -> bool:
    """D6: no node that had the ack (or the lease, if there is no ack) had listed a node that queued
    the job as a holder, or announced the ack to it."""
    if not duplicate.case.has_messages:
        return False
    knowing = _knowing(duplicate)
    nodes = duplicate.nodes()
    if any(
        ack.kind == "fastack" and ack.node not in duplicate.job.listed
        for ack in duplicate.job.acks
        if ack.time <= duplicate.serve.time
    ):
        # Without a copy, the node sends FASTACK to all nodes: the list does not matter.
        return False
    fastacks = duplicate.acks("fastack")
    if any(_has_missed_list(duplicate, ack, node) for ack in fastacks for node in nodes):
        return False
    if any(node in {duplicate.before.node, *knowing} for node in nodes):
        return False
    sources = dict.fromkeys(node for ack in fastacks for node in duplicate.sources(ack))
    return not any(
        node in duplicate.job.listed.get(one, ()) or _has_announced_ack(duplicate, one, node)
        for one in knowing
        for node in sources or nodes
    )


def _has_missed_list(duplicate: DuplicateCase, ack: Ack, node: str) -> bool:
    """Did the node that received FASTACK not list this holder because a fault delayed the list of
    holders, or because the list was in transit?

    The node that added the job sends the list once, and FASTACK does not wait for it.
    """
    job = duplicate.job
    added = job.listed.get(job.origin, ())
    learned_at = job.listed.get(ack.node, {}).get(node, ack.time + 1)
    if job.created_at is None or node not in added or learned_at <= ack.time:
        return False
    copy = job.copies.get(node)
    latency = duplicate.case.obligations.latency
    if copy is not None and copy.sent_at <= ack.time <= copy.sent_at + latency:
        return True
    return propagation.was_hindered(duplicate, job.origin, ack.node, job.created_at, ack.time)


def _has_announced_ack(duplicate: DuplicateCase, one: str, other: str) -> bool:
    """Did node `one` announce the ack to `other`? A node without a copy, and so without a list,
    announces it to all nodes."""
    return duplicate.job.announcement(one, other, ACK).sent >= duplicate.before.time


def _knowing(duplicate: DuplicateCase) -> list[str]:
    """The nodes that should have announced the ack, or the lease if there is no ack."""
    acks = [ack.node for ack in duplicate.job.acks if ack.time <= duplicate.serve.time]
    knowing = [copy.node for copy in duplicate.job.copies.values() if copy.is_acked and acks]
    return list(dict.fromkeys(acks + knowing)) or [duplicate.before.node]


def fastack_was_cut_off(duplicate: DuplicateCase) -> bool:
    """D9: DELJOB was lost, or there was no link for it or for the list of holders.

    The nodes that queued the job may have received their copies later from a node that DELJOB did
    not reach.
    """
    return any(
        ack.node != node
        and (
            _has_missed_list(duplicate, ack, node)
            or propagation.was_fastack_kept(duplicate, ack, node, by)
        )
        for ack in duplicate.acks("fastack")
        for node, by in duplicate.sources(ack).items()
    )
