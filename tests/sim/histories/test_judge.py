"""What clients saw is judged without knowledge of nodes."""

from collections.abc import Callable

import pytest

from tests.sim.histories.said import Said, job

ONE, TWO, ONCE = job(1), job(2), job(3, is_once=True)


def test_a_job_that_is_added_delivered_and_acknowledged_breaks_nothing() -> None:
    said = Said()
    said.add(0, ONE)
    said.get(1, 1.1, ONE)
    said.ack(2, ONE)

    verdict = said.verdict()

    assert verdict.is_ok
    assert (verdict.calls, verdict.added, verdict.deliveries, verdict.open) == (3, 1, 1, 0)


# H1: integrity.


def test_a_job_that_nobody_added_breaks_integrity() -> None:
    said = Said()
    said.get(1, 1.1, ONE)

    assert said.broken() == ["H1"]


def test_other_clients_may_have_added_it() -> None:
    said = Said()
    said.get(1, 1.1, ONE)

    assert said.verdict(has_all_clients=False).is_ok


@pytest.mark.parametrize(
    "outcome", [{}, {"lost": "x"}, {"error": "NOREPL timeout"}, {"error": "MISCONF no disk"}]
)
def test_an_addjob_without_an_outcome_may_have_added_one_job(outcome: dict[str, str]) -> None:
    said = Said()
    said.call(0, 0.5, "ADDJOB", "q", "b", 0, **outcome)
    said.get(1, 1.1, ONE)
    assert said.broken() == []

    said.get(2, 2.1, TWO)
    assert said.broken() == ["H1"]


@pytest.mark.parametrize("error", ["OOM no memory", "NOREPL Not enough reachable nodes", "ERR x"])
def test_an_addjob_that_was_refused_has_added_none(error: str) -> None:
    said = Said()
    said.call(0, 0.5, "ADDJOB", "q", "b", 0, error=error)
    said.get(1, 1.1, ONE)

    assert said.broken() == ["H1"]


def test_an_addjob_explains_no_delivery_before_it() -> None:
    said = Said()
    said.get(1, 1.1, ONE)
    said.add(2, ONE)

    assert said.broken() == ["H1"]


@pytest.mark.parametrize("other", [{"queue": "other"}, {"body": "other"}])
def test_a_job_has_its_queue_and_body(other: dict[str, str]) -> None:
    said = Said()
    said.add(0, ONE)
    said.get(1, 1.1, ONE, **other)

    assert said.broken() == ["H1"]


# H2: ids.


def test_two_addjobs_without_a_key_return_two_ids() -> None:
    said = Said()
    said.add(0, ONE)
    said.add(1, TWO)
    assert said.broken() == []

    said.add(2, ONE)
    assert said.broken() == ["H2"]


def test_an_id_encodes_whether_the_job_is_delivered_again() -> None:
    said = Said()
    said.add(0, ONCE, "RETRY", 0)
    said.add(1, ONE, "RETRY", 1)
    assert said.broken() == []

    said.add(2, TWO, "RETRY", 0)
    assert said.broken() == ["H2"]


# H3: at most once.


def test_a_job_with_retry_0_is_delivered_once() -> None:
    said = Said(faults="unknown")
    said.add(0, ONCE, "RETRY", 0)
    said.get(1, 1.1, ONCE)
    assert said.broken() == []

    said.get(2, 2.1, ONCE)
    assert said.broken() == ["H3"]


def test_a_job_with_retry_0_may_be_redriven() -> None:
    said = Said()
    said.add(0, ONCE, "RETRY", 0)
    said.get(1, 1.1, ONCE)
    said.call(2, 2.1, "NACK", ONCE, "DEAD", reply=1)
    said.call(3, 3.1, "REDRIVE", ONCE, reply=1)
    said.get(4, 4.1, ONCE)

    assert said.broken() == []


