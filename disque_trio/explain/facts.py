"""The facts of a cluster from which answers are made: its nodes, and what they keep."""

from typing import Final

import attrs

from disque_trio.statemachine.config import Config

DEFAULTS: Final = Config()
NO_JOURNAL: Final = "none"
JOURNALS: Final = (NO_JOURNAL, "no", "everysec", "always")
"""From weak to strong: no append-only file, then the policies of appendfsync."""


@attrs.frozen(kw_only=True)
class Facts:
    """A cluster."""

    nodes: int
    """How many answer."""
    silent: int = 0
    """How many further nodes are known, and do not answer. The default of REPLICATE counts them."""
    originals: int = 0
    """How many of those that answer cannot keep a job with options that the original lacks."""
    journal: str = NO_JOURNAL
    """The weakest of all nodes, of `JOURNALS`."""
    default_replicate: int = DEFAULTS.default_replicate
    """REPLICATE of an ADDJOB without one, if there are so many nodes: the smallest of any node."""
    default_sync: int = DEFAULTS.default_sync
    """SYNC of an ADDJOB without one: the smallest of any node; 0 is all copies."""
    has_lease: bool = DEFAULTS.delivery_lease
    repair_s: int = DEFAULTS.replica_repair_after_s
    """replica-repair-after; 0 is never."""
    node_timeout_ms: int = 15_000
    """cluster-node-timeout."""
    zones: tuple[str, ...] = ()
    """`replica-zone` of each node that answers, empty for none; () if no node names any."""

    @property
    def zone_names(self) -> tuple[str, ...]:
        """Each zone once. The nodes that name none are in one."""
        return tuple(sorted(set(self.zones)))
