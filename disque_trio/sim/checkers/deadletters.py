"""Dead jobs (S26): a dead job is neither queued nor served before a redrive, and dies only for a
valid reason.

The rows of a node record how often a job was redriven there, and whether it is dead. If nodes
differ, the greatest state holds. A death needs a worker that buries the job, or LIMIT deliveries; a
redrive needs an order. In calm all holders learn of both at once.
"""

from disque_trio.sim.checkers.case import SLACK, Case
from disque_trio.sim.checkers.obligations import MILLI, SECOND
from disque_trio.sim.checkers.records import ALIVE, FOREVER, NEVER, Copy, Job, State
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.base import Millis
from disque_trio.statemachine.job import ttl_range
from disque_trio.terminal.counting import counted
from disque_trio.tracing.details import number, numbers
from disque_trio.tracing.rows import Row

TRIES = ("retry", "nack", "untied", "enqueue")
"""Causes of enqueueings that count towards LIMIT."""
RACE: Micros = 50 * MILLI
"""Two holders may queue a job this far apart as one try, in addition to the latency."""
_ROUNDED: Micros = SECOND
"""Messages have the remaining life in whole milliseconds, copies in whole seconds."""
_LIFE_SLACK: Micros = 2 * SECOND
"""Further tolerance: a journal counts the remaining life by wall clocks."""
_MANY = 1 << 16
"""More than any LIMIT."""


def after_hold(case: Case, row: Row, job: Job) -> None:
    """Take the state of the job from the record of a new copy."""
    copy = job.copies.get(row.node)
    if copy is not None and ("redriven=" in row.detail or "dead=" in row.detail):
        record = numbers(row.detail)
        copy.state = (record.get("redriven", 0), "dead" in record)
    if copy is not None and row.cause in {"repljob", "yourjobs"}:
        _judge_copy(case, row, job, copy)


def _judge_copy(case: Case, row: Row, job: Job, copy: Copy) -> None:
    """S26: a copy arrives with the state that its sender had when it made the message."""
    sender = job.copies.get(copy.came_from)
    if sender is None or sender.state == ALIVE or may_precede_state(case, sender, copy):
        return
    case.check("S26")
    if copy.state < sender.state:
        detail = f"a copy comes as {copy.state} (redriven, dead), and {sender.node} has it as"
        case.violate("S26", f"{detail} {sender.state}", job.id, row.node)


def may_precede_state(case: Case, sender: Copy, copy: Copy) -> bool:
    """Was the message of the copy made before the job died or was redriven at its sender? A journal
    may have held it back."""
    if sender.state == ALIVE:
        return False
    made = copy.first_sent_at - case.obligations.send_delay
    return sender.left_since >= made or case.world.was_disk_faulty(sender.node, copy.first_sent_at)


def on_state(case: Case, row: Row, job: Job) -> None:
    """The job is dead at this node from now on, or has been redriven."""
    copy = job.copies.get(row.node)
    state = (number(row.detail, "redriven"), row.kind == "dead")
    left = number(row.detail, "left")
    case.check("S26")
    if row.cause == "redriven":
        case.mark("dead.redriven")
        _judge_redrive(case, row, job)
    elif row.kind == "dead":
        _judge_death(case, row, job, left)
    _judge_life(case, row, job, state, left)
    _take_note(case, row, job, state, left)
    if copy is not None:
        if state < copy.state:
            detail = f"{copy.state} (redriven, dead) becomes {state}"
            case.violate("S26", detail, job.id, row.node)
        _change(job, copy, row, state, left)


def _judge_death(case: Case, row: Row, job: Job, left: int) -> None:
    options = job.options
    if row.cause == "nack-dead":
        case.mark("dead.buried")
    elif row.cause in TRIES:
        case.mark("dead.limit")
        limit = 0 if options is None else options.limit
        least = _tries_of(case, row, job) + 1
        if options is not None and not 0 < limit <= least:
            detail = f"dies with LIMIT {limit}, queued {counted(least, 'time')}"
            case.violate("S26", detail, job.id, row.node)
    else:
        case.mark("dead.told")
        return
    if left * MILLI != case.obligations.dead_life:
        case.violate("S26", f"is dead, and expires in {left} ms", job.id, row.node)


def _tries_of(case: Case, row: Row, job: Job) -> int:
    """Return the highest possible number of tries of the job before this one."""
    is_late = number(row.detail, "redriven") < job.state[0]
    if is_late or case.may_be_named_twice(job, row.node) or not case.obligations.is_stream:
        # The node may have received a message twice, or may have missed a redrive.
        return job.nacked + job.requeued + _MANY
    return job.tries + job.races


def _judge_redrive(case: Case, row: Row, job: Job) -> None:
    """S26: a client requested the redrive at this node after the job died there."""
    copy = job.copies.get(row.node)
    died_at = NEVER if copy is None else copy.left_since
    named = [case.redrives.get((row.node, what), {}) for what in (row.queue, row.job)]
    ends = [ended for orders in named for ended in orders.values()]
    if not case.is_live and all(ended < died_at for ended in ends):
        case.violate("S26", "redriven, and nobody has asked for it", job.id, row.node)


