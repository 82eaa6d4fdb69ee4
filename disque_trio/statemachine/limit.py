"""The limits of a queue, or of one of its groups: their setting, and their use (decisions 136 and
161).

`limiting` writes the fields about this node's deliveries, `keeping` those about its grants as
keeper; both write the timer. `counts` writes the leases of a group.
"""

from typing import Final

import attrs

from disque_trio.statemachine.base import LinkId, Millis, NodeId
from disque_trio.statemachine.timers import Timed

MOST_LIMITS: Final = 1000
"""The maximum number of queues with limits."""


@attrs.frozen
class Setting:
    """The limits of a queue."""

    epoch: Millis = 0
    """When it was set, in Unix milliseconds by the clock of the node that set it; later than the
    previous setting."""
    concurrency: int = 0
    """How many of its jobs may be leased at the same time; 0 is no limit."""
    rate: int = 0
    """How many jobs may be delivered in `period`; 0 is no limit."""
    period: Millis = 0
    burst: int = 0
    """How many of them may be delivered at once after a time without deliveries; 0 is the
    minimum."""
    is_loose: bool = False
    """May each side of a partition use the whole limits, instead of its part?"""
    # The limits of each group.
    group_concurrency: int = 0
    group_rate: int = 0
    group_period: Millis = 0
    group_burst: int = 0

    def is_after(self, other: "Setting") -> bool:
        """Does it supersede the other setting? The later epoch applies; if they are equal, the
        greater setting."""
        return attrs.astuple(self) > attrs.astuple(other)

    @property
    def is_set(self) -> bool:
        """Is there a limit?"""
        return self.is_of_queue or self.is_of_groups

    @property
    def is_of_queue(self) -> bool:
        """Is there a limit for all jobs of the queue together?"""
        return bool(self.concurrency or self.rate)

    @property
    def is_of_groups(self) -> bool:
        """Is there a limit for each group?"""
        return bool(self.group_concurrency or self.group_rate)

    @property
    def of_group(self) -> "Setting":
        """The limits of one group."""
        rate = self.group_rate, self.group_period, self.group_burst
        return Setting(self.epoch, self.group_concurrency, *rate, self.is_loose)


@attrs.define(eq=False, weakref_slot=False)
class Share:
    """The keeper's record of a node, including itself. `keeping` writes it."""

    number: int = 0
    """The number of its last report. With the link at that time, because a new process restarts at
    1."""
    link: LinkId = 0
    used: int = 0
    """The number of its running leases."""
    slots: int = 0
    """The maximum number of leases that it may have, by its report and later grants."""
    wanted: int = 0
    """How many more jobs it could deliver."""
    until: Millis = 0
    """How long `slots` and `used` count without a new report, because the node may have begun a
    lease just before."""
    reported_at: Millis = 0
    voted_until: Millis = 0
    """How long its part of the limits is assigned to this keeper."""


@attrs.define(eq=False, weakref_slot=False)
class Limit(Timed):
    """A queue with limits, or a group of one that has limits of groups."""

    name: bytes
    """The name of the queue."""
    setting: Setting
    group: bytes = b""
    """Empty for the queue as a whole."""
    leases: int = 0
    """For a group: the number of its leases that run here."""
    awaited: dict[bytes, Millis] = attrs.Factory(dict)
    """For a queue: the groups for which leases or tokens were requested, and until when the answer
    is awaited."""
    wanted_until: Millis = 0
    """For a group: how long clients are assumed to want its jobs, after a client last did."""
    known_at: Millis = 0
    """For a queue: when this setting was applied; its groups have no earlier history. For a group:
    when another node last claimed to be the keeper."""
    # This node's deliveries. `limiting` writes these fields.
    slots: int = 0
    """How many leases may run here at the same time."""
    tokens: int = 0
    """How many jobs this node may deliver."""
    slots_until: Millis = 0
    tokens_until: Millis = 0
    number: int = 0
    """The number of the last report."""
    asked_at: Millis = 0
    asked_before: Millis = 0
    """When the report before that was sent."""
    is_answered: bool = True
    """Has the keeper answered the last report?"""
    asked: int = 0
    """How many more deliveries were requested."""
    reported_leases: int = 0
    """How many leases were reported as running, or as possible with the tokens at hand."""
    reported: int = 0
    """How many leases were reported as used or usable."""
    missed: int = 0
    """How many jobs clients could have received since then: the queue waits for its limit."""
    retry: Millis = 0
    """The longest RETRY of the jobs that were delivered here, or reported by other nodes."""
    promised_to: NodeId = b""
    """The keeper to which this node's part is assigned; until `promised_until` to no other."""
    promised_until: Millis = 0
    # This node's grants as the keeper. `keeping` writes these fields.
    shares: dict[NodeId, Share] = attrs.Factory(dict)
    gained_at: Millis = 0
    """When it last gained a node's part from another keeper; 0 if it is not the keeper."""
    is_complete: bool = False
    """Since then, has each node reported, or have all grants of other keepers expired?"""
    part: int = 0
    """How many leases it could grant before the gain."""
    ceiling: int = 0
    """The limit of its grants until `is_complete`: `part`, or the leases in use at reporting nodes
    if they are more."""
    level: float = 0.0
    """The tokens in the bucket at time `level_at`."""
    level_at: Millis = 0
    poll: int = 0
    polled_at: Millis = 0
    """The time of the last poll; `poll` is its number."""
    woken_at: Millis = 0
    """When the queue last came into use."""
    fair: int = -1
    """The maximum number of leases per node if more are wanted than exist; otherwise -1."""
