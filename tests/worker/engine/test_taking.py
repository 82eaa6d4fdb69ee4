"""What the engine asks for, and what it starts."""

import pytest

from disque_trio.statemachine.base import NULL_ARRAY
from disque_trio.worker.engine import fetching, leases
from disque_trio.worker.engine.records import MILLI, Dead, Done, Queue, Reason, Release, Retry
from tests.worker.engine.talking import ONCE, ONE, TOKEN, TWO, Talk, lease, plain

THREE = b"D-11111111-555555555555555555555555-05a1"
FOUR = b"D-11111111-666666666666666666666666-05a1"


def test_it_asks_what_the_node_can_before_it_asks_for_jobs() -> None:
    talk = Talk()
    assert [send.words for send in talk.said] == [(b"INFO", b"server"), (b"CLIENT", b"ID")]

    talk.greet()

    assert talk.last(b"GETJOB").node == "n1"
    words = b" ".join(talk.last(b"GETJOB").words)
    assert words == b"GETJOB TIMEOUT 5000 COUNT 10 WITHMETA TIED FROM q"


def test_an_original_is_asked_with_its_own_words() -> None:
    talk = Talk(features=b"")
    talk.greet()

    words = b" ".join(talk.last(b"GETJOB").words)
    assert words == b"GETJOB TIMEOUT 2000 COUNT 10 WITHCOUNTERS FROM q"


def test_it_starts_as_many_as_may_run_and_holds_as_many_as_it_may() -> None:
    talk = Talk(Queue(name=b"q", prefetch=1), concurrency=2)
    talk.deliver(lease(ONE), lease(TWO), lease(THREE))

    assert talk.starts == [ONE, TWO]
    assert talk.waits(b"GETJOB") is None

    talk.finish(ONE, Done())
    assert talk.starts == [ONE, TWO, THREE]
    assert b"COUNT 1" in b" ".join(talk.last(b"GETJOB").words)


def test_while_most_of_what_may_be_held_is_there_it_asks_for_no_more() -> None:
    talk = Talk(Queue(name=b"q", prefetch=3), concurrency=1)
    talk.deliver(*(lease(id) for id in (ONE, TWO, THREE, FOUR)))

    talk.finish(ONE, Done())
    assert talk.starts == [ONE, TWO]
    assert b"COUNT 1" in b" ".join(talk.last(b"GETJOB").words)


def test_the_times_of_jobs_that_have_ended_are_cleared_away() -> None:
    talk = Talk(Queue(name=b"q"), concurrency=100)
    talk.greet()
    for number in range(60):
        ids = [b"D-11111111-%024d-05a1" % (100 * number + each) for each in range(100)]
        talk.deliver(*map(lease, ids))
        for id in ids:
            talk.finish(id, Done())
        talk.wait(3)
        talk.answer(b"ACKJOB", 100)
    assert not talk.engine.state.jobs
    assert talk.engine.state.timers.count < 3 * leases.SPARE


def test_a_quiet_worker_runs_what_it_has_and_takes_no_more_until_it_resumes() -> None:
    talk = Talk(Queue(name=b"q", prefetch=1), concurrency=1)
    talk.deliver(lease(ONE), lease(TWO))
    talk.engine.quiet(talk.now)
    talk.finish(ONE, Done())
    assert talk.starts == [ONE, TWO]
    talk.finish(TWO, Done())
    asked = talk.count(b"GETJOB")
    talk.wait(10_000)
    assert talk.count(b"GETJOB") == asked
    assert not talk.engine.is_stopped

    talk.engine.resume(talk.now)
    talk.listen()
    talk.deliver(lease(THREE))
    assert talk.starts == [ONE, TWO, THREE]


def test_the_wait_for_jobs_of_a_quiet_worker_is_ended() -> None:
    talk = Talk()
    talk.greet()
    talk.engine.quiet(talk.now)
    talk.listen()

    assert talk.waits(b"CLIENT") is not None


