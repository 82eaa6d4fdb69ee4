"""The driver's part in commands that are answered by way of a chore."""

from disque_trio.statemachine.chores import Chore
from tests.rig import Rig


def asked(rig: Rig) -> Chore:
    """The one chore that the last batch asks for, on behalf of the rig's client."""
    ((client, chore),) = rig.outboxes[-1].chores
    assert client is rig.client
    return chore


def done(rig: Rig, outcome: object) -> None:
    """The chore has this outcome."""
    rig.machine.done(rig.client, outcome, rig.now)
    rig.take()
