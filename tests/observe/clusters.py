"""Answers of nodes, as the doctor gets them."""

import attrs

from disque_trio.observe.cluster import NodeFacts, PeerLine
from disque_trio.observe.finding import Finding, Level
from disque_trio.observe.node_checks import judge


def line(name: str, *flags: str, is_connected: bool = True) -> PeerLine:
    words = frozenset(flags or ("noflags",))
    return PeerLine(name, "10.0.0.1", 7710 + int(name[1:]), words, is_connected)


def node(name: str, *peers: PeerLine, **changes: object) -> NodeFacts:
    """A node that is well, but for the changes."""
    info = {"disque_version": "1.0", "python_version": "CPython", "aof_enabled": "1"}
    well = NodeFacts(
        where=line(name).address,
        name=name,
        id=name,
        info=info,
        config={"maxmemory": str(1 << 30), "maxclients": "1000", "bind": "127.0.0.1"},
        peers=peers,
    )
    told = changes.pop("info", {})
    assert isinstance(told, dict)
    return attrs.evolve(well, info=info | told, **changes)  # type: ignore[arg-type]


def cluster(**changes: object) -> list[NodeFacts]:
    """Three nodes; the changes are of the first."""
    names = ("n1", "n2", "n3")
    others = {name: [line(each) for each in names if each != name] for name in names}
    return [
        node("n1", *others["n1"], **changes),
        node("n2", *others["n2"]),
        node("n3", *others["n3"]),
    ]


def said(nodes: list[NodeFacts]) -> list[tuple[Level, str]]:
    return [(finding.level, finding.what) for finding in judge(nodes)]


def the_one(nodes: list[NodeFacts]) -> Finding:
    (finding,) = judge(nodes)
    return finding
