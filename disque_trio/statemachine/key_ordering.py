"""The order in which several jobs with one key are delivered (docs/bus.md).

IFEXISTS again and replace (decision 76): a job is enqueued when the earlier ones with its key have
ended. All holders of such a job have it marked as waiting. Each asks about the earlier jobs when
the job becomes due there, which happens first at the node of its ADDJOB. If several nodes ask, only
one of them continues: the node of the ADDJOB, or else the first in an order that depends on the
job. The asked nodes answer again when an earlier job ends. If none lives, the asking node enqueues
the job. The job does not wait for dead jobs. With `replace` the node of the ADDJOB ends the earlier
jobs that were never delivered, once the new one has its copies, and then replies to its client. The
job waits for an earlier job that a worker takes in the meantime.

After a partition (decision 73): each side may have added a job with the same key. When all members
of the cluster are reachable again, each node asks the others about the jobs with keys that it must
deliver and that were never delivered: those that exist when the last node has returned, and for a
while also later ones, for example of an ADDJOB that has waited for copies, or from another node. A
job ends as by ACKJOB if an earlier one with its key lives, by creation stamp and id. The earliest
stays, so none is lost. Without keys there are no requests. A node asks about a few jobs at a time.

Owns `Ordering.jobs`, `waiting` and `replacing`, `Search.cancelled` of its searches, and the
fields of `Reconciliation`.
"""

from collections.abc import Container
from typing import Final

from disque_trio.statemachine import key_cancel, key_index, key_search, lifecycle, pending_adds
from disque_trio.statemachine.base import (
    ACTIVE,
    BCAST_QUEUED,
    DELAYED,
    MYSELF,
    WAIT_REPL,
    Millis,
    NodeId,
    Status,
)
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job, is_at_least_once, rank
from disque_trio.statemachine.key_facts import (
    DEAD,
    ENDED,
    GIVEN_OUT,
    HELD,
    HELD_BACK,
    IN_QUEUE,
    MOVED,
    UNLESS_KNOWN_AS_TAKEN,
    UNLESS_TAKEN,
    WITH_WORKER,
    KeyFact,
    is_earlier,
    is_undecided,
)
from disque_trio.statemachine.key_search import Answers
from disque_trio.statemachine.keys import KeyName, Ordering, Reconciliation, Rule, Search
from disque_trio.statemachine.state import NodeState

LOOK_EVERY: Final[Millis] = 1000
"""How often all nodes are asked while an earlier job lives, in case the report of its end was
lost."""
LOOKS_A_SECOND: Final = 500
"""The number of jobs up to which this holds: with more jobs each is asked about less often."""
ENDS_WITHIN: Final[Millis] = 1000
"""How long only the node that must deliver an earlier job may end it. That node may be gone."""
REPLACES_WITHIN: Final[Millis] = 3000
"""After this time the client gets its reply, and the job waits for an earlier one that still
lives."""
RECONCILE_EVERY: Final[Millis] = 20
CHECK_EVERY: Final[Millis] = 500
"""How often a node checks whether all nodes are back."""
RECONCILES_FOR: Final[Millis] = 10_000
"""How long a node asks about new jobs after the last return of a node."""
RECONCILES_WITHIN: Final[Millis] = 30_000
"""How long a job waits for the outcome of an earlier ADDJOB, or of a job in transit."""


def on_due(node: NodeState, ordering: Ordering) -> None:
    """Ask about the jobs that have become due, once all jobs of the journal are loaded."""
    if node.recovering is not None:
        node.timers.arm(ordering, node.mono + LOOK_EVERY)
        return
    jobs = list(ordering.jobs.values())
    ordering.jobs.clear()
    for job in jobs:
        name = key_index.name_of(job)
        is_asking = key_index.search_for(node, job) is not None
        if name is None or is_asking or not _is_wanted(node, job):
            continue
        search = key_search.begin(node, name, _FOLLOW, job=job)
        if search.number in node.keys.searches:
            ordering.waiting[name] = (*_searches(node, name), search)


def _searches(node: NodeState, name: KeyName) -> tuple[Search, ...]:
    ordering = node.keys.ordering
    return ordering.waiting.get(name, ())


def _is_wanted(node: NodeState, job: Job) -> bool:
    """Does the job wait here, or does a client wait for its outcome?"""
    if job.id in node.keys.ordering.replacing:
        return True
    return node.jobs.get(job.id) is job and key_index.is_held_back(job)


def _is_left_to_other(node: NodeState, job: Job, answers: Answers) -> bool:
    """Does a node with precedence hold the job, so that it asks? It must report the job: a
    reachable node may have lost its copy, or moved it."""
    mine = _preference(node.cluster.myself.id, job)
    return any(
        _preference(id, job) > mine
        and any(fact.id == job.id and fact.word != MOVED for fact in facts)
        for id, facts in answers.items()
    )


