"""The timer of the cluster's heartbeat: when it comes next. What it does is in `membership`.

There are ten heartbeats a second (original 5.7), but those in which there is nothing to do are
skipped: an idle node wakes twice a second, to ping a node and to check the answer. Every change
that a heartbeat has to react to calls `rouse`, which ends the skipping, so nothing is done later
than without it.

Owns `Cron.runs`, which counts skipped heartbeats, too.
"""

from typing import Final

from disque_trio.statemachine.base import Millis
from disque_trio.statemachine.state import Cron, NodeState

HEARTBEAT: Final[Millis] = 100


def beat(cron: Cron) -> int:
    """Count one more heartbeat. Returns how many there have been."""
    cron.runs += 1
    return cron.runs


def rest(node: NodeState, beats: int) -> None:
    """Skip the next `beats` heartbeats."""
    cron = node.cron
    cron.runs += beats
    node.timers.arm(cron, node.mono + (beats + 1) * HEARTBEAT)


def rouse(node: NodeState) -> None:
    """Something has changed: end the skipping. A heartbeat that was stopped, because the node was
    alone, starts again."""
    cron = node.cron
    if not cron.due:
        node.timers.arm(cron, node.mono + HEARTBEAT)
        return
    early = (cron.due - node.mono - 1) // HEARTBEAT
    if early > 0:
        cron.runs -= early
        node.timers.arm(cron, cron.due - early * HEARTBEAT)
