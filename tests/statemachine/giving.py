"""What the tests of postponed jobs begin with."""

from disque_trio.statemachine.base import JobId
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.postponing import MARGIN
from tests.rig import CALM, JOB, ME, N2, N3, Rig, copy_of

GRAIN = 8
MOST = MARGIN + 500
"""How much later than the node of the NACK the last holder queues a job."""


def cluster(peers: int = 2, *, ours: bool = True) -> Rig:
    rig = Rig(peers=peers, config=CALM, ours=ours)
    rig.sent()
    return rig


def held(rig: Rig, retry: int = 60, job_id: JobId = JOB) -> Job:
    return rig.hold(copy_of(job_id, holders=(N2, N3, ME), retry=retry))


def delivered(rig: Rig, retry: int = 60) -> Job:
    """A worker has it from here."""
    job = held(rig, retry)
    rig.ask("ENQUEUE", job.id)
    rig.ask("GETJOB", "FROM", "q")
    rig.sent()
    return job


def counts(rig: Rig) -> tuple[int, int]:
    """Delayed and leased."""
    delayed = rig.node.delayed.get(b"q")
    return 0 if delayed is None else delayed.number, rig.node.leased.get(b"q", 0)


def counts_of(job: Job) -> tuple[int, int]:
    return job.nacks, job.deliveries
