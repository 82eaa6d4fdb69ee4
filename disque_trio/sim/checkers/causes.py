"""The rules by which a duplicate gets its cause, in their order (see `duplicates`)."""

from collections.abc import Callable
from typing import Final

from disque_trio.sim.checkers import propagation
from disque_trio.sim.checkers.messages import ACK, WORKING
from disque_trio.sim.checkers.obligations import MILLI
from disque_trio.sim.checkers.propagation import Fate, Story
from disque_trio.sim.checkers.records import NEVER, Ack
from disque_trio.sim.scenarios.plan import Micros

AHEAD: Final = 500 * MILLI
"""WILLQUEUE goes out so long before a requeue."""


Rule = Callable[[Story], bool]


def _asked(story: Story) -> bool:
    """D0: NACK or ENQUEUE after the last lease, or DELJOB of the ack itself."""
    if story.root.cause in {"nack", "enqueue"} and story.root.time >= story.before.time:
        return True
    return story.job.ack_deleted and not _is_known(story)


def _lease_was_over(story: Story) -> bool:
    """D1: queued again in time, before any node had taken note that the job is done.

    An ack on its way to a node, or waiting at one that is stopped, is none yet.
    """
    job, root = story.job, story.root
    if root.cause not in {"retry", "delay-over"}:
        return False
    done = job.first_ack if story.case.has_node_rows else job.ack_invoked
    if done is not None and done < root.time:
        return False
    if not story.case.terms.has_lease and story.before.queueing is not None:
        return True
    retry = 0 if job.options is None else job.options.retry
    before = story.before
    if before.queueing is None and before.time > root.time and before.before is not None:
        # More time, asked for when the job was queued again already, comes too late.
        before = before.before
    return root.time - before.time >= story.case.terms.lease(retry)


def _ack_was_cut_off(story: Story) -> bool:
    """D2: a cut or a loss lay between a node that had taken note and one that queued it.

    By what the messages say rather than by vector clocks: news of other things may find a way
    round a cut that this news has no right to take. `is_dominated` tells such duplicates apart.
    Those that were told of the ack count if those to whom it was said had no link either, or have
    forgotten it.
    """
    acks = story.acks("ackjob")
    if not acks or _was_told_of_ack(story, acks[0].time):
        return False
    if not _is_known(story) and not _is_cut_yet(story, acks):
        return False
    earliest = story.serve.time - story.case.terms.collection
    knowing = story.acked_copies()
    ackers = {
        ack.node: max(ack.time, earliest)
        for ack in reversed(acks)
        if ack.node in knowing or not knowing or _told_while_it_knew(story, ack)
    }
    fates = _fates_of_ack(story, ackers)
    if Fate.KEPT in fates or Fate.LATE in fates:
        return Fate.KEPT in fates
    others = {node: max(at, earliest) for node, at in knowing.items()}
    return Fate.KEPT in _fates_of_ack(story, others)


def _told_while_it_knew(story: Story, ack: Ack) -> bool:
    """Is word on its way that the node has sent before it forgot the ack, of which others know?"""
    notices = [story.job.notice(ack.node, node, ACK) for node in story.nodes() if node != ack.node]
    return any(notice.sent >= ack.time and notice.sent > notice.lost for notice in notices)


def _is_cut_yet(story: Story, acks: list[Ack]) -> bool:
    """Could a node that has forgotten the ack since not have told of it, had it remembered?"""
    is_cut, since = story.case.world.is_cut, story.root.time
    return not (story.job.acks_crashed or story.job.acks_evicted) or any(
        is_cut(ack.node, queuer, since, story.serve.time)
        for ack in acks
        for queuer in story.nodes()
        if queuer != ack.node
    )


def _fates_of_ack(story: Story, knowing: dict[str, Micros]) -> list[Fate]:
    return [
        propagation.of_ack(story, node, queuer, since)
        for node, since in knowing.items()
        for queuer in story.nodes()
        if node != queuer
    ]


def _was_told_of_ack(story: Story, since: Micros) -> bool:
    """Had the server heard of it before it queued the job, and not forgotten it since?"""
    server, stay = story.serve.node, story.chain[0]
    since = max(since, story.case.world.begin_of(server))
    return any(
        receiver == server and sort == ACK and notice.got >= since and notice.got_at < stay.time
        for (_, receiver, sort), notice in story.job.notices.items()
    )


