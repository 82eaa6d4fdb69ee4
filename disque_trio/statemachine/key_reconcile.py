"""Two jobs with one key meet after a cut, and the later one goes (docs/bus.md, decision 73).

Each side of a partition may add a job with the same key. When all members of the cluster can be
reached again, each node asks the others about the jobs with keys that it is to deliver and that
were never delivered: those that are there when the last node has returned, and for a while also
those that come later, such as by an ADDJOB that has waited for copies, or from another node. A job
of which an earlier one lives, by creation stamp and id, ends as by ACKJOB. The earliest stays, so
none is lost.

Nothing is asked where there are no keys. A few jobs are asked about at a time. Owns the fields of
`Meeting`.
"""

from collections.abc import Container
from typing import Final

from disque_trio.statemachine import key_cancel, key_facts, key_index, key_quorum, key_search
from disque_trio.statemachine.base import MYSELF, Millis, NodeId
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job, is_at_least_once
from disque_trio.statemachine.key_facts import (
    DEAD,
    HELD,
    IN_QUEUE,
    WITH_WORKER,
    KeyFact,
    is_undecided,
)
from disque_trio.statemachine.key_quorum import AWAY
from disque_trio.statemachine.key_search import Told
from disque_trio.statemachine.keys import Meeting, Rule, Search
from disque_trio.statemachine.state import NodeState

RUN_EVERY: Final[Millis] = 20
LOOK_EVERY: Final[Millis] = 500
"""How often it is seen whether all nodes are back."""
MEETS_FOR: Final[Millis] = 10_000
"""For how long jobs that come after the last return are asked about."""
MEETS_WITHIN: Final[Millis] = 30_000
"""For so long a job waits for what becomes of an earlier ADDJOB, or of a job that moves."""


def begin(node: NodeState) -> None:
    """A node has returned."""
    meeting = node.keys.meeting
    meeting.is_wanted = True
    meeting.until = node.mono + MEETS_FOR
    if not meeting.due:
        node.timers.arm(meeting, node.mono + RUN_EVERY)


def on_due(node: NodeState, meeting: Meeting) -> None:
    """List the jobs when the last node has returned, and ask about the next ones."""
    if not node.keys.index:
        meeting.is_wanted = False
        meeting.ids.clear()
        meeting.names.clear()
        return
    if not sees_all(node):
        meeting.until = node.mono + MEETS_FOR
        node.timers.arm(meeting, node.mono + LOOK_EVERY)
        return
    if meeting.is_wanted:
        meeting.is_wanted = False
        meeting.ids.clear()
        # Half as long as a list of the jobs: 17 ms for a million.
        meeting.names = list(node.keys.index)
    _ask(node, meeting)
    if meeting.ids or meeting.names:
        node.timers.arm(meeting, node.mono + RUN_EVERY)


def _ask(node: NodeState, meeting: Meeting) -> None:
    room = node.knobs.meetings - sum([each.rule is _MEET for each in node.keys.searches.values()])
    looks = node.knobs.meeting_looks
    while looks and room > 0:
        looks -= 1
        if not meeting.ids:
            if not meeting.names:
                return
            meeting.ids = [job.id for job in node.keys.index.get(meeting.names.pop(), ())]
            continue
        job = node.jobs.get(meeting.ids.pop())
        name = None if job is None else key_index.name_of(job)
        if job is not None and name is not None and _may_yield(node, job):
            room -= 1
            key_search.begin(node, name, _MEET, job=job)


def _may_yield(node: NodeState, job: Job) -> bool:
    """Is this node to deliver the job? One that was to be queued after another one stays: that one
    has not seen what its producer has seen."""
    is_here = node.jobs.get(job.id) is job and key_cancel.is_to_deliver(node, job)
    return is_here and (job.extensions is None or not job.extensions.follows)


def _is_cancelled(node: NodeState, search: Search) -> bool:
    """May the job not go any more?"""
    is_over = node.mono - search.began > MEETS_WITHIN
    return is_over or search.job is None or not _may_yield(node, search.job)


def sees_all(node: NodeState, but: Container[NodeId] = ()) -> bool:
    """Can all members be reached, except perhaps these, and is it known which are ours?

    One that cannot be reached may know that the earlier job has ended, so the later one stays.
    """
    return all(
        peer.id in but or (peer.resent_on == peer.link != 0 and not peer.flags & AWAY)
        for peer in node.cluster.nodes.values()
        if not peer.flags & MYSELF
    )


def _meet(node: NodeState, search: Search, told: Told) -> None:
    """The job ends if an earlier one lives; of that, too, all have been asked whether it has ended.
    It is asked again while an earlier one may be added, or is on its way."""
    job = search.job
    assert job is not None, f"search {search.number} is about no job"
    earlier = [each for each in key_search.known(search, told).values() if _is_earlier(each, job)]
    living = [fact for fact in earlier if fact.word == HELD and _stays(fact)]
    if not _may_yield(node, job) or not _have_all_answered(node, search):
        key_search.end(node, search)
    elif any(fact.id == search.about for fact in living):
        key_search.end(node, search)
        mine = KeyFact(job.id, job.ctime, HELD, IN_QUEUE, 0)
        key_cancel.cancel(node, search, mine, Cause.YIELDED)
    elif living:
        key_search.ask_about(node, search, min((fact.stamp, fact.id) for fact in living)[1])
    elif is_undecided({fact.id: fact for fact in earlier}):
        key_search.ask_about_moved(node, search, earlier)
    else:
        key_search.end(node, search)


def _is_earlier(fact: KeyFact, job: Job) -> bool:
    return key_facts.is_earlier(fact, job.ctime, job.id)


def _have_all_answered(node: NodeState, search: Search) -> bool:
    peers = node.cluster.nodes.values()
    ours = [peer.id for peer in peers if key_quorum.answers(peer) and not peer.flags & MYSELF]
    return sees_all(node) and all(id in search.answers for id in ours)


def _stays(fact: KeyFact) -> bool:
    """Will the job be delivered, or is it with a worker and would be delivered again?"""
    is_spent = fact.state == WITH_WORKER and not is_at_least_once(fact.id)
    return fact.state != DEAD and not is_spent


_MEET: Final = Rule(_meet, _is_cancelled)
