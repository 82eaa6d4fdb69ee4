"""Options of requests are carried out (S19): DELAY or DEAD of NACK and RELEASE, COUNT of REDRIVE
and ENQUEUE QUEUE, BCAST of PURGE, counters of GETJOB.

The rows of requests contain these options (`tracing.client_rows`).
"""

from typing import Final

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.records import NEVER, Job
from disque_trio.sim.checkers.silence import may_be_unlinked
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.base import BURIES, PURGES
from disque_trio.terminal.counting import counted
from disque_trio.tracing.rows import Row

_WAYS: Final = {"dead": ("dead",), "delay": ("postpone", "dead")}
"""By option: one row of these kinds must follow. The last try of a job ends in its death, also with
DELAY."""
_MANY: Final = (NEVER, "")
"""A request that names several jobs has one reply for all."""


def on_invoke(case: Case, row: Row, _job: Job) -> None:
    """A client returns a job."""
    key = row.client, row.ref
    case.asked[key] = _MANY if key in case.asked else (row.time, row.cause)


def note(_case: Case, row: Row, job: Job) -> None:
    """The node delays the job, or the job is dead there."""
    job.done[row.node, row.kind] = row.time


def on_end(case: Case, row: Row, job: Job) -> None:
    """S19: a job returned with DELAY is delayed, and one returned with DEAD is dead."""
    since, option = case.asked.pop((row.client, row.ref), _MANY)
    wanted = _WAYS.get(option)
    if wanted is None or row.detail != "1" or case.is_live or not case.has_node_rows:
        return
    case.check("S19")
    is_done = any(job.done.get((row.node, kind), NEVER) >= since for kind in wanted)
    if not is_done and job.gone.get(row.node, NEVER) < since:
        _report(case, row, f"{row.kind.partition('.')[0]} has ignored {option.upper()}")


def on_order(case: Case, row: Row) -> None:
    """A client sends PURGE, REDRIVE or ENQUEUE QUEUE."""
    case.asked[row.client, row.ref] = (row.time, row.cause or row.detail)


def on_order_end(case: Case, row: Row) -> None:
    """S19: at most COUNT jobs are affected, and a PURGE with BCAST is forwarded."""
    since, option = case.asked.pop((row.client, row.ref), _MANY)
    name, _, count = option.partition("=")
    if not row.kind.endswith(".ok"):
        return
    if name == "count" and row.detail.isdigit() and int(row.detail) > int(count):
        _report(case, row, f"{counted(int(row.detail), 'job')}, where COUNT is {count}")
    elif name == "bcast" and _is_unannounced(case, row, since):
        _report(case, row, "PURGE with BCAST has told no other node")


def _is_unannounced(case: Case, row: Row, since: Micros) -> bool:
    case.check("S19")
    node = row.node
    needed = BURIES if row.kind == "purge-dead.ok" else PURGES
    if needed == BURIES and case.obligations.has_original_file:
        return False  # no node keeps dead jobs of other nodes, so none forwards the PURGE
    return (
        case.has_messages
        and not needed & ~case.obligations.capabilities
        and any(each != node and not may_be_unlinked(case, node, each) for each in case.world.nodes)
        and case.world.is_calm(since, case.now)
        and case.purged_from.get(node, NEVER) < since
    )


def on_purge_sent(case: Case, row: Row) -> None:
    """A node forwards a PURGE."""
    case.purged_from[row.node] = row.time


def on_deliver(case: Case, row: Row) -> None:
    """S19: a consumer that requests counters receives them."""
    if row.client in case.asked_for and row.ref and "nacks=" not in row.detail:
        _report(case, row, f"{row.client} has asked for counters, and got none")


def _report(case: Case, row: Row, what: str) -> None:
    case.violate("S19", what, row.job, row.node)
