"""What the judge knows of a NACK or RELEASE that lets a job wait."""

import attrs

from disque_trio.sim.scenarios.plan import Micros


@attrs.define(eq=False)
class Wait:
    """A NACK or RELEASE that lets the job wait."""

    time: Micros
    node: str
    until: Micros
    """Nobody who knows of it queues the job before."""
    unlinked: dict[str, None] = attrs.Factory(dict)
    """Holders to which its node may have had no link then."""
    counted: dict[str, None] = attrs.Factory(dict)
    """Holders that it told as it tells an original, by QUEUED and WORKING."""
    ended: dict[str, Micros] = attrs.Factory(dict)
    """By node: when a worker that goes on was last answered there, or when it heard of a NACK
    without a delay."""
    answered_at: Micros | None = None
    """When its client was told so."""
    asked: dict[str, dict[str, Micros]] = attrs.Factory(dict)
    """By node that was about to queue it: who knew of the wait and was warned, and when."""


@attrs.define(eq=False)
class Failures:
    """What a node knows of the errors of a job."""

    back_at: Micros = -1
    """When it last took the job back from a NACK,"""
    wall: int = 0
    """and what its wall clock showed then."""
    at: int = 0
    """The time of an error that it knows: what it shows is no older;"""
    since: Micros = -1
    """and since when it knows that."""


@attrs.define(eq=False)
class Snoozes:
    """How often RELEASE has let a job wait."""

    total: int = 0
    totals: dict[int, int] = attrs.Factory(dict)
    """The same by how often the job had been redriven."""
    known: dict[str, tuple[int, Micros]] = attrs.Factory(dict)
    """By node: how many it counts at least, and since when."""
    in_transit: dict[tuple[str, str], int] = attrs.Factory(dict)
    """By giver and receiver: how many a copy under way tells of."""
    served: dict[tuple[Micros, str, str], tuple[int, int]] = attrs.Factory(dict)
    """By serve: how many its node counted at least, and at most."""


@attrs.define(eq=False)
class Held:
    """The last delivery of a job at a node, to a worker that may hold it."""

    time: Micros
    client: str
    is_held: bool | None = None
    """None until the reply has come."""
    asked: dict[int, None] = attrs.Factory(dict)
    """The numbers of the worker's BEGINs."""
    has_begun: bool = False
    is_doubtful: bool = False
    """Its node has heard of the job since, so the delivery may be over."""
