"""Too few zones for the copies of a job."""

from disque_trio.observe.cluster import NodeFacts
from disque_trio.observe.finding import Level
from disque_trio.observe.node_checks import zones_of as judge
from tests.observe.clusters import node


def nodes(*zones: str, replicate: int = 3) -> list[NodeFacts]:
    config = {"default-replicate": str(replicate)}
    return [
        node(f"n{number}", info={"replica_zone": zone}, config=config)
        for number, zone in enumerate(zones, 1)
    ]


def test_nodes_without_zones_are_not_judged() -> None:
    assert list(judge(nodes("", "", ""))) == []


def test_a_zone_for_each_copy_is_enough() -> None:
    assert list(judge(nodes("a", "b", "c"))) == []
    assert list(judge(nodes("a", "b", "a", replicate=2))) == []
    assert list(judge(nodes("a", "b"))) == [], "there are two nodes for copies"


def test_fewer_zones_than_copies_are_a_warning() -> None:
    (finding,) = judge(nodes("a", "b", "b"))

    assert finding.level is Level.WARNING
    assert finding.what == (
        "a job has 3 copies by default, and the nodes that answer are in 2 zones: a, b"
    )
    assert "a zone holds several copies of each job" in finding.advice


def test_one_zone_takes_all_copies_with_it() -> None:
    (finding,) = judge(nodes("a", "a", replicate=2))

    assert finding.what.endswith("are in 1 zone: a")
    assert "if the zone fails, all copies are lost" in finding.advice


def test_a_node_that_names_no_zone_is_told_of() -> None:
    (nameless,) = judge(nodes("a", "b", ""))

    assert "has no zone, although others do" in nameless.what
