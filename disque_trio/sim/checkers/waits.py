"""Records of delays by NACK or RELEASE, of errors, snoozes and held jobs."""

import attrs

from disque_trio.sim.scenarios.plan import Micros


@attrs.define(eq=False)
class Wait:
    """A NACK or RELEASE that delays the job."""

    time: Micros
    node: str
    until: Micros
    """No node that knows the delay queues the job before this time."""
    unlinked: dict[str, None] = attrs.Factory(dict)
    """Holders to which its node may have had no link at that time."""
    counted: dict[str, None] = attrs.Factory(dict)
    """Holders that received the NACK in the form for original nodes (QUEUED and WORKING)."""
    ended: dict[str, Micros] = attrs.Factory(dict)
    """By node: when it last confirmed a WORKING, or received a NACK without a delay."""
    answered_at: Micros | None = None
    """When its client received the reply."""
    asked: dict[str, dict[str, Micros]] = attrs.Factory(dict)
    """By node that was about to queue the job: the nodes that knew the delay and received its
    WILLQUEUE, and when."""


@attrs.define(eq=False)
class Failures:
    """A node's record of the errors of a job."""

    back_at: Micros = -1
    """When it last received a NACK of the job."""
    wall: int = 0
    """Its wall clock at that time."""
    at: int = 0
    """The time of the latest error in its record: it shows no older one."""
    since: Micros = -1
    """When it recorded that error."""


@attrs.define(eq=False)
class Snoozes:
    """How often RELEASE has delayed the job."""

    total: int = 0
    totals: dict[int, int] = attrs.Factory(dict)
    """By number of redrives: the same count."""
    known: dict[str, tuple[int, Micros]] = attrs.Factory(dict)
    """By node: the lowest possible count, and since when."""
    in_transit: dict[tuple[str, str], int] = attrs.Factory(dict)
    """By sender and receiver: the count in a copy in transit."""
    served: dict[tuple[Micros, str, str], tuple[int, int]] = attrs.Factory(dict)
    """By serve: the lowest and the highest possible count of its node."""


@attrs.define(eq=False)
class Held:
    """The last delivery of a job at a node, to a worker that may hold it."""

    time: Micros
    client: str
    is_held: bool | None = None
    """None until the reply has arrived."""
    asked: dict[int, None] = attrs.Factory(dict)
    """The numbers of the worker's BEGINs."""
    has_begun: bool = False
    is_doubtful: bool = False
    """Its node has received a message about the job since, which may have ended the delivery."""
