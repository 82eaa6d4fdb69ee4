"""Which jobs to fetch, how many, and which of the delivered jobs begin."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from disque_trio.statemachine.base import Reply
from disque_trio.worker.engine import (
    beginning,
    connecting,
    leases,
    order,
    outcomes,
    pace,
    suspects,
    words,
)
from disque_trio.worker.engine.records import (
    MILLI,
    NEVER,
    RUNNING,
    SECOND,
    SETTLING,
    Done,
    Drop,
    Job,
    Link,
    Micros,
    Node,
    Phase,
    Queue,
    Reason,
    Release,
    Request,
    Start,
    State,
    Verb,
)


@attrs.define(eq=False)
class Source:
    """The common data of all jobs of a reply."""

    now: Micros
    since: Micros
    """The earliest time at which their leases may have begun."""
    node: Node
    tie: int
    """The connection to which they are tied; 0 for none."""
    is_held: bool
    """The node regards them as held."""


WAIT: Final[Micros] = 5 * SECOND
"""How long a GETJOB waits in the node."""
SHORT_WAIT: Final[Micros] = 500 * MILLI
"""The same if it omits a queue that has no room now, and for a worker that only runs existing
jobs."""
BLIND_WAIT: Final[Micros] = 2 * SECOND
"""The same if the node cannot interrupt it."""
LEAST_WAIT: Final[Micros] = 20 * MILLI
MOST: Final = 250
"""The maximum number of jobs of one GETJOB."""
MOST_UNSETTLED: Final = 1_000
"""With more unconfirmed outcomes than this, no jobs are fetched."""


def room_of(state: State, now: Micros, queue: Queue) -> int:
    """How many more of its jobs may be held or running."""
    most = (queue.concurrency or state.settings.concurrency) + pace.prefetch(state, now, queue)
    return most + state.stuck[queue.name] - state.in_hand[queue.name]


def room(state: State, now: Micros) -> int:
    """How many more jobs may be held or running."""
    most = state.settings.concurrency + _prefetch(state, now) + sum(state.stuck.values())
    left = most - sum(state.in_hand.values())
    # Held jobs of a lower queue do not keep jobs of a higher one out of free slots.
    return max(left, _free(state)) if order.is_strict(state) else left


def _prefetch(state: State, now: Micros) -> int:
    return sum(pace.prefetch(state, now, queue) for queue in state.queues.values())


def _free(state: State) -> int:
    """How many more jobs may run."""
    stuck = sum(state.stuck.values())
    return state.settings.concurrency + stuck - sum(state.running.values())


def has_slot_for(state: State, name: bytes) -> bool:
    """Could another job of this queue begin now?"""
    queue = state.queues.get(name)
    if queue is None or _free(state) <= 0 or suspects.is_on(state):
        return False
    return not order.is_at_limit(state, queue)


def _has_plenty(state: State, now: Micros) -> bool:
    """Are all slots busy, and are most of the jobs held that may be? Few large requests cost less
    than many small ones."""
    return _free(state) <= 0 and 3 * len(state.held) > 2 * _prefetch(state, now)


def _has_plenty_of(state: State, now: Micros, queue: Queue) -> bool:
    """The same, of one queue."""
    is_most = 3 * order.held(state, queue) > 2 * pace.prefetch(state, now, queue)
    return _free(state) <= 0 and is_most


def _under_way(state: State) -> int:
    """How many jobs pending requests may still deliver."""
    return sum(link.taking.count for link in state.links.values() if link.taking is not None)


def ask(state: State, now: Micros) -> None:
    """Send GETJOB, if there is room and a node to ask."""
    link = _free_link(state)
    if link is None:
        return
    if state.asked != state.home:  # another node may have jobs of any queue
        state.asked, state.may_have = state.home, dict.fromkeys(state.queues, True)
    queues, is_quick = _wanted(state, now)
    count = _count(state, now, queues)
    if count < 1:
        return
    node = state.nodes[link.node]
    is_partial = len(queues) < len(state.queues)
    wait = 0 if is_quick else _wait(state, now, node, link, is_partial=is_partial)
    names = order.names(state, queues)
    command = words.take(node, names, count, wait, ties=state.settings.has_ties)
    link.wake_at = 0
    request = connecting.send(state, now, link, tuple(command), (Verb.TAKE, ()), wait)
    request.count, request.names, request.is_quick = count, tuple(names), is_quick
    request.is_whole = not is_partial and wait >= SHORT_WAIT


def _free_link(state: State) -> Link | None:
    """The connection on which jobs may be fetched now."""
    if state.phase is not Phase.RUNNING or not state.home or suspects.is_on(state):
        return None
    link = state.nodes[state.home].fetch
    return None if link is None or link.taking is not None or _is_full(state) else link


def _wanted(state: State, now: Micros) -> tuple[list[Queue], bool]:
    """The queues whose jobs are wanted, and whether without waiting."""
    has_plenty = _has_plenty(state, now)
    if not order.is_strict(state):
        return ([] if has_plenty else _with_room(state, now, state.queues.values())), False
    full = order.first_full(state)
    if full is not None and not _has_plenty_of(state, now, full):
        upper = order.above(state, full.name)
        if found := _with_room(state, now, [full]):
            return _with_room(state, now, upper) + found, True
    lowest = order.lowest_held(state) if full is None and has_plenty else full
    if lowest is None:
        return _with_room(state, now, state.queues.values()), False
    # New jobs of the queues before it must be noticed, which needs a wait that can be interrupted.
    if not words.has(state.nodes[state.home], words.UNBLOCK):
        return [], False
    return _with_room(state, now, order.above(state, lowest.name)), False


def _with_room(state: State, now: Micros, queues: Iterable[Queue]) -> list[Queue]:
    awaited = _under_way(state)
    return [queue for queue in queues if room_of(state, now, queue) > awaited]


def _count(state: State, now: Micros, queues: Sequence[Queue]) -> int:
    """How many jobs to fetch."""
    if not queues:
        return 0
    least = min([room(state, now), *(room_of(state, now, queue) for queue in queues)])
    return suspects.most(state, min(least - _under_way(state), MOST))


def is_stale(state: State, now: Micros) -> bool:
    """Does a waiting GETJOB omit a queue whose jobs are wanted by now?"""
    link = state.nodes[state.home].fetch if state.home else None
    request = None if link is None else link.taking
    if request is None or request.is_quick or len(state.queues) == 1 or room(state, now) < 1:
        return False
    return any(
        queue.name not in request.names
        and room_of(state, now, queue) > 0
        and not _has_plenty_of(state, now, queue)
        for queue in state.queues.values()
    )


def _is_full(state: State) -> bool:
    return len(state.jobs) - sum(state.in_hand.values()) >= MOST_UNSETTLED


def _wait(state: State, now: Micros, node: Node, link: Link, *, is_partial: bool) -> Micros:
    """Jobs that are tied to the connection are renewed on it, so the wait must end before."""
    is_short = is_partial or state.settings.is_burst
    most = SHORT_WAIT if is_short else WAIT if words.has(node, words.UNBLOCK) else BLIND_WAIT
    renewals = (job.renew_at - now for job in state.jobs.values() if job.link == link.number)
    return max(min([most, *renewals]), LEAST_WAIT)


# Jobs that arrive.


def on_jobs(state: State, now: Micros, link: Link, request: Request, reply: Reply) -> None:
    """The reply to a GETJOB."""
    source = _source(state, now, link, request)
    jobs = []
    for queue, id, body, facts in words.jobs(reply):
        if queue in state.queues:
            job = _job(source, (queue, id, body), facts)
            _receive(state, now, job)
            jobs.append(job)
    if jobs and jobs[-1].token:
        state.origins[jobs[-1].token[:8]] = link.node
    suspects.came(state, jobs)
    if words.code(reply):
        connecting.refuse(state, now, source.node)
    else:
        order.learn(state, request, jobs)
        connecting.answered(source.node)


def _source(state: State, now: Micros, link: Link, request: Request) -> Source:
    node = state.nodes[link.node]
    has_tie = state.settings.has_ties and words.has(node, words.TIED)
    return Source(
        now=now,
        since=max(leases.base(state, now), request.sent),
        node=node,
        tie=link.number if has_tie else 0,
        is_held=has_tie and words.has(node, words.HELD),
    )


def is_done(state: State, link: Link, request: Request, reply: Reply) -> bool:
    """Has a burst worker run all jobs of its queues, according to this reply to GETJOB? An error
    does not show that, nor an empty reply to a GETJOB that was interrupted or omitted a queue."""
    if not state.settings.is_burst or state.phase is not Phase.RUNNING or words.code(reply):
        return False
    has_jobs = isinstance(reply, list) and bool(reply)
    is_empty = request.is_whole and not has_jobs and link.node == state.home
    return is_empty and not any(state.in_hand.values()) and not _under_way(state)


def _job(source: Source, named: tuple[bytes, bytes, bytes], facts: dict[bytes, Reply]) -> Job:
    queue, id, body = named
    token = facts.get(b"token")
    is_once = words.is_once(id)
    lease, end = words.lease(facts, source.since)
    again = words.number(facts, b"additional-deliveries")
    return Job(
        id,
        queue,
        body,
        source.node.name,
        0 if is_once else source.tie,
        token if isinstance(token, bytes) else b"",
        words.number(facts, b"nacks"),
        again,
        is_once,
        lease,
        NEVER if is_once else end,
        NEVER if is_once else source.since + lease // leases.RENEWALS,
        b"lease-ms" in facts,
        words.number(facts, b"snoozes"),
        words.expires(facts, source.now),
        is_unbegun=source.is_held and not is_once,
        is_doubtful=again > 0 or b"unbegun" in facts,
    )


def _receive(state: State, now: Micros, job: Job) -> None:
    pace.came(state, job)
    known = state.jobs.get(job.id)
    if known is not None and (known.stage is not SETTLING or isinstance(known.outcome, Done)):
        _refresh(state, now, known, job)
        return
    if known is not None:
        # The node has received its outcome: this is the next delivery.
        leases.forget(state, known)
    state.jobs[job.id] = state.held[job.id] = job
    state.in_hand[job.queue] += 1
    leases.watch(state, job)
    done = state.done.get(job.id)
    if done is not None:
        outcomes.settle(state, now, job, done)
        state.out.drops.append(Drop(job.id, Reason.DONE_BEFORE))


def _refresh(state: State, now: Micros, known: Job, job: Job) -> None:
    """The job was redelivered while this worker still has it: the new delivery counts."""
    known.node, known.link, known.token = job.node, job.link, job.token
    known.lease, known.end, known.renew_at = job.lease, job.end, job.renew_at
    known.knows_lease = job.knows_lease
    known.is_unbegun, known.is_doubtful = job.is_unbegun, job.is_doubtful
    if known.is_unbegun and known.stage is RUNNING and known.cancelled is None:
        beginning.note(state, now, known)  # else the new delivery begins when that run has ended
    known.nacks, known.additional_deliveries = job.nacks, job.additional_deliveries
    known.snoozes, known.expires = job.snoozes, job.expires
    known.is_again = known.cancelled is not None
    known.lost, known.tries, known.is_asked = None, 0, False
    state.out.drops.append(Drop(job.id, Reason.TWICE))
    if known.stage is SETTLING and known not in state.unsent.get(known.node, ()):
        outcomes.route(state, now, known)
    leases.watch(state, known)


# Jobs that begin.


def start(state: State, now: Micros) -> None:
    """Start the jobs that may begin. While the worker drains, only jobs that no other worker can
    get."""
    if not state.held or state.phase is Phase.STOPPED:
        return
    free = _free(state)
    if free <= 0:
        return
    chosen, renewed = [], []
    counts = dict.fromkeys(state.queues, 0)
    for job in _in_order(state, now):
        queue = state.queues[job.queue]
        if queue.concurrency and order.is_at_limit(state, queue, counts[queue.name]):
            continue
        if leases.has_margin(job, now):
            chosen.append(job)
            counts[queue.name] += 1
            if len(chosen) == free:
                break
        elif not job.is_asked and job.renew_at < NEVER:
            renewed.append(job)
    for job in chosen:
        _start(state, now, job)
    leases.renew(state, now, renewed)


def _in_order(state: State, now: Micros) -> Iterator[Job]:
    """Held jobs that may begin, in order. While more jobs of a queue are being fetched, those of
    lower ones wait."""
    jobs = order.arranged(state, suspects.ready(state, now))
    full = order.first_full(state) if order.is_strict(state) else None
    if full is None or not _is_asked(state, now, full):
        return jobs
    upper = [queue.name for queue in (*order.above(state, full.name), full)]
    return (job for job in jobs if job.queue in upper)


def _is_asked(state: State, now: Micros, queue: Queue) -> bool:
    """Are its jobs being fetched without waiting, or will they be in this turn?"""
    node = state.nodes.get(state.home)
    taking = None if node is None or node.fetch is None else node.fetch.taking
    if taking is not None:
        return taking.is_quick and queue.name in taking.names
    if _free_link(state) is None:
        return False
    queues, is_quick = _wanted(state, now)
    return is_quick and queue in queues and _count(state, now, queues) > 0


def _start(state: State, now: Micros, job: Job) -> None:
    queue = state.queues[job.queue]
    del state.held[job.id]
    job.stage = RUNNING
    job.limit_at = now + queue.limit if queue.limit else NEVER
    state.running[queue.name] += 1
    state.out.starts.append(
        Start(
            job.id,
            job.queue,
            job.body,
            job.nacks,
            job.additional_deliveries,
            job.snoozes,
            job.expires,
        )
    )
    if state.trial.waiting:
        suspects.began(state, now, job)
    if job.is_unbegun:
        beginning.note(state, now, job)
    if job.limit_at < NEVER:
        leases.watch(state, job)


def release(state: State, now: Micros) -> None:
    """Release the jobs that have not begun, except those that would not be redelivered."""
    for job in [job for job in state.held.values() if not job.is_once]:
        state.out.drops.append(Drop(job.id, Reason.RELEASED))
        outcomes.settle(state, now, job, Release())
