import pytest

from disque_trio.explain.facts import Facts
from disque_trio.explain.families import BY_NAME
from disque_trio.explain.trials import plan_of, run, scaled
from tests.explain.sweep import job

FACTS = Facts(nodes=3, journal="always")
ASKED = job("DELAY 600 RETRY 900 TTL 7200", FACTS)


def test_a_trial_is_repeated_by_its_seed() -> None:
    request = job("", FACTS)

    assert run("one-killed", request, FACTS, 7) == run("one-killed", request, FACTS, 7)


def test_long_times_are_divided() -> None:
    shorter, factor = scaled(ASKED)

    assert factor == 3
    assert (shorter.delay, shorter.retry, shorter.ttl) == (200_000, 300, 2400)


def test_a_plan_has_the_directives_of_the_cluster() -> None:
    config = dict(plan_of(BY_NAME["power"], ASKED, FACTS, 1).config)

    assert config["appendfsync"] == "always"
    assert config["appendonly"] == "yes"


def test_a_large_cluster_is_tried_with_seven_nodes() -> None:
    assert plan_of(BY_NAME["power"], ASKED, Facts(nodes=100), 1).nodes == 7


def test_a_trial_has_the_zones_of_the_cluster_and_kills_one() -> None:
    facts = Facts(nodes=4, zones=("a", "b", "a", "b"))
    plan = plan_of(BY_NAME["zone-killed"], job("", facts), facts, 1)
    (fault,) = plan.faults

    assert plan.zones == ("a", "b", "a", "b")
    assert {plan.zone(number) for number in fault.nodes} in ({"a"}, {"b"})
    assert len(fault.nodes) == 2


def test_a_large_cluster_is_tried_with_a_node_of_each_zone() -> None:
    facts = Facts(nodes=100, zones=("a",) * 98 + ("b", "c"))

    assert sorted(plan_of(BY_NAME["power"], job("", facts), facts, 1).zones) == [*"aaaaa", "b", "c"]


@pytest.mark.slow
def test_a_zone_that_is_killed_takes_no_job_with_it() -> None:
    facts = Facts(nodes=3, zones=("a", "b", "a"))

    assert [run("zone-killed", job("", facts), facts, seed).gone for seed in (1, 2)] == [0, 0]
