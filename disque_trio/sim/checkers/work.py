"""Work is bounded while nothing is wrong: nodes look for jobs and offer them only as often as
something happens to jobs and clients (S33), and send no more about a job than happens to it, nor
more gossip than its timers ask for (S35)."""

from typing import Final

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.obligations import DESYNC, MILLI, SECOND
from disque_trio.sim.checkers.records import Job
from disque_trio.sim.checkers.refusals import may_be_short_of_memory
from disque_trio.statemachine.knobs import Knobs
from disque_trio.terminal.counting import counted
from disque_trio.tracing.rows import Row

IDLE: Final = 50
"""Messages of a kind that one node may send to another in a second for no reason."""
FOR_EACH: Final = 4
"""How many more for each consumer, each queue, and each time that a job is queued or served."""


SPARE: Final = 2
"""How many messages of a kind more than there are reasons."""
ABOUT_KEYS: Final = ("keyclaim", "keyanswer", "keycancel")
"""Their reasons are other jobs with the key."""


def note(case: Case, row: Row, _job: Job) -> None:
    """Something happens to a job, of which others may have to hear in this second and the next."""
    second = row.time // SECOND
    for each in (second, second + 1):
        case.activity[each] = case.activity.get(each, 0) + 1
    case.activity.pop(second - 2, None)


def on_send(case: Case, row: Row) -> None:
    """S33: WAITING, HAVEJOBS or NEEDJOBS."""
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
    """Something happens to a job in a node, which may have to tell others."""
    _count(case, job.id, (row.node, "", ""))


def on_received(case: Case, row: Row) -> None:
    """A message about a job, of which the other holders may have to hear as well."""
    if row.job:
        _count(case, row.job, (row.node, "", ""))


def on_sent(case: Case, row: Row) -> None:
    """S35: for each reason a node sends another at most one message of a kind about a job."""
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
    """How many times its timers may have come: those of RETRY, and of a copy that is not
    confirmed. Where time is real, a row is as late as its node was."""
    since = row.time - job.first_seen + case.obligations.no_processor
    if row.cause == "repljob":
        # Nodes are added, and copies sent again, until they are confirmed. A node that lacks memory
        # refuses them without a word.
        again = max(dict(case.plan.knobs).get("widen_every", Knobs().widen_every), 1) * MILLI
        longest = 2 * (case.obligations.latency + case.plan.sync[1])
        return (since if may_be_short_of_memory(case) else min(since, longest)) // again
    retry = case.retry_of(job) or SECOND
    return since // max(case.obligations.shortest(retry - 2 * DESYNC), SECOND // 2)


def on_gossip(case: Case, row: Row) -> None:
    """S35: a node sends another one PING in a second by chance, one whenever half the node timeout
    is over, or a quarter if it watches it in a larger cluster, one on a new link, and an answer to
    each. The links of the cluster are made until time
    0, and in a second after that where time is real."""
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
