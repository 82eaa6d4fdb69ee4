"""IFEXISTS again and replace: a job is queued when the earlier ones with its key have ended
(decision 76).

All holders of such a job know that it is held back. Each asks about the earlier jobs when the job
becomes due there, which is first at the node of its ADDJOB. If another one asks, too, that one goes
on of them that is the node of the ADDJOB, or the first in an order that depends on the job. The
asked nodes tell it when an earlier job ends. Who has found out that none lives queues the job. A
dead job is not waited for.

With `replace` the node of the ADDJOB ends the earlier jobs that were never delivered, after the new
one has its copies, and then answers its client. A job that a worker takes meanwhile is waited for.

Owns `Succession.jobs`, `waiting` and `replacing`, and `Search.cancelled` of its searches.
"""

from typing import Final

from disque_trio.statemachine import key_cancel, key_index, key_search, lifecycle, pending_adds
from disque_trio.statemachine.base import (
    ACTIVE,
    BCAST_QUEUED,
    DELAYED,
    WAIT_REPL,
    Millis,
    NodeId,
    Status,
)
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job, rank
from disque_trio.statemachine.key_facts import (
    DEAD,
    GIVEN_OUT,
    HELD,
    UNLESS_KNOWN_AS_TAKEN,
    UNLESS_TAKEN,
    KeyFact,
    is_earlier,
    is_undecided,
)
from disque_trio.statemachine.key_search import Told
from disque_trio.statemachine.keys import KeyName, Rule, Search, Succession
from disque_trio.statemachine.state import NodeState

LOOK_EVERY: Final[Millis] = 1000
"""How often all are asked while an earlier job lives, in case its end was not told."""
LOOKS_A_SECOND: Final = 500
"""For about so many jobs: with more of them each is asked about less often."""
ENDS_WITHIN: Final[Millis] = 1000
"""For so long only the node that is to deliver an earlier job may end it. It may be gone."""
REPLACES_WITHIN: Final[Millis] = 3000
"""Then the client is answered, and an earlier job that still lives is waited for."""


def on_due(node: NodeState, succession: Succession) -> None:
    """Ask about the jobs that have become due, once all jobs of the journal are here."""
    if node.recovering is not None:
        node.timers.arm(succession, node.mono + LOOK_EVERY)
        return
    jobs = list(succession.jobs.values())
    succession.jobs.clear()
    for job in jobs:
        name = key_index.name_of(job)
        is_asking = key_index.search_for(node, job) is not None
        if name is None or is_asking or not _is_wanted(node, job):
            continue
        search = key_search.begin(node, name, _RULE, job=job)
        if search.number in node.keys.searches:
            succession.waiting[name] = (*_searches(node, name), search)


def _searches(node: NodeState, name: KeyName) -> tuple[Search, ...]:
    succession = node.keys.succession
    return succession.waiting.get(name, ())


def _is_wanted(node: NodeState, job: Job) -> bool:
    """Does it wait here, or does a client for what becomes of it?"""
    if job.id in node.keys.succession.replacing:
        return True
    return node.jobs.get(job.id) is job and key_index.is_held_back(job)


def _is_left_to_other(node: NodeState, job: Job, told: Told) -> bool:
    """Does a node that comes first ask about it, too? That it can be reached is not enough: it may
    have lost its copy."""
    mine = _preference(node.cluster.myself.id, job)
    return any(
        _preference(id, job) > mine and any(fact.id == job.id for fact in facts)
        for id, facts in told.items()
    )


def _preference(id: NodeId, job: Job) -> tuple[bool, int]:
    return job.id[2:10] == id[:8], rank(id, job.id)


def _is_cancelled(node: NodeState, search: Search) -> bool:
    """Is nobody interested any more?"""
    job = search.job
    assert job is not None, f"search {search.number} is about no job"
    if job.id in node.keys.succession.replacing:
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
    succession = node.keys.succession
    left = tuple([each for each in _searches(node, search.name) if each is not search])
    if left:
        succession.waiting[search.name] = left
    else:
        succession.waiting.pop(search.name, None)


def _decide(node: NodeState, search: Search, told: Told) -> None:
    """Queue the job if no earlier one lives; otherwise go on, and end what it replaces."""
    job = search.job
    assert job is not None, f"search {search.number} is about no job"
    if _is_left_to_other(node, job, told):
        _forget(node, search)
        return
    known = key_search.known(search, told)
    earlier = [fact for fact in known.values() if is_earlier(fact, job.ctime, job.id)]
    living = [fact for fact in earlier if fact.word == HELD and fact.state != DEAD]
    _free_ended(node, search, living)
    if not living and is_undecided({fact.id: fact for fact in earlier}):
        key_search.ask_about_moved(node, search, earlier)
    elif not living:
        _let_go(node, search, job)
    elif all(fact.id != search.about for fact in living):
        key_search.ask_about(node, search, min((fact.stamp, fact.id) for fact in living)[1])
    elif job.id in node.keys.succession.replacing:
        _replace(node, search, job, living)
    else:
        wait = len(node.keys.searches) * 1000 // LOOKS_A_SECOND
        key_search.pause(node, search, max(wait, LOOK_EVERY))


def _free_ended(node: NodeState, search: Search, living: list[KeyFact]) -> None:
    """The key of what it replaces is free when that has ended, whatever its KEEP."""
    live = [fact.id for fact in living]
    for fact in search.cancelled:
        if fact.id not in live:
            key_cancel.free(node, search, fact)
    search.cancelled = tuple([fact for fact in search.cancelled if fact.id in live])


def _let_go(node: NodeState, search: Search, job: Job) -> None:
    _forget(node, search)
    if _is_here(node, job) and key_index.is_held_back(job):
        key_index.let_go(node, job)
        if not job.flags & DELAYED:
            _queue(node, job)
    _answer(node, job)


def _queue(node: NodeState, job: Job) -> None:
    if job.retry and job.queue is not None and lifecycle.is_paused_in(node, job.queue):
        lifecycle.requeue_in(node, job, job.retry + lifecycle.desync(node))  # as after RETRY
        return
    # The other holders are told that it is queued: their time may come, too.
    lifecycle.mark(job, BCAST_QUEUED)
    lifecycle.enqueue(node, job, Cause.FOLLOWED)


def _replace(node: NodeState, search: Search, job: Job, living: list[KeyFact]) -> None:
    """End those that were never delivered. Each time that all have been asked they are told."""
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
    """The producer has its id when what it replaces has ended."""
    succession = node.keys.succession
    if succession.replacing.pop(job.id, False) and job.id in node.adding:
        pending_adds.settle(node, job, Status(job.id))
        key_index.mark_dirty(node, job)


_RULE: Final = Rule(_decide, _is_cancelled, _end_targets)
