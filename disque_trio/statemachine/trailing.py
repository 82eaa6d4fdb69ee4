"""Copies that follow in the background, after SYNC of them have been confirmed (decision 111).

The ADDJOB has been answered by then. `repair` comes back for a job whose other copies have not been
confirmed in time, and asks other nodes. Adds to `Repair.trailing`.
"""

from typing import Final

from disque_trio.statemachine.base import Millis
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.state import NodeState

PATIENCE: Final[Millis] = 1000
"""How long the nodes that were sent copies may take to confirm them."""


def begin(node: NodeState, job: Job) -> None:
    """The rest of the job's copies is awaited from now on, and no client waits for them."""
    repair = node.repair
    repair.trailing[job.id] = node.mono + PATIENCE
    if not repair.due:
        node.timers.arm(repair, node.mono + PATIENCE)
