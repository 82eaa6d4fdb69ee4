"""Reports which nodes hold a job, and why they were selected. Pure.

The node that receives the ADDJOB keeps a copy; the others are selected by the rule of docs/bus.md,
"Addresses and zones".
"""

from collections import Counter
from collections.abc import Container, Mapping, Sequence

import attrs

from disque_trio.client.records import JobDetails
from disque_trio.explain.zones import Place, listed, spelled


@attrs.frozen(kw_only=True)
class Holder:
    """A node that has the job, or may have it."""

    node: str
    """The name to display."""
    zone: str
    """Empty if it has none."""
    state: str
    """The state of its copy, such as `queued`; `none` without a copy, `unknown` without an
    answer."""
    why: str
    """Why this node was selected."""

    @property
    def is_confirmed(self) -> bool:
        """Has it reported a copy?"""
        return self.state not in {"none", "unknown"}


def holders_of(
    id: str, details: Mapping[str, JobDetails], nodes: Sequence[Place], silent: Container[str]
) -> tuple[Holder, ...]:
    """Return the nodes that have the job or may have it. `details` has the replies to SHOW, by id
    of the node; `nodes` are all known nodes; `silent` has the ids of those that did not answer."""
    known = {each.id: each for each in nodes}
    ids = max((each.nodes_delivered for each in details.values()), key=len, default=())
    order = dict.fromkeys((*ids, *details))
    holders = [known.get(each) or Place(where=each[:8], id=each) for each in order]
    found = []
    for holder, why in zip(holders, reasons(id, holders, nodes), strict=True):
        state = details[holder.id].state if holder.id in details else "none"
        if state == "none" and (holder.id in silent or holder.id not in known):
            state = "unknown"
        found.append(Holder(node=holder.where, zone=holder.zone, state=state, why=why))
    return tuple(found)


def reasons(job: str, holders: Sequence[Place], nodes: Sequence[Place]) -> list[str]:
    """Return why each holder was selected, by the rule of docs/bus.md, "Addresses and zones". The
    holders are in the order of selection; `nodes` are all nodes that are known now."""
    return [
        "it received the ADDJOB"
        if holder.id and holder.id.startswith(job.split("-")[1])
        else _reason(holder, holders[:number], nodes)
        for number, holder in enumerate(holders)
    ]


def _reason(holder: Place, before: Sequence[Place], nodes: Sequence[Place]) -> str:
    taken = {holder.id, *(each.id for each in before)}
    left = [each for each in nodes if each.id not in taken]
    if any(each.zone for each in nodes):
        return _of_zone(holder, before, left)
    hosts = {each.host for each in nodes}
    if 1 < len(hosts) < len(nodes):
        return _of_host(holder, before)
    return "selected at random from the reachable nodes" if left else "all nodes get a replica"


def _of_zone(holder: Place, before: Sequence[Place], left: Sequence[Place]) -> str:
    counts = Counter(each.zone for each in before)
    if not counts[holder.zone]:
        return f"the first in {spelled(holder.zone)}"
    fewer = {each.zone for each in left if counts[each.zone] < counts[holder.zone]}
    if fewer:
        return (
            f"one more in {spelled(holder.zone)}: the nodes in {listed(fewer)} could not be "
            "reached, or cannot hold the job"
        )
    return f"one more in {spelled(holder.zone)}: there is no node in a zone with fewer replicas"


def _of_host(holder: Place, before: Sequence[Place]) -> str:
    if any(each.host == holder.host for each in before):
        return f"one more at address {holder.host}: no node names a zone"
    return f"the first at address {holder.host}: no node names a zone"
