"""Counts of snoozes (S14): how often RELEASE has delayed a job, in the counts of holders and
consumers.

A node counts its own RELEASEs, those in POSTPONED, and those in copies that it receives. It reports
no fewer to other nodes, and no count exceeds the number of RELEASEs. A redrive resets the count.
"""

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.records import NEVER, Job, Lease
from disque_trio.sim.checkers.silence import is_unanswered_since_start, may_be_unlinked
from disque_trio.sim.checkers.waits import Snoozes
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.terminal.counting import counted
from disque_trio.tracing.details import fields, number, numbers
from disque_trio.tracing.rows import Row

_NONE = (0, NEVER)


def on_postpone(case: Case, row: Row, job: Job) -> None:
    """S14: the node of a RELEASE counts one more. The node of a NACK, and a node that receives
    POSTPONED, keep their counts."""
    reported = number(row.detail, "snoozes")
    if job.id not in case.snoozes and not reported and row.cause != "release":
        return
    found = case.snoozes.setdefault(job.id, Snoozes())
    is_one_more = row.cause == "release"
    found.total += is_one_more
    epoch = _epoch(job, row.node)
    found.totals[epoch] = found.totals.get(epoch, 0) + is_one_more
    known, since = found.known.get(row.node, _NONE)
    # A batch may contain several reports in order, and all of its messages have been processed
    # here.
    least = (known if since < row.time else 0) + is_one_more
    _judge(case, row, (reported, least, _most(case, found, job, row.node)))
    _learn(found, row.node, reported, row.time)


def _epoch(job: Job, node: str) -> int:
    """Return how often the job was redriven, in the node's record."""
    copy = job.copies.get(node)
    return 0 if copy is None else copy.state[0]


def _most(case: Case, found: Snoozes, job: Job, node: str) -> int:
    """Return the highest possible number of snoozes: in calm, those since the last redrive."""
    created = NEVER if job.created_at is None else job.created_at
    if not case.world.is_calm(created, case.now) or case.obligations.has_tail:
        return found.total
    return found.totals.get(_epoch(job, node), 0)


def after_hold(case: Case, row: Row, job: Job) -> None:
    """S14: a new record has the count, which replaces the node's earlier one."""
    reported = numbers(row.detail).get("snoozes", 0)
    found = case.snoozes.get(job.id)
    if found is None and not reported:
        return
    found = case.snoozes.setdefault(job.id, Snoozes())
    _judge(case, row, (reported, 0, found.total))
    found.known[row.node] = (reported, row.time)


def after_received(case: Case, row: Row) -> None:
    """A node with the job received POSTPONED: it has at least that count from now on."""
    found = case.snoozes.get(row.job)
    job = case.jobs.get(row.job)
    copy = None if job is None else job.copies.get(row.node)
    if found is None or copy is None or copy.is_acked or copy.state[1]:
        return
    if not case.world.may_be_unknown(row.node, row.peer, row.time):
        _learn(found, row.node, number(row.detail, "snoozes"), row.time)


def after_sending(case: Case, row: Row) -> None:
    """S14: POSTPONED has the full count of its sender."""
    found = case.snoozes.get(row.job)
    if found is None:
        return
    least, since = found.known.get(row.node, _NONE)
    if not _may_be_older(case, row, since):
        _judge(case, row, (number(row.detail, "snoozes"), least, found.total))


def _may_be_older(case: Case, row: Row, since: Micros) -> bool:
    """May the message have been created before that time? It waits for its batch, and for the
    journal of its node."""
    if not case.obligations.has_disk:
        return since == row.time and " new" not in row.detail
    return row.time - since <= case.obligations.send_delay or case.world.was_mute(
        row.node, since, row.time
    )


def on_give(case: Case, row: Row, job: Job) -> None:
    """A node sends a copy to the queue of another node, with the count, unless the sender assumes,
    on a link that may be new, that the receiver keeps no extensions."""
    found = case.snoozes.get(job.id)
    if found is None:
        return
    is_stripped = (
        case.obligations.has_original_file
        or may_be_unlinked(case, row.node, row.peer)
        or is_unanswered_since_start(case, row.node, row.peer)
    )
    count = 0 if is_stripped else found.known.get(row.node, _NONE)[0]
    found.in_transit[row.node, row.peer] = count


def after_queue(case: Case, row: Row, job: Job) -> None:
    """The node received the job from another one, with its count."""
    found = case.snoozes.get(job.id)
    copy = job.copies.get(row.node)
    if found is None or copy is None or copy.queueing is None or row.cause != "import":
        return
    giver = copy.queueing.given_by
    if giver is not None:
        _learn(found, row.node, found.in_transit.pop((giver.node, row.node), 0), row.time)


def on_state(case: Case, row: Row, job: Job) -> None:
    """The job is redriven: its count is reset at this node."""
    found = case.snoozes.get(job.id)
    if found is not None and row.kind == "redrive":
        found.known.pop(row.node, None)
        found.in_transit.clear()


def on_serve(case: Case, row: Row, job: Job) -> None:
    """Record the count that the consumer must receive."""
    found = case.snoozes.get(job.id)
    if found is not None and case.obligations.has_tokens:
        least = found.known.get(row.node, _NONE)[0]
        most = _most(case, found, job, row.node)
        found.served[row.time, row.node, row.client] = (least, most)


def on_deliver(case: Case, row: Row, job: Job, serve: Lease) -> None:
    """S14: a consumer that uses WITHMETA receives the count if it is not 0."""
    values = fields(row.detail, "body")
    if "token" not in values:
        return
    found = case.snoozes.get(job.id) or Snoozes()
    least, most = found.served.pop((serve.time, serve.node, serve.client), (0, found.total))
    _judge(case, row, (int(values.get("snoozes", 0)), least, most))


def _learn(found: Snoozes, node: str, count: int, time: Micros) -> None:
    if count > found.known.get(node, _NONE)[0]:
        found.known[node] = (count, time)


def _judge(case: Case, row: Row, count: tuple[int, int, int]) -> None:
    """S14: compare a reported count with the least and the greatest possible one."""
    if not case.has_node_rows or case.is_live:
        return
    case.check("S14")
    reported, least, most = count
    if reported < least:
        case.violate(
            "S14",
            f"{row.kind}: {counted(reported, 'snooze')}, and {least} known",
            row.job,
            row.node,
        )
    elif reported > most:
        case.violate(
            "S14", f"{row.kind}: {counted(reported, 'snooze')}, of {most}", row.job, row.node
        )
