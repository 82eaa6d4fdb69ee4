"""H7: the calls about a key have an order in which one job has it at a time."""

import pytest

from disque_trio.sim.histories import orders
from disque_trio.sim.histories.orders import GivenUpError, Operation, Problem, search
from tests.sim.histories.said import Said, job

ONE, TWO, THREE = job(1), job(2), job(3)


def unique(said: Said, begin: float, id: str, *options: object, took: float = 0.1) -> None:
    said.add(begin, id, "UNIQUE", "k", *options, took=took)


def test_a_second_job_with_a_key_breaks_the_promise_until_the_first_has_ended() -> None:
    said = Said()
    unique(said, 0, ONE)
    said.get(1, 1.1, ONE)
    unique(said, 5, TWO)
    assert said.broken() == ["H7"]

    said = Said()
    unique(said, 0, ONE)
    said.get(1, 1.1, ONE)
    said.ack(2, ONE)
    unique(said, 6, TWO)
    assert said.broken() == []


def test_an_addjob_returns_the_job_that_has_the_key() -> None:
    said = Said()
    unique(said, 0, ONE)
    unique(said, 1, ONE)
    unique(said, 2, ONE, "IFEXISTS", "return")

    verdict = said.verdict()

    assert verdict.is_ok
    assert verdict.keys == 1


def test_calls_that_overlap_may_have_either_order() -> None:
    said = Said()
    unique(said, 0, ONE)
    said.get(1, 1.1, ONE)
    unique(said, 5, TWO, took=10)
    said.call(6, 9, "ACKJOB", ONE, reply=1)
    unique(said, 7, ONE)

    assert said.broken() == []


def test_no_order_explains_a_key_that_goes_to_a_second_job_and_back() -> None:
    said = Said()
    unique(said, 0, ONE)
    said.get(1, 1.1, ONE)
    said.call(1, 20, "ACKJOB", ONE, reply=1)
    unique(said, 5, TWO)
    unique(said, 8, ONE)

    found = said.verdict().violations

    assert [each.property for each in found] == ["H7"]
    assert found[0].job == ONE
    assert TWO in found[0].text


def test_a_key_stays_taken_for_its_keep() -> None:
    said = Said()
    unique(said, 0, ONE, "KEEP", 20)
    said.get(1, 1.1, ONE)
    said.ack(2, ONE)
    unique(said, 10, ONE, "KEEP", 20)
    unique(said, 30, TWO, "KEEP", 20)
    assert said.broken() == []

    unique(said, 31, THREE, "KEEP", 20)
    assert said.broken() == ["H7"]


def test_a_key_is_not_given_again_before_its_keep_is_over() -> None:
    said = Said()
    unique(said, 0, ONE, "KEEP", 20)
    said.get(1, 1.1, ONE)
    said.ack(2, ONE)
    unique(said, 10, TWO, "KEEP", 20)

    assert said.broken() == ["H7"]


def test_how_long_a_key_is_kept_is_said_by_who_added_its_job() -> None:
    said = Said()
    unique(said, 0, ONE, "KEEP", 20)
    said.get(1, 1.1, ONE)
    said.ack(2, ONE)
    unique(said, 30, TWO)
    assert said.broken() == []

    said.get(31, 31.1, TWO)
    said.ack(32, TWO)
    unique(said, 40, THREE, "KEEP", 20)
    assert said.broken() == []

    said.get(41, 41.1, THREE)
    said.ack(42, THREE)
    unique(said, 50, job(4))
    assert said.broken() == ["H7"]


def test_a_job_that_has_ended_is_not_returned() -> None:
    said = Said()
    unique(said, 0, ONE)
    said.get(1, 1.1, ONE)
    said.ack(2, ONE)
    unique(said, 10, ONE)
    unique(said, 11, TWO)

    assert said.broken() == ["H7"]


def test_duplicate_names_the_job_that_has_the_key() -> None:
    said = Said()
    unique(said, 0, ONE)
    add = ("ADDJOB", "q", "b", 0, "UNIQUE", "k", "IFEXISTS", "reject")
    said.call(1, 1.1, *add, error=f"DUPLICATE {ONE} queued")
    assert said.broken() == []

    said.call(2, 2.1, *add, error=f"DUPLICATE {TWO} queued")
    assert said.broken() == ["H7"]


def test_an_addjob_without_an_outcome_may_have_the_key() -> None:
    said = Said()
    add = ("ADDJOB", "q", "b", 0, "UNIQUE", "k", "IFEXISTS", "reject")
    said.call(0, 0.5, *add, lost="killed")
    said.call(1, 1.1, *add, error=f"DUPLICATE {ONE} queued")

    assert said.broken() == []


def test_across_a_cut_each_side_may_give_the_key() -> None:
    said = Said()
    said.fault(0.5, 10)
    unique(said, 1, ONE)
    unique(said, 2, TWO)
    unique(said, 60, ONE)
    unique(said, 61, TWO)
    assert said.broken() == []

    unique(said, 62, THREE)
    unique(said, 63, job(4))
    assert said.broken() == ["H7"]


def test_the_empty_key_is_the_digest_of_the_body() -> None:
    said = Said()
    said.add(0, ONE, "UNIQUE", "", body="one")
    said.add(1, TWO, "UNIQUE", "", body="two")
    assert said.broken() == []

    said.add(2, THREE, "UNIQUE", "", body="one")
    assert said.broken() == ["H7"]


@pytest.mark.parametrize("way", ["again", "replace"])
def test_keys_that_may_have_several_jobs_are_not_judged(way: str) -> None:
    said = Said()
    unique(said, 0, ONE)
    unique(said, 1, TWO, "IFEXISTS", way)

    verdict = said.verdict()

    assert verdict.is_ok
    assert (verdict.keys, verdict.unjudged_keys) == (0, 1)


def test_a_search_with_too_many_states_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "MOST_STATES", 5)
    operations = [
        Operation(kind="add", id=job(number), begin=number, end=100) for number in range(9)
    ]
    with pytest.raises(GivenUpError):
        search(Problem(operations=operations, nameless=4))


def test_calls_that_change_nothing_cost_no_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "MOST_STATES", 200)
    operations = [Operation(kind="add", id=ONE, begin=n / 100, end=50 + n) for n in range(100)]

    assert search(Problem(operations=operations, start="")) is None


def test_ends_that_nobody_can_notice_cost_no_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "MOST_STATES", 200)
    earlier = [job(number) for number in range(10, 40)]
    ends = [Operation(kind="free", id=id, begin=0, end=50) for id in earlier]
    may_end = [
        Operation(kind="free", id=job(n), begin=0, end=60, must_happen=False) for n in range(40, 70)
    ]
    adds = [Operation(kind="add", id=job(n), begin=n, end=n + 5) for n in (1, 9)]
    adds.append(Operation(kind="free", id=job(1), begin=7, end=12))

    late = frozenset(each.id for each in may_end)
    problem = Problem(
        operations=[*ends, *may_end, *adds], earlier=frozenset(earlier), late=late, start="?"
    )

    assert search(problem) is None
