"""In calm, work is bounded: nodes request and offer jobs only as often as jobs and clients change
(S33), send no more messages about a job than its events require, and no more gossip than their
timers require (S35)."""

from typing import Final

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.obligations import DESYNC, MILLI, SECOND
from disque_trio.sim.checkers.records import Job
from disque_trio.sim.checkers.refusals import may_be_short_of_memory
from disque_trio.statemachine.knobs import Knobs
from disque_trio.terminal.counting import counted
from disque_trio.tracing.rows import Row

IDLE: Final = 50
"""Messages of a kind that one node may send to another in a second without an event."""
FOR_EACH: Final = 4
"""Further messages for each consumer, each queue, and each enqueueing and serve."""


SPARE: Final = 2
"""Messages of a kind beyond the number of events."""
ABOUT_KEYS: Final = ("keyclaim", "keyanswer", "keycancel")
"""Messages about keys, which other jobs with the key cause."""


def note(case: Case, row: Row, _job: Job) -> None:
    """Count an event of a job, about which nodes may send messages in this second and the next."""
    second = row.time // SECOND
    for each in (second, second + 1):
        case.activity[each] = case.activity.get(each, 0) + 1
    case.activity.pop(second - 2, None)


def on_send(case: Case, row: Row) -> None:
    """S33: judge WAITING, HAVEJOBS or NEEDJOBS."""
    second, key = row.time // SECOND, (row.node, row.peer, row.cause)
    since, count = case.work.get(key, (second, 0))
    count = count + 1 if since == second else 1
    case.work[key] = (second, count)
    if count <= IDLE or case.is_live or case.obligations.has_tail:
        return
    reasons = len(case.plan.consumers) + len(case.queues) + case.activity.get(second, 0)
    case.check("S33")
    if count > IDLE + FOR_EACH * reasons and case.world.is_calm(second * SECOND, row.time):
        detail = f"{count} {row.cause} to {row.peer} in a second, in which little has happened"
        case.violate("S33", detail, node=row.node)


def on_event(case: Case, row: Row, job: Job) -> None:
    """Count an event of a job at a node, about which it may send messages."""
    _count(case, job.id, (row.node, "", ""))


def on_received(case: Case, row: Row) -> None:
    """Count a received message about a job, which the node may forward to other holders."""
    if row.job:
        _count(case, row.job, (row.node, "", ""))


def on_sent(case: Case, row: Row) -> None:
    """S35: for each event a node sends another node at most one message of a kind about a job."""
    if not row.job or row.cause in ABOUT_KEYS:
        return
    count = _count(case, row.job, (row.node, row.peer, row.cause))
    job = case.jobs.get(row.job)
    if count <= SPARE or job is None or case.is_live or case.obligations.has_tail:
        return
    reasons = case.traffic[row.job].get((row.node, "", ""), 0)
    if count <= SPARE + reasons:
        return
    case.check("S35")
    reasons += _periods(case, row, job)
    if count > SPARE + reasons and case.world.is_calm(job.first_seen, row.time):
        detail = f"{count} {row.cause} to {row.peer}, for {counted(reasons, 'reason')}"
        case.violate("S35", detail, job.id, row.node)


def _count(case: Case, job_id: str, key: tuple[str, str, str]) -> int:
    traffic = case.traffic.get(job_id)
    if traffic is None:
        traffic = case.traffic[job_id] = {}
    count = traffic[key] = traffic.get(key, 0) + 1
    return count


def _periods(case: Case, row: Row, job: Job) -> int:
    """Return how often the timers of the job may have fired: for RETRY, and for a copy that is not
    confirmed. In real time, the rows of a node may be late."""
    since = row.time - job.first_seen + case.obligations.no_processor
    if row.cause == "repljob":
        # The node asks further nodes, and repeats copies, until they are confirmed. A node that
        # lacks memory refuses them without a reply.
        again = max(dict(case.plan.knobs).get("widen_every", Knobs().widen_every), 1) * MILLI
        longest = 2 * (case.obligations.latency + case.plan.sync[1])
        return (since if may_be_short_of_memory(case) else min(since, longest)) // again
    retry = case.retry_of(job) or SECOND
    return since // max(case.obligations.shortest(retry - 2 * DESYNC), SECOND // 2)


def on_gossip(case: Case, row: Row) -> None:
    """S35: in a second a node sends another one at most one PING by chance, one per half of the
    node timeout (a quarter if it watches that node in a larger cluster), and one on a new link; and
    one PONG per PING. The links of the cluster are set up until time 0, and in real time in the
    second after it."""
    second, key = row.time // SECOND, (row.node, row.peer, row.cause)
    if second < 1:
        return
    since, count = case.work.get(key, (second, 0))
    count = count + 1 if since == second else 1
    case.work[key] = (second, count)
    if count <= SPARE + 1 or case.is_live or case.obligations.has_tail:
        return
    in_all = dict(case.plan.knobs).get("watch_all", Knobs().watch_all)
    of_timeout = 4 if len(case.world.nodes) > in_all else 2
    timeout = case.obligations.shortest(case.obligations.node_timeout)
    most = SPARE + 1 + of_timeout * SECOND // timeout
    if count <= most:
        return
    case.check("S35")
    if case.world.is_calm(second * SECOND, row.time):
        detail = f"{count} {row.cause} to {row.peer} in a second, {most} are due"
        case.violate("S35", detail, node=row.node)
