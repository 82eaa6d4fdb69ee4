"""Reports the outcomes of runs: the command for each, and the node that gets it.

An acknowledgement is repeated until a node has answered, however late, because it is valid at every
node and at any time. A command that returns a job is sent only while its lease lasts, and repeated
only if a token identifies the delivery.
"""

from typing import Final

from disque_trio.statemachine.base import Reply
from disque_trio.worker.engine import connecting, leases, words
from disque_trio.worker.engine.records import (
    HELD,
    MILLI,
    NEVER,
    RUNNING,
    SETTLING,
    WAITING,
    Done,
    Drop,
    Job,
    Micros,
    Node,
    Outcome,
    Phase,
    Reason,
    Release,
    Request,
    Retry,
    State,
    Verb,
)

LINGER: Final[Micros] = 2 * MILLI
"""How long an acknowledgement waits for more of them."""
MOST_DONE: Final = 10_000
"""How many jobs are recorded as done."""
LONGEST_KEPT: Final = 4096
"""The longest result that is recorded with its job, in bytes. A job with a longer one runs again if
it is redelivered, because an acknowledgement without the result would lose it."""
_BUSY: Final = (b"LOADING", b"LEAVING", b"MISCONF", b"OOM", b"NOREPL", b"NOAUTH", b"DENIED")
"""Errors of a node that cannot carry it out now."""


def finished(state: State, now: Micros, job: Job, outcome: Outcome | None) -> None:
    """Its handler has ended; None if it was cancelled and has no outcome."""
    if job.lost is not None and not isinstance(outcome, Done):
        leases.forget(state, job)
    elif outcome is None and job.is_again:
        _hold_again(state, job)
    else:
        settle(state, now, job, outcome if outcome is not None else Release())


def _hold_again(state: State, job: Job) -> None:
    """It was abandoned, and redelivered before its handler had ended."""
    leases.leave_slot(state, job)
    job.stage, job.cancelled, job.is_again = HELD, None, False
    state.held[job.id] = job
    leases.watch(state, job)


def settle(state: State, now: Micros, job: Job, outcome: Outcome) -> None:
    """Report the outcome to a node. A job with RETRY 0 is never redelivered, so it ends in any
    case."""
    if job.stage is RUNNING:
        state.in_hand[job.queue] -= 1
        leases.leave_slot(state, job)
    elif job.stage is HELD:
        state.in_hand[job.queue] -= 1
        del state.held[job.id]
    if job.is_once and isinstance(outcome, Retry | Release):
        outcome = Done()
    job.stage, job.outcome, job.tries = SETTLING, outcome, 0
    if isinstance(outcome, Retry) and outcome.delay:
        job.nack_at = now + outcome.delay
    route(state, now, job)


def _must_wait_here(state: State, now: Micros, node: Node, job: Job) -> bool:
    """Is the node unable to delay it? A worker that stops cannot wait either."""
    is_early = now < job.nack_at < NEVER and state.phase not in (Phase.DRAINING, Phase.ABORTING)
    return is_early and not words.has(node, words.DELAY)


def give_back_waiting(state: State, now: Micros, jobs: list[Job]) -> None:
    """Their delay has ended, or the worker stops: the rest of the delay is left to the node."""
    for job in jobs:
        left = max(job.nack_at - now, 0)
        job.stage, job.nack_at, job.outcome = SETTLING, NEVER, Retry(left)
        route(state, now, job)
        leases.watch(state, job)


def route(state: State, now: Micros, job: Job) -> None:
    """Add it to the outcomes for the next node."""
    node = connecting.whom(state, now, job)
    unsent = state.unsent.get(node.name)
    if unsent is None:
        unsent = state.unsent[node.name] = []
    unsent.append(job)
    lingers = isinstance(job.outcome, Done) and len(unsent) < leases.BATCH
    until = now + LINGER if lingers else now
    state.linger_until = min(state.linger_until, until)


def flush(state: State, now: Micros) -> None:
    """Send outcomes that have waited long enough, to nodes whose features are known."""
    if now < state.linger_until:
        return
    state.linger_until = NEVER
    for name in list(state.unsent):
        node = state.nodes[name]
        if node.rests_until > now:
            state.linger_until = min(state.linger_until, node.rests_until)
            continue
        connecting.control_of(state, now, node)
        if node.features is not None:
            _send_outcomes(state, now, node, state.unsent.pop(name))


