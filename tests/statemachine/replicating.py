"""What the tests of replication begin with."""

from disque_trio.statemachine.base import Failure, NodeId
from disque_trio.statemachine.client import Blocked
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import Message, ReplJob
from tests.rig import Rig

GRAIN = 8
REMOVED = Failure(
    b"NOREPL job removed (expired?) before the requested replication level was achieved"
)


def waiting_job(rig: Rig, *options: bytes | str | int, timeout: int = 0) -> Job:
    """A job that somebody waits for."""
    rig.request("ADDJOB", "q", "body", timeout, *options)
    assert rig.client.blocked is Blocked.COPIES
    job = rig.client.pending_adds[-1].job
    assert job is not None
    return job


def repljobs(sent: list[tuple[NodeId, Message]]) -> list[tuple[NodeId, bool]]:
    """The nodes that were sent a copy, and whether no answer was wanted. Nothing else was sent."""
    found = []
    for to, message in sent:
        assert isinstance(message, ReplJob), message
        found.append((to, message.no_reply))
    return found


def leaving_rig(peers: int = 2) -> Rig:
    rig = Rig(peers=peers)
    rig.ask("CLUSTER", "LEAVING", "yes")
    return rig
