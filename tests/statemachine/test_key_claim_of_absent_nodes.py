"""UNIQUE between nodes: silence, timeouts, nodes that are away, and what others are told."""

import pytest

from disque_trio.statemachine import key_ordering
from disque_trio.statemachine.base import ACTIVE, FAIL, PFAIL, Failure, Status
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.key_facts import WITH_WORKER
from disque_trio.statemachine.key_search import ASK_EVERY, TIMED_OUT
from disque_trio.statemachine.nodetable import mark
from tests.rig import JOB, N2, N3
from tests.statemachine.keying import (
    EARLY,
    LATE,
    OTHER,
    answers,
    ask,
    claim_of,
    claims,
    held,
    keyed_copy,
    keyed_rig,
    original,
    ours,
    outwait,
    say,
    say_all,
)

TICK = 10


# Time and reachability.


def test_nodes_that_do_not_answer_are_asked_again() -> None:
    rig = keyed_rig()
    ask(rig)
    say(rig, N2, claims(rig)[0][1])

    rig.advance(ASK_EVERY + TICK)

    assert [to for to, _ in claims(rig)] == [N3]


def test_the_client_is_told_which_nodes_are_silent_when_its_timeout_is_over() -> None:
    rig = keyed_rig()
    client, other, behind = ask(rig, timeout=300), ask(rig), ask(rig, timeout=300)
    say(rig, N2, claims(rig)[0][1])

    rig.advance(300 + TICK)

    silent = rig.node.cluster.nodes[N3]
    address = f"{silent.ip}:{silent.port}".encode()
    assert rig.reply(client) == Failure(TIMED_OUT + b": no answer from " + address)
    assert rig.reply(behind) == Failure(TIMED_OUT)
    assert not rig.node.jobs
    rig.advance(TICK)
    say_all(rig)
    assert isinstance(rig.reply(other), Status)


def test_nothing_remains_of_a_client_that_leaves() -> None:
    rig = keyed_rig()
    client = ask(rig)

    rig.disconnect(client)
    rig.advance(TICK)

    assert not rig.node.keys.claims
    assert not rig.node.keys.asking
    assert claims(rig)
    rig.advance(1000)
    assert claims(rig) == []


@pytest.mark.parametrize("flag", [PFAIL, FAIL])
def test_nodes_that_are_suspected_are_not_waited_for(flag: int) -> None:
    rig = keyed_rig()
    client = ask(rig)
    say(rig, N2, claims(rig)[0][1])

    mark(rig.node, rig.node.cluster.nodes[N3], flag)
    rig.advance(ASK_EVERY + TICK)

    assert isinstance(rig.reply(client), Status)


def test_originals_are_not_asked() -> None:
    rig = keyed_rig()
    original(rig, N3)

    client = ask(rig)
    say_all(rig)

    assert isinstance(rig.reply(client), Status)


def test_a_node_is_waited_for_until_it_is_known_whether_it_is_ours() -> None:
    rig = keyed_rig()
    peer = rig.node.cluster.nodes[N3]
    original(rig, N3)
    peer.resent_on = 0
    client = ask(rig)
    say(rig, N2, claims(rig)[0][1])
    assert rig.replies(client) == []

    ours(rig, N3)
    peer.resent_on = peer.link
    rig.advance(ASK_EVERY + TICK)
    say_all(rig, held())

    assert rig.reply(client) == Status(JOB)


def test_a_node_without_a_link_is_waited_for() -> None:
    rig = keyed_rig()
    rig.lose_link(N3)
    client = ask(rig)

    say_all(rig)

    assert rig.replies(client) == []


def test_a_node_that_never_answers_is_not_waited_for_without_end() -> None:
    """It may not know this node."""
    rig = keyed_rig(config=Config(cluster_node_timeout=2000))
    client = ask(rig)
    say(rig, N2, claims(rig)[0][1])
    outwait(rig)

    assert not rig.node.cluster.nodes[N3].flags & PFAIL
    assert isinstance(rig.reply(client), Status)


def test_what_others_have_answered_meanwhile_counts() -> None:
    """They were not asked again, so that nothing is heard of them is no silence."""
    rig = keyed_rig(config=Config(cluster_node_timeout=2000))
    client = ask(rig)
    for _ in range(2):
        say(rig, N2, claims(rig)[0][1], held())
    outwait(rig)

    assert rig.reply(client) == Status(JOB)
    assert not rig.node.jobs


def test_a_node_that_is_asked_anew_for_an_earlier_claim_has_time_to_answer() -> None:
    rig = keyed_rig(config=Config(cluster_node_timeout=2000))
    client = ask(rig)
    say(rig, N2, claims(rig)[0][1])
    outwait(rig, 3.9)
    rig.message(N2, claim_of())
    outwait(rig, 0.5)

    assert rig.replies(client) == []
    assert N2 in [to for to, _ in claims(rig)]


def test_an_earlier_job_that_a_node_has_told_of_lives_while_another_node_is_silent() -> None:
    keyed = keyed_rig(config=Config(cluster_node_timeout=2000))
    ask(keyed, "IFEXISTS", "again")
    say_all(keyed, held(stamp=EARLY, state=WITH_WORKER))
    [job] = keyed.node.jobs.values()
    keyed.advance(key_ordering.LOOK_EVERY)

    say(keyed, N2, claims(keyed)[0][1], held(stamp=EARLY, state=WITH_WORKER))
    outwait(keyed)

    assert job.state == ACTIVE


# What others are told.


def test_others_are_told_of_the_jobs_that_are_held_here() -> None:
    rig = keyed_rig()
    rig.hold(keyed_copy())

    rig.message(N3, claim_of(stamp=LATE))

    [(to, [told])] = answers(rig)
    assert (to, told.id, told.word) == (N3, JOB, held().word)


def test_they_are_not_told_of_the_job_for_which_they_ask() -> None:
    rig = keyed_rig()
    rig.hold(keyed_copy())

    rig.message(N3, claim_of(JOB))

    assert answers(rig) == [(N3, ())]


def test_a_node_that_is_forgotten_waits_no_longer() -> None:
    rig = keyed_rig()
    client = ask(rig)
    asked = claims(rig)
    rig.message(N3, claim_of(stamp=LATE))
    assert rig.node.keys.askers
    say(rig, N3, asked[1][1])

    rig.ask("CLUSTER", "FORGET", N3)
    rig.advance(ASK_EVERY + TICK)
    say(rig, N2, asked[0][1])

    assert isinstance(rig.reply(client), Status)
    assert not rig.node.keys.askers


def test_two_claims_of_two_nodes_wait_side_by_side() -> None:
    rig = keyed_rig()
    ask(rig)
    asked = claims(rig)
    rig.message(N2, claim_of(JOB, LATE))
    rig.message(N3, claim_of(OTHER, LATE + 1))
    rig.sent()

    for to, claim in asked:
        say(rig, to, claim)

    assert [to for to, _ in answers(rig)] == [N2, N3]
    assert not rig.node.keys.askers
