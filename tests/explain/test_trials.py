from disque_trio.explain.facts import Facts
from disque_trio.explain.families import BY_NAME
from disque_trio.explain.trials import plan_of, run, scaled
from tests.explain.sweep import job

FACTS = Facts(nodes=3, journal="always")
ASKED = job("DELAY 600 RETRY 900 TTL 7200", FACTS)


def test_a_trial_is_repeated_by_its_seed() -> None:
    asked = job("", FACTS)

    assert run("one-killed", asked, FACTS, 7) == run("one-killed", asked, FACTS, 7)


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
