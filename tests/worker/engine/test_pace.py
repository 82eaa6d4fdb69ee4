"""How many jobs are held, by time."""

from disque_trio.worker.engine import pace
from disque_trio.worker.engine.records import SECOND, Done, Queue
from tests.worker.engine.talking import ONCE, Talk, lease


def talk_of(prefetch: int = 1_000, prefetch_window: int = SECOND // 4) -> Talk:
    talk = Talk(
        Queue(name=b"q", prefetch=prefetch), concurrency=10, prefetch_window=prefetch_window
    )
    talk.greet()
    return talk


def may_hold(talk: Talk) -> int:
    """How many jobs more than run."""
    [queue] = talk.engine.state.queues.values()
    return pace.prefetch(talk.engine.state, talk.now, queue)


def ids(first: int, count: int) -> list[bytes]:
    return [b"D-11111111-%024d-05a1" % (first + each) for each in range(count)]


def run(talk: Talk, first: int, count: int, ms: int = 9_000) -> None:
    """So many jobs come, run, and end at once."""
    jobs = ids(first, count)
    talk.deliver(*(lease(id, ms=ms) for id in jobs))
    for id in jobs:
        talk.finish(id, Done())
    talk.wait(3)
    talk.answer(b"ACKJOB", count)


def test_a_worker_that_begins_holds_nothing() -> None:
    assert may_hold(talk_of()) == 0


def test_as_many_are_held_as_end_in_a_quarter_of_a_second() -> None:
    talk = talk_of()
    run(talk, 0, 10)
    run(talk, 10, 10)

    run(talk, 20, 10)

    run(talk, 30, 2)  # 32 in this second
    assert may_hold(talk) == 8


def test_the_pace_of_two_seconds_ago_counts_no_more() -> None:
    talk = talk_of()
    for first in (0, 10, 20):
        run(talk, first, 10)
    talk.wait(2_000)

    run(talk, 40, 1)

    assert may_hold(talk) == 0


def test_slow_jobs_are_not_held() -> None:
    talk = talk_of()
    for first in range(10):
        talk.wait(1_000)
        run(talk, 10 * first, 1, ms=60_000)

    assert may_hold(talk) == 0


def test_no_more_are_held_than_end_in_a_quarter_of_their_lease() -> None:
    talk = talk_of()
    for first in (0, 10, 20, 30):
        run(talk, first, 10, ms=400)

    run(talk, 40, 1, ms=400)

    assert may_hold(talk) == 4


def test_there_is_a_most() -> None:
    talk = talk_of(prefetch=3)
    for first in range(0, 50, 10):
        run(talk, first, 10)

    assert may_hold(talk) == 3


def test_large_bodies_are_not_held_in_large_numbers() -> None:
    talk = talk_of()
    for first in range(0, 50, 10):
        run(talk, first, 10)
    [id] = ids(60, 1)
    row = lease(id)
    assert isinstance(row, list)
    row[2] = b"x" * (4 << 20)

    talk.deliver(row)
    talk.finish(id, Done())

    assert may_hold(talk) == 2


def test_nothing_is_held_of_a_queue_with_jobs_that_are_given_once() -> None:
    talk = talk_of()
    talk.deliver(lease(ONCE))
    talk.finish(ONCE, Done())
    for first in range(0, 50, 10):
        run(talk, first, 10)

    assert may_hold(talk) == 0


def test_more_is_asked_for_once_jobs_are_fast() -> None:
    talk = talk_of()
    for first in range(0, 100, 10):
        run(talk, first, 10)
    talk.deliver(*(lease(id) for id in ids(100, 10)))

    words = talk.last(b"GETJOB").words
    assert int(words[words.index(b"COUNT") + 1]) == 25
