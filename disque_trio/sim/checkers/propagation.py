"""What became of the news that one node had for another: for the causes of duplicates.

A `Story` is a serve that is not the first, with what it goes back to. `fate` says of two nodes why
the one that queued the job did not hear in time what the other knew. Where the trace has messages
they decide: a cut that had healed before the news was sent has not kept it.
"""

import enum
from typing import Final

import attrs

from disque_trio.sim.checkers import silence
from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.messages import ACK, QUEUED, WORKING
from disque_trio.sim.checkers.obligations import MILLI
from disque_trio.sim.checkers.records import Ack, Copy, Job, Lease, Notice, Queueing
from disque_trio.sim.scenarios.plan import Micros

OF_LEASE: Final = (QUEUED, WORKING)
"""Messages that a holder sends because of a lease."""
OF_ACK: Final = (ACK,)
WRITE: Final[Micros] = 100 * MILLI
"""For so long a message may wait until what it says has been written to a disk that is well."""


class Fate(enum.Enum):
    """What became of the news."""

    TOLD = "it came in time"
    KEPT = "a cut, an outage or a loss kept it"
    LATE = "it was under way, or one of the two was stopped"
    SHORT = "the one did not know that the other had a copy"
    SILENT = "the one knew whom to tell, had a link, and said nothing"


@attrs.frozen
class Story:
    """A serve that is not the first, and what it goes back to."""

    case: Case
    job: Job
    serve: Lease
    before: Lease
    """What was known of the job's last lease, or should have been."""
    chain: list[Queueing]
    """The stays in queues, from the server's back to the first giver's."""

    @property
    def root(self) -> Queueing:
        """Why it was queued at all."""
        return self.chain[-1]

    def nodes(self) -> list[str]:
        """Who had it queued, the server first."""
        return list(dict.fromkeys(stay.node for stay in self.chain))

    @property
    def root_end(self) -> Micros:
        """When the first stay ended: the job was given away, or served."""
        return self.chain[-2].given_at if len(self.chain) > 1 else self.serve.time

    def informants(self) -> list[str]:
        """Who knew better: the node of the lease, and where that had been queued first."""
        found = {self.before.node: None}
        if self.before.queueing is not None:
            found[self.before.queueing.root().node] = None
        return list(found)

    def acks(self, kind: str = "") -> list[Ack]:
        """Acknowledgements before the serve, of that kind if one is given."""
        return [
            ack for ack in self.job.acks if ack.time <= self.serve.time and kind in ("", ack.kind)
        ]

    def acked_copies(self) -> dict[str, Micros]:
        """Which nodes know of an ack, and since when."""
        return {copy.node: copy.acked_at for copy in self.job.copies.values() if copy.is_acked}


def of_ack(story: Story, knower: str, queuer: str, since: Micros) -> Fate:
    """Why word of an ack that `knower` had `since` then has not kept `queuer` from serving.

    What came before a crash counts for nothing: a copy that knows it would not be queued. But that
    nothing came, and nothing was in its way, is no fault of the crash.
    """
    begin = story.case.world.begin_of(queuer)
    if begin > since and _was_kept_in_the_dark(story, knower, queuer, since):
        return Fate.SILENT
    return _fate(story, knower, queuer, OF_ACK, max(since, begin), story.serve.time)


def is_ack_passed_on_late(story: Story, knower: str, queuer: str, since: Micros) -> bool:
    """Is word of the ack on its way to somebody who alone knows of the queuer's copy, having given
    it the job, and would have told it in turn?"""
    listed = story.job.listed
    return queuer not in listed.get(knower, ()) and any(
        queuer in listed.get(between, ()) and of_ack(story, knower, between, since) is Fate.LATE
        for between in story.job.copies
        if between not in {knower, queuer}
    )


def _was_kept_in_the_dark(story: Story, knower: str, queuer: str, since: Micros) -> bool:
    """Has the queuer its copy from before the crash back from its disk, and had the other known of
    the copy, and never told it, although there was a link?"""
    copy = story.job.copies.get(queuer)
    crash = story.case.world.outages[queuer][-1].start
    if copy is None or copy.cause != "loaded" or queuer not in story.job.listed.get(knower, ()):
        return False
    if not story.case.has_messages or story.job.notice(knower, queuer, ACK).sent >= since:
        return False
    if story.case.world.was_mute(knower, since, crash) or crash - since <= WRITE:
        return False
    return _fate_without_link(story, knower, queuer, since, crash - 1, is_ack=True) is Fate.SILENT


def of_lease(story: Story, knower: str, queuer: str) -> Fate:
    """The same for word of the lease before, which had to come before the job was queued."""
    return _fate(story, knower, queuer, OF_LEASE, span(story)[0], story.root.time)


def span(story: Story) -> tuple[Micros, Micros]:
    """From when on news should have travelled, until it was too late."""
    begins = [story.before.time]
    if story.before.queueing is not None:
        begins.append(story.before.queueing.root().time)
    return min([*begins, story.root.time]), story.serve.time


