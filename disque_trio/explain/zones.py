"""Zones (`replica-zone`): whether a cluster has enough, and whether a job is in enough. Pure.

The doctor, the console and `explain` use these texts.
"""

from collections.abc import Iterator, Sequence

import attrs

from disque_trio.terminal.counting import counted


@attrs.frozen(kw_only=True)
class Place:
    """A node, and what fails together with it."""

    where: str
    """Its name for people."""
    id: str = ""
    host: str = ""
    zone: str = ""
    """Empty if it names none."""
    replicate: int = 0
    """Its default-replicate."""


@attrs.frozen
class Lack:
    """A shortcoming of a cluster, and advice."""

    subject: str
    what: str
    advice: str


def lacks(ours: Sequence[Place], answering: int) -> Iterator[Lack]:
    """What is wrong where fewer zones are reached than a job has copies. `ours` are the nodes that
    answer, without original servers; `answering` counts these, too."""
    zones = {node.zone for node in ours if node.zone}
    if not zones:
        return
    if nameless := [node.where for node in ours if not node.zone]:
        yield Lack(
            ", ".join(nameless),
            "has no zone, although others do; all nodes without a zone count as one",
            "set replica-zone on each node",
        )
    count = len(zones) + (1 if nameless else 0)
    copies = min(max(node.replicate for node in ours), answering)
    if count < copies:
        yield Lack(
            "the cluster",
            f"a job has {copies} copies by default, and the nodes that answer are in "
            f"{counted(count, 'zone')}: {', '.join(sorted(zones))}",
            "a zone holds several copies of each job, which are lost together if it fails: start "
            "nodes in other zones, or find out why those there do not answer"
            if count > 1
            else "if the zone fails, all copies are lost: start nodes in other zones, or find out "
            "why those there do not answer",
        )


def spread(held: Sequence[str], reached: Sequence[str]) -> tuple[bool, str]:
    """In which zones the copies of a job are: is that well, and a sentence; empty if no node names
    a zone. `held` has the zone of each copy, `reached` that of each node that answers."""
    if not held or not any((*held, *reached)):
        return True, ""
    its, further = set(held), sorted(set(reached) - set(held))
    copies = "its copy is" if len(held) == 1 else f"its {counted(len(held), 'copy', 'copies')} are"
    text = f"{copies} in {listed(its)}"
    if len(its) == len(held):
        return True, text
    if further:
        return False, f"{text}, although nodes in {listed(set(further))} answer"
    if len(its) == 1:
        return False, f"{text}: if it fails, all are lost"
    return True, text


def listed(zones: set[str]) -> str:
    """Such as `zone a, zone b`."""
    return ", ".join(spelled(zone) for zone in sorted(zones))


def spelled(zone: str) -> str:
    """Such as `zone a`."""
    return f"zone {zone}" if zone else "no zone"
