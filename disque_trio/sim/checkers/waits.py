"""What the judge knows of a NACK that lets a job wait."""

import attrs

from disque_trio.sim.scenarios.plan import Micros


@attrs.define(eq=False)
class Wait:
    """A NACK that lets the job wait."""

    time: Micros
    node: str
    until: Micros
    """Nobody who knows of it queues the job before."""
    is_answered: bool = False
    """Its client has been told so."""
    asked: dict[str, dict[str, Micros]] = attrs.Factory(dict)
    """By node that was about to queue it: who knew of the wait and was warned, and when."""
