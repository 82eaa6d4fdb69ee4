"""The facts of a cluster from which answers are derived: its nodes and their settings."""

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
    """The number of nodes that answer."""
    silent: int = 0
    """The number of known nodes that do not answer. The default of REPLICATE counts them."""
    originals: int = 0
    """The number of answering nodes that cannot store jobs with options of disque_trio."""
    journal: str = NO_JOURNAL
    """The weakest of all nodes, of `JOURNALS`."""
    default_replicate: int = DEFAULTS.default_replicate
    """The default of REPLICATE, if the cluster has enough nodes: the smallest of any node."""
    default_sync: int = DEFAULTS.default_sync
    """The default of SYNC: the smallest of any node; 0 is all copies."""
    has_lease: bool = DEFAULTS.delivery_lease
    repair_s: int = DEFAULTS.replica_repair_after_s
    """replica-repair-after; 0 is never."""
    node_timeout_ms: int = 15_000
    """cluster-node-timeout."""
    zones: tuple[str, ...] = ()
    """`replica-zone` of each node that answers, empty for none; () if no node names any."""

    @property
    def zone_names(self) -> tuple[str, ...]:
        """Each zone once. All nodes without a zone are in one."""
        return tuple(sorted(set(self.zones)))
