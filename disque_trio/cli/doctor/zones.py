"""Are the nodes that answer in enough zones for the copies of a job?"""

from collections.abc import Iterator

from disque_trio.cli.doctor.findings import Finding, warning
from disque_trio.cli.doctor.nodes import NodeFacts
from disque_trio.explain.zones import Place, lacks


def judge(well: list[NodeFacts]) -> Iterator[Finding]:
    """A warning where fewer zones are reached than a job has copies. Pure."""
    ours = [
        Place(
            where=node.where,
            zone=node.info.get("replica_zone", ""),
            replicate=int(node.config.get("default-replicate", 0)),
        )
        for node in well
        if node.is_ours
    ]
    for lack in lacks(ours, len(well)):
        yield warning(lack.subject, lack.what, lack.advice)
