"""Which keys are taken here: by jobs, and for a while by jobs that are gone."""

import pytest

from disque_trio.statemachine.base import ACKED, JobId, Status
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.journaling import kept_keys
from disque_trio.statemachine.key_facts import (
    BACKING_OFF,
    DONE_KEPT,
    ENDED,
    HELD,
    IN_QUEUE,
    KEPT,
    MOVED,
    WAITING,
    WITH_WORKER,
    KeyFact,
)
from disque_trio.statemachine.key_index import TRAIL, facts
from disque_trio.statemachine.messages import DelJob, GotJob, Message, NeedJobs, SetAck, Working
from disque_trio.statemachine.records import DeleteJob, LoadJob, Record
from tests.rig import CALM, JOB, ME, N2, N3, ONCE, Rig
from tests.statemachine.keying import KEY, OTHER, ask, keyed_copy, keyed_rig, say_all, wanted

NAME = (b"q", KEY)
TICK = 10
RECORDING = Config(appendonly=True)


def known(rig: Rig, about: JobId = b"") -> list[KeyFact]:
    return facts(rig.node, NAME, b"", about)


def words(rig: Rig) -> list[int]:
    return [fact.word for fact in known(rig)]


def state(rig: Rig) -> int:
    [fact] = known(rig)
    assert fact.word == HELD
    return fact.state


def reply_of(rig: Rig) -> JobId:
    reply = rig.ask("ADDJOB", "q", "new", 0, "UNIQUE", KEY)
    assert isinstance(reply, Status)
    return reply.text


@pytest.mark.parametrize("verb", ["ACKJOB", "FASTACK"])
def test_a_key_is_free_when_its_job_has_ended(verb: str) -> None:
    rig = Rig()
    job = rig.add("UNIQUE", KEY)
    assert reply_of(rig) == job.id

    rig.ask(verb, job.id)

    assert reply_of(rig) != job.id


def test_a_key_is_free_when_its_job_has_expired() -> None:
    rig = Rig()
    job = rig.add("UNIQUE", KEY, "TTL", 2)

    rig.advance(2000 + TICK)

    assert reply_of(rig) != job.id


@pytest.mark.parametrize("verb", ["ACKJOB", "FASTACK"])
def test_with_keep_the_key_stays_taken_for_a_while(verb: str) -> None:
    rig = Rig()
    job = rig.add("UNIQUE", KEY, "KEEP", "2.5")
    rig.ask(verb, job.id)
    assert reply_of(rig) == job.id

    rig.advance(2400)
    assert reply_of(rig) == job.id
    rig.advance(100 + TICK)

    assert reply_of(rig) != job.id


def test_an_expired_job_keeps_its_key_too() -> None:
    rig = Rig()
    job = rig.add("UNIQUE", KEY, "TTL", 1, "KEEP", 5)

    rig.advance(1000 + TICK)
    assert reply_of(rig) == job.id
    rig.advance(5000)

    assert reply_of(rig) != job.id


def test_the_same_key_in_another_queue_is_another_key() -> None:
    rig = Rig()

    assert rig.add("UNIQUE", KEY, queue="q").id != rig.add("UNIQUE", KEY, queue="other").id


def test_a_job_that_is_acknowledged_and_not_collected_is_known_as_ended() -> None:
    rig = keyed_rig()
    rig.hold(keyed_copy(holders=(N2, N3)))

    rig.ask("ACKJOB", JOB)

    assert rig.node.jobs[JOB].state == ACKED
    assert words(rig) == [ENDED]


def test_an_ack_of_an_unknown_job_is_told_when_the_job_is_asked_about() -> None:
    rig = keyed_rig()

    rig.ask("ACKJOB", JOB)
    assert known(rig) == []

    assert [fact.word for fact in known(rig, JOB)] == [ENDED]


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ([SetAck(JOB, 0)], DONE_KEPT),
        ([SetAck(JOB, 0), DelJob(JOB)], DONE_KEPT),
        ([DelJob(JOB)], WAITING),
        ([DelJob(JOB), SetAck(JOB, 0)], DONE_KEPT),
    ],
)
def test_of_a_job_that_is_gone_it_is_told_whether_it_is_known_as_acknowledged(
    said: list[Message], state: int
) -> None:
    """DELJOB comes of an ADDJOB that has failed, too."""
    rig = keyed_rig()

    for message in said:
        rig.message(N2, message)

    assert [(fact.word, fact.state) for fact in known(rig, JOB)] == [(ENDED, state)]


