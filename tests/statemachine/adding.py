"""ADDJOBs of one client that wait for their copies at once."""

from disque_trio.statemachine.base import Failure, NodeId, Reply, Status
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import GotJob
from tests.rig import ME, Rig

TIMED_OUT = Failure(b"NOREPL Timeout reached before replicating to the requested number of nodes")
PING = b"PING"


def add(rig: Rig, *options: str | int, timeout: int = 0, copies: int = 2) -> Job:
    """One more ADDJOB of the pipeline, which has to wait."""
    assert rig.offer("ADDJOB", "q", "body", timeout, "REPLICATE", copies, *options)
    return last(rig.client)


def fill(rig: Rig, client: Client, body: bytes) -> list[Job]:
    """As many as the machine takes of this client."""
    jobs = []
    while rig.offer("ADDJOB", "q", body, 0, "REPLICATE", 2, client=client):
        jobs.append(last(client))
    return jobs


def last(client: Client) -> Job:
    """The job of the latest."""
    job = client.pending_adds[-1].job
    assert job is not None
    return job


def confirm(rig: Rig, job: Job, *nodes: NodeId) -> None:
    """These nodes, or all that should, have a copy."""
    for node in nodes or [id for id in job.holders if id != ME]:
        rig.message(node, GotJob(job.id))


def ids(*jobs: Job) -> list[Reply]:
    """The answers that they want."""
    return [Status(job.id) for job in jobs]
