"""Results that nodes keep: what the engine acknowledges a job with, at which node."""

import pytest

from disque_trio.worker.engine.outcomes import LONGEST_KEPT
from disque_trio.worker.engine.records import Done, Reason
from tests.worker.engine.talking import FEATURES, ONE, TWO, Talk, lease

KEEPING = FEATURES + b",results"
KEPT = Done(b"seven", 60)
WITH = (b"ACKJOB", ONE, b"RESULT", b"seven", b"KEEP", b"60")


def talk_of(*ids: bytes, features: bytes = KEEPING) -> Talk:
    """Jobs that run, in a worker that knows what the node understands."""
    talk = Talk(features=features)
    talk.deliver(*map(lease, ids))
    return talk


def acked(talk: Talk) -> list[tuple[bytes, ...]]:
    """The acknowledgements so far."""
    talk.wait(3)
    talk.greet()
    talk.wait(3)
    return [send.words for send in talk.said if send.words[0] == b"ACKJOB"]


def test_a_result_goes_with_the_acknowledgement_of_its_job_alone() -> None:
    talk = talk_of(ONE, TWO)
    talk.finish(ONE, KEPT)
    talk.finish(TWO, KEPT)

    assert acked(talk) == [WITH, (b"ACKJOB", TWO, *WITH[2:])]


def test_jobs_without_results_are_still_acknowledged_together() -> None:
    talk = talk_of(ONE, TWO)
    talk.finish(ONE, Done())
    talk.finish(TWO, Done())

    assert acked(talk) == [(b"ACKJOB", ONE, TWO)]


def test_an_empty_result_is_a_result() -> None:
    talk = talk_of(ONE)
    talk.finish(ONE, Done(b"", 5))

    assert acked(talk) == [(b"ACKJOB", ONE, b"RESULT", b"", b"KEEP", b"5")]


def test_a_node_that_keeps_none_is_told_without_and_that_is_reported_once() -> None:
    talk = talk_of(ONE, TWO, features=FEATURES)
    talk.finish(ONE, KEPT)
    talk.finish(TWO, KEPT)

    assert acked(talk) == [(b"ACKJOB", ONE, TWO)]
    assert talk.drops == [(ONE, Reason.NOT_KEPT)]


@pytest.mark.parametrize("error", [b"ERR A result has at most 4 bytes", b"OOM too many jobs"])
def test_a_result_that_the_node_refuses_is_lost_and_its_job_is_done(error: bytes) -> None:
    talk = talk_of(ONE)
    talk.finish(ONE, KEPT)
    acked(talk)

    talk.refuse(b"ACKJOB", error)

    assert acked(talk) == [WITH, (b"ACKJOB", ONE)]
    assert talk.drops == [(ONE, Reason.RESULT_REFUSED)]
    talk.answer(b"ACKJOB", 1)
    assert not talk.engine.state.jobs


def test_a_node_that_cannot_acknowledge_now_is_told_the_result_again() -> None:
    talk = talk_of(ONE)
    talk.finish(ONE, KEPT)
    acked(talk)

    talk.refuse(b"ACKJOB", b"LOADING it starts")
    talk.greet()
    talk.wait(1_001)

    assert acked(talk) == [WITH, WITH]
    assert talk.drops == []


def test_a_result_whose_node_is_gone_goes_to_another_one() -> None:
    talk = talk_of(ONE)
    talk.finish(ONE, KEPT)
    acked(talk)

    talk.lose("n1")
    talk.wait(3)

    assert acked(talk) == [WITH, WITH]
    assert talk.last(b"ACKJOB").node != "n1"


def test_a_job_that_comes_again_is_acknowledged_with_its_result_again() -> None:
    talk = talk_of(ONE)
    talk.finish(ONE, KEPT)
    acked(talk)
    talk.answer(b"ACKJOB", 1)

    talk.deliver(lease(ONE))

    assert acked(talk) == [WITH, WITH]
    assert (talk.starts, talk.drops) == ([ONE], [(ONE, Reason.DONE_BEFORE)])


def test_a_job_with_a_long_result_runs_again_because_only_that_gives_it_again() -> None:
    talk = talk_of(ONE)
    talk.finish(ONE, Done(b"x" * (LONGEST_KEPT + 1), 60))
    assert len(acked(talk)) == 1
    talk.answer(b"ACKJOB", 1)

    talk.deliver(lease(ONE))

    assert talk.starts == [ONE, ONE]


def test_outcomes_with_and_without_a_result_are_the_same_end() -> None:
    assert Done(b"seven", 60) == Done()
