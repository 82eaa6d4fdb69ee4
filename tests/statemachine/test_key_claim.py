"""UNIQUE between nodes: who asks whom, what the answers mean, and who waits for whom."""

import pytest

from disque_trio.statemachine.base import Failure, Status
from disque_trio.statemachine.key_facts import ENDED, KEPT
from disque_trio.statemachine.key_search import ASK_EVERY
from disque_trio.statemachine.messages import DelJob, GotJob, KeyAnswer, ReplJob
from tests.rig import CALM, JOB, N2, N3, Rig
from tests.statemachine.keying import (
    EARLY,
    KEY,
    LATE,
    OTHER,
    answers,
    ask,
    claim_of,
    claims,
    fact,
    held,
    keyed_copy,
    keyed_rig,
    pending,
    say,
    say_all,
    wanted,
)

TICK = 10


def test_a_node_alone_adds_the_job_at_once() -> None:
    rig = Rig()

    job = rig.add("UNIQUE", KEY)

    assert rig.ask("ADDJOB", "q", "other", 0, "UNIQUE", KEY) == Status(job.id)
    assert [each.id for each in rig.node.jobs.values()] == [job.id]


def test_the_job_is_added_when_all_have_said_that_the_key_is_free() -> None:
    rig = keyed_rig()
    client = ask(rig)
    job = wanted(rig, client)
    asked = claims(rig)
    assert [to for to, _ in asked] == [N2, N3]
    assert not rig.node.jobs

    say(rig, N2, asked[0][1])
    assert rig.replies(client) == []
    say(rig, N3, asked[1][1])

    assert rig.reply(client) == Status(job.id)
    assert rig.node.jobs[job.id] is job


def test_no_copy_is_sent_before_and_the_client_waits_for_copies_afterwards() -> None:
    rig = keyed_rig()
    client = ask(rig, "REPLICATE", 3)
    job = wanted(rig, client)
    asked = rig.sent()
    assert not [said for _, said in asked if isinstance(said, ReplJob)]

    for to, said in asked:
        rig.message(to, KeyAnswer(said.number, said.round, ()))  # type: ignore[union-attr]

    assert {to for to, said in rig.sent() if isinstance(said, ReplJob)} == {N2, N3}
    assert rig.replies(client) == []
    rig.message(N2, GotJob(job.id))
    rig.message(N3, GotJob(job.id))
    assert rig.reply(client) == Status(job.id)


def test_with_async_the_client_waits_for_the_key_alone() -> None:
    rig = keyed_rig()
    client = ask(rig, "REPLICATE", 3, "ASYNC")
    job = wanted(rig, client)

    say_all(rig)

    assert rig.reply(client) == Status(job.id)
    assert len(job.holders) == 3


def test_the_times_of_a_job_count_from_the_moment_it_has_its_key() -> None:
    rig = keyed_rig(config=CALM)
    client = ask(rig, "DELAY", 5, "TTL", 60)
    asked = claims(rig)
    rig.advance(2000)
    for to, claim in asked:
        say(rig, to, claim)

    job = rig.node.jobs[rig.reply(client).text]  # type: ignore[union-attr]

    assert job.requeue_at - rig.now.mono == 5000
    assert job.expires - rig.now.mono == 60_000
    assert job.made == rig.now.wall


def test_a_job_is_refused_whose_queue_is_paused_while_it_waits_for_its_key() -> None:
    rig = keyed_rig()
    client, later = ask(rig), ask(rig)
    rig.ask("PAUSE", "q", "in", client=rig.connect())

    say_all(rig)
    say_all(rig)

    paused = Failure(b"PAUSED Queue paused in input, try later")
    assert rig.reply(client) == rig.reply(later) == paused
    assert not rig.node.jobs
    assert not rig.node.adding


# Another job has the key.


def test_the_client_is_given_the_id_of_the_job_that_has_the_key() -> None:
    rig = keyed_rig()
    client = ask(rig)

    say_all(rig, held())

    assert rig.reply(client) == Status(JOB)
    assert not rig.node.jobs


