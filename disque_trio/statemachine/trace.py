"""Writing down what becomes of jobs, for whoever traces the node. Owns `NodeState.trace`.

A node that nobody traces pays one look at a field for each event.
"""

from disque_trio.statemachine.base import ClientId, NodeId
from disque_trio.statemachine.events import Cause, Event, Kind
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.state import NodeState


def note(
    node: NodeState,
    kind: Kind,
    job: Job,
    cause: Cause,
    *,
    client: ClientId = 0,
    peer: NodeId = b"",
) -> None:
    """Write it down, if the node is traced."""
    if node.trace is not None:
        node.trace.append(Event(kind, job.id, job.queue or b"", cause, client, peer))
