"""Zones, in the words of the doctor, the console and `explain`."""

import pytest

from disque_trio.explain.zones import Place, lacks, spread


@pytest.mark.parametrize(
    ("held", "reached", "is_well", "text"),
    [
        ("", "", True, ""),
        ("abc", "abc", True, "its 3 copies are in zone a, zone b, zone c"),
        ("a", "ab", True, "its copy is in zone a"),
        ("aba", "aba", True, "its 3 copies are in zone a, zone b"),
        ("aa", "aa", False, "its 2 copies are in zone a: if it fails, all are lost"),
        (
            "aa",
            "aabc",
            False,
            "its 2 copies are in zone a, although nodes in zone b, zone c answer",
        ),
        (
            "aab",
            "abc",
            False,
            "its 3 copies are in zone a, zone b, although nodes in zone c answer",
        ),
    ],
)
def test_a_job_says_in_which_zones_it_is(held: str, reached: str, is_well: bool, text: str) -> None:
    assert spread(list(held), list(reached)) == (is_well, text)


def test_nodes_that_name_no_zone_are_in_none() -> None:
    assert spread(["", "a"], ["", "a"]) == (True, "its 2 copies are in no zone, zone a")
    assert spread(["", ""], ["", ""]) == (True, "")


def test_nodes_without_a_zone_count_as_one_zone() -> None:
    nodes = [Place(where=f"n{zone}", zone=zone, replicate=3) for zone in ("a", "", "")]
    nameless, few = lacks(nodes, 3)

    assert nameless.subject == "n, n"
    assert few.what.endswith("are in 2 zones: a")


def test_a_cluster_of_original_servers_lacks_nothing() -> None:
    assert list(lacks([], 3)) == []