def _send_outcomes(state: State, now: Micros, node: Node, jobs: list[Job]) -> None:
    """One command for each outcome, if the command takes many jobs."""
    groups: dict[tuple[tuple[bytes, ...], tuple[bytes, ...]], list[Job]] = {}
    for job in jobs:
        if not _is_open(state, job):
            continue
        if isinstance(job.outcome, Done) and job.outcome.result is None:  # the usual case
            groups.setdefault(words.ACK, []).append(job)
            continue
        if _must_wait_here(state, now, node, job):
            job.stage = WAITING
            leases.watch(state, job)
            continue
        if words.is_snooze(job.outcome) and not words.may_snooze(node):
            other = connecting.whom(state, now, job)
            if words.may_snooze(other):  # it was unknown that this node does not support it
                route(state, now, job)
                continue
        command = words.settle(node, job)
        if command == words.ACK and not node.has_lost_results:
            node.has_lost_results = True
            state.out.drops.append(Drop(job.id, Reason.NOT_KEPT))
        groups.setdefault(command, []).append(job)
    for (before, behind), group in groups.items():
        size = 1 if before[0] == b"ADDJOB" or behind[:1] == (b"RESULT",) else leases.BATCH
        for at in range(0, len(group), size):
            _send(state, now, node, tuple(group[at : at + size]))


def _send(state: State, now: Micros, node: Node, jobs: tuple[Job, ...]) -> None:
    before, behind = words.settle(node, jobs[0])
    link = connecting.control_of(state, now, node)
    if before[0] == b"ADDJOB":
        connecting.send(state, now, link, (*before, *behind), (Verb.MIGRATE, jobs))
        return
    is_named = before[0] in (b"NACK", b"RELEASE")
    ids = [words.named(node, job) if is_named else job.id for job in jobs]
    connecting.send(state, now, link, (*before, *ids, *behind), (Verb.REPORT, jobs))
    for job in jobs:
        if before == (b"ACKJOB",):
            _remember(state, job)
        else:
            _end_lease(job)


def _end_lease(job: Job) -> None:
    """It is returned: a renewal would take it back, from its delay or from another worker."""
    job.is_given_back, job.renew_at = True, NEVER


def _remember(state: State, job: Job) -> None:
    done = job.outcome
    if not isinstance(done, Done) or len(done.result or b"") > LONGEST_KEPT:
        return
    state.done[job.id] = done
    state.done.move_to_end(job.id)
    if len(state.done) > MOST_DONE:
        state.done.popitem(last=False)


def on_answer(state: State, now: Micros, node: Node, request: Request, reply: Reply) -> None:
    """A node has answered."""
    jobs = [job for job in request.jobs if _is_open(state, job)]
    code = words.code(reply)
    if code and jobs and _is_refused(code, jobs[0]):
        _give_no_result(state, now, jobs[0])
    elif code in _BUSY:
        connecting.rest(state, now, node)
        _again(state, now, jobs)
    elif code and len(jobs) > 1:
        # One of them is refused, and the others with it.
        for job in jobs:
            _send(state, now, node, (job,))
    elif request.verb is Verb.MIGRATE and not code:
        for job in jobs:
            job.outcome = Done()
            route(state, now, job)
    else:
        for job in jobs:
            leases.forget(state, job, Reason.REFUSED if code else None)


def _is_refused(code: bytes, job: Job) -> bool:
    """Does the node refuse the result? It accepts any acknowledgement without one."""
    has_result = isinstance(job.outcome, Done) and job.outcome.result is not None
    return has_result and (code == b"OOM" or code not in _BUSY)


def _give_no_result(state: State, now: Micros, job: Job) -> None:
    state.out.drops.append(Drop(job.id, Reason.RESULT_REFUSED))
    job.outcome = Done()
    route(state, now, job)


def _is_open(state: State, job: Job) -> bool:
    return state.jobs.get(job.id) is job and job.stage is SETTLING


def on_lost_link(state: State, now: Micros, request: Request) -> None:
    """There will be no answer: it is unknown whether the node has received the outcome."""
    jobs = [job for job in request.jobs if _is_open(state, job)]
    may_repeat = [job for job in jobs if isinstance(job.outcome, Done) or job.token]
    _again(state, now, may_repeat)
    for job in jobs:
        if job not in may_repeat:
            leases.forget(state, job, Reason.UNKNOWN)


def _again(state: State, now: Micros, jobs: list[Job]) -> None:
    for job in jobs:
        job.tries += 1
        route(state, now, job)


def on_lost_node(state: State, now: Micros, node: Node) -> None:
    """Outcomes that wait for it are sent to other nodes."""
    unsent = state.unsent.pop(node.name, [])
    _again(state, now, [job for job in unsent if _is_open(state, job)])
