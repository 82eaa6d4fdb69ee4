"""The order in which queues are asked, and in which their jobs start (decision 101).

Strict: in the order of the settings. Queues are asked one after another, without waiting, until one
has more jobs than requested; a lower queue is asked only when all before it were empty. So no job
of a lower queue is taken, and no held one starts, while a higher queue may have jobs at this node.

By shares: a queue starts `weight` jobs in its turn. GETJOB takes one job of each named queue in
turn, so a queue is named as often as its weight, and each GETJOB continues where the last one
ended.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from disque_trio.worker.engine.records import Job, Queue, Request, State


def is_strict(state: State) -> bool:
    """Are there several queues, in strict order?"""
    return state.settings.is_strict and len(state.queues) > 1


def is_at_limit(state: State, queue: Queue, more: int = 0) -> bool:
    """Has the queue reached its concurrency, if `more` jobs start?"""
    running = state.running[queue.name] - state.stuck[queue.name] + more
    return bool(queue.concurrency) and running >= queue.concurrency


def first_full(state: State) -> Queue | None:
    """The first queue that may have more jobs at the node and may run them."""
    for queue in state.queues.values():
        if state.may_have[queue.name] and not is_at_limit(state, queue):
            return queue
    return None


def above(state: State, name: bytes) -> list[Queue]:
    """The queues before this one."""
    found = list(state.queues.values())
    return found[: found.index(state.queues[name])]


def held(state: State, queue: Queue) -> int:
    """The number of its jobs that have not started."""
    return state.in_hand[queue.name] - state.running[queue.name]


def lowest_held(state: State) -> Queue | None:
    """The last queue with held jobs."""
    return next((each for each in reversed(state.queues.values()) if held(state, each)), None)


def names(state: State, queues: Sequence[Queue]) -> list[bytes]:
    """The names for GETJOB, in order."""
    if state.settings.is_strict or len(queues) == 1:
        return [queue.name for queue in queues]
    found = [queue.name for queue in queues for _ in range(queue.weight)]
    start = state.turn % len(found)
    return found[start:] + found[:start]


def learn(state: State, request: Request, jobs: Sequence[Job]) -> None:
    """Update `State.may_have` from a reply to GETJOB: the requested queues are empty if fewer jobs
    arrived than requested, or if a job of a later queue arrived."""
    state.turn += len(jobs)
    if len(jobs) < request.count:
        state.may_have.update(dict.fromkeys(request.names, False))
        return
    came = {job.queue: True for job in jobs}
    passed = [index for index, name in enumerate(request.names) if name in came]
    for name in request.names[: max(passed, default=0)]:
        state.may_have[name] = False
    state.may_have.update(came)


def arranged(state: State, jobs: Iterable[Job]) -> Iterator[Job]:
    """Held jobs in the order in which they start. If the caller takes a job of another queue than
    the last one, the last one could not start."""
    if len(state.queues) == 1:
        yield from jobs
        return
    groups: dict[bytes, deque[Job]] = {name: deque() for name in state.queues}
    for job in jobs:
        groups[job.queue].append(job)
    if state.settings.is_strict:
        for group in groups.values():
            yield from group
        return
    while groups := {name: group for name, group in groups.items() if group}:
        yield groups[_next(state, list(groups))].popleft()


def _next(state: State, among: Sequence[bytes]) -> bytes:
    """The queue whose turn it is: each queue gains its weight, and the chosen one pays the sum."""
    for name in among:
        state.credits[name] += state.queues[name].weight
    chosen = max(among, key=lambda name: state.credits[name])
    state.credits[chosen] -= sum(state.queues[name].weight for name in among)
    return chosen
