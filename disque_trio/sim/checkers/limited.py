"""What the judge knows of a queue with limits."""

import attrs

from disque_trio.sim.checkers.records import FOREVER, NEVER
from disque_trio.sim.scenarios.plan import Micros


@attrs.define(eq=False)
class Leased:
    """A node has given a lease of a job."""

    since: Micros
    until: Micros
    """It lasts until then at least."""
    until_at_most: Micros
    prolonged_until: Micros = NEVER
    """Likewise, by WORKING."""
    is_certain: bool = True
    """The node has heard of no other that has the job."""


@attrs.define(eq=False)
class Limited:
    """A queue with limits, and their use."""

    ordered_at: Micros
    """When they were set, or a node came that did not know them."""
    concurrency: int = 0
    rate: int = 0
    period: Micros = 0
    burst: int = 0
    is_loose: bool = False
    """May each side of a partition use the whole? Then they are judged in calm."""
    known_at: Micros = FOREVER
    """Since when all nodes know them, as far as is sure."""
    level: float = 0.0
    """How many jobs more than `rate` allows were delivered in any time until `level_at`."""
    level_at: Micros = 0
    leases: dict[tuple[str, str], Leased] = attrs.Factory(dict)
    """By node and job."""
    retry: Micros = 0
    """The longest RETRY of its jobs."""
    full_at: Micros = NEVER
    """When there was last no free lease, as far as the nodes may know."""
    served_at: Micros = NEVER
    """When a job was last delivered."""
    served: int = 0
    """How many jobs were delivered."""
    demand: tuple[Micros, Micros, int] = NEVER, NEVER, 0
    """Since when nothing but the rate has kept clients from jobs; when that was first seen, and
    `served` then."""
