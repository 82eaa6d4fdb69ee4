"""When a worker that runs what is there (`--burst`) ends."""

from disque_trio.statemachine.base import NULL_ARRAY
from disque_trio.worker.engine.records import Done, Queue
from tests.worker.engine.talking import ONE, TWO, Talk, lease


def test_a_worker_that_runs_what_is_there_stops_when_nothing_is() -> None:
    talk = Talk(Queue(name=b"q"), concurrency=2, is_burst=True)
    talk.deliver(lease(ONE))
    assert b"TIMEOUT 500" in b" ".join(talk.last(b"GETJOB").words)
    talk.answer(b"GETJOB", NULL_ARRAY)
    talk.finish(ONE, Done())
    talk.deliver(lease(TWO))
    talk.finish(TWO, Done())
    talk.wait(3)
    talk.greet()
    assert not talk.engine.is_stopped

    talk.answer(b"GETJOB", NULL_ARRAY)
    talk.wait(3)
    talk.answer(b"ACKJOB", 2)

    assert talk.engine.is_stopped


def test_a_refusal_does_not_mean_that_there_are_no_jobs() -> None:
    talk = Talk(is_burst=True)
    talk.greet()
    talk.refuse(b"GETJOB", b"LEAVING this node is leaving")
    talk.greet()

    assert not talk.engine.is_stopped
    assert talk.last(b"GETJOB").node == "n2"


def test_an_empty_reply_ends_a_burst_only_if_all_queues_were_asked() -> None:
    talk = Talk(Queue(name=b"few", concurrency=1), Queue(name=b"q"), is_burst=True, concurrency=5)
    talk.deliver(lease(ONE, b"few"))
    assert talk.last(b"GETJOB").words[-2:] == (b"FROM", b"q")
    talk.finish(ONE, Done())
    talk.wait(3)
    talk.greet()
    talk.wait(3)
    talk.answer(b"ACKJOB", 1)

    talk.answer(b"GETJOB", NULL_ARRAY)
    assert not talk.engine.is_stopped
    assert talk.last(b"GETJOB").words[-2:] == (b"q", b"few")

    talk.answer(b"GETJOB", NULL_ARRAY)
    assert talk.engine.is_stopped


def test_a_reply_whose_jobs_were_done_before_does_not_end_a_burst() -> None:
    talk = Talk(is_burst=True)
    talk.deliver(lease(ONE))
    talk.finish(ONE, Done())
    talk.wait(3)
    talk.greet()

    talk.answer(b"GETJOB", [lease(ONE)])

    assert talk.waits(b"GETJOB") is not None


def test_a_wait_for_jobs_that_was_ended_early_does_not_end_a_burst() -> None:
    talk = Talk(is_burst=True)
    talk.greet()
    talk.engine.quiet(talk.now)
    talk.engine.resume(talk.now)
    talk.listen()

    talk.answer(b"GETJOB", NULL_ARRAY)

    assert talk.waits(b"GETJOB") is not None