def _ack_crashed(story: Story) -> bool:
    """D3a: everybody who had taken note has crashed, or has had no disk to tell of it."""
    world, since = story.case.world, story.serve.time - story.case.terms.settle
    can_tell = any(
        copy.is_acked and not world.was_mute(copy.node, since, story.serve.time)
        for copy in story.job.copies.values()
    )
    return bool(story.acks("ackjob") and story.job.acks_crashed) and not can_tell


def _is_known(story: Story) -> bool:
    """Does some node still know of the ack?"""
    return any(copy.is_acked for copy in story.job.copies.values())


def _ack_evicted(story: Story) -> bool:
    """D3b."""
    return bool(story.acks("ackjob") and story.job.acks_evicted) and not _is_known(story)


def _ack_collected(story: Story) -> bool:
    """D3c: a queuer had its copy already when the ack was collected."""
    over = story.job.collected_over
    return bool(story.acks("ackjob")) and any(node in over for node in story.nodes())


def _acked_in_flight(story: Story) -> bool:
    """D11: the giver took note after it had given, of an ack that it can only pass on.

    If somebody has been served meanwhile, then two have queued the job, and D4 or D5 says why.
    """
    return any(
        ack.node == giver.node and story.before.time <= taken.given_at <= ack.time
        for taken, giver in zip(story.chain, story.chain[1:], strict=False)
        for ack in story.acks("ackjob")
    )


def _news_was_kept(story: Story) -> bool:
    """D4: a cut, an outage or a loss lay between those who knew of the lease and those who
    queued the job. What the node of the lease has said itself counts first."""
    if _knew_of_lease(story):
        return False
    for node in story.informants():
        fates = [
            propagation.of_lease(story, node, queuer) for queuer in story.nodes() if queuer != node
        ]
        if Fate.KEPT in fates or Fate.LATE in fates:
            return Fate.KEPT in fates
    return False


def _knew_of_lease(story: Story) -> bool:
    """Had the one who queued it heard of the lease, or the server while it had it queued?

    Then it should have let go of the job. QUEUED does not count: of two, one keeps the job.
    """
    if _heard(story, story.root.node, story.before.time, story.root_end):
        return True
    stay = story.chain[0]
    return len(story.chain) > 1 and _heard(story, stay.node, stay.time, story.serve.time)


def _heard(story: Story, node: str, after: Micros, until: Micros) -> bool:
    """Did news of the lease reach the node between these times?"""
    lease = story.before
    if lease.node == node:
        return after <= lease.time < until
    return any(
        notice.got >= lease.time and after <= notice.got_at < until
        for notice in (story.job.notice(lease.node, node, sort) for sort in (WORKING, ACK))
    )


def _news_was_late(story: Story) -> bool:
    """D5: the news was under way, or one of the nodes was stopped; nothing was cut."""
    if _acked_in_flight(story):
        return False
    if _ack_is_late(story):
        return True
    if _knew_of_lease(story):
        return False
    if not story.case.has_messages:
        apart = abs(story.root.time - story.before.time)
        return apart <= 2 * story.case.terms.latency + AHEAD
    return any(
        propagation.of_lease(story, node, queuer) is Fate.LATE
        for node in story.informants()
        for queuer in story.nodes()
        if queuer != node
    )


def _ack_is_late(story: Story) -> bool:
    """Word of an ack came too late, from who had it or from who had been told; or one of the two
    was stopped, which ends links. Of a FASTACK only if nothing else was in the way (D9)."""
    acks = story.acks("ackjob")
    if acks and not _was_told_of_ack(story, acks[0].time):
        knowing = story.acked_copies() | {ack.node: ack.time for ack in reversed(acks)}
        if Fate.LATE in _fates_of_ack(story, knowing) or _is_passed_on_late(story, knowing):
            return True
    return any(
        propagation.of_ack(story, ack.node, queuer, ack.time) is Fate.LATE
        and not propagation.was_in_the_way(story, ack.node, queuer, ack.time)
        for ack in story.acks("fastack")
        for queuer in story.nodes()
        if queuer != ack.node
    )


def _is_passed_on_late(story: Story, knowing: dict[str, Micros]) -> bool:
    return any(
        propagation.is_ack_passed_on_late(story, node, queuer, since)
        for node, since in knowing.items()
        for queuer in story.nodes()
        if node != queuer
    )


