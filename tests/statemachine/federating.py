"""What the tests of federation begin with."""

from disque_trio.statemachine.base import JobId, NodeId
from disque_trio.statemachine.messages import YourJobs
from tests.rig import JOB, Rig, copy_of


def ids(count: int) -> list[JobId]:
    return [JOB[:11] + b"%024d" % number + JOB[35:] for number in range(count)]


def give(rig: Rig, sender: NodeId, *job_ids: JobId, retry: int = 60, more: bool = False) -> None:
    copies = tuple(copy_of(each, retry=retry) for each in job_ids)
    rig.message(sender, YourJobs(copies, more=more))
