"""Jobs that may have ended their worker begin alone."""

from disque_trio.statemachine.base import NULL_ARRAY, Reply
from disque_trio.worker.engine import suspects
from disque_trio.worker.engine.records import MILLI, Done, Queue, Reason, Retry
from tests.worker.engine.talking import ONCE, ONE, TWO, Talk, lease

TRIAL_MS = suspects.TRIAL // MILLI
PATIENCE_MS = suspects.PATIENCE // MILLI


def ids(count: int) -> list[bytes]:
    return [b"D-11111111-%024d-05a1" % number for number in range(count)]


def hour(id: bytes, again: int = 0) -> Reply:
    """A job whose lease is not over soon."""
    return lease(id, ms=3_600_000, again=again)


def talk_of(concurrency: int = 10, prefetch: int = 10) -> Talk:
    return Talk(Queue(name=b"q", prefetch=prefetch), concurrency=concurrency)


def clear(talk: Talk) -> None:
    """Confirm what a node was told, and end the GETJOB for which a suspect waits."""
    talk.wait(3)
    talk.greet()
    for word in (b"RELEASE", b"ACKJOB"):
        while talk.waits(word) is not None:
            talk.answer(word, 1)
    if suspects.is_on(talk.engine.state) and talk.waits(b"GETJOB") is not None:
        talk.answer(b"GETJOB", NULL_ARRAY)


def test_a_suspect_begins_when_the_jobs_that_run_have_ended() -> None:
    talk = talk_of()
    talk.deliver(hour(ONE))
    talk.deliver(hour(TWO, again=1))
    clear(talk)
    assert talk.starts == [ONE]

    talk.finish(ONE, Done())
    talk.wait(3)
    talk.greet()
    assert talk.starts == [ONE]
    talk.answer(b"ACKJOB", 1)

    assert talk.starts == [ONE, TWO]


def test_what_would_wait_for_a_suspect_is_given_back_and_that_is_confirmed_before_it_begins() -> (
    None
):
    talk = talk_of()
    talk.deliver(hour(ONE, again=1), hour(TWO))
    talk.wait(1)
    talk.greet()

    assert talk.starts == []
    assert talk.drops == [(TWO, Reason.RELEASED)]
    assert talk.last(b"RELEASE").words[1].startswith(TWO)
    talk.answer(b"RELEASE", 1)
    assert talk.starts == [ONE]


def test_no_job_is_taken_while_a_suspect_waits_or_is_on_trial() -> None:
    talk = talk_of(concurrency=2)
    talk.deliver(hour(ONE))
    assert talk.waits(b"GETJOB") is not None
    talk.deliver(hour(TWO, again=1))
    assert talk.waits(b"GETJOB") is None
    talk.finish(ONE, Done())
    clear(talk)
    assert talk.starts == [ONE, TWO]
    talk.wait(TRIAL_MS - 1)
    assert talk.waits(b"GETJOB") is None

    talk.wait(2)

    assert talk.waits(b"GETJOB") is not None


def test_a_job_with_a_second_suspicion_is_alone_until_it_has_ended() -> None:
    talk = talk_of()
    talk.deliver(hour(ONE, again=2))
    talk.wait(10 * TRIAL_MS)
    assert talk.starts == [ONE]
    assert talk.waits(b"GETJOB") is None

    talk.finish(ONE, Done())

    assert talk.waits(b"GETJOB") is not None


def test_after_each_trial_that_has_passed_twice_as_many_are_tried_together() -> None:
    talk = talk_of()
    jobs = ids(20)
    sizes = []
    while len(talk.starts) < 20:
        before = len(talk.starts)
        rest = [id for id in jobs if id not in talk.starts]
        talk.deliver(*(hour(id, again=1) for id in rest))
        clear(talk)
        sizes.append(len(talk.starts) - before)
        for id in talk.starts[before:]:
            talk.finish(id, Done())
        clear(talk)

    assert sizes == [1, 2, 4, 8, 5]


def test_while_suspects_come_no_more_are_taken_than_are_tried() -> None:
    talk = talk_of()
    talk.deliver(hour(ONE, again=1))
    talk.finish(ONE, Done())
    assert b"COUNT 2" in b" ".join(talk.last(b"GETJOB").words)

    talk.deliver(hour(TWO))

    assert b"COUNT 19" in b" ".join(talk.last(b"GETJOB").words)


def test_a_suspect_does_not_wait_for_ever() -> None:
    talk = talk_of(concurrency=2)
    talk.deliver(hour(ONE))
    talk.deliver(hour(TWO, again=2))
    talk.wait(PATIENCE_MS - 1)
    assert talk.starts == [ONE]

    talk.wait(2)

    assert talk.starts == [ONE, TWO]


def test_a_handler_that_does_not_end_keeps_no_suspect_from_beginning() -> None:
    talk = Talk(Queue(name=b"q", limit=MILLI), concurrency=2)
    talk.deliver(hour(ONE))
    talk.deliver(hour(TWO, again=1))
    talk.wait(2)
    assert talk.starts == [ONE]

    talk.engine.stuck(talk.now, ONE)
    talk.listen()

    assert talk.starts == [ONE, TWO]


def test_a_job_of_one_delivery_begins_before_a_suspect() -> None:
    talk = talk_of()
    talk.deliver(hour(ONE, again=1), lease(ONCE, ms=0))
    assert talk.starts == [ONCE]

    talk.finish(ONCE, Done())
    clear(talk)

    assert talk.starts == [ONCE, ONE]


def test_the_trial_of_a_job_that_fails_is_over() -> None:
    talk = talk_of()
    talk.deliver(hour(ONE, again=2))
    talk.finish(ONE, Retry(0))

    assert talk.waits(b"GETJOB") is not None
