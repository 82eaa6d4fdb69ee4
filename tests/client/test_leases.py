import math

from disque_trio.client.leases import Leases
from disque_trio.client.refusals import refused
from disque_trio.statemachine.base import Failure

TOO_LATE = refused(Failure(b"TOOLATE Half of job TTL already elapsed"), "WORKING")
UNKNOWN = refused(Failure(b"NOJOB Job not known in the context of this node."), "WORKING")
ACKED = refused(Failure(b"ACKED The job is already acknowledged"), "WORKING")
DEAD = refused(Failure(b"DEAD The job is dead"), "WORKING")
LOADING = refused(Failure(b"LOADING Disque is loading the dataset in memory"), "WORKING")
LIVE = ["a:1", "b:2", "c:3"]


def leases() -> Leases:
    held = Leases(shortest_s=3.0)
    held.add({"a:1": ["one", "two"]}, now=100.0)
    return held


def test_the_first_sign_comes_after_a_third_of_the_shortest_period() -> None:
    held = leases()

    assert held.next_due() == 101.0
    assert held.due(100.9) == {}
    assert held.due(101.0) == {"a:1": ["one", "two"]}


def test_it_comes_after_a_third_of_what_is_known_to_be_left() -> None:
    held = Leases(shortest_s=3.0)

    held.add({"a:1": ["long", "never", "unknown"]}, 100.0, {"long": 30.0, "never": 0.0})

    assert held.due(101.0) == {"a:1": ["unknown"]}
    assert held.due(1e9) == {"a:1": ["long", "unknown"]}
    held.drop(["unknown"])
    assert held.next_due() == 110.0


def test_the_next_one_after_a_third_of_the_jobs_own_period() -> None:
    held = leases()

    held.answered("one", "a:1", 300, LIVE, now=101.0)

    assert held.due(200.0) == {"a:1": ["two"]}
    assert held.due(201.0) == {"a:1": ["one", "two"]}


def test_a_job_that_is_never_queued_again_needs_none() -> None:
    held = leases()

    held.answered("one", "a:1", 0, LIVE, now=101.0)
    held.drop(["two"])

    assert held.next_due() == math.inf
    assert len(held) == 1


def test_jobs_of_an_earlier_life_are_told_of_at_once() -> None:
    held = leases()

    held.adopt({"b:2": ["three"], "a:1": ["one"]}, now=100.0)

    assert held.due(100.0) == {"b:2": ["three"]}


def test_a_node_that_does_not_know_the_job_any_more_is_passed_over() -> None:
    held = leases()
    held.drop(["two"])

    held.answered("one", "a:1", UNKNOWN, LIVE, now=101.0)
    assert held.due(101.0) == {"b:2": ["one"]}
    held.gone("one", "b:2", LIVE, now=102.0)
    assert held.due(102.0) == {"c:3": ["one"]}
    held.answered("one", "c:3", 3, LIVE, now=102.0)
    assert held.due(103.0) == {"c:3": ["one"]}

    # It counts from then on: the others may have got it back.
    held.gone("one", "c:3", LIVE, now=103.0)
    assert held.due(103.0) == {"a:1": ["one"]}


def test_a_job_that_nobody_knows_is_given_up_and_asked_for_again_as_its_holder_may_come_back() -> (
    None
):
    held = leases()
    held.drop(["two"])

    for time in (101.0, 102.0):
        for node in LIVE:
            held.answered("one", node, UNKNOWN, LIVE, now=time)
        assert held.next_due() == time + 1.0
        assert held.given_up == 1

    held.answered("one", "a:1", 30, LIVE, now=103.0)
    for node in LIVE:
        held.answered("one", node, UNKNOWN, LIVE, now=104.0)
    assert held.given_up == 2


def test_nothing_more_is_said_once_half_of_the_life_is_over_or_somebody_acknowledged() -> None:
    held = leases()

    held.answered("one", "a:1", TOO_LATE, LIVE, now=101.0)
    held.answered("two", "a:1", ACKED, LIVE, now=101.0)

    assert held.next_due() == math.inf
    assert held.given_up == 1


def test_a_job_that_died_while_it_was_held_is_given_up() -> None:
    held = leases()
    held.drop(["two"])

    held.answered("one", "a:1", DEAD, LIVE, now=101.0)

    assert (held.next_due(), held.given_up) == (math.inf, 1)


def test_a_node_that_cannot_answer_yet_is_asked_again() -> None:
    held = leases()

    held.answered("one", "a:1", LOADING, LIVE, now=101.0)

    assert "one" not in held.due(101.9).get("a:1", [])
    assert "one" in held.due(102.0)["a:1"]


def test_answers_about_jobs_that_are_over_are_dropped() -> None:
    held = leases()
    held.drop(["one", "two"])

    held.answered("one", "a:1", 3, LIVE, now=101.0)
    held.gone("two", "a:1", LIVE, now=101.0)

    assert held.next_due() == math.inf
