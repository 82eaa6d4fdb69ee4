"""Records of workers that run the engine of the worker library (see `runs`)."""

import attrs

from disque_trio.sim.checkers.records import FOREVER, NEVER
from disque_trio.sim.scenarios.plan import Consumer, Micros


@attrs.define(eq=False)
class Delivery:
    """A job that a worker has in hand."""

    base: Micros
    """The latest time at which its lease began, as far as the worker can know."""
    asked_at: Micros
    """When the worker last asked for a renewal."""
    came_at: Micros
    """When it was delivered."""
    node: str
    """The node that delivered it."""
    is_held: bool = True
    """It was delivered, and has neither begun nor been dropped."""
    is_lost: bool = False
    """The worker does not renew it any more: a node refused that, or the lease has expired."""
    outcome: str = ""
    """The outcome of its last run."""
    additional: int = 0
    """Additional deliveries in the worker's record: if there are any, it is a suspect
    (`trials`)."""
    is_once: bool = False
    """Its RETRY is 0."""
    began_at: Micros = NEVER
    """When its last run began."""
    trial_until: Micros = NEVER
    """It must run alone until this time."""
    is_leaving: bool = False
    """The worker has returned it, and no node has confirmed that."""
    ended_at: Micros = NEVER
    wait_until: Micros = NEVER
    """The end of the delay after its last failed run. `ended_at`: when that run ended (W13)."""
    is_untold: bool = False
    """The worker has returned it, and no node has replied (W14)."""
    asks: dict[int, Micros] = attrs.Factory(dict)
    """By number: when a WORKING without a reply was invoked."""


@attrs.define(eq=False)
class Process:
    """The process of a worker."""

    plan: Consumer
    started_at: Micros = NEVER
    is_up: bool = False
    stop_at: Micros = FOREVER
    """When it was ordered to stop."""
    stalled_at: Micros = NEVER
    """When it was last stalled or resumed."""
    is_stalled: bool = False
    free_since: Micros = NEVER
    """Since when it runs fewer jobs than it may; FOREVER if it does not."""
    trial_over_at: Micros = NEVER
    """When it last ran a suspect alone."""
    moved: dict[str, int] = attrs.Factory(dict)
    """By queue: the number of jobs that it has added there and not yet acknowledged at their origin
    (W1)."""
    deliveries: dict[str, Delivery] = attrs.Factory(dict)
    runs: dict[str, bool] = attrs.Factory(dict)
    """By running job: has its handler been cancelled?"""