def test_two_jobs_with_one_key_are_both_known() -> None:
    """They come from two sides of a cut."""
    rig = keyed_rig()
    rig.hold(keyed_copy())
    other = b"D-cccccccc-BBBBBBBBBBBBBBBBBBBBBBBB-05a1"
    rig.hold(keyed_copy(other))

    assert {fact.id for fact in known(rig)} == {JOB, other}
    rig.message(N2, DelJob(JOB))
    assert [fact.id for fact in known(rig)] == [other]


def test_a_key_that_two_jobs_keep_is_taken_until_the_later_end() -> None:
    rig = keyed_rig()
    rig.hold(keyed_copy(keep=2000))
    rig.hold(keyed_copy(OTHER, keep=4000))
    rig.ask("FASTACK", JOB, OTHER)
    assert words(rig) == [KEPT, KEPT]

    rig.advance(2000 + TICK)
    assert [fact.id for fact in known(rig)] == [OTHER]
    rig.advance(2000)

    assert known(rig) == []


def test_a_copy_that_is_deleted_without_an_end_keeps_no_key() -> None:
    """Its ADDJOB may have failed."""
    rig = keyed_rig()
    rig.hold(keyed_copy(keep=5000))

    rig.message(N2, DelJob(JOB))

    assert known(rig) == []


def test_holders_keep_the_key_of_a_job_that_is_acknowledged_elsewhere() -> None:
    rig = keyed_rig()
    rig.hold(keyed_copy(keep=5000, holders=(N2, N3)))

    rig.message(N2, SetAck(JOB, 3))
    rig.message(N2, DelJob(JOB))

    assert words(rig) == [KEPT]


def test_a_job_that_has_gone_to_another_node_is_told_of_for_a_moment() -> None:
    rig = keyed_rig()
    job = keyed_once(rig)
    rig.message(N2, NeedJobs(b"q", 1, waits=True))
    assert job not in rig.node.jobs

    assert words(rig) == [MOVED]
    rig.advance(TRAIL + TICK)

    assert known(rig) == []


def keyed_once(rig: Rig) -> JobId:
    client = ask(rig, "RETRY", 0)
    job = wanted(rig, client)
    say_all(rig)
    return job.id


def test_a_job_that_was_handed_over_is_told_of_for_a_moment() -> None:
    rig = keyed_rig()
    rig.ask("CLUSTER", "LEAVING", "yes")
    client = ask(rig)
    job = wanted(rig, client)
    say_all(rig)

    rig.message(job.holders[0], GotJob(job.id))

    assert rig.reply(client) == Status(job.id)
    assert words(rig) == [MOVED]


def test_a_deleted_copy_is_told_of_for_a_moment() -> None:
    rig = keyed_rig()
    rig.hold(keyed_copy(holders=(ME, N2)))

    rig.ask("DELJOB", JOB)

    assert words(rig) == [MOVED]


def test_a_deleted_job_that_no_other_node_has_had_is_not_told_of() -> None:
    rig = Rig()
    job = rig.add("UNIQUE", KEY)

    rig.ask("DELJOB", job.id)

    assert words(rig) == []


# States.


def test_states() -> None:
    rig = keyed_rig(config=CALM)
    rig.hold(keyed_copy(holders=(N2, N3)))
    assert state(rig) == WAITING
    rig.message(N2, Working(JOB))
    assert state(rig) == WITH_WORKER
    rig.ask("ENQUEUE", JOB)
    assert state(rig) == IN_QUEUE
    rig.ask("GETJOB", "FROM", "q")
    assert state(rig) == WITH_WORKER
    rig.ask("NACK", JOB, "DELAY", 5)
    assert state(rig) == BACKING_OFF
    rig.ask("ENQUEUE", JOB)
    rig.ask("DEQUEUE", JOB)
    assert state(rig) == WAITING