def test_reject_tells_the_id_and_the_state() -> None:
    rig = keyed_rig()
    client = ask(rig, "IFEXISTS", "reject")

    say_all(rig, held())

    assert rig.reply(client) == Failure(b"DUPLICATE %b queued" % JOB)


def test_before_the_id_is_told_all_are_asked_whether_the_job_has_ended() -> None:
    rig = keyed_rig()
    client = ask(rig)
    asked = claims(rig)
    say(rig, N2, asked[0][1], held())
    again = claims(rig)
    assert [(to, claim.about) for to, claim in again] == [(N2, JOB), (N3, JOB)]

    say(rig, N2, again[0][1], held())
    say(rig, N3, again[1][1], fact(ENDED))

    assert rig.reply(client) != Status(JOB)


def test_an_answer_to_an_earlier_question_does_not_count() -> None:
    rig = keyed_rig()
    client = ask(rig)
    asked = claims(rig)
    say(rig, N2, asked[0][1], held())

    say(rig, N3, asked[1][1])
    say(rig, N2, asked[0][1], held())

    assert rig.replies(client) == []


def test_an_answer_that_nobody_waits_for_is_dropped() -> None:
    rig = keyed_rig()

    rig.message(N2, KeyAnswer(7, 1, (held(),)))

    assert rig.sent() == []


def test_a_kept_key_is_told_like_a_job() -> None:
    rig = keyed_rig()
    clients = [ask(rig), ask(rig, "IFEXISTS", "reject")]

    say_all(rig, fact(KEPT))

    assert rig.reply(clients[0]) == Status(JOB)
    assert rig.reply(clients[1]) == Failure(b"DUPLICATE %b done-kept" % JOB)


def test_of_several_jobs_with_the_key_the_first_one_is_told() -> None:
    rig = keyed_rig()
    client = ask(rig)

    say_all(rig, held(JOB, 20), held(OTHER, 10))

    assert rig.reply(client) == Status(OTHER)


def test_of_two_jobs_one_of_which_has_ended_the_other_one_is_told() -> None:
    rig = keyed_rig()
    client = ask(rig)
    for _ in range(4):
        for to, claim in claims(rig):
            ended = [fact(ENDED, OTHER, 0)] if claim.about == OTHER and to == N3 else []
            say(rig, to, claim, held(JOB, 20), held(OTHER, 10), *ended)

    assert rig.reply(client) == Status(JOB)


# Several ADDJOBs at the same time.


def test_a_later_claim_of_another_node_waits_for_ours() -> None:
    rig = keyed_rig()
    client = ask(rig)
    job = wanted(rig, client)
    asked = claims(rig)

    rig.message(N2, claim_of(stamp=LATE))

    assert answers(rig) == [(N2, (pending(job.id, job.ctime),))]
    for to, claim in asked:
        say(rig, to, claim)
    [(to, [told])] = answers(rig)
    assert (to, told.id, told.word) == (N2, job.id, held().word)


def test_an_earlier_claim_of_another_node_goes_first() -> None:
    rig = keyed_rig()
    client = ask(rig)
    asked = claims(rig)
    say(rig, N2, asked[0][1])

    rig.message(N2, claim_of(stamp=EARLY))

    again, told = rig.sent()
    assert told == (N2, KeyAnswer(1, 1, ()))
    say(rig, N3, asked[1][1])
    assert rig.replies(client) == []
    say(rig, N2, asked[0][1])
    assert rig.replies(client) == [], "the answer is older than the claim"
    say(rig, N2, again[1])  # type: ignore[arg-type]
    assert rig.reply(client) != Status(OTHER)


def test_it_is_asked_about_only_once() -> None:
    rig = keyed_rig()
    ask(rig)
    rig.sent()

    rig.message(N2, claim_of(stamp=EARLY))
    assert len(claims(rig)) == 1
    rig.message(N2, claim_of(stamp=EARLY))

    assert claims(rig) == []


def test_a_claim_waits_while_an_addjob_elsewhere_waits() -> None:
    rig = keyed_rig()
    client = ask(rig)

    say_all(rig, pending())
    assert rig.replies(client) == []
    rig.advance(ASK_EVERY + TICK)
    say_all(rig)

    assert isinstance(rig.reply(client), Status)


