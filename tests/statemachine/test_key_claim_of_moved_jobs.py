"""UNIQUE at a node that the job with the key has left a moment ago."""

import pytest

from disque_trio.statemachine import key_ordering
from disque_trio.statemachine.base import Status
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.key_facts import ENDED, GIVEN_OUT, MOVED
from disque_trio.statemachine.key_index import TRAIL
from disque_trio.statemachine.key_search import ASK_EVERY
from disque_trio.statemachine.messages import NeedJobs
from tests.rig import JOB, ME, N2, N3, Rig
from tests.statemachine.keying import (
    KEY,
    answers,
    ask,
    claim_of,
    claims,
    fact,
    held,
    keyed_copy,
    keyed_rig,
    say,
    say_all,
    wanted,
)

TICK = 10


def test_a_claim_at_the_node_that_the_job_has_left_asks_where_it_is() -> None:
    rig = keyed_rig()
    first = ask(rig, "RETRY", 0)
    job = wanted(rig, first)
    say_all(rig)
    rig.message(N2, NeedJobs(b"q", 1, waits=True))
    assert job.id not in rig.node.jobs
    client = ask(rig)

    rig.advance(ASK_EVERY + TICK)
    for _ in range(2):
        for to, claim in claims(rig):
            say(rig, to, claim, *([held(job.id, job.ctime)] if to == N2 else []))

    assert rig.reply(client) == Status(job.id)


def asked_while_it_moves(rig: Rig) -> Client:
    """N3 has answered before the job has come to it, and N2 afterwards, from where it comes."""
    client = ask(rig)
    for to, claim in claims(rig):
        say(rig, to, claim, *([fact(MOVED)] if to == N2 else []))
    assert rig.replies(client) == []
    return client


def test_a_job_that_is_on_its_way_is_found_where_it_has_come_to() -> None:
    rig = keyed_rig()
    client = asked_while_it_moves(rig)

    rig.advance(ASK_EVERY + TICK)
    for to, claim in claims(rig):
        assert claim.about == JOB
        say(rig, to, claim, *([held()] if to == N3 else []))

    assert rig.reply(client) == Status(JOB)


def test_a_key_is_free_as_soon_as_a_job_that_has_moved_has_ended() -> None:
    rig = keyed_rig()
    client = asked_while_it_moves(rig)
    job = wanted(rig, client)

    rig.advance(ASK_EVERY + TICK)
    for to, claim in claims(rig):
        say(rig, to, claim, fact(MOVED if to == N2 else ENDED))

    assert rig.reply(client) == Status(job.id)


def moved_and_ended(rig: Rig, rounds: int) -> None:
    """N2 says that the job has left, and who asks about it hears from N3 that it has ended."""
    for _ in range(rounds):
        asked = claims(rig)
        if not asked:
            rig.advance(ASK_EVERY + TICK)
        for to, claim in asked:
            facts = [fact(MOVED)] if to == N2 else [fact(ENDED)] if claim.about == JOB else []
            say(rig, to, claim, *facts)


def test_a_replacement_hears_of_the_end_of_a_moved_job_while_another_one_lives() -> None:
    rig = keyed_rig()
    ask(rig, "DELAY", 60)
    say_all(rig)
    client = ask(rig, "IFEXISTS", "replace")
    replacement = wanted(rig, client)

    moved_and_ended(rig, 6)
    assert replacement.id in rig.node.jobs
    moved_and_ended(rig, 6)

    assert rig.reply(client) == Status(replacement.id)


def test_a_lookup_hears_of_the_end_of_a_moved_job() -> None:
    rig = keyed_rig()
    client = rig.connect()
    rig.request("SHOW", "KEY", "q", KEY, client=client)

    moved_and_ended(rig, 3)

    assert rig.replies(client) == [None]


def test_a_job_stays_once_it_has_heard_of_the_end_of_an_earlier_one_that_has_moved() -> None:
    rig = keyed_rig()
    ask(rig)
    say_all(rig)
    rig.sent()
    key_ordering.begin_reconcile(rig.node)
    rig.advance(key_ordering.RECONCILE_EVERY + TICK)

    moved_and_ended(rig, 3)

    assert rig.node.keys.searches == {}


@pytest.mark.parametrize("to", ["a node", "a worker"])
def test_a_job_that_has_gone_to_another_queue_was_not_delivered(to: str) -> None:
    rig = keyed_rig()
    ask(rig, "RETRY", 60)
    say_all(rig)
    if to == "a node":
        rig.message(N2, NeedJobs(b"q", 1, waits=True))
    else:
        rig.ask("GETJOB", "FROM", "q")

    rig.message(N3, claim_of())

    [(_, [told])] = answers(rig)
    assert (told.marks == GIVEN_OUT) == (to == "a worker")


def test_nobody_is_believed_who_has_answered_before_a_job_came() -> None:
    rig = keyed_rig()
    client = ask(rig)
    [(_, claim), (_, late)] = claims(rig)
    say(rig, N2, claim, fact(MOVED))
    rig.advance(ASK_EVERY + TICK)
    say(rig, N2, dict(claims(rig))[N2])

    say(rig, N3, late)
    assert rig.replies(client) == []
    rig.advance(ASK_EVERY + TICK)
    say_all(rig, held())

    assert rig.reply(client) == Status(JOB)


def test_the_key_of_a_deleted_job_is_free_at_once_if_no_other_node_has_had_it() -> None:
    rig = Rig()
    rig.ask("DELJOB", rig.add("UNIQUE", KEY).id)

    assert isinstance(rig.ask("ADDJOB", "q", "b", 0, "UNIQUE", KEY), Status)


def test_the_key_of_a_deleted_copy_is_free_a_moment_later() -> None:
    rig = keyed_rig()
    rig.hold(keyed_copy(holders=(ME, N2)))
    rig.ask("DELJOB", JOB)
    client = ask(rig)
    say_all(rig)
    assert rig.replies(client) == []

    for _ in range(TRAIL // ASK_EVERY + 2):
        rig.advance(ASK_EVERY)
        say_all(rig)

    assert isinstance(rig.reply(client), Status)