def _list_was_short(story: Story) -> bool:
    """D6: of those who knew of the ack or of the lease, nobody had on its list any of those who had
    the job queued, or told it all the same."""
    if not story.case.has_messages:
        return False
    knowing = _knowing(story)
    nodes = story.nodes()
    if any(
        ack.kind == "fastack" and ack.node not in story.job.listed
        for ack in story.job.acks
        if ack.time <= story.serve.time
    ):
        # Without a copy it has told all nodes: not its list was short, a holder was out of reach.
        return False
    if any(_has_missed_list(story, ack, node) for ack in story.acks("fastack") for node in nodes):
        return False
    if any(node in {story.before.node, *knowing} for node in nodes):
        return False
    return not any(
        node in story.job.listed.get(one, ()) or _has_told_of_ack(story, one, node)
        for one in knowing
        for node in nodes
    )


def _has_missed_list(story: Story, ack: Ack, node: str) -> bool:
    """Had the one that added the job given it to this node too, and could not say so to the one to
    which FASTACK came? That is said once, and FASTACK does not wait until all know all holders."""
    job = story.job
    added = job.listed.get(job.origin, ())
    if job.born is None or node not in added or node in job.listed.get(ack.node, ()):
        return False
    return propagation.was_in_the_way(story, job.origin, ack.node, job.born, ack.time)


def _has_told_of_ack(story: Story, one: str, other: str) -> bool:
    """Who has no copy, and so no list, tells everybody."""
    return story.job.notice(one, other, ACK).sent >= story.before.time


def _knowing(story: Story) -> list[str]:
    """Who should have told the server: of an ack if there is one, else of the lease."""
    acks = [ack.node for ack in story.job.acks if ack.time <= story.serve.time]
    knowing = [copy.node for copy in story.job.copies.values() if copy.is_acked and acks]
    return list(dict.fromkeys(acks + knowing)) or [story.before.node]


def _copy_was_late(story: Story) -> bool:
    """D7: a copy reached a queuer after it had taken note of the ack, and kept nothing of it.

    Whoever let go of the job before anybody had acknowledged it has forgotten no ack.
    """
    if not story.job.acks:
        return False
    first = min(ack.time for ack in story.job.acks)
    copies = [story.job.copies.get(node) for node in story.nodes()]
    return any(
        copy is not None and copy.is_late and not copy.is_dummy and copy.disowned_at >= first
        for copy in copies
    )


def _came_from_disk(story: Story) -> bool:
    """D8: a queuer had dropped its copy before, and loaded it again; or somebody had, and of all
    acks since nobody knows. No disk may lose what a kill leaves on it, or what was synced."""
    job = story.job
    copies = [job.copies.get(node) for node in story.nodes() if node not in job.remembered]
    if any(copy is not None and copy.is_late and copy.cause == "loaded" for copy in copies):
        return True
    return job.resurrected_at != NEVER and all(ack.time <= job.resurrected_at for ack in job.acks)


def _fastack_was_cut_off(story: Story) -> bool:
    """D9: DELJOB was lost, or there was no link to send it on, or to send the list of holders."""
    return any(
        ack.node != node
        and (
            _has_missed_list(story, ack, node)
            or propagation.was_in_the_way(story, ack.node, node, ack.time)
            or story.job.notice(ack.node, node, ACK).lost >= ack.time
        )
        for ack in story.acks("fastack")
        for node in story.nodes()
    )


def _clock_was_wrong(story: Story) -> bool:
    """D10: the queuer's clock has stepped or changed its rate since the lease."""
    times = story.case.world.wrong_clocks.get(story.root.node, ())
    return any(story.before.time <= time <= story.root.time for time in times)


def _add_had_failed(story: Story) -> bool:
    """D12."""
    add = story.job.add
    return add is not None and add.outcome in {"unknown", "refused"}


def _unexplained(_story: Story) -> bool:
    """DX."""
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
    ("D4", _news_was_kept),
    ("D5", _news_was_late),
    ("D6", _list_was_short),
    ("D9", _fastack_was_cut_off),
    ("D10", _clock_was_wrong),
    ("D11", _acked_in_flight),
    ("D12", _add_had_failed),
    ("DX", _unexplained),
)
"""D7 and D8 stand before rules of which they are special cases."""
