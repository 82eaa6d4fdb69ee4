"""Jobs are held at the node until they begin here."""

from disque_trio.statemachine.base import NULL_ARRAY
from disque_trio.worker.engine import beginning
from disque_trio.worker.engine.records import Done, Queue, Reason, Send
from tests.worker.engine.talking import FEATURES, ONCE, ONE, TOKEN, TWO, Talk, lease

HELD = FEATURES + b",held"


def talk_of(features: bytes = HELD, **settings: object) -> Talk:
    talk = Talk(Queue(name=b"q", prefetch=1), features=features, concurrency=1, **settings)
    talk.greet()
    return talk


def begins(talk: Talk) -> list[Send]:
    return [send for send in talk.said if send.words[0] == b"BEGIN"]


def test_jobs_are_asked_for_as_held_where_the_node_can_and_ties_are_wanted() -> None:
    assert b"WITHMETA TIED HELD FROM" in b" ".join(talk_of().last(b"GETJOB").words)
    assert b"HELD" not in talk_of(FEATURES).last(b"GETJOB").words
    assert b"HELD" not in talk_of(has_ties=False).last(b"GETJOB").words


def test_only_what_begins_is_named_and_what_may_have_ended_a_worker_before_it_starts() -> None:
    talk = talk_of()
    fetch = talk.deliver(lease(ONE, was_unbegun=True), lease(TWO, was_unbegun=True))

    [begin] = begins(talk)
    assert begin.words == (b"BEGIN", ONE + b"@" + TOKEN)
    assert begin.is_first
    assert begin.link != fetch.link  # a GETJOB may wait there

    talk.finish(ONE, Done())
    assert begins(talk)[1].words == (b"BEGIN", TWO + b"@" + TOKEN)


def test_jobs_that_are_not_held_need_no_word() -> None:
    talk = talk_of(FEATURES)
    talk.deliver(lease(ONE))
    once = talk_of()
    once.deliver(lease(ONCE, ms=0))

    assert talk.starts == [ONE]
    assert once.starts == [ONCE]
    assert begins(talk) == begins(once) == []


def test_jobs_that_run_are_named_again_if_the_node_may_not_have_heard() -> None:
    talk = talk_of()
    talk.deliver(lease(ONE, ms=60_000, was_unbegun=True))
    [begin] = begins(talk)
    talk.engine.lost(talk.now, begin.link)
    talk.listen()
    talk.wait(1_100)  # the node rests for a second

    assert begins(talk)[1].words == begin.words
    assert begins(talk)[1].link != begin.link


def test_a_job_that_comes_again_while_it_runs_begins_again() -> None:
    talk = talk_of()
    talk.deliver(lease(ONE, was_unbegun=True))
    talk.deliver(lease(ONE, was_unbegun=True))

    assert talk.drops == [(ONE, Reason.TWICE)]
    assert [send.words[0] for send in begins(talk)] == [b"BEGIN", b"BEGIN"]


def test_a_job_that_comes_again_while_its_cancelled_handler_runs_begins_after_it() -> None:
    talk = talk_of()
    talk.deliver(lease(ONE))
    talk.wait(3_001)
    talk.refuse(b"WORKING", b"LOST The job was given to somebody else since")
    told = len(begins(talk))
    talk.deliver(lease(ONE, again=1))
    talk.wait(100)
    assert len(begins(talk)) == told

    talk.finish(ONE, None)
    talk.answer(b"GETJOB", NULL_ARRAY)

    assert talk.starts == [ONE, ONE]
    assert len(begins(talk)) == told + 1


def test_other_jobs_are_named_if_they_still_run_after_a_moment() -> None:
    talk = talk_of()
    talk.deliver(lease(ONE), lease(TWO))
    talk.finish(ONE, Done())
    assert talk.starts == [ONE, TWO]
    talk.wait(19)
    assert begins(talk) == []

    talk.wait(2)

    [begin] = begins(talk)
    assert begin.words == (b"BEGIN", TWO + b"@" + TOKEN)


def test_a_suspect_is_named_before_it_starts() -> None:
    talk = talk_of()
    talk.deliver(lease(ONE, again=1))

    assert [send.is_first for send in begins(talk)] == [True]


def test_one_of_many_jobs_is_named_before_it_starts() -> None:
    talk = talk_of()
    talk.engine.state.begun_count = beginning.SAMPLE - 2
    talk.deliver(lease(ONE), lease(TWO))
    assert begins(talk) == []

    talk.finish(ONE, Done())

    assert [send.words[1] for send in begins(talk)] == [TWO + b"@" + TOKEN]
