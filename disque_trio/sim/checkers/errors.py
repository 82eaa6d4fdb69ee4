"""Errors of jobs (S22): SHOW returns the error of the last NACK that its node has recorded.

Rows contain the CRC-32 of the text of an error.
"""

from collections.abc import Iterator

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.records import Job
from disque_trio.sim.checkers.waits import Failures
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.details import fields, number
from disque_trio.tracing.rows import Row

_NACKS = ("nack", "nack-dead")


def on_nack(case: Case, row: Row, _job: Job) -> None:
    """A client sends a NACK, maybe with ERROR."""
    text = fields(row.detail).get("error")
    if text is not None:
        case.erring[row.client, row.ref, row.job] = row.time
        case.error_texts.setdefault(row.job, []).append(text)


def on_taken_back(case: Case, row: Row, job: Job) -> None:
    """After a NACK the node queues the job, makes it wait, or buries it."""
    if row.cause in _NACKS:
        found = case.failures.setdefault((job.id, row.node), Failures())
        found.back_at, found.wall = row.time, row.wall


def on_nack_ok(case: Case, row: Row, job: Job) -> None:
    """The NACK is confirmed: its node has the error."""
    sent = case.erring.pop((row.client, row.ref, row.job), None)
    found = case.failures.get((job.id, row.node))
    if sent is not None and found is not None and row.detail == "1" and found.back_at >= sent:
        _learn(found, found.wall, row.time)


def after_received(case: Case, row: Row) -> None:
    """JOBERROR has arrived at a node that has the job."""
    job = case.jobs.get(row.job)
    copy = None if job is None else job.copies.get(row.node)
    if copy is None or copy.is_acked or case.world.may_be_unknown(row.node, row.peer, row.time):
        return
    found = case.failures.setdefault((row.job, row.node), Failures())
    _learn(found, number(row.detail, "at"), row.time)


def _learn(found: Failures, at: int, time: Micros) -> None:
    if at > found.at:
        found.at, found.since = at, time


def judge(case: Case, row: Row, job: Job, asked: Micros, values: dict[str, str]) -> Iterator[str]:
    """Yield what is wrong with the error in a reply to SHOW. `asked` is the time of the request."""
    if "failed" not in values:  # a trace of an earlier version
        return
    failed, text = int(values["failed"]), values["error"]
    if text and text not in case.error_texts.get(job.id, ()):
        yield "an error that no NACK has said"
    if bool(failed) != bool(text):
        yield f"failed={failed} error={text}"
    found, copy = case.failures.get((job.id, row.node)), job.copies.get(row.node)
    if found is None or copy is None or not copy.since < found.since < asked:
        return
    if failed < found.at:
        yield f"an error of {failed}, and one of {found.at} is known"