def _was_let_go(job: Job, answers: Answers) -> bool:
    """Does another holder know that the earlier jobs have ended, or that the job was enqueued?"""
    return any(
        fact.id == job.id and fact.word in (HELD, ENDED) and not fact.marks & HELD_BACK
        for facts in answers.values()
        for fact in facts
    )


def _preference(id: NodeId, job: Job) -> tuple[bool, int]:
    return job.id[2:10] == id[:8], rank(id, job.id)


def _is_cancelled(node: NodeState, search: Search) -> bool:
    """Does no client and no job need the answer any longer?"""
    job = search.job
    assert job is not None, f"search {search.number} is about no job"
    if job.id in node.keys.ordering.replacing:
        is_gone = job.state != WAIT_REPL and not _is_here(node, job)
        if not is_gone:
            return False
        _answer(node, job)
    elif _is_wanted(node, job):
        return False
    _forget(node, search)
    return True


def _is_here(node: NodeState, job: Job) -> bool:
    return node.jobs.get(job.id) is job and job.state == ACTIVE


def _forget(node: NodeState, search: Search) -> None:
    key_search.end(node, search)
    ordering = node.keys.ordering
    left = tuple([each for each in _searches(node, search.name) if each is not search])
    if left:
        ordering.waiting[search.name] = left
    else:
        ordering.waiting.pop(search.name, None)


def _decide(node: NodeState, search: Search, answers: Answers) -> None:
    """Enqueue the job if no earlier one lives; otherwise continue, and end the jobs that it
    replaces."""
    job = search.job
    assert job is not None, f"search {search.number} is about no job"
    if _was_let_go(job, answers):
        _let_go(node, search, job, is_first=False)
        return
    if _is_left_to_other(node, job, answers):
        _forget(node, search)
        return
    known = key_search.known(search, answers)
    earlier = [fact for fact in known.values() if is_earlier(fact, job.ctime, job.id)]
    living = [fact for fact in earlier if fact.word == HELD and fact.state != DEAD]
    # The key of a replaced job is free when that job has ended, regardless of its KEEP.
    live = [fact.id for fact in living]
    for fact in search.cancelled:
        if fact.id not in live:
            key_cancel.free(node, search, fact)
    search.cancelled = tuple([fact for fact in search.cancelled if fact.id in live])
    if not living and is_undecided({fact.id: fact for fact in earlier}):
        key_search.ask_about_moved(node, search, earlier)
    elif not living:
        _let_go(node, search, job)
    elif all(fact.id != search.about for fact in living):
        key_search.ask_about(node, search, min((fact.stamp, fact.id) for fact in living)[1])
    elif job.id in node.keys.ordering.replacing:
        _replace(node, search, job, living)
    else:
        wait = len(node.keys.searches) * 1000 // LOOKS_A_SECOND
        key_search.pause(node, search, max(wait, LOOK_EVERY))


def _let_go(node: NodeState, search: Search, job: Job, *, is_first: bool = True) -> None:
    """The job need not wait any longer. `is_first` is False if another node knew that before: then
    the job may be with a worker."""
    _forget(node, search)
    if _is_here(node, job) and key_index.is_held_back(job):
        key_index.let_go(node, job)
        if not job.flags & DELAYED:
            _queue(node, job, is_first=is_first)
    _answer(node, job)


def _queue(node: NodeState, job: Job, *, is_first: bool) -> None:
    is_paused = job.queue is not None and lifecycle.is_paused_in(node, job.queue)
    if job.retry and (is_paused or not is_first):
        lifecycle.requeue_in(node, job, job.retry + lifecycle.desync(node))  # as after RETRY
        return
    # Announce the enqueue with QUEUED, because the job may become due at other holders, too.
    lifecycle.mark(job, BCAST_QUEUED)
    lifecycle.enqueue(node, job, Cause.FOLLOWED)


def _replace(node: NodeState, search: Search, job: Job, living: list[KeyFact]) -> None:
    """End the earlier jobs that were never delivered. KEYCANCEL is sent before each round of
    requests to all nodes."""
    targets = tuple([fact for fact in living if not fact.marks & GIVEN_OUT])
    if not targets or node.mono - search.began > REPLACES_WITHIN:
        search.cancelled = ()
        _answer(node, job)
    elif [fact.id for fact in targets] != [fact.id for fact in search.cancelled]:
        search.cancelled = targets
        key_search.ask_all(node, search)


def _end_targets(node: NodeState, search: Search) -> None:
    is_late = node.mono - search.began > ENDS_WITHIN
    for fact in search.cancelled:
        key_cancel.replace(node, search, fact, UNLESS_KNOWN_AS_TAKEN if is_late else UNLESS_TAKEN)


