"""Dead jobs for tests."""

import attrs

from disque_trio.statemachine.base import DEAD, JobId, NodeId, Reply
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.extensions import DeadState, Extensions
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import JobCopy, JobState
from disque_trio.statemachine.records import LoadJob
from tests.rig import CALM, ME, N2, N3, Rig, copy_of

DAY = 86_400_000
WEEK = 7 * DAY


def with_dead(*options: str | int, reason: str = "why", config: Config = CALM) -> tuple[Rig, Job]:
    """A node alone that has one dead job."""
    rig = Rig(config=config)
    job = rig.add(*options)
    assert rig.ask("NACK", job.id, "DEAD", reason) == 1
    assert job.state == DEAD
    return rig, job


def among_three(*, config: Config = CALM, limit: int = 0) -> tuple[Rig, Job]:
    """This node, N2 and N3 hold a job, and understand all."""
    rig = Rig(peers=2, ours=True, config=config)
    job = rig.hold(limited(copy_of(holders=(N2, N3, ME)), limit))
    rig.sent()
    return rig, job


def limited(copy: JobCopy, limit: int = 0, dead: DeadState | None = None) -> JobCopy:
    """With extensions that concern dead letters."""
    if not limit and dead is None:
        return copy
    return attrs.evolve(copy, extensions=Extensions(limit=limit, dead=dead or DeadState()))


def told(rig: Rig) -> list[tuple[NodeId, bool, int]]:
    """To whom it was said that the job is dead, or alive, and how often it was redriven."""
    return [
        (to, message.state.is_dead, message.state.epoch)
        for to, message in rig.sent()
        if isinstance(message, JobState)
    ]


def dead_of(rig: Rig, queue: bytes = b"q") -> list[JobId]:
    """The dead jobs of a queue, the one that died first first."""
    return list(rig.node.dead.get(queue, ()))


def loads(rig: Rig) -> list[LoadJob]:
    """What the node has written in its journal about jobs that it has."""
    records = [record for out in rig.outboxes for record in out.records]
    return [each for each in records if isinstance(each, LoadJob)]


def shown(rig: Rig, job: Job) -> dict[Reply, Reply]:
    """What SHOW says."""
    reply = rig.ask("SHOW", job.id)
    assert isinstance(reply, list)
    return dict(zip(reply[::2], reply[1::2], strict=True))


def got(rig: Rig) -> JobId | None:
    """The job that a worker gets, if there is one."""
    reply = rig.ask("GETJOB", "NOHANG", "FROM", "q")
    if not isinstance(reply, list):
        return None
    [[_, job_id, _]] = reply  # type: ignore[misc]
    assert isinstance(job_id, bytes)
    return job_id


def several(count: int) -> tuple[Rig, list[JobId]]:
    """A node with so many dead jobs, and their ids in the order of their deaths."""
    rig = Rig()
    jobs = [rig.add().id for _ in range(count)]
    for job_id in reversed(jobs):
        rig.ask("NACK", job_id, "DEAD")
    return rig, jobs[::-1]