def test_clients_of_one_node_are_answered_by_one_question() -> None:
    rig = keyed_rig()
    first, second = ask(rig), ask(rig)
    assert len(claims(rig)) == 2

    rig.advance(ASK_EVERY + TICK)
    say_all(rig, held())

    assert rig.reply(first) == rig.reply(second) == Status(JOB)


def test_the_second_one_is_given_the_id_of_the_first_ones_job() -> None:
    rig = keyed_rig()
    first, second = ask(rig), ask(rig)

    say_all(rig)
    rig.advance(TICK)
    say_all(rig)

    assert rig.reply(first) == rig.reply(second)


def test_one_that_comes_after_the_question_asks_itself() -> None:
    rig = keyed_rig()
    first = ask(rig)
    for to, claim in claims(rig):
        say(rig, to, claim, held())
    asked = claims(rig)
    second = ask(rig)

    for to, claim in asked:
        say(rig, to, claim, held())

    assert rig.reply(first) == Status(JOB)
    assert rig.replies(second) == [], "the job may have ended before it came"
    say_all(rig, held())
    assert rig.reply(second) == Status(JOB)


def test_while_the_job_of_the_first_waits_for_copies_the_second_waits_for_it() -> None:
    rig = keyed_rig()
    first = ask(rig, "REPLICATE", 2)
    second = ask(rig)
    job = wanted(rig, first)
    say_all(rig)
    rig.advance(ASK_EVERY + TICK)
    assert rig.replies(second) == []

    rig.message(job.holders[1], GotJob(job.id))
    rig.advance(TICK)
    say_all(rig, held(job.id))

    assert rig.reply(first) == rig.reply(second) == Status(job.id)


def test_a_claim_of_another_node_waits_for_a_job_that_waits_for_copies() -> None:
    rig = keyed_rig()
    client = ask(rig, "REPLICATE", 2)
    job = wanted(rig, client)
    say_all(rig)
    rig.sent()

    rig.message(N2, claim_of(stamp=EARLY))

    [(_, [told])] = answers(rig)
    assert told == pending(job.id, job.ctime)


@pytest.mark.parametrize("leaves", [True, False])
def test_if_the_job_of_the_first_comes_to_nothing_the_second_one_goes_on(leaves: bool) -> None:
    rig = keyed_rig()
    first = ask(rig, "REPLICATE", 2, timeout=500)
    second = ask(rig)
    job = wanted(rig, first)
    say_all(rig)

    if leaves:
        rig.disconnect(first)
    else:
        rig.advance(500 + TICK)
        assert isinstance(rig.reply(first), Failure)
    assert DelJob(job.id) in [said for _, said in rig.sent()]
    rig.advance(ASK_EVERY + TICK)
    say_all(rig, held(job.id), fact(ENDED, job.id))

    assert rig.reply(second) != Status(job.id)


def test_nobody_is_given_the_id_of_a_job_that_came_to_nothing() -> None:
    rig = keyed_rig()
    first = ask(rig, "REPLICATE", 2)
    job = wanted(rig, first)
    say_all(rig)
    rig.disconnect(first)
    rig.sent()

    rig.message(N2, claim_of(about=job.id))

    [(_, [told])] = answers(rig)
    assert (told.id, told.word) == (job.id, ENDED)


def test_nor_if_a_holder_that_was_not_told_knows_for_how_long_the_key_was_to_be_kept() -> None:
    rig = keyed_rig()
    rig.hold(keyed_copy(keep=4000))
    rig.message(N2, DelJob(JOB))
    rig.sent()
    client = ask(rig)
    job = wanted(rig, client)

    say_all(rig, held(keep=4000))

    assert rig.reply(client) == Status(job.id)


def test_the_key_is_kept_if_one_node_knows_that_the_job_is_acknowledged() -> None:
    rig = keyed_rig()
    rig.ask("ACKJOB", JOB)
    rig.sent()
    client = ask(rig)

    say_all(rig, held(keep=4000))

    assert rig.reply(client) == Status(JOB)
