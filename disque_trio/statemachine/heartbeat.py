"""The timer of the cluster's heartbeat. `membership` has the work of a heartbeat.

There are ten heartbeats per second (original 5.7), but those without work are skipped: an idle node
wakes twice per second, to ping a node and to check the answer. Every change that needs a heartbeat
calls `rouse`, which ends the skipping, so skipping delays nothing.

Owns `Cron.runs`, which counts skipped heartbeats, too.
"""

from typing import Final

from disque_trio.statemachine.base import Millis
from disque_trio.statemachine.state import Cron, NodeState

HEARTBEAT: Final[Millis] = 100


def beat(cron: Cron) -> int:
    """Count one heartbeat. Returns their number so far."""
    cron.runs += 1
    return cron.runs


def rest(node: NodeState, beats: int) -> None:
    """Skip the next `beats` heartbeats."""
    cron = node.cron
    cron.runs += beats
    node.timers.arm(cron, node.mono + (beats + 1) * HEARTBEAT)


def rouse(node: NodeState) -> None:
    """End the skipping of heartbeats after a change. Also restarts the heartbeat, which stops while
    the node is alone."""
    cron = node.cron
    if not cron.due:
        node.timers.arm(cron, node.mono + HEARTBEAT)
        return
    early = (cron.due - node.mono - 1) // HEARTBEAT
    if early > 0:
        cron.runs -= early
        node.timers.arm(cron, cron.due - early * HEARTBEAT)
