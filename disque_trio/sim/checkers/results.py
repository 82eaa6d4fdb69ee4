"""Results (S36): WAITJOB and SHOW return the result of the ACKJOB RESULT until KEEP is over.

A node keeps a result from the time when it has answered the ACKJOB with 1, or has confirmed RESULT
to the node that sent it. After a kill the result is in the journal; after a power failure, with
`appendfsync always`. Rows contain the CRC-32 of a result.
"""

from typing import Final

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.durability import TROUBLES
from disque_trio.sim.checkers.obligations import MILLI, SECOND
from disque_trio.sim.checkers.records import Job, KeptResult, SentResult
from disque_trio.sim.checkers.refusals import was_short_of_memory
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.base import KEEPS_ALL
from disque_trio.tracing.details import fields, number
from disque_trio.tracing.rows import Row

_SLACK: Final = SECOND


def on_ack_invoke(case: Case, row: Row, job: Job) -> None:
    """A client sends an ACKJOB, maybe with RESULT."""
    values = fields(row.detail)
    if "result" not in values:
        return
    case.sent_results[row.client, row.ref, job.id] = SentResult(
        row.time, int(values["keep"]) * MILLI
    )
    case.results.setdefault(job.id, {})[values["result"]] = None


def on_ack_ok(case: Case, row: Row, job: Job) -> None:
    """The node of the ACKJOB has acknowledged the job with the result, if the reply counts it."""
    sent = case.sent_results.pop((row.client, row.ref, job.id), None)
    if sent is None:
        return
    if row.detail == "1":
        case.mark("result.given")
        until = sent.time + case.obligations.shortest(sent.keep)
        _keep(case, row, job.id, until)
    _end_by(case, row.node, job.id, row.time + case.obligations.longest(sent.keep))


def on_ack_unknown(case: Case, row: Row, job: Job) -> None:
    """It is unknown whether the job was acknowledged."""
    if case.sent_results.pop((row.client, row.ref, job.id), None) is not None:
        case.result_ends[row.node, job.id] = None


def on_refused(case: Case, row: Row, job: Job) -> None:
    """S36: a node refuses a result only for lack of memory or of a disk."""
    sent = case.sent_results.pop((row.client, row.ref, job.id), None)
    if sent is not None and row.cause == "ERR":
        case.violate("S36", f"a result is refused: {row.detail}", job.id, row.node)


def _keep(case: Case, row: Row, job_id: str, until: Micros) -> None:
    found = case.kept_results.setdefault(row.node, {})
    known = found.get(job_id)
    if known is None:
        found[job_id] = KeptResult(row.time, until)
    else:
        # The earlier of two results counts, with its time.
        known.until = min(known.until, until)


def _end_by(case: Case, node: str, job_id: str, until: Micros) -> None:
    """Record the latest end of the result; None if unknown."""
    if (node, job_id) not in case.result_ends:
        case.result_ends[node, job_id] = until
    else:
        before = case.result_ends[node, job_id]
        case.result_ends[node, job_id] = None if before is None else max(before, until)


def after_received(case: Case, row: Row) -> None:
    """RESULT has arrived."""
    job = case.jobs.get(row.job) or case.job(row.job)
    left = number(row.detail, "left") * MILLI
    _end_by(case, row.node, row.job, row.time + case.obligations.longest(left))
    copy = job.copies.get(row.node)
    if copy is None or copy.is_dummy or case.world.may_be_unknown(row.node, row.peer, row.time):
        return
    if not was_short_of_memory(case, row.node, row.time, row.time):
        case.unconfirmed_results[row.node, row.job] = row.time + case.obligations.shortest(left)


def after_confirmed(case: Case, row: Row) -> None:
    """GOTACK: the sender of RESULT may rely on the result."""
    until = case.unconfirmed_results.pop((row.node, row.job), None)
    if until is not None:
        case.mark("result.told")
        _keep(case, row, row.job, until)


def on_crash(case: Case, row: Row) -> None:
    """A result that need not be in the journal may be lost."""
    for node, job_id in [each for each in case.unconfirmed_results if each[0] == row.node]:
        del case.unconfirmed_results[node, job_id]
    for node, job_id in [each for each in case.result_ends if each[0] == row.node]:
        # A restarted node counts by its wall clock.
        case.result_ends[node, job_id] = None
    rules = case.obligations
    is_written = rules.has_disk and not rules.has_original_file
    is_synced = row.cause != "power" or rules.fsync == "always"
    keeps_all = rules.capabilities & KEEPS_ALL == KEEPS_ALL
    had_trouble = any((row.node, kind) in case.world.disks for kind in TROUBLES)
    had_trouble |= row.node in case.flipped
    has_clocks = any(fault.kind.startswith("clock") for fault in case.plan.faults)
    if not (is_written and is_synced and keeps_all) or had_trouble or has_clocks:
        case.kept_results.pop(row.node, None)
    elif case.kept_results.get(row.node):
        case.mark("result.restarted")


def on_wipe(case: Case, row: Row) -> None:
    """The node has lost its disk, or was removed."""
    case.kept_results.pop(row.node, None)


def on_delete(case: Case, row: Row, job: Job) -> None:
    """A client sends DELJOB: the node need not keep anything of the job from now on. An
    acknowledgement that it has answered before may be recorded later."""
    case.deleted_results.add((row.node, job.id))


def on_wait_invoke(case: Case, row: Row, job: Job) -> None:
    """A client sends WAITJOB, maybe WITHRESULT."""
    if "withresult" in row.detail:
        case.looking[row.client, row.ref, job.id] = row.time


def on_wait_ok(case: Case, row: Row, job: Job) -> None:
    """The node replies to WAITJOB."""
    asked = case.looking.pop((row.client, row.ref, job.id), None)
    values = fields(row.detail)
    if asked is not None and "b'acked'" in values:
        judge(case, row, job, asked, values.get("result", ""))


def on_wait_refused(case: Case, row: Row, job: Job) -> None:
    """The node refuses WAITJOB: it has no such job."""
    asked = case.looking.pop((row.client, row.ref, job.id), None)
    if asked is not None and row.cause == "NOJOB":
        judge(case, row, job, asked, "")


def judge(case: Case, row: Row, job: Job, asked: Micros, result: str) -> None:
    """S36: judge a reply with this result, or with none. `asked` is the time of the request."""
    if not case.has_node_rows or case.is_live:
        return
    case.check("S36")
    if result:
        case.mark("result.read")
        ends = case.result_ends.get((row.node, job.id))
        if result not in case.results.get(job.id, ()):
            case.violate("S36", "a result that no ACKJOB has given", job.id, row.node)
        elif ends is not None and asked > ends + _SLACK:
            case.violate("S36", "a result whose KEEP is over", job.id, row.node)
        return
    kept = case.kept_results.get(row.node, {}).get(job.id)
    if (row.node, job.id) in case.deleted_results:
        return
    if kept is not None and kept.since <= asked and row.time < kept.until:
        case.violate("S36", "no result, and one is kept there", job.id, row.node)