def test_a_quiet_worker_stops() -> None:
    talk = Talk()
    talk.engine.quiet(talk.now)
    talk.stop()

    assert talk.engine.is_stopped


def test_in_place_of_a_job_that_does_not_end_another_one_runs() -> None:
    talk = Talk(Queue(name=b"q", concurrency=1, limit=MILLI), concurrency=1)
    talk.deliver(lease(ONE))
    talk.wait(2)
    assert talk.cancels == [(ONE, Reason.TOO_LONG)]
    assert talk.waits(b"GETJOB") is None

    talk.engine.stuck(talk.now, ONE)
    talk.listen()
    talk.deliver(lease(TWO))
    assert talk.starts == [ONE, TWO]

    talk.finish(ONE, Done())
    assert talk.waits(b"GETJOB") is None
    talk.finish(TWO, Done())
    assert b"COUNT 1" in b" ".join(talk.last(b"GETJOB").words)


def test_a_queue_has_a_limit_of_its_own() -> None:
    talk = Talk(Queue(name=b"few", concurrency=1), Queue(name=b"q"), concurrency=5)
    talk.greet()
    assert b"COUNT 1" in b" ".join(talk.last(b"GETJOB").words)

    talk.deliver(lease(ONE, b"few"))

    words = b" ".join(talk.last(b"GETJOB").words)
    assert words == b"GETJOB TIMEOUT 500 COUNT 4 WITHMETA TIED FROM q"


def test_it_asks_again_when_there_was_nothing() -> None:
    talk = Talk()
    talk.deliver()
    talk.answer(b"GETJOB", NULL_ARRAY)

    assert talk.waits(b"GETJOB") is not None


def test_a_wait_ends_before_the_lease_of_a_tied_job_has_to_be_renewed() -> None:
    talk = Talk()
    talk.deliver(lease(ONE, ms=9_000))

    assert talk.last(b"GETJOB").words[2] == b"3000"


def test_it_takes_no_more_while_too_many_outcomes_are_not_confirmed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetching, "MOST_UNSETTLED", 2)
    talk = Talk(concurrency=3)
    talk.deliver(lease(ONE), lease(TWO))
    talk.finish(ONE, Done())
    talk.finish(TWO, Done())
    talk.answer(b"GETJOB", NULL_ARRAY)
    assert talk.waits(b"GETJOB") is None

    talk.wait(3)
    talk.answer(b"ACKJOB", 2)

    assert talk.waits(b"GETJOB") is not None


def test_a_job_of_little_lease_is_renewed_before_it_begins() -> None:
    talk = Talk(Queue(name=b"q", prefetch=1), concurrency=1)
    talk.deliver(lease(ONE), lease(TWO, ms=1_000))
    talk.wait(900)
    talk.finish(ONE, Done())
    assert talk.starts == [ONE]

    talk.answer(b"WORKING", 10)

    assert talk.starts == [ONE, TWO]


def test_a_reply_that_may_have_waited_while_the_process_was_stopped_counts_from_before() -> None:
    talk = Talk()
    talk.greet()
    talk.sleep(8_900)

    talk.engine.lost(talk.now, 999)
    talk.deliver(lease(ONE, ms=9_000))
    assert talk.starts == []
    talk.answer(b"WORKING", 10)

    assert talk.starts == [ONE]


def test_a_reply_is_not_older_than_its_request() -> None:
    talk = Talk(concurrency=1)
    talk.deliver(lease(ONE, ms=60_000))
    talk.wait(15_000)
    talk.finish(ONE, Done())

    talk.deliver(lease(TWO, ms=9_000))

    assert talk.starts == [ONE, TWO]


def test_a_job_that_comes_again_while_it_runs_is_not_started_twice() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.deliver(lease(ONE))

    assert talk.starts == [ONE]
    assert talk.drops == [(ONE, Reason.TWICE)]