def test_a_redrive_before_it_was_added_excuses_no_second_delivery() -> None:
    said = Said()
    said.call(0, 0.1, "REDRIVE", "q", reply=1)
    said.add(10, ONCE, "RETRY", 0)
    said.get(11, 11.1, ONCE)
    said.get(12, 12.1, ONCE)
    assert said.broken() == ["H3"]

    said.call(11.5, 11.6, "REDRIVE", "q", reply=1)
    assert said.broken() == []


# H4: at least once.


def waited(said: Said, begin: float = 100.0) -> None:
    """A client waits for jobs in vain."""
    said.get(begin, begin + 5)


def test_a_job_that_is_not_delivered_to_a_client_that_waits_is_lost() -> None:
    said = Said()
    said.add(0, ONE)
    assert said.verdict().open == 1
    waited(said)

    assert said.broken() == ["H4"]
    assert said.verdict().open == 0


def test_seconds_in_which_a_client_waits_twice_count_once() -> None:
    said = Said()
    said.add(0, ONE)
    said.get(100, 101.5)
    said.get(100.1, 101.6)
    assert said.broken() == []

    said.get(101.6, 102.2)
    assert said.broken() == ["H4"]


def test_a_job_that_is_not_acknowledged_is_delivered_again() -> None:
    said = Said()
    said.add(0, ONE, "RETRY", 10)
    said.get(1, 1.1, ONE)
    waited(said, 5)
    assert said.broken() == []

    waited(said, 20)
    assert said.broken() == ["H4"]


def _acknowledged(said: Said) -> None:
    said.ack(1, ONE)


def _acknowledged_with_a_result(said: Said) -> None:
    said.call(1, 2, "ACKJOB", ONE, "RESULT", "x" * 40, "KEEP", 60, reply=1)


def _acknowledged_maybe(said: Said) -> None:
    said.call(1, 2, "ACKJOB", ONE)


def _buried(said: Said) -> None:
    said.call(1, 2, "NACK", ONE, "DEAD", reply=1)


def _purged(said: Said) -> None:
    said.call(1, 2, "PURGE", "q", reply=1)


def _paused(said: Said) -> None:
    said.call(1, 2, "PAUSE", "q", "out", reply="out")


def _postponed(said: Said) -> None:
    said.call(1, 2, "NACK", ONE, "DELAY", "200", reply=1)


def _taken_maybe(said: Said) -> None:
    said.call(99.5, 99.9, "GETJOB", "TIMEOUT", 5000, "FROM", "q", lost="killed")


def _memory_lost(said: Said) -> None:
    said.fault(10, 11, memory="lost")


def _cut(said: Said) -> None:
    said.fault(60, 80)


@pytest.mark.parametrize(
    "excuse",
    [_acknowledged, _acknowledged_with_a_result, _acknowledged_maybe, _buried, _purged, _paused,
     _postponed, _taken_maybe, _memory_lost, _cut],
)  # fmt: skip
def test_what_may_have_ended_or_hidden_a_job_excuses_it(excuse: Callable[[Said], None]) -> None:
    said = Said()
    said.add(0, ONE, "RETRY", 20)
    excuse(said)
    waited(said)

    assert said.broken() == []


@pytest.mark.parametrize("command", ["PURGE", "CANCEL"])
def test_a_purge_before_it_was_added_excuses_no_loss(command: str) -> None:
    said = Said()
    said.call(0, 1, command, "q", reply=1)
    said.add(10, ONE, "RETRY", 20)
    waited(said)

    assert said.broken() == ["H4"]


def test_a_purge_just_before_may_reach_other_nodes_after_it_was_added() -> None:
    said = Said()
    said.call(0, 9, "PURGE", "q", "BCAST", reply=1)
    said.add(10, ONE, "RETRY", 20)
    waited(said)

    assert said.broken() == []


def test_a_purge_before_a_cut_may_reach_other_nodes_after_it() -> None:
    said = Said()
    said.call(0, 1, "PURGE", "q", "BCAST", reply=1)
    said.fault(2, 5)
    said.add(10, ONE, "RETRY", 20)
    waited(said)

    assert said.broken() == []