def _fate(
    story: Story, knower: str, queuer: str, sorts: tuple[str, ...], since: Micros, by: Micros
) -> Fate:
    if not story.case.has_messages:
        return _fate_by_times(story, knower, queuer, since)
    return _fate_of_messages(story, knower, queuer, sorts, since, by) or _fate_of_silence(
        story, knower, queuer, sorts, since, by
    )


def _fate_by_times(story: Story, knower: str, queuer: str, since: Micros) -> Fate:
    """The trace has no messages: cuts and stops are all there is to go by."""
    if story.case.world.is_parted(knower, queuer, since, story.serve.time):
        return Fate.KEPT
    is_slow = _was_stopped(story, knower, queuer, since, story.serve.time)
    return Fate.LATE if is_slow else Fate.SILENT


def _fate_of_messages(
    story: Story, sender: str, receiver: str, sorts: tuple[str, ...], since: Micros, by: Micros
) -> Fate | None:
    """What became of those that were sent; None if there were none.

    That somebody had queued the job, and the other knew it, is no news of the lease that followed.
    """
    notices = [story.job.notice(sender, receiver, sort) for sort in sorts]
    if any(notice.lost >= since for notice in notices):
        return Fate.KEPT
    sent = [notice for notice in notices if notice.sent >= since]
    late = [notice.sent for notice in sent if _is_late(notice, by)]
    if late:
        was_held = story.case.world.is_held(sender, receiver, min(late), story.serve.time)
        return Fate.KEPT if was_held else Fate.LATE
    newest = since if sorts is OF_ACK else max(since, story.before.time)
    return Fate.TOLD if any(notice.sent >= newest for notice in sent) else None


def _is_late(notice: Notice, by: Micros) -> bool:
    return notice.is_under_way() or notice.got_at >= by


def _fate_of_silence(
    story: Story, knower: str, queuer: str, sorts: tuple[str, ...], since: Micros, by: Micros
) -> Fate:
    """Nothing was sent: was there no link, or no disk for what is to be said, or did the knower not
    know of the queuer's copy, of which that may have told it, or tried to?"""
    if story.case.world.was_mute(knower, since, story.serve.time):
        return Fate.KEPT
    listed = story.job.listed
    copy = story.job.copies.get(knower)
    if queuer in listed.get(knower, ()) or (copy is not None and _is_list_unsaid(copy)):
        until = story.serve.time
        return _fate_without_link(story, knower, queuer, since, until, is_ack=sorts is OF_ACK)
    own = story.job.copies.get(queuer)
    begin = since if own is None else own.since
    announced = _fate_of_messages(story, queuer, knower, OF_LEASE, begin, by)
    if announced in {Fate.KEPT, Fate.LATE}:
        return announced
    if announced is None and knower in listed.get(queuer, ()):
        fate = _fate_without_link(story, knower, queuer, begin, story.serve.time, is_ack=False)
        return Fate.SHORT if fate is Fate.SILENT else fate
    is_parted = story.case.world.is_held(knower, queuer, story.serve.time, story.serve.time)
    return Fate.KEPT if is_parted else Fate.SHORT


def _is_list_unsaid(copy: Copy) -> bool:
    """A dummy has no list and asks everybody; that of a copy from the disk no message has told."""
    return copy.is_dummy or copy.cause == "loaded"


def _fate_without_link(
    story: Story, knower: str, queuer: str, since: Micros, until: Micros, *, is_ack: bool
) -> Fate:
    """A link may be down for a while after a cut or an outage, because one of the two was too slow,
    or because a PONG was lost before that was to be said. Who has lost an ack to a crash cannot be
    asked for it."""
    case = story.case
    said = since if is_ack else max(since, story.before.time)
    if silence.had_given_up(case, knower, queuer, since, said):
        return Fate.KEPT
    has_forgotten = is_ack and knower not in story.acked_copies()
    if case.world.is_cut(knower, queuer, since, until) or case.world.was_out(queuer, since, until):
        return Fate.KEPT
    if case.world.was_out(knower, since, until) and not has_forgotten:
        return Fate.KEPT
    is_slow = case.terms.has_tail or _was_stopped(story, knower, queuer, since, until)
    is_slow = is_slow or (case.terms.has_disk and until - max(since, story.before.time) <= WRITE)
    return Fate.LATE if is_slow else Fate.SILENT


def _was_stopped(story: Story, one: str, other: str, since: Micros, until: Micros) -> bool:
    """Was one of them stopped or slow, maybe for so long that links to it ended?"""
    world = story.case.world
    since -= story.case.terms.reconnect
    return world.is_stopped(one, since, until) or world.is_stopped(other, since, until)


def was_in_the_way(
    story: Story, node: str, other: str, since: Micros, until: Micros | None = None
) -> bool:
    """Was there a cut, an outage or a stop, or its aftermath, before that time or the serve?"""
    case = story.case
    until = story.serve.time if until is None else until
    is_parted = case.world.is_parted(node, other, since, until)
    is_parted = is_parted or silence.had_given_up(case, node, other, since, since)
    return is_parted or _was_stopped(story, node, other, since, until)
