"""The options of `disque-trio doctor`."""

import attrs

from disque_trio.cli.frame import json_switch
from disque_trio.cli.options import NodeOptions
from disque_trio.client.address import Cluster
from disque_trio.terminal.options import FILE, option, seconds, switch


@attrs.frozen(kw_only=True)
class Options(NodeOptions):
    """The command line, read and checked."""

    config: str | None = option("--config", FILE, "check this configuration file")
    timeout_s: float = option("-t", seconds(0.001), "timeout for each reply", 3.0)
    is_json: bool = json_switch("findings as one JSON object")
    is_quiet: bool = switch(
        "--quiet", "print nothing, and check only one node: that of the options, or of this machine"
    )

    @property
    def own_node(self) -> Cluster:
        """The node of a health check: that of the options, or the one of this machine. $DISQUE_URL
        names nodes for clients, of which this machine may have one."""
        found = self._cluster_of(self.url)
        return attrs.evolve(found, seeds=found.seeds[:1])

    @property
    def has_node(self) -> bool:
        """Is a node asked? Otherwise only a file is looked at."""
        return self.is_node_named or self.config is None
