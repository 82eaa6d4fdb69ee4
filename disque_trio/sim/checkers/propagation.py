"""Propagation of leases and acks between nodes, for the causes of duplicates.

A `DuplicateCase` is a serve after the first one. An `Outcome` is the reason why a node that queued
a job did not learn in time of a lease or ack that another node had. If the trace has messages, they
decide: a cut that healed before the message was sent has not blocked it.
"""

import enum
from typing import Final

import attrs

from disque_trio.sim.checkers import silence
from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.intervals import begin_without
from disque_trio.sim.checkers.messages import ACK, QUEUED, WORKING
from disque_trio.sim.checkers.records import Ack, Announcement, Copy, Job, Lease, Queueing
from disque_trio.sim.scenarios.plan import Micros

OF_LEASE: Final = (QUEUED, WORKING)
"""Messages that a holder sends because of a lease."""
OF_ACK: Final = (ACK,)


class Outcome(enum.Enum):
    """Why a node did not learn of a lease or ack in time."""

    ARRIVED = "it came in time"
    BLOCKED = "a cut, an outage or a loss kept it"
    LATE = "it was under way, or one of the two was stopped"
    UNLISTED = "the one did not know that the other had a copy"
    UNSENT = "the one knew whom to tell, had a link, and said nothing"


@attrs.frozen
class DuplicateCase:
    """A serve after the first one, with the lease before it and the stays in queues that led to
    it."""

    case: Case
    job: Job
    serve: Lease
    before: Lease
    """The job's last lease before the serve, which the serving node should have known."""
    chain: list[Queueing]
    """The stays in queues, from the one at the serving node back to the one at the first sender."""

    @property
    def root(self) -> Queueing:
        """The first stay of the chain."""
        return self.chain[-1]

    def nodes(self) -> list[str]:
        """Return the nodes that had the job queued, the serving node first."""
        return list(dict.fromkeys(stay.node for stay in self.chain))

    @property
    def root_end(self) -> Micros:
        """When the first stay ended: the job was moved, or served."""
        return self.chain[-2].given_at if len(self.chain) > 1 else self.serve.time

    def nodes_of_lease(self) -> list[str]:
        """Return the nodes that knew the lease: its own, and the one that had first queued the
        job."""
        found = {self.before.node: None}
        if self.before.queueing is not None:
            found[self.before.queueing.root().node] = None
        return list(found)

    def acks(self, kind: str = "") -> list[Ack]:
        """Return the acknowledgements before the serve, of the given kind if any."""
        return [
            ack for ack in self.job.acks if ack.time <= self.serve.time and kind in ("", ack.kind)
        ]

    def sources(self, ack: Ack) -> dict[str, Micros]:
        """Return the nodes that had the job queued, with the time by which the FASTACK had to reach
        them; and the nodes that have sent them their copies since, if it had not reached these."""
        found: dict[str, Micros] = {}
        end = self.serve.time
        for stay in self.chain:
            found.setdefault(stay.node, end)
            end = stay.given_at
        nodes = list(found)
        for node in nodes:
            copy = self.job.copies.get(node)
            if copy is None or copy.sent_at <= ack.time or copy.came_from in {"", *found}:
                continue
            if not self.has_received(ack, copy.came_from, copy.sent_at):
                found[copy.came_from] = copy.sent_at
                nodes.append(copy.came_from)
        return found

    def has_received(self, ack: Ack, node: str, by: Micros) -> bool:
        """Had the node received the announcement of the ack before `by`?"""
        announcement = self.job.announcement(ack.node, node, ACK)
        return announcement.got >= ack.time and announcement.got_at < by

    def acked_copies(self) -> dict[str, Micros]:
        """Return the nodes that have an ack, with the time of each."""
        return {copy.node: copy.acked_at for copy in self.job.copies.values() if copy.is_acked}


def of_ack(duplicate: DuplicateCase, knower: str, queuer: str, since: Micros) -> Outcome:
    """Return why the ack that `knower` has had since `since` did not keep `queuer` from serving.

    Messages that `queuer` received before a crash do not count. But if `knower` sent nothing before
    the crash, although nothing prevented it, the crash is not the cause.
    """
    begin = duplicate.case.world.started_at(queuer)
    if begin > since and _was_never_announced(duplicate, knower, queuer, since):
        return Outcome.UNSENT
    return _outcome(duplicate, knower, queuer, OF_ACK, max(since, begin), duplicate.serve.time)


def of_fastack(duplicate: DuplicateCase, ack: Ack, queuer: str) -> Outcome:
    """Return the outcome for FASTACK, which is sent once: later events do not matter."""
    listed = duplicate.job.listed.get(ack.node)
    if _is_fastack_sent(duplicate, ack, queuer) or (listed is not None and queuer not in listed):
        return of_ack(duplicate, ack.node, queuer, ack.time)
    is_waiting = duplicate.serve.time - ack.time <= _writing(duplicate)
    return Outcome.LATE if is_waiting else Outcome.UNSENT