def test_a_job_that_is_delivered_at_most_once_is_with_its_worker() -> None:
    rig = Rig()
    rig.add("UNIQUE", KEY, "RETRY", 0, "REPLICATE", 1)
    rig.ask("GETJOB", "FROM", "q")

    assert state(rig) == WITH_WORKER


# The journal.


def restarted(records: list[Record], rig: Rig, *, after: int = 0) -> Rig:
    """A new process that reads them."""
    again = Rig(config=RECORDING)
    again.advance(rig.now.wall - again.now.wall + after)
    again.machine.load(records, again.now)
    assert again.machine.loaded(again.now)
    again.take()
    return again


def records_of(rig: Rig) -> list[Record]:
    return [record for out in rig.outboxes for record in out.records]


def test_the_index_comes_back_from_the_journal() -> None:
    rig = Rig(config=RECORDING)
    job = rig.add("UNIQUE", KEY)

    again = restarted(records_of(rig), rig)

    assert reply_of(again) == job.id


def test_a_kept_key_comes_back_from_the_journal_for_the_rest_of_its_time() -> None:
    rig = Rig(config=RECORDING)
    job = rig.add("UNIQUE", KEY, "KEEP", 10)
    rig.ask("ACKJOB", job.id)

    again = restarted(records_of(rig), rig, after=4000)

    assert reply_of(again) == job.id
    again.advance(7000 + TICK)
    assert reply_of(again) != job.id


def test_a_key_that_was_freed_does_not_come_back() -> None:
    rig = Rig(config=RECORDING)
    job = rig.add("UNIQUE", KEY, "KEEP", 1)
    rig.ask("ACKJOB", job.id)
    rig.advance(1000 + TICK)

    assert records_of(rig)[-1] == DeleteJob(job.id)
    assert known(restarted(records_of(rig), rig)) == []
    assert known(restarted(records_of(rig)[:-1], rig)) == []


@pytest.mark.parametrize(("waited", "expected"), [(4000, [KEPT]), (10_000 + TICK, [])])
def test_a_file_that_is_written_anew_has_the_keys_of_jobs_that_are_gone(
    waited: int, expected: list[int]
) -> None:
    rig = Rig(config=RECORDING)
    job = rig.add("UNIQUE", KEY, "KEEP", 10)
    rig.ask("ACKJOB", job.id)
    rig.advance(waited)

    again = restarted(list(kept_keys(rig.node)), rig)

    assert not again.node.jobs
    assert words(again) == expected


def test_a_file_that_is_written_anew_has_the_key_of_a_job_that_is_still_here_with_the_job() -> None:
    rig = keyed_rig(config=RECORDING)
    rig.hold(keyed_copy(keep=5000, holders=(N2, N3)))
    rig.ask("ACKJOB", JOB)
    assert KEPT in words(rig)

    assert list(kept_keys(rig.node)) == []


def test_an_acknowledged_job_that_comes_back_keeps_its_key() -> None:
    rig = keyed_rig(config=RECORDING)
    rig.hold(keyed_copy(keep=5000, holders=(N2, N3)))
    rig.ask("ACKJOB", JOB)
    assert KEPT in words(rig)

    again = restarted(records_of(rig), rig)

    assert KEPT in words(again)


def test_flushing_frees_all_keys() -> None:
    rig = Rig(config=RECORDING)
    job = rig.add("UNIQUE", KEY, "KEEP", 100)
    rig.ask("ACKJOB", job.id)
    rig.add("UNIQUE", "other")

    rig.ask("DEBUG", "FLUSHALL")

    assert known(rig) == []
    assert not rig.node.keys.index
    assert isinstance(records_of(rig)[-1], DeleteJob)


def test_an_at_most_once_copy_is_counted_like_another_one() -> None:
    rig = keyed_rig()
    rig.hold(keyed_copy(ONCE, retry=0))

    assert words(rig) == [HELD]
    assert isinstance(records_of(rig), list)
    assert not [each for each in records_of(rig) if isinstance(each, LoadJob)]