def test_a_job_that_comes_again_after_it_was_done_is_acknowledged_again() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.finish(ONE, Done())
    talk.wait(3)
    talk.greet()
    talk.wait(3)
    talk.answer(b"ACKJOB", 1)

    talk.deliver(lease(ONE))
    talk.wait(3)

    assert talk.starts == [ONE]
    assert talk.drops == [(ONE, Reason.DONE_BEFORE)]
    assert talk.count(b"ACKJOB") == 2


def test_a_job_that_comes_again_before_it_is_acknowledged_is_acknowledged_once() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.finish(ONE, Done())
    talk.deliver(lease(ONE))

    assert talk.drops == [(ONE, Reason.TWICE)]
    assert settled(talk) == b"ACKJOB " + ONE


def test_what_comes_too_late_is_not_given_back_when_the_worker_stops() -> None:
    talk = Talk()
    talk.greet()
    talk.stop()
    talk.sleep(20_000)
    talk.engine.state.last_turn -= 1
    talk.deliver(lease(ONE, ms=9_000))

    assert talk.drops == [(ONE, Reason.LEASE_OVER)]
    assert talk.count(b"RELEASE") == 0


# Outcomes.


def settled(talk: Talk) -> bytes:
    """What the node is told last, once it is known what it understands."""
    talk.wait(3)
    talk.greet()
    talk.wait(3)
    return b" ".join(talk.said[-1].words)


def test_acknowledgements_wait_a_moment_for_others() -> None:
    talk = Talk()
    talk.deliver(lease(ONE), lease(TWO))
    talk.finish(ONE, Done())
    talk.finish(TWO, Done())

    assert settled(talk) == b"ACKJOB %b %b" % (ONE, TWO)


def test_a_failure_is_given_back_after_its_delay_with_the_token() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.finish(ONE, Retry(1_500_000))

    assert settled(talk) == b"NACK %b@%b DELAY 1.500" % (ONE, TOKEN)


def test_a_failure_without_a_delay_is_left_to_the_job() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.finish(ONE, Retry(0))

    assert settled(talk) == b"NACK %b@%b" % (ONE, TOKEN)


def test_what_can_never_be_done_is_buried_with_the_reason() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.finish(ONE, Dead(b"no such address"))

    assert settled(talk) == b"NACK %b@%b DEAD no such address" % (ONE, TOKEN)


def test_what_was_interrupted_is_released() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.finish(ONE, Release())

    assert settled(talk) == b"RELEASE %b@%b" % (ONE, TOKEN)


def test_a_job_of_one_delivery_ends_either_way() -> None:
    talk = Talk()
    talk.deliver(lease(ONCE, ms=0))
    talk.finish(ONCE, Retry(0))

    assert settled(talk) == b"ACKJOB " + ONCE


def test_an_original_has_no_delay_so_the_worker_waits() -> None:
    talk = Talk(features=b"")
    talk.deliver(plain(ONE))
    talk.finish(ONE, Retry(1_500_000))
    assert talk.count(b"NACK") == 0
    for _ in range(16):
        talk.greet()
        talk.wait(100)
        if talk.waits(b"WORKING") is not None:
            talk.answer(b"WORKING", 10)

    assert talk.last(b"NACK").words == (b"NACK", ONE)


def test_an_original_keeps_no_dead_jobs_so_the_body_moves_to_a_queue_of_them() -> None:
    talk = Talk(features=b"")
    talk.deliver(plain(ONE))
    talk.finish(ONE, Dead(b"no such address"))

    assert settled(talk) == b"ADDJOB dead.q body 5000"
    talk.answer(b"ADDJOB", b"D-id")
    talk.wait(3)
    assert talk.last(b"ACKJOB").words == (b"ACKJOB", ONE)


def test_what_was_not_begun_is_queued_again_at_an_original() -> None:
    talk = Talk(Queue(name=b"q", prefetch=1), features=b"", concurrency=1)
    talk.deliver(plain(ONE), plain(TWO))
    talk.stop()

    assert settled(talk) == b"ENQUEUE " + TWO
