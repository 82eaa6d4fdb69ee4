"""Records of workers that run the worker library's engine (see `runs`)."""

import attrs

from disque_trio.sim.checkers.records import FOREVER, NEVER
from disque_trio.sim.scenarios.plan import Consumer, Micros


@attrs.define(eq=False)
class Delivery:
    """A job that a worker has in hand."""

    base: Micros
    """When its lease began at the latest, as far as the worker can know."""
    asked_at: Micros
    """When the worker last asked for more time."""
    came_at: Micros
    """When it was delivered."""
    is_held: bool = True
    """Delivered, and neither begun nor dropped since."""
    is_lost: bool = False
    """No more time is asked for: a node has refused it, or the lease is over."""
    outcome: str = ""
    """How its last run has ended."""
    additional: int = 0
    """Additional deliveries, as the worker knows them: with any, it is a suspect (`trials`)."""
    is_once: bool = False
    """RETRY 0."""
    began_at: Micros = NEVER
    """When its last run began."""
    trial_until: Micros = NEVER
    """Until when it has to be alone."""
    is_leaving: bool = False
    """It is given back, and no node has confirmed that."""
    ended_at: Micros = NEVER
    wait_until: Micros = NEVER
    """When its last run has ended as a failure; and until when it is to wait (W13)."""
    is_untold: bool = False
    """It was given back, and no node has answered (W14)."""
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
    """When it was last stopped, or has continued."""
    is_stalled: bool = False
    free_since: Micros = NEVER
    """Since when it runs fewer jobs than it may; FOREVER while it does not."""
    trial_over_at: Micros = NEVER
    """When it last kept a suspect apart."""
    moved: dict[str, int] = attrs.Factory(dict)
    """By queue: jobs that it added there and has not acknowledged yet where they were (W1)."""
    deliveries: dict[str, Delivery] = attrs.Factory(dict)
    runs: dict[str, bool] = attrs.Factory(dict)
    """By job that runs: has its handler been cancelled?"""
