"""The cluster's heartbeat: when it comes next. What it does is in `membership`.

Hearts beat ten times a second (original 5.7), but a beat in which there is nothing to do is left
out: an idle node wakes twice a second, to ping somebody and to see the answer. What a beat may have
to react to rouses the heart, so nothing is done later than if it beat all the time.

Owns `Cron.runs`, which counts the beats that are left out, too.
"""

from typing import Final

from disque_trio.statemachine.base import Millis
from disque_trio.statemachine.state import Cron, NodeState

HEARTBEAT: Final[Millis] = 100


def beat(cron: Cron) -> int:
    """One more beat; how many there have been."""
    cron.runs += 1
    return cron.runs


def rest(node: NodeState, beats: int) -> None:
    """Let the next beat but so many be the next that is not left out."""
    cron = node.cron
    cron.runs += beats
    node.timers.arm(cron, node.mono + (beats + 1) * HEARTBEAT)


def rouse(node: NodeState) -> None:
    """Leave no beat out: something has changed. A heart that stands still, for the node is alone,
    begins to beat."""
    cron = node.cron
    if not cron.due:
        node.timers.arm(cron, node.mono + HEARTBEAT)
        return
    early = (cron.due - node.mono - 1) // HEARTBEAT
    if early > 0:
        cron.runs -= early
        node.timers.arm(cron, cron.due - early * HEARTBEAT)
