"""Are the nodes that answer in enough zones for the copies of a job?"""

from collections.abc import Iterator

from disque_trio.cli.doctor.findings import Finding, warning
from disque_trio.cli.doctor.nodes import NodeFacts


def judge(well: list[NodeFacts]) -> Iterator[Finding]:
    """A warning where fewer zones are reached than a job has copies. Pure."""
    ours = [node for node in well if node.is_ours]
    zones = {zone for node in ours if (zone := node.info.get("replica_zone"))}
    if not zones:
        return
    if nameless := [node.where for node in ours if not node.info.get("replica_zone")]:
        yield warning(
            ", ".join(nameless),
            "names no zone, although others do; nodes without one count as one zone",
            "set replica-zone on each node",
        )
    places = len(zones) + (1 if nameless else 0)
    wanted = max((int(node.config.get("default-replicate", 0)) for node in ours), default=0)
    copies = min(wanted, len(well))
    if places < copies:
        named = ", ".join(sorted(zones))
        yield warning(
            "the cluster",
            f"a job has {copies} copies by default, and the nodes that answer are in "
            f"{places} zone{'s' if places > 1 else ''}: {named}",
            "some zone holds several copies of each job, and its loss takes them together: start "
            "nodes in other zones, or see why those there do not answer"
            if places > 1
            else "the loss of the zone takes all copies: start nodes in other zones, or see why "
            "those there do not answer",
        )
