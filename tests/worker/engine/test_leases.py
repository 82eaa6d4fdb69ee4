"""Leases: renewals, and what happens to a job whose lease is lost."""

import pytest

from disque_trio.statemachine.base import NULL_ARRAY
from disque_trio.worker.engine.records import Dead, Done, Outcome, Queue, Reason, Release, Retry
from tests.worker.engine.talking import FEATURES, ONCE, ONE, TOKEN, TWO, Talk, lease, plain


def test_leases_are_renewed_after_a_third_many_at_once_where_they_are_tied() -> None:
    talk = Talk()
    fetch = talk.deliver(lease(ONE), lease(TWO))
    talk.wait(3_001)

    working = talk.last(b"WORKING")
    assert working.words == (b"WORKING", ONE + b"@" + TOKEN, TWO + b"@" + TOKEN)
    assert working.link == fetch.link


def test_an_original_is_told_of_one_job_at_a_time_and_tells_the_lease() -> None:
    talk = Talk(features=b"")
    talk.deliver(plain(ONE), plain(TWO))
    talk.wait(100)
    talk.greet()
    talk.wait(50)

    assert talk.count(b"WORKING") == 2
    assert talk.last(b"WORKING").words == (b"WORKING", TWO)
    talk.answer(b"WORKING", 30)
    talk.answer(b"WORKING", 30)
    talk.wait(9_000)
    assert talk.count(b"WORKING") == 2


def test_without_an_answer_another_node_is_asked() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.wait(6_002)
    talk.greet()
    talk.wait(50)

    assert talk.last(b"WORKING").node == "n2"


def test_a_node_that_does_not_know_the_job_sends_the_worker_on() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.wait(3_001)
    talk.refuse(b"WORKING", b"NOJOB Job not known in the context of this node.")
    talk.greet()
    talk.wait(50)

    assert talk.last(b"WORKING").node == "n2"


@pytest.mark.parametrize(
    ("code", "why"), [(b"LOST", Reason.LOST), (b"ACKED", Reason.ACKED), (b"DEAD", Reason.DEAD)]
)
def test_a_job_that_is_not_ours_any_more_is_cancelled(code: bytes, why: Reason) -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.wait(3_001)
    talk.refuse(b"WORKING", code + b" for some reason")

    assert talk.cancels == [(ONE, why)]
    talk.finish(ONE, None)
    talk.wait(30_000)
    assert talk.count(b"WORKING") == 1
    assert talk.count(b"RELEASE") == 0


def test_what_has_lost_its_lease_is_cancelled_and_not_given_back() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.wait(9_100)
    assert talk.cancels == [(ONE, Reason.LEASE_OVER)]

    talk.finish(ONE, Retry(0))
    talk.greet()
    talk.wait(50)

    assert talk.count(b"NACK") == 0


def test_what_is_done_in_spite_of_that_is_acknowledged() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.wait(9_100)
    talk.finish(ONE, Done())
    talk.greet()
    talk.wait(50)

    assert talk.count(b"ACKJOB") == 1


def test_what_ends_after_its_lease_is_late_even_if_no_timer_has_said_so() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.sleep(9_100)
    talk.finish(ONE, Retry(0))
    talk.greet()
    talk.wait(50)

    assert talk.count(b"NACK") == 0


def test_too_late_a_renewal_leaves_the_lease_that_runs() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.wait(3_001)
    talk.refuse(b"WORKING", b"TOOLATE Half of job TTL already elapsed")
    talk.wait(5_500)
    assert talk.cancels == []

    talk.wait(600)

    assert talk.cancels == [(ONE, Reason.LEASE_OVER)]
    assert talk.count(b"WORKING") == 1


def test_a_lease_that_was_never_told_is_no_reason_to_end_a_job() -> None:
    talk = Talk(features=b"")
    talk.deliver(plain(ONE))
    talk.wait(100)
    talk.greet()
    talk.wait(50)
    talk.refuse(b"WORKING", b"TOOLATE Half of job TTL already elapsed")
    talk.wait(10_000)
    assert talk.cancels == []

    talk.finish(ONE, Retry(0))
    talk.wait(10)

    assert talk.count(b"NACK") == 0


def test_a_job_of_one_delivery_has_no_lease() -> None:
    talk = Talk()
    talk.deliver(lease(ONCE, ms=0))
    talk.wait(60_000)

    assert talk.count(b"WORKING") == 0
    assert talk.cancels == []


def test_what_waits_too_long_is_dropped_with_a_word() -> None:
    talk = Talk(Queue(name=b"q", prefetch=1), concurrency=1)
    talk.deliver(lease(ONCE, ms=0), lease(TWO))
    talk.wait(9_100)

    assert talk.drops == [(TWO, Reason.LEASE_OVER)]


