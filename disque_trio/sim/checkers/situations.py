"""Marks of situations that several rows show together. No property is checked here."""

from typing import Final

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.records import Job
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.rows import Row

TOGETHER: Final[Micros] = 500_000
"""One pass of repair replaces the copies of nodes that are lost within this time."""
OFTEN: Final = 3


def on_add_unknown(case: Case, row: Row) -> None:
    """The outcome of an ADDJOB is unknown."""
    if row.cause == "quit":
        case.mark("producer.died")


def on_drop(case: Case, row: Row, job: Job) -> None:
    """A node drops its record."""
    if row.cause == "expired" and job.deliveries >= OFTEN and not job.acks:
        case.mark("expired.unacked")


def on_ack(case: Case, row: Row, job: Job) -> None:
    """A node learns of an ack from a client or another node."""
    is_adding = job.add is None or not job.add.outcome
    if is_adding and row.node == job.origin and row.node in case.world.leaving:
        case.mark("ack.leaving_adder")


def on_fastack(case: Case, row: Row, job: Job) -> None:
    """A client sends FASTACK to a node."""
    if any(
        copy.node != row.node and _giver(job, copy.node) and not copy.is_acked
        for copy in job.copies.values()
    ):
        case.mark("fastack.moved")


def on_crash(case: Case, row: Row) -> None:
    """A node crashes; its copies are still recorded."""
    for job_id in case.table(row.node):
        job = case.jobs[job_id]
        if any(
            _giver(job, copy.node) == row.node and not copy.is_acked for copy in job.copies.values()
        ):
            case.mark("giver.crashed")


def on_remove(case: Case, row: Row) -> None:
    """A node is lost for good."""
    losses = case.world.outages.items()
    if any(
        node != row.node
        and node in case.world.removed
        and row.time - intervals[-1].start <= TOGETHER
        for node, intervals in losses
    ):
        case.mark("remove.two")


def _giver(job: Job, node: str) -> str:
    """Return the node that moved the job into this node's queue; empty if the job did not move
    there."""
    queueing = job.copies[node].last_queueing
    return "" if queueing is None or queueing.given_by is None else queueing.given_by.node