def test_a_purge_without_an_answer_may_come_at_any_time() -> None:
    said = Said()
    said.call(0, 1, "PURGE", "q", lost="killed")
    said.add(10, ONE, "RETRY", 20)
    waited(said)

    assert said.broken() == []


def test_a_pause_that_has_ended_excuses_nothing() -> None:
    said = Said()
    said.add(0, ONE)
    _paused(said)
    said.call(3, 4, "PAUSE", "q", "none", reply="none")
    waited(said)

    assert said.broken() == ["H4"]


def test_one_lost_memory_does_not_excuse_a_job_with_two_copies() -> None:
    said = Said()
    said.add(0, ONE, "REPLICATE", 2)
    said.fault(10, 11, memory="lost")
    waited(said)
    assert said.broken() == ["H4"]

    said.fault(20, 21, memory="lost")
    assert said.broken() == []


def test_a_crash_of_a_node_that_is_removed_is_one_loss_of_memory() -> None:
    said = Said()
    said.add(0, ONE, "REPLICATE", 2)
    said.fault(10, 20, memory="lost", node="n1")
    said.fault(10, 15, memory="lost", node="n1")
    waited(said)
    assert said.broken() == ["H4"]

    said.fault(21, 22, memory="lost", node="n1")
    assert said.broken() == []


def test_a_job_is_not_lost_after_its_ttl() -> None:
    said = Said()
    said.add(0, ONE, "TTL", 50)
    waited(said)

    assert said.broken() == []


def test_a_client_that_did_not_wait_shows_no_loss() -> None:
    said = Said()
    said.add(0, ONE)
    said.call(100, 100.1, "GETJOB", "NOHANG", "FROM", "q", reply=None)

    assert said.broken() == []


def test_without_knowledge_of_faults_no_loss_is_judged() -> None:
    said = Said(faults="unknown")
    said.add(0, ONE)
    waited(said)

    assert said.broken() == []
    assert any("--faults known" in note for note in said.verdict().notes)


# H5: after the acknowledgement.


def test_no_job_is_delivered_after_its_acknowledgement_in_calm() -> None:
    said = Said()
    said.add(0, ONE)
    said.get(1, 1.1, ONE)
    said.ack(2, ONE)
    said.get(3, 3.1, ONE)
    assert said.broken() == []
    assert said.verdict().after_ack == 1

    said.get(20, 20.1, ONE)
    assert said.broken() == ["H5"]

    said.fault(10, 11)
    assert said.broken() == []


# H6: times.


def test_a_job_waits_for_its_delay() -> None:
    said = Said()
    said.add(0, ONE, "DELAY", 5)
    said.get(1, 4.9, ONE)
    assert said.broken() == ["H6"]

    said.lines.append({"fault": "clock.step", "at": 1})
    assert said.broken() == []


def test_a_job_is_not_delivered_after_its_ttl() -> None:
    said = Said()
    said.add(0, ONE, "TTL", 5)
    said.get(6, 7, ONE)
    assert said.broken() == []

    said = Said()
    said.add(0, ONE, "TTL", 5)
    said.get(6.3, 7, ONE)
    assert said.broken() == ["H6"]


def test_a_ttl_may_end_a_second_later_with_each_node_to_which_a_job_is_passed_on() -> None:
    said = Said()
    said.add(0, ONE, "TTL", 5)
    said.get(1, 2, ONE)
    said.get(7, 8, ONE)
    assert said.broken() == []

    said.fault(3, 4)
    said.get(9, 10, ONE)
    assert said.broken() == []

    said.get(11, 12, ONE)
    assert said.broken() == ["H6"]


# H8: MAXLEN.


def test_maxlen_refuses_no_job_of_a_queue_that_is_shorter() -> None:
    said = Said()
    said.add(0, ONE)
    said.call(1, 1.1, "ADDJOB", "q", "b", 0, "MAXLEN", 1, error="MAXLEN too long")
    assert said.broken() == []

    said.call(2, 2.1, "ADDJOB", "q", "b", 0, "MAXLEN", 2, error="MAXLEN too long")
    assert said.broken() == ["H8"]