def test_a_run_over_its_limit_is_cancelled_and_goes_on_to_be_renewed() -> None:
    talk = Talk(Queue(name=b"q", limit=1_000_000))
    talk.deliver(lease(ONE))
    talk.wait(1_001)
    assert talk.cancels == [(ONE, Reason.TOO_LONG)]

    talk.wait(2_001)
    assert talk.count(b"WORKING") == 1

    talk.finish(ONE, Retry(0))
    talk.greet()
    assert talk.last(b"NACK").words == (b"NACK", ONE + b"@" + TOKEN)


def test_a_job_may_have_a_limit_of_its_own() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.engine.limit(talk.now, ONE, 500_000)
    talk.wait(501)

    assert talk.cancels == [(ONE, Reason.TOO_LONG)]


def test_a_job_that_comes_again_while_its_cancelled_handler_runs_begins_anew_after_it() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.wait(3_001)
    talk.refuse(b"WORKING", b"LOST The job was given to somebody else since")
    talk.deliver(lease(ONE))
    assert talk.starts == [ONE]

    talk.finish(ONE, None)

    assert talk.starts == [ONE, ONE]


def test_the_counters_of_a_job_that_comes_again_are_those_of_its_new_delivery() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.wait(3_001)
    talk.refuse(b"WORKING", b"LOST The job was given to somebody else since")
    talk.deliver(lease(ONE, nacks=1, again=2))
    talk.finish(ONE, None)
    talk.answer(b"GETJOB", NULL_ARRAY)  # it is taken for one that ends its worker

    run = talk.runs[-1]
    assert (run.nacks, run.additional_deliveries) == (1, 2)


def test_a_job_that_is_delivered_again_while_a_nack_is_under_way_is_another_delivery() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.finish(ONE, Retry(0))
    talk.deliver(lease(ONE))
    assert talk.starts == [ONE, ONE]

    talk.greet()
    talk.answer(b"NACK", 1) if talk.waits(b"NACK") else None
    talk.finish(ONE, Done())
    talk.wait(3)

    assert talk.last(b"ACKJOB").words == (b"ACKJOB", ONE)


# Jobs that are given back.

BACK = [Retry(5_000_000), Release(5_000_000), Retry(0), Release(), Dead(b"bad")]


@pytest.mark.parametrize("outcome", BACK)
def test_a_job_that_was_given_back_is_not_renewed(outcome: Outcome) -> None:
    talk = Talk(features=FEATURES + b",release-delay")
    talk.deliver(lease(ONE))
    talk.finish(ONE, outcome)
    talk.greet()
    talk.wait(5_000)

    assert talk.count(b"NACK") + talk.count(b"RELEASE") == 1
    assert talk.count(b"WORKING") == 0


def test_nor_is_it_while_the_outcome_is_repeated_after_a_lost_connection() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.finish(ONE, Retry(5_000_000))
    talk.greet()
    talk.wait(50)
    talk.lose("n1")
    talk.greet()
    talk.wait(5_000)

    assert talk.last(b"NACK").node == "n2"
    assert talk.count(b"WORKING") == 0


def test_while_the_worker_holds_it_until_its_delay_is_over_the_lease_is_renewed() -> None:
    talk = Talk(features=b"withmeta,tokens,release,tied")  # not nack-delay
    talk.deliver(lease(ONE))
    talk.finish(ONE, Retry(5_000_000))
    talk.wait(3_001)

    assert talk.count(b"NACK") == 0
    assert talk.count(b"WORKING") == 1


def test_a_job_waits_here_also_if_it_was_not_known_before_that_its_node_has_no_delay() -> None:
    talk = Talk(features=b"withmeta,tokens,release,tied")
    fetch = talk.deliver(lease(ONE))
    talk.lose(fetch.node)
    talk.finish(ONE, Retry(5_000_000))
    talk.wait(1_001)
    talk.greet()
    assert talk.count(b"NACK") == 0

    talk.wait(4_000)
    talk.greet()

    assert talk.last(b"NACK").words == (b"NACK", ONE + b"@" + TOKEN)


def test_a_worker_that_stops_gives_a_job_back_before_its_delay_is_over() -> None:
    talk = Talk(features=b"withmeta,tokens,release,tied")
    talk.deliver(lease(ONE))
    talk.stop()
    talk.finish(ONE, Retry(5_000_000))
    talk.greet()

    assert talk.count(b"NACK") == 1


def test_a_job_that_is_done_is_renewed_until_a_node_has_answered() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.finish(ONE, Done())
    talk.greet()
    talk.wait(3_001)

    assert (talk.count(b"ACKJOB"), talk.count(b"WORKING")) == (1, 1)


def test_a_renewal_that_a_node_reads_after_the_nack_does_not_drop_the_outcome() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.wait(3_001)
    talk.finish(ONE, Retry(5_000_000))
    talk.greet()
    talk.refuse(b"WORKING", b"LOST The job was given back")
    assert talk.drops == []

    talk.lose("n1")
    talk.greet()
    talk.wait(50)
    assert talk.last(b"NACK").node == "n2"
