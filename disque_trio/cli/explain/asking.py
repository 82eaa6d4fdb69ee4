"""Asks a running cluster for the facts of which a report is made."""

from disque_trio.cli.doctor.nodes import NodeFacts, survey
from disque_trio.cli.explain.options import Options
from disque_trio.cli.frame import UsageError
from disque_trio.explain.facts import DEFAULTS, JOURNALS, NO_JOURNAL, Facts

_TIMEOUT_S = 3.0


def facts_of(options: Options) -> Facts:
    """Ask every node of the cluster. Raises UsageError if the first one does not answer."""
    nodes = survey(options.address, options.password, _TIMEOUT_S)
    if nodes[0].error:
        raise UsageError(f"{nodes[0].where}: {nodes[0].error} ({nodes[0].advice})")
    return from_nodes(nodes)


def from_nodes(nodes: list[NodeFacts]) -> Facts:
    """The facts of a cluster: of what its nodes keep, that of the weakest."""
    well = [node for node in nodes if not node.error]
    ours = [node for node in well if node.is_ours]
    return Facts(
        nodes=len(well),
        silent=len(nodes) - len(well),
        originals=len(well) - len([node for node in ours if _keeps_extensions(node)]),
        journal=min((_journal(node) for node in well), key=JOURNALS.index),
        has_lease=all(node.config.get("delivery-lease", "yes") == "yes" for node in ours)
        and len(ours) == len(well),
        repair_s=_repair_s(ours),
        node_timeout_ms=max(int(node.config.get("cluster-node-timeout", "15000")) for node in well),
    )


def _keeps_extensions(node: NodeFacts) -> bool:
    is_framed = node.config.get("aof-format", "framed") == "framed"
    return is_framed or node.config.get("appendonly") != "yes"


def _journal(node: NodeFacts) -> str:
    if node.config.get("appendonly") != "yes":
        return NO_JOURNAL
    return node.config.get("appendfsync", DEFAULTS.appendfsync)


def _repair_s(ours: list[NodeFacts]) -> int:
    """The longest, or 0 if any node does not repair."""
    default = str(DEFAULTS.replica_repair_after_s)
    spans = [int(node.config.get("replica-repair-after", default)) for node in ours]
    return max(spans, default=0) if all(spans) else 0
