"""The cheap checks of JSCAN, which exclude most jobs that do not match its filters.

Most jobs that JSCAN visits do not match, so checking a job must cost little more than reaching it.
"""

from collections.abc import Callable, Mapping, Sized
from typing import Final

import attrs

from disque_trio.statemachine.backlog import Backlog
from disque_trio.statemachine.base import ACTIVE, DEAD, DELAYED, QUEUED, RESTORED, Millis
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.jobtable import Walk
from disque_trio.statemachine.state import NodeState

_COUNTED: Final = (ACTIVE, QUEUED, DEAD)
"""States for which each queue has a count of jobs."""
_BODY_STEP: Final = 4096
"""Searching this many bytes of a body counts as one step."""


@attrs.frozen
class Prefilter:
    """Necessary conditions of a match; they are not sufficient."""

    queue: bytes | None
    states: tuple[int, ...]
    flags: int
    """An active job with one of these flags passes regardless of `states`."""
    since: Millis
    """The earliest creation time, by the wall clock of the job's creator."""
    until: Millis
    """The latest creation time."""
    is_extended: bool
    """Must the job have extensions?"""
    body: bytes | None
    """If not None: the body must be in memory and contain this."""


def look(
    walk: Walk,
    checks: Prefilter,
    fits: Callable[[Job], bool],
    wanted: int | None,
    steps: int,
    most: int | None,
) -> tuple[list[Job], int]:
    """Return up to `wanted` matching jobs among the next ones of the walk, and how many jobs were
    visited: up to `steps`, or fewer if bodies are searched. The walk ends after `most` jobs that
    pass `checks`, because there are no more of them; None if their number is unknown."""
    queue, states, flags, body = checks.queue, checks.states, checks.flags, checks.body
    since, until, is_extended = checks.since, checks.until, checks.is_extended
    found: list[Job] = []
    passed = seen = 0
    job, last = walk.next, walk.last
    while job is not None and steps > 0:
        passed += 1
        steps -= 1
        after = None if job is last else job.after
        if (
            (queue is None or job.queue == queue)
            and since <= job.made <= until
            and (job.state in states or (job.state == ACTIVE and job.flags & flags))
            and (not is_extended or job.extensions is not None)
        ):
            seen += 1
            if seen == most:
                after = None
            if body is None:
                is_met = True
            elif isinstance(job.body, bytes):
                steps -= len(job.body) // _BODY_STEP
                is_met = body in job.body
            else:
                is_met = False
            if is_met and fits(job):
                found.append(job)
                if len(found) == wanted:
                    job = after
                    break
        job = after
    walk.go_on(job)
    return found, passed


def most_of(node: NodeState, checks: Prefilter, limit: int) -> int | None:
    """An upper bound of the jobs that pass `checks`, from the counts of up to `limit` queues. None
    if there is no count, as of acknowledged jobs and those that wait for replicas, or if there are
    more queues."""
    if not all(state in _COUNTED for state in checks.states):
        return None
    counts: list[Mapping[bytes, int | Sized | Backlog]] = []
    if QUEUED in checks.states:
        counts.append(node.queues)
    if DEAD in checks.states:
        counts.append(node.dead)
    if ACTIVE in checks.states or checks.flags & ~(DELAYED | RESTORED):
        counts.append(node.unqueued)
    else:
        if checks.flags & DELAYED:
            counts.append(node.delayed)
        if checks.flags & RESTORED:
            counts.append(node.restored)
    total = 0
    for of_queues in counts:
        if checks.queue is not None:
            total += _number(of_queues.get(checks.queue, 0))
        elif len(of_queues) > limit:
            return None
        else:
            total += sum(map(_number, of_queues.values()))
    return total


def _number(count: int | Sized | Backlog) -> int:
    if isinstance(count, int):
        return count
    return count.number if isinstance(count, Backlog) else len(count)


def few(node: NodeState, checks: Prefilter, most: int | None, limit: int) -> list[Job] | None:
    """All jobs of the queues and states of `checks`, if they number at most `limit` and can be
    found without a walk: queued jobs of one queue, and dead jobs. Otherwise None. `most` is the
    result of `most_of`."""
    if not most:
        return None if most is None else []
    is_active = ACTIVE in checks.states or checks.flags
    if most > limit or (is_active and most_of(node, _active(checks), limit)):
        return None
    found: list[Job] = []
    if QUEUED in checks.states:
        if checks.queue is None:
            return None
        queue = node.queues.get(checks.queue)
        if queue is not None:
            found += [job for job in reversed(queue.entries()) if job.state == QUEUED]
    if DEAD in checks.states:
        names = node.dead if checks.queue is None else (checks.queue,)
        found += [job for name in names for job in node.dead.get(name, {}).values()]
    return found


def _active(checks: Prefilter) -> Prefilter:
    states = (ACTIVE,) if ACTIVE in checks.states else ()
    return attrs.evolve(checks, states=states)
