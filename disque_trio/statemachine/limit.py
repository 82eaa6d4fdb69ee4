"""The limits of a queue, or of one of its groups: their setting, and what a node knows of their use
(decisions 136 and 161).

`limiting` writes what a node may deliver, `keeping` what it grants as keeper; both write the timer.
`counts` writes which leases of a group run.
"""

from typing import Final

import attrs

from disque_trio.statemachine.base import LinkId, Millis, NodeId
from disque_trio.statemachine.timers import Timed

MOST_LIMITS: Final = 1000
"""Queues with limits that a node keeps."""


@attrs.frozen
class Setting:
    """The limits of a queue."""

    epoch: Millis = 0
    """When it was set, in Unix milliseconds by the clock of that node; later than the one
    before."""
    concurrency: int = 0
    """How many of its jobs may be leased at the same time; 0 is any number."""
    rate: int = 0
    """How many may be delivered in `period`; 0 is any number."""
    period: Millis = 0
    burst: int = 0
    """How many of them may be delivered at once after a pause; 0 is as few as possible."""
    is_loose: bool = False
    """May each side of a partition use the whole, and not only its part?"""
    # The same of each group.
    group_concurrency: int = 0
    group_rate: int = 0
    group_period: Millis = 0
    group_burst: int = 0

    def is_after(self, other: "Setting") -> bool:
        """Does it hold in place of the other one? The one with the latest epoch holds, and of two
        with the same one the greater."""
        return attrs.astuple(self) > attrs.astuple(other)

    @property
    def is_set(self) -> bool:
        """Is there a limit?"""
        return self.is_of_queue or self.is_of_groups

    @property
    def is_of_queue(self) -> bool:
        """Is there one of all jobs together?"""
        return bool(self.concurrency or self.rate)

    @property
    def is_of_groups(self) -> bool:
        """Is there one of each group?"""
        return bool(self.group_concurrency or self.group_rate)

    @property
    def of_group(self) -> "Setting":
        """The limits of one group."""
        rate = self.group_rate, self.group_period, self.group_burst
        return Setting(self.epoch, self.group_concurrency, *rate, self.is_loose)


@attrs.define(eq=False, weakref_slot=False)
class Share:
    """What the keeper of a queue knows of a node, itself included. `keeping` writes it."""

    number: int = 0
    """Of its last report, and the link to the node then: a new process begins again with 1."""
    link: LinkId = 0
    used: int = 0
    """How many leases it has given that run."""
    slots: int = 0
    """How many it may have at most, by its report and by what it was granted since."""
    wanted: int = 0
    """How many more it could deliver."""
    until: Millis = 0
    """How long that counts if nothing is heard of it: it may have given a lease just before."""
    reported_at: Millis = 0
    voted_until: Millis = 0
    """How long its part of the limit is granted here."""


@attrs.define(eq=False, weakref_slot=False)
class Limit(Timed):
    """A queue with limits, or a group of one that has limits of groups."""

    name: bytes
    """Of the queue."""
    setting: Setting
    group: bytes = b""
    """Empty for the queue as a whole."""
    leases: int = 0
    """Of a group: how many of its leases run here."""
    awaited: dict[bytes, Millis] = attrs.Factory(dict)
    """Of a queue: the groups whose leases or tokens have been asked for, and until when the answer
    is awaited."""
    wanted_until: Millis = 0
    """Of a group: how long clients are taken to want its jobs since one last did."""
    known_at: Millis = 0
    """Of a queue: since when its groups may leave their parts to keepers. Of a group: when another
    node last took itself for the keeper."""
    # What this node may deliver. `limiting` writes it.
    slots: int = 0
    """How many leases it may have given at the same time."""
    tokens: int = 0
    """How many jobs it may deliver."""
    slots_until: Millis = 0
    tokens_until: Millis = 0
    number: int = 0
    """Of the last report."""
    asked_at: Millis = 0
    asked_before: Millis = 0
    """When the report before that was sent."""
    is_answered: bool = True
    """Has the keeper answered the last report?"""
    asked: int = 0
    """How many more deliveries it has asked for."""
    used: int = 0
    """How many leases the last report said that run here, or may at once."""
    reported: int = 0
    """How many leases it has said that it uses, or may use."""
    missed: int = 0
    """How many jobs clients could have got since: the queue waits for its limit."""
    retry: Millis = 0
    """The longest RETRY of the jobs that were delivered here lately."""
    promised_to: NodeId = b""
    """Which keeper may grant the part of this node, and until when no other."""
    promised_until: Millis = 0
    # What it grants as keeper. `keeping` writes it.
    shares: dict[NodeId, Share] = attrs.Factory(dict)
    gained_at: Millis = 0
    """When it was last left the part of a node that another keeper had before; 0 if it is not the
    keeper."""
    is_complete: bool = False
    """Has each node reported since, or has everything expired that others had granted?"""
    part: int = 0
    """How many leases it could grant before that."""
    ceiling: int = 0
    """Until it is complete: that, or the most leases in use at the nodes that report if it is
    more."""
    level: float = 0.0
    """The tokens in the bucket, and when that was computed."""
    level_at: Millis = 0
    poll: int = 0
    polled_at: Millis = 0
    """The last poll, and when it was sent."""
    woken_at: Millis = 0
    """When the queue came into use again."""
    fair: int = -1
    """If more leases are wanted than there are: how many each node may have; else -1."""