def _is_fastack_sent(duplicate: DuplicateCase, ack: Ack, queuer: str) -> bool:
    """Was DELJOB sent for the FASTACK? In a trace without messages, assume that it was."""
    announcement = duplicate.job.announcement(ack.node, queuer, ACK)
    return announcement.sent >= ack.time or not duplicate.case.has_messages


def _writing(duplicate: DuplicateCase) -> Micros:
    """Return how long after a row a node may announce the event: once its disk has it."""
    obligations = duplicate.case.obligations
    return obligations.no_processor + obligations.send_delay


def was_fastack_kept(duplicate: DuplicateCase, ack: Ack, node: str, by: Micros) -> bool:
    """Was the announcement of a FASTACK lost, was there no link for it when it was due, or was
    there a fault in its way?"""
    if duplicate.job.announcement(ack.node, node, ACK).lost >= ack.time or node in ack.unlinked:
        return True
    if duplicate.has_received(ack, node, by):
        return False
    until = by if _is_fastack_sent(duplicate, ack, node) else ack.time + _writing(duplicate)
    return was_hindered(duplicate, ack.node, node, ack.time, until)


def of_recent_ack(duplicate: DuplicateCase, knower: str, queuer: str, since: Micros) -> Outcome:
    """Return the outcome of the ack without losses that `knower` should have repaired by repeating:
    those longer ago than G, not counting times in which one of the two was stopped."""
    world, until = duplicate.case.world, duplicate.serve.time
    pauses = [*world.pauses.get(knower, ()), *world.pauses.get(queuer, ())]
    stops = [pause for pause in pauses if not pause.is_slow]
    repeated = begin_without(stops, duplicate.case.obligations.collection, until)
    return of_ack(duplicate, knower, queuer, max(since, repeated))


def is_ack_passed_on_late(
    duplicate: DuplicateCase, knower: str, queuer: str, since: Micros
) -> bool:
    """Is the announcement of the ack late on its way to a node that would have forwarded it, the
    only one that has listed the queuer?"""
    listed = duplicate.job.listed
    return queuer not in listed.get(knower, ()) and any(
        queuer in listed.get(between, ())
        and of_ack(duplicate, knower, between, since) is Outcome.LATE
        for between in duplicate.job.copies
        if between not in {knower, queuer}
    )


def _was_never_announced(duplicate: DuplicateCase, knower: str, queuer: str, since: Micros) -> bool:
    """Did `knower` not announce the ack before the crash of `queuer`, although it could?

    It had listed the queuer and had a link to it, and the queuer has loaded its copy again.
    """
    copy = duplicate.job.copies.get(queuer)
    crash = duplicate.case.world.outages[queuer][-1].start
    if copy is None or copy.cause != "loaded" or queuer not in duplicate.job.listed.get(knower, ()):
        return False
    if (
        not duplicate.case.has_messages
        or duplicate.job.announcement(knower, queuer, ACK).sent >= since
    ):
        return False
    if (
        duplicate.case.world.was_mute(knower, since, crash)
        or crash - since <= duplicate.case.obligations.send_delay
    ):
        return False
    return (
        _outcome_without_link(duplicate, knower, queuer, since, crash - 1, is_ack=True)
        is Outcome.UNSENT
    )


def of_lease(duplicate: DuplicateCase, knower: str, queuer: str) -> Outcome:
    """Return the outcome for the lease, whose announcement had to arrive before the job was
    queued."""
    return _outcome(duplicate, knower, queuer, OF_LEASE, span(duplicate)[0], duplicate.root.time)


def span(duplicate: DuplicateCase) -> tuple[Micros, Micros]:
    """Return the interval in which a message about the lease or the ack could have prevented the
    serve."""
    begins = [duplicate.before.time]
    if duplicate.before.queueing is not None:
        begins.append(duplicate.before.queueing.root().time)
    return min([*begins, duplicate.root.time]), duplicate.serve.time


def _outcome(
    duplicate: DuplicateCase,
    knower: str,
    queuer: str,
    sorts: tuple[str, ...],
    since: Micros,
    by: Micros,
) -> Outcome:
    if not duplicate.case.has_messages:
        return _outcome_by_times(duplicate, knower, queuer, since)
    return _outcome_of_messages(duplicate, knower, queuer, sorts, since, by) or _outcome_of_silence(
        duplicate, knower, queuer, sorts, since, by
    )


def _outcome_by_times(duplicate: DuplicateCase, knower: str, queuer: str, since: Micros) -> Outcome:
    """Return the outcome by cuts and stops alone, for traces without messages."""
    if duplicate.case.world.is_separated(knower, queuer, since, duplicate.serve.time):
        return Outcome.BLOCKED
    is_slow = _was_stopped(duplicate, knower, queuer, since, duplicate.serve.time)
    return Outcome.LATE if is_slow else Outcome.UNSENT