def test_a_lone_node_accepts_no_job_beyond_maxlen() -> None:
    said = Said()
    said.add(0, ONE)
    said.add(1, TWO, "MAXLEN", 2)
    assert said.broken() == []

    said.add(2, job(4), "MAXLEN", 2)
    assert said.broken() == ["H8"]


# H9: order.


def test_a_lone_node_delivers_the_oldest_job_first() -> None:
    said = Said()
    said.add(0, ONE)
    said.add(1, TWO)
    said.add(2, job(4))
    said.get(3, 3.1, ONE)
    assert said.broken() == []

    said.get(4, 4.1, job(4))
    assert said.broken() == ["H9"]


def test_jobs_that_were_added_at_the_same_time_have_no_order() -> None:
    said = Said()
    said.add(0, ONE, took=2)
    said.add(1, TWO, took=2)
    said.get(4, 4.1, TWO)

    assert said.broken() == []


def test_a_higher_priority_comes_first() -> None:
    said = Said()
    said.add(0, ONE)
    said.add(1, TWO, "PRIORITY", 5)
    said.get(2, 2.1, TWO)
    said.get(3, 3.1, ONE)
    assert said.broken() == []

    said.add(4, job(4), "PRIORITY", -1)
    said.add(5, job(5), "PRIORITY", 7)
    said.get(6, 6.1, job(4))
    said.get(7, 7.1, job(5))
    assert said.broken() == ["H9"]


def test_a_queue_of_two_nodes_has_no_order() -> None:
    said = Said()
    said.add(0, ONE)
    said.add(1, TWO)
    said.lines[1]["node"] = "n2"
    said.get(2, 2.1, TWO)

    assert said.broken() == []


# H10 and H11.


def test_a_job_is_delivered_at_most_limit_times_in_calm() -> None:
    said = Said()
    said.add(0, ONE, "LIMIT", 1, "RETRY", 1)
    said.get(1, 1.1, ONE)
    assert said.broken() == []

    said.get(3, 3.1, ONE)
    assert said.broken() == ["H10"]


def _got(*words: object, reply: object) -> list[str]:
    said = Said()
    said.add(0, ONE)
    said.add(0.5, TWO)
    said.call(1, 1.1, "GETJOB", *words, reply=reply)
    return said.broken()


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        (("FROM", "q"), [["q", ONE, "b"], ["q", TWO, "b"]]),
        (("COUNT", 1, "FROM", "q", "p"), [["q", ONE, "b"], ["q", TWO, "b"]]),
        (("FROM", "p"), [["q", ONE, "b"]]),
        (("FROM", "q"), []),
    ],
)
def test_a_getjob_returns_jobs_of_its_queues_and_no_more_than_count(
    words: tuple[object, ...], reply: object
) -> None:
    assert _got(*words, reply=reply) == ["H11"]


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        (("FROM", "p", "q", "COUNT", 2), [["q", ONE, "b"], ["q", TWO, "b"]]),
        (("NOHANG", "FROM", "q"), [["q", ONE, "b"]]),
        (("FROM", "q"), None),
    ],
)
def test_a_getjob_that_returns_what_was_asked_breaks_nothing(
    words: tuple[object, ...], reply: object
) -> None:
    assert _got(*words, reply=reply) == []


@pytest.mark.parametrize(("way", "broken"), [("reject", []), ("return", ["H11"])])
def test_only_ifexists_reject_is_refused_by_duplicate(way: str, broken: list[str]) -> None:
    said = Said()
    said.add(0, ONE, "UNIQUE", "k")
    add = ("ADDJOB", "q", "b", 0, "UNIQUE", "k", "IFEXISTS", way)
    said.call(1, 1.1, *add, error=f"DUPLICATE {ONE} queued")

    assert said.broken() == broken
