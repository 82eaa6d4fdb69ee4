"""Rows about faults: their effects on the world, and the copies that they destroy."""

import attrs

from disque_trio.sim.checkers import history
from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.queue_pauses import ORDER_DELAY
from disque_trio.sim.checkers.safety import after_leaving, check_retention
from disque_trio.sim.scenarios import fault_kinds
from disque_trio.tracing.rows import Row


def on_block(case: Case, row: Row) -> None:
    """A fault of a link begins in one direction. It may delay or lose messages."""
    case.mark(fault_kinds.ROWS[row.kind].bar)
    case.world.on_block(row, case.alive)


def on_slow(case: Case, row: Row) -> None:
    """A node or a link becomes slow, or normal again."""
    case.mark(row.kind)
    case.world.on_slow(row)


def on_pause_queue(case: Case, row: Row) -> None:
    """A queue is paused or resumed."""
    case.mark("pause-queue")
    case.world.on_pause_queue(row)


def on_memory(case: Case, row: Row) -> None:
    """The memory of a node is reduced or restored."""
    if row.detail != "0":
        case.mark("memory")
    case.world.on_memory(row)


def on_heal(case: Case, row: Row) -> None:
    """A fault of links ends."""
    case.world.on_heal(row)


def on_crash(case: Case, row: Row) -> None:
    """A process ends and loses its memory."""
    case.mark("crash")
    case.pending_orders.pop(row.node, None)
    _doubt(case, row)
    case.world.on_crash(row)
    jobs = list(case.table(row.node))
    history.on_crash(case, row)
    _recheck(case, jobs)


def on_start(case: Case, row: Row) -> None:
    """A process starts or restarts."""
    if row.node in case.world.down:
        case.mark("restart")
    elif row.time > 0:
        case.mark("join")
    case.world.on_start(row)
    for order in case.pending_orders.pop(row.node, ()):
        if row.time - order.time <= ORDER_DELAY:
            _apply(case, order)
            case.doubtful_orders[row.node] = None
    jobs = list(case.table(row.node))
    history.on_start(case, row)
    _recheck(case, jobs)


def on_wipe(case: Case, row: Row) -> None:
    """A node loses its disk and its name, or is removed for good."""
    case.world.on_crash(row)
    case.world.is_changing = True
    if row.kind == "remove":
        case.world.removed[row.node] = None
    jobs = list(case.table(row.node))
    history.on_wipe(case, row)
    _recheck(case, jobs)


def _recheck(case: Case, jobs: list[str]) -> None:
    for job_id in jobs:
        job = case.jobs.get(job_id)
        if job is not None:
            after_leaving(case, job)
            check_retention(case, job)


def on_pause(case: Case, row: Row) -> None:
    """A process is stopped."""
    case.mark("pause")
    case.world.on_pause(row)


def on_resume(case: Case, row: Row) -> None:
    """A process resumes, and receives the messages that arrived while it was stopped."""
    case.world.resume(row.node, row.time)
    orders = case.pending_orders.pop(row.node, [])
    case.resumed_orders[row.node] = [attrs.evolve(order, time=row.time) for order in orders]
    for order in orders:
        _apply(case, order)


def _doubt(case: Case, row: Row) -> None:
    """The process ends just after it resumed: it may not have read the pending orders."""
    for order in case.resumed_orders.pop(row.node, ()):
        if row.time - order.time <= ORDER_DELAY:
            case.doubtful_orders[row.node] = None
            case.world.leaving.setdefault(row.node, order.time)


def on_clock(case: Case, row: Row) -> None:
    """A clock steps or changes its rate."""
    case.mark(row.kind)
    case.world.on_clock(row)


def on_leave(case: Case, row: Row) -> None:
    """A node is ordered to leave, or to stop leaving. Both outlast a restart. A node that is down
    misses the order, unless it starts at the same time. A stopped process receives its orders when
    it resumes, and may handle waiting messages between them."""
    case.mark("leave")
    if row.node in case.world.down or row.node in case.world.paused:
        case.pending_orders.setdefault(row.node, []).append(row)
    else:
        case.doubtful_orders.pop(row.node, None)
        _apply(case, row)


def _apply(case: Case, row: Row) -> None:
    world = case.world
    if row.detail != "no":
        world.leaving.setdefault(row.node, row.time)
        world.have_left[row.node] = None
    else:
        world.leaving.pop(row.node, None)


def on_forget(case: Case, row: Row) -> None:
    """A node forgets another one."""
    case.world.on_forget(row)


def on_core(case: Case, row: Row) -> None:
    """The faults end, or the heal is complete."""
    case.world.on_core(row)


def on_rejoin(case: Case, row: Row) -> None:
    """All nodes of the core are connected again."""
    case.world.rejoined = row.time


def on_end(case: Case, row: Row) -> None:
    """The run ends."""
    case.world.ended = row.time