def _outcome_of_messages(
    duplicate: DuplicateCase,
    sender: str,
    receiver: str,
    sorts: tuple[str, ...],
    since: Micros,
    by: Micros,
) -> Outcome | None:
    """Return the outcome of the messages that were sent; None if there were none.

    A QUEUED before the lease does not announce the lease.
    """
    announcements = [duplicate.job.announcement(sender, receiver, sort) for sort in sorts]
    if any(announcement.lost >= since for announcement in announcements):
        return Outcome.BLOCKED
    sent = [announcement for announcement in announcements if announcement.sent >= since]
    late = [announcement.sent for announcement in sent if _is_late(announcement, by)]
    if late:
        was_held = duplicate.case.world.is_held(sender, receiver, min(late), duplicate.serve.time)
        return Outcome.BLOCKED if was_held else Outcome.LATE
    newest = since if sorts is OF_ACK else max(since, duplicate.before.time)
    return Outcome.ARRIVED if any(announcement.sent >= newest for announcement in sent) else None


def _is_late(announcement: Announcement, by: Micros) -> bool:
    return announcement.is_under_way() or announcement.got_at >= by


def _outcome_of_silence(
    duplicate: DuplicateCase,
    knower: str,
    queuer: str,
    sorts: tuple[str, ...],
    since: Micros,
    by: Micros,
) -> Outcome:
    """Return the outcome if nothing was sent.

    There was no link; or a faulty disk kept the knower from sending; or the knower had not listed
    the queuer: then the outcome of the queuer's own announcements decides.
    """
    if duplicate.case.world.was_mute(knower, since, duplicate.serve.time):
        return Outcome.BLOCKED
    listed = duplicate.job.listed
    copy = duplicate.job.copies.get(knower)
    if queuer in listed.get(knower, ()) or (copy is not None and _is_list_unsent(copy)):
        until = duplicate.serve.time
        return _outcome_without_link(
            duplicate, knower, queuer, since, until, is_ack=sorts is OF_ACK
        )
    own = duplicate.job.copies.get(queuer)
    begin = since if own is None else own.since
    announced = _outcome_of_messages(duplicate, queuer, knower, OF_LEASE, begin, by)
    if announced in {Outcome.BLOCKED, Outcome.LATE}:
        return announced
    if announced is None and knower in listed.get(queuer, ()):
        outcome = _outcome_without_link(
            duplicate, knower, queuer, begin, duplicate.serve.time, is_ack=False
        )
        return Outcome.UNLISTED if outcome is Outcome.UNSENT else outcome
    is_separated = duplicate.case.world.is_held(
        knower, queuer, duplicate.serve.time, duplicate.serve.time
    )
    return Outcome.BLOCKED if is_separated else Outcome.UNLISTED


def _is_list_unsent(copy: Copy) -> bool:
    """Is the node's list of holders in no message? A dummy has no list and asks all nodes; the list
    of a loaded copy is in no message."""
    return copy.is_dummy or copy.cause == "loaded"


def _outcome_without_link(
    duplicate: DuplicateCase,
    knower: str,
    queuer: str,
    since: Micros,
    until: Micros,
    *,
    is_ack: bool,
) -> Outcome:
    """Return the outcome if the knower should have sent a message: why was there no link?

    A link may be down for a while after a cut or an outage, because one of the two was too slow, or
    because a PONG was lost. An outage of the knower does not count if it lost the ack then.
    """
    case = duplicate.case
    due_at = since if is_ack else max(since, duplicate.before.time)
    if silence.had_given_up(case, knower, queuer, since, due_at):
        return Outcome.BLOCKED
    has_forgotten = is_ack and knower not in duplicate.acked_copies()
    if case.world.is_cut(knower, queuer, since, until) or case.world.was_out(queuer, since, until):
        return Outcome.BLOCKED
    if case.world.was_out(knower, since, until) and not has_forgotten:
        return Outcome.BLOCKED
    is_slow = case.obligations.has_tail or _was_stopped(duplicate, knower, queuer, since, until)
    is_slow = is_slow or (
        case.obligations.has_disk
        and until - max(since, duplicate.before.time) <= case.obligations.send_delay
    )
    return Outcome.LATE if is_slow else Outcome.UNSENT


def _was_stopped(
    duplicate: DuplicateCase, one: str, other: str, since: Micros, until: Micros
) -> bool:
    """Was one of them stopped or slow, then or so shortly before that links may still be down?"""
    world = duplicate.case.world
    since -= duplicate.case.obligations.reconnect
    return world.is_stopped(one, since, until) or world.is_stopped(other, since, until)


def was_hindered(
    duplicate: DuplicateCase, node: str, other: str, since: Micros, until: Micros
) -> bool:
    """Was there a cut, an outage or a stop, or were links still down after one?"""
    case = duplicate.case
    is_separated = case.world.is_separated(node, other, since, until)
    is_separated = is_separated or silence.had_given_up(case, node, other, since, since)
    return is_separated or _was_stopped(duplicate, node, other, since, until)