def _judge_life(case: Case, row: Row, job: Job, state: State, left: Millis) -> None:
    """S26: after a redrive a job has the TTL of its ADDJOB. A node that learns from another one
    that the job is dead, or alive again, does not let it expire early."""
    if row.kind == "redrive" and job.id.startswith("D-"):
        low, high = _life(case, row, job)
        if not low <= left * MILLI <= high:
            bounds = f"{max(low, 0) / SECOND:.3f} to {high / SECOND:.3f} s"
            detail = f"redriven, and expires in {left / 1000:.3f} s, not in {bounds}"
            case.violate("S26", detail, job.id, row.node)
    if row.cause == "jobstate" and state == job.state and job.lives_until is not None:
        early = job.lives_until - row.time - left * MILLI
        if early > _LIFE_SLACK and not case.obligations.can_step:
            detail = f"is told that it is {state} (redriven, dead)"
            detail += f", and expires {early / SECOND:.3f} s early"
            case.violate("S26", detail, job.id, row.node)


def _life(case: Case, row: Row, job: Job) -> tuple[Micros, Micros]:
    """Return the shortest and the longest life after a redrive: the TTL, if it is known. If wall
    clocks differ or copies were in transit for long, it is the TTL in the job's id, which is
    inexact by up to two minutes."""
    obligations, created = case.obligations, job.created_at
    least, most = (end * MILLI for end in ttl_range(job.id.encode()))
    slack = SLACK
    if job.options is not None and not obligations.differs:
        least = job.options.ttl
        if created is not None and case.world.is_calm(created, row.time):
            most, slack = least, _LIFE_SLACK + 2 * obligations.latency
    low = obligations.shortest(least) - _LIFE_SLACK if row.cause == "redriven" else NEVER
    return low, obligations.longest(most) + slack


def on_redrive_invoke(case: Case, row: Row) -> None:
    """Record a REDRIVE of a queue or job. It may redrive every job that dies at the node before the
    reply."""
    orders = case.redrives.setdefault((row.node, row.job or row.queue), {})
    orders[row.client, row.ref] = FOREVER


def on_redrive_end(case: Case, row: Row) -> None:
    """Record the reply to a REDRIVE. Without a reply it may still be carried out."""
    orders = case.redrives.get((row.node, row.job or row.queue), {})
    if (row.client, row.ref) in orders:
        orders[row.client, row.ref] = row.time


def _take_note(case: Case, row: Row, job: Job, state: tuple[int, bool], left: int) -> None:
    """Record the state of the job if it is the greatest so far."""
    if state <= job.state:
        return
    if state[0] > job.state[0]:
        job.tries = job.races = 0
        job.expected_since = job.redriven_at = row.time
    job.state, job.state_since = state, row.time
    job.asked_again = row.time
    job.lives_until = row.time + case.obligations.shortest(left * MILLI) - _ROUNDED


def _change(job: Job, copy: Copy, row: Row, state: tuple[int, bool], left: int) -> None:
    if state[0] > copy.state[0]:
        # Its counters restart.
        copy.counted = (0, 0)
        job.counters.pop(row.node, None)
    copy.state, copy.is_waiting = state, row.detail.endswith(" wait-repl")
    copy.left, copy.left_since, copy.left_wall = left, row.time, row.wall
    if copy.base is not None:
        # If the reply to ADDJOB was lost, the first record has the TTL.
        life = job.life if job.options is None else job.options.ttl // MILLI
        copy.base = row.mono + left - life if life else None


def before_queue(case: Case, row: Row, job: Job) -> None:
    """S26: a dead job is not queued; in calm, neither is a job that has reached its LIMIT."""
    _judge_dead(case, row, job)
    if row.cause not in TRIES:
        return
    if row.cause == "retry" and row.time - job.tried_at <= RACE + 2 * case.obligations.latency:
        # Two holders queue it at once: that is one try, which both may count.
        job.races += 1
        return
    _count_try(case, row, job)


def on_postpone(case: Case, row: Row, job: Job) -> None:
    """A NACK that makes the job wait counts at once; its later enqueueing does not."""
    if row.cause == "nack":
        _count_try(case, row, job)


def _count_try(case: Case, row: Row, job: Job) -> None:
    """S26: count a try; in calm, it is within LIMIT."""
    job.tries, job.tried_at = job.tries + 1, row.time
    limit = 0 if job.options is None else job.options.limit
    if limit and job.tries >= limit:
        case.mark("limit.exceeded")
        since = job.created_at if job.created_at is not None else NEVER
        if case.world.is_calm(since, row.time) and not case.is_live and _is_orderly(case):
            detail = f"queued for delivery {job.tries + 1}, LIMIT is {limit}"
            case.violate("S26", detail, job.id, row.node)


def on_serve(case: Case, row: Row, job: Job) -> None:
    """S26: a dead job is not served."""
    _judge_dead(case, row, job)


def _judge_dead(case: Case, row: Row, job: Job) -> None:
    if not job.state[1] or not job.is_dead:
        return
    case.check("S26")
    copy = job.copies.get(row.node)
    if copy is not None and copy.state[1]:
        case.violate(
            "S26", f"{row.kind} ({row.cause}) of a job that is dead here", job.id, row.node
        )
        return
    case.mark("dead.unheard")
    waited = row.time - job.state_since
    is_calm = case.world.is_calm(job.state_since, row.time) and _is_orderly(case)
    if is_calm and waited > 2 * case.obligations.latency and not case.is_live:
        detail = (
            f"{row.kind} ({row.cause}) {waited / SECOND:.3f} s after its death, which is unheard"
        )
        case.violate("S26", detail, job.id, row.node)


def _is_orderly(case: Case) -> bool:
    """Do messages arrive soon and in order?"""
    return case.obligations.is_stream and not case.obligations.has_tail


def after_leaving(case: Case, _row: Row, job: Job) -> None:
    """A copy was dropped. If no other holder has the job as dead, it may be expected again."""
    if job.state[1] and not job.is_dead:
        job.expected_since = max(job.expected_since, case.now)