def _answer(node: NodeState, job: Job) -> None:
    """Reply to the ADDJOB of `replace` with the job's id, if it still waits."""
    ordering = node.keys.ordering
    if ordering.replacing.pop(job.id, False) and job.id in node.adding:
        pending_adds.settle(node, job, Status(job.id))
        key_index.mark_dirty(node, job)


_FOLLOW: Final = Rule(_decide, _is_cancelled, _end_targets)


# After a partition.


def begin_reconcile(node: NodeState) -> None:
    """Begin to compare keys, because a node has returned."""
    reconciliation = node.keys.reconciliation
    reconciliation.is_wanted = True
    reconciliation.until = node.mono + RECONCILES_FOR
    if not reconciliation.due:
        node.timers.arm(reconciliation, node.mono + RECONCILE_EVERY)


def on_reconcile_due(node: NodeState, reconciliation: Reconciliation) -> None:
    """Once all nodes are back, list the jobs with keys, and ask about the next ones."""
    if not node.keys.index:
        reconciliation.is_wanted = False
        reconciliation.ids.clear()
        reconciliation.names.clear()
        return
    if not sees_all(node):
        reconciliation.until = node.mono + RECONCILES_FOR
        node.timers.arm(reconciliation, node.mono + CHECK_EVERY)
        return
    if reconciliation.is_wanted:
        reconciliation.is_wanted = False
        reconciliation.ids.clear()
        # Takes half as long as listing the jobs: 17 ms for a million.
        reconciliation.names = list(node.keys.index)
    _ask_next(node, reconciliation)
    if reconciliation.ids or reconciliation.names:
        node.timers.arm(reconciliation, node.mono + RECONCILE_EVERY)


def _ask_next(node: NodeState, reconciliation: Reconciliation) -> None:
    searches = node.keys.searches.values()
    room = node.knobs.meetings - sum([each.rule is _RECONCILE for each in searches])
    looks = node.knobs.meeting_looks
    while looks and room > 0:
        looks -= 1
        if not reconciliation.ids:
            if not reconciliation.names:
                return
            name = reconciliation.names.pop()
            reconciliation.ids = [job.id for job in node.keys.index.get(name, ())]
            continue
        job = node.jobs.get(reconciliation.ids.pop())
        wanted = None if job is None else key_index.name_of(job)
        if job is not None and wanted is not None and _may_yield(node, job):
            room -= 1
            key_search.begin(node, wanted, _RECONCILE, job=job)


def _may_yield(node: NodeState, job: Job) -> bool:
    """Must this node deliver the job? A job that was to be enqueued after another one does not
    yield: its producer may have newer data than that of the other one."""
    is_here = node.jobs.get(job.id) is job and key_cancel.is_to_deliver(node, job)
    return is_here and (job.extensions is None or not job.extensions.follows)


def _need_not_yield(node: NodeState, search: Search) -> bool:
    """Does the job no longer have to yield, so that the search can end?"""
    is_over = node.mono - search.began > RECONCILES_WITHIN
    return is_over or search.job is None or not _may_yield(node, search.job)


def sees_all(node: NodeState, but: Container[NodeId] = ()) -> bool:
    """Are all members reachable, except perhaps these, and does this node know which of them are
    ours?

    Otherwise the later job stays, because the earlier one may have ended at an unreachable node.
    """
    return all(
        peer.id in but or (peer.resent_on == peer.link != 0 and not peer.flags & key_search.AWAY)
        for peer in node.cluster.nodes.values()
        if not peer.flags & MYSELF
    )


def _reconcile(node: NodeState, search: Search, answers: Answers) -> None:
    """The job ends if an earlier one lives; all nodes have also been asked whether that one has
    ended. The request is repeated while an earlier one may be added, or is in transit."""
    job = search.job
    assert job is not None, f"search {search.number} is about no job"
    earlier = [
        each
        for each in key_search.known(search, answers).values()
        if is_earlier(each, job.ctime, job.id)
    ]
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


def _have_all_answered(node: NodeState, search: Search) -> bool:
    peers = node.cluster.nodes.values()
    ours = [peer.id for peer in peers if key_search.understands(peer) and not peer.flags & MYSELF]
    return sees_all(node) and all(id in search.answers for id in ours)


def _stays(fact: KeyFact) -> bool:
    """Will the job be delivered, or is it with a worker and could be redelivered?"""
    is_spent = fact.state == WITH_WORKER and not is_at_least_once(fact.id)
    return fact.state != DEAD and not is_spent


_RECONCILE: Final = Rule(_reconcile, _need_not_yield)
