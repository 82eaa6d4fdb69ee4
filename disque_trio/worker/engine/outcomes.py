"""What becomes of the outcome of a run: the command that tells it, and to which node.

An acknowledgement is repeated until a node has answered, however late, because it is right at every
node and at any time. What gives a job back is sent only while its lease lasts, and again only if a
token tells the node who speaks.
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
"""How long an acknowledgement waits for others."""
MOST_DONE: Final = 10_000
"""Jobs that are remembered as done."""
LONGEST_KEPT: Final = 4096
"""Bytes of a result that is remembered with its job. A job with a longer one runs again if it comes
again, because an acknowledgement without the result would lose it."""
_BUSY: Final = (b"LOADING", b"LEAVING", b"MISCONF", b"OOM", b"NOREPL", b"NOAUTH", b"DENIED")
"""Errors of a node that cannot do it now."""


def finished(state: State, now: Micros, job: Job, outcome: Outcome | None) -> None:
    """Its handler has ended; None if it was cancelled, and has nothing to say."""
    if job.lost is not None and not isinstance(outcome, Done):
        leases.forget(state, job)
    elif outcome is None and job.is_again:
        _hold_again(state, job)
    else:
        settle(state, now, job, outcome if outcome is not None else Release())


def _hold_again(state: State, job: Job) -> None:
    """It was given up, and came back before its handler had ended."""
    leases.leave_slot(state, job)
    job.stage, job.cancelled, job.is_again = HELD, None, False
    state.held[job.id] = job
    leases.watch(state, job)


def settle(state: State, now: Micros, job: Job, outcome: Outcome) -> None:
    """Tell a node the outcome. A job with RETRY 0 is never delivered again, so it ends either
    way."""
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
    """Is the node unable to let it wait? A worker that stops cannot wait either."""
    is_early = now < job.nack_at < NEVER and state.phase not in (Phase.DRAINING, Phase.ABORTING)
    return is_early and not words.has(node, words.DELAY)


def give_back_waiting(state: State, now: Micros, jobs: list[Job]) -> None:
    """The delay of these is over, or the worker stops: what is left of it is for the node."""
    for job in jobs:
        left = max(job.nack_at - now, 0)
        job.stage, job.nack_at, job.outcome = SETTLING, NEVER, Retry(left)
        route(state, now, job)
        leases.watch(state, job)


def route(state: State, now: Micros, job: Job) -> None:
    """Put it among what is to be sent, to the next node."""
    node = connecting.whom(state, now, job)
    unsent = state.unsent.get(node.name)
    if unsent is None:
        unsent = state.unsent[node.name] = []
    unsent.append(job)
    lingers = isinstance(job.outcome, Done) and len(unsent) < leases.BATCH
    until = now + LINGER if lingers else now
    state.linger_until = min(state.linger_until, until)


def flush(state: State, now: Micros) -> None:
    """Send what has lingered, to nodes of which it is known what they understand."""
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
    """One command for each outcome, as far as a command takes many jobs."""
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
            if words.may_snooze(other):  # that this node cannot was not known before
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
    """It is given back: a renewal would take it again, from its wait or from another worker."""
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
    """Is it the result that a node does not take? It takes any acknowledgement without one."""
    has_result = isinstance(job.outcome, Done) and job.outcome.result is not None
    return has_result and (code == b"OOM" or code not in _BUSY)


def _give_no_result(state: State, now: Micros, job: Job) -> None:
    state.out.drops.append(Drop(job.id, Reason.RESULT_REFUSED))
    job.outcome = Done()
    route(state, now, job)


def _is_open(state: State, job: Job) -> bool:
    return state.jobs.get(job.id) is job and job.stage is SETTLING


def on_lost_link(state: State, now: Micros, request: Request) -> None:
    """There will be no answer: whether the node has heard is unknown."""
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
    """What waits for it goes to others."""
    unsent = state.unsent.pop(node.name, [])
    _again(state, now, [job for job in unsent if _is_open(state, job)])
