"""SHOW KEY and CANCEL KEY between nodes: who is asked, and what the answers mean."""

import pytest

from disque_trio.statemachine.base import ACKED, FAIL, Failure, Reply
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.key_facts import BACKING_OFF, DONE_KEPT, ENDED, KEPT, MOVED, KeyFact
from disque_trio.statemachine.key_search import ASK_EVERY
from disque_trio.statemachine.messages import GotJob, KeyCancel, SetAck
from disque_trio.statemachine.nodetable import mark
from tests.cluster_rig import ClusterRig
from tests.rig import CALM, JOB, ME, N2, N3, ONCE, Rig
from tests.statemachine.keying import (
    EARLY,
    KEY,
    LATE,
    OTHER,
    claims,
    fact,
    held,
    keyed_copy,
    keyed_rig,
    original,
    pending,
    say,
    say_all,
    wanted,
)

TICK = 10
KEPT_FOR = KeyFact(JOB, EARLY, KEPT, DONE_KEPT, 0)


def look(rig: Rig) -> Client:
    client = rig.connect()
    rig.request("SHOW", "KEY", "q", KEY, client=client)
    return client


def cancel(rig: Rig) -> Client:
    client = rig.connect()
    rig.request("CANCEL", "KEY", "q", KEY, client=client)
    return client


def shown(reply: Reply) -> dict[bytes, Reply]:
    assert isinstance(reply, list)
    names = [each for each in reply[::2] if isinstance(each, bytes)]
    return dict(zip(names, reply[1::2], strict=True))


def cancelled(rig: Rig) -> list[tuple[bytes, bytes]]:
    return [(to, said.id) for to, said in rig.sent() if isinstance(said, KeyCancel)]


# SHOW KEY.


def test_a_node_alone_knows_its_jobs() -> None:
    rig = Rig()
    assert rig.ask("SHOW", "KEY", "q", KEY) is None

    job = rig.add("UNIQUE", KEY)

    assert rig.ask("show", "key", "q", KEY) == [
        *(b"id", job.id, b"state", b"queued"),
        *(b"nodes", [ME], b"queued-at", [ME]),
    ]
    assert rig.ask("SHOW", "KEY", "another", KEY) is None


def test_the_answer_waits_for_all_and_names_the_nodes_that_hold_the_job() -> None:
    rig = keyed_rig()
    client = look(rig)
    asked = claims(rig)
    assert [(to, claim.stamp) for to, claim in asked] == [(N2, 0), (N3, 0)]

    say(rig, N2, asked[0][1], held())
    assert rig.replies(client) == []
    say(rig, N3, asked[1][1], held(state=BACKING_OFF))
    say_all(rig, held())

    told = shown(rig.reply(client))
    assert told[b"id"] == JOB
    assert told[b"state"] == b"queued"
    assert told[b"nodes"] == told[b"queued-at"] == [N2, N3]


def test_before_a_job_is_shown_all_are_asked_whether_it_has_ended() -> None:
    rig = keyed_rig()
    client = look(rig)
    for to, claim in claims(rig):
        say(rig, to, claim, held())
    again = claims(rig)
    assert [(to, claim.about) for to, claim in again] == [(N2, JOB), (N3, JOB)]

    say(rig, N2, again[0][1], held())
    say(rig, N3, again[1][1], fact(ENDED))

    assert rig.reply(client) is None


def test_an_end_that_was_told_once_is_remembered() -> None:
    rig = keyed_rig()
    client = look(rig)
    asked = claims(rig)
    say(rig, N2, asked[0][1], fact(ENDED), held(OTHER))
    say(rig, N3, asked[1][1])

    say_all(rig, held(), held(OTHER))

    assert shown(rig.reply(client))[b"id"] == OTHER


def test_an_answer_to_an_earlier_question_does_not_count() -> None:
    rig = keyed_rig()
    client = look(rig)
    asked = claims(rig)
    for to, claim in asked:
        say(rig, to, claim, held())

    for to, claim in asked:
        say(rig, to, claim)

    assert rig.replies(client) == []


def test_a_key_that_is_kept_is_done_kept_and_one_whose_addjob_waits_is_waiting() -> None:
    rig = keyed_rig()
    client = look(rig)
    say_all(rig, KEPT_FOR)
    told = shown(rig.reply(client))
    assert (told[b"state"], told[b"nodes"], told[b"queued-at"]) == (b"done-kept", [N2, N3], [])

    client = look(rig)
    say_all(rig, pending())
    assert shown(rig.reply(client))[b"state"] == b"waiting"


def test_a_job_that_moves_is_asked_for_until_it_has_arrived() -> None:
    rig = keyed_rig()
    client = look(rig)
    for to, claim in claims(rig):
        say(rig, to, claim, fact(MOVED))
    assert rig.replies(client) == []

    rig.advance(ASK_EVERY + TICK)
    say_all(rig, held())

    assert shown(rig.reply(client))[b"id"] == JOB


def test_who_does_not_answer_is_asked_again_until_it_is_suspected() -> None:
    rig = keyed_rig()
    client = look(rig)
    say(rig, N2, claims(rig)[0][1])
    rig.advance(ASK_EVERY + TICK)
    assert [to for to, _ in claims(rig)] == [N3]
    assert rig.replies(client) == []

    mark(rig.node, rig.node.cluster.nodes[N3], FAIL)
    rig.advance(ASK_EVERY + TICK)

    assert rig.reply(client) is None


def test_originals_are_not_asked() -> None:
    rig = keyed_rig()
    original(rig, N3)

    look(rig)

    assert [to for to, _ in claims(rig)] == [N2]


def test_nothing_remains_of_a_client_that_leaves() -> None:
    rig = keyed_rig()
    gone, late = look(rig), look(rig)
    asked = claims(rig)
    rig.disconnect(gone)
    rig.disconnect(late)

    for to, claim in asked[:2]:
        say(rig, to, claim)
    rig.advance(ASK_EVERY + TICK)

    assert not rig.node.keys.searches
    assert claims(rig) == []


# CANCEL KEY.


def test_a_job_of_this_node_ends_and_frees_the_key_without_its_keep() -> None:
    rig = Rig()
    job = rig.add("UNIQUE", KEY, "KEEP", 60)

    assert rig.ask("CANCEL", "KEY", "q", KEY) == 1

    assert job.id not in rig.node.jobs
    assert rig.add("UNIQUE", KEY).id != job.id


def test_a_key_that_nobody_has_is_answered_with_0() -> None:
    rig = keyed_rig()
    client = cancel(rig)

    say_all(rig)

    assert rig.reply(client) == 0
    assert rig.ask("QLEN", "q") == 0


def test_a_key_that_is_only_kept_is_freed() -> None:
    rig = Rig()
    job = rig.add("UNIQUE", KEY, "KEEP", 60)
    rig.request("ACKJOB", job.id)
    assert shown(rig.ask("SHOW", "KEY", "q", KEY))[b"state"] == b"done-kept"

    assert rig.ask("CANCEL", "KEY", "q", KEY) == 1

    assert rig.ask("SHOW", "KEY", "q", KEY) is None


def test_all_are_told_and_the_answer_comes_when_none_has_it() -> None:
    rig = keyed_rig()
    client = cancel(rig)
    for to, claim in claims(rig):
        say(rig, to, claim, held())
    sent = rig.sent()
    assert [(to, said.id) for to, said in sent if isinstance(said, KeyCancel)] == [
        (N2, JOB),
        (N3, JOB),
    ]
    assert rig.node.jobs[JOB].state == ACKED
    asked = [(to, said) for to, said in sent if not isinstance(said, KeyCancel | SetAck)]

    say(rig, *asked[0], held(state=BACKING_OFF))  # type: ignore[arg-type]
    say(rig, *asked[1], fact(ENDED))  # type: ignore[arg-type]
    assert rig.replies(client) == []
    rig.advance(ASK_EVERY + TICK)
    assert cancelled(rig) == [(N2, JOB), (N3, JOB)]
    rig.advance(ASK_EVERY + TICK)
    say_all(rig, fact(ENDED))

    assert rig.reply(client) == 1


def test_both_jobs_of_a_cut_end() -> None:
    rig = keyed_rig()
    client = cancel(rig)
    asked = claims(rig)
    say(rig, N2, asked[0][1], held())
    say(rig, N3, asked[1][1], held(OTHER, LATE))

    assert {id for _, id in cancelled(rig)} == {JOB, OTHER}
    rig.advance(ASK_EVERY + TICK)
    say_all(rig)
    assert rig.reply(client) == 1


@pytest.mark.parametrize("job_id", [JOB, ONCE])
def test_a_holder_ends_the_job_whatever_it_is(job_id: bytes) -> None:
    rig = keyed_rig()
    retry = 0 if job_id == ONCE else 60
    rig.hold(keyed_copy(job_id, keep=5000, retry=retry))

    rig.message(N2, KeyCancel(job_id, b"q", KEY))

    assert rig.node.jobs[job_id].state == ACKED
    assert not rig.node.keys.kept


def test_a_holder_that_has_heard_of_the_end_frees_the_key() -> None:
    rig = keyed_rig()
    rig.hold(keyed_copy(keep=5000))
    rig.request("ACKJOB", JOB)
    assert rig.node.keys.kept

    rig.message(N2, KeyCancel(JOB, b"q", KEY))

    assert not rig.node.keys.kept


def test_another_job_with_the_key_is_left_alone() -> None:
    rig = keyed_rig()
    job = rig.hold(keyed_copy(keep=5000))
    state = job.state

    rig.message(N2, KeyCancel(OTHER, b"q", KEY))

    assert job.state == state
    assert job.extensions is not None
    assert job.extensions.keep == 5000


def test_an_addjob_that_waits_for_copies_is_answered_with_the_id_of_its_job() -> None:
    rig = keyed_rig()
    producer = rig.connect()
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 3, "UNIQUE", KEY, client=producer)
    job = wanted(rig, producer)
    say_all(rig)

    rig.message(N2, KeyCancel(job.id, b"q", KEY))

    assert rig.reply(producer).text == job.id  # type: ignore[union-attr]
    rig.message(N2, GotJob(job.id))
    assert rig.node.jobs[job.id].state == ACKED


# Several nodes.


def three() -> ClusterRig:
    rig = ClusterRig("n1", "n2", "n3")
    rig.form(60_000)
    rig.run(2000)
    return rig


def asked(rig: ClusterRig, name: str, *words: bytes | str | int) -> Reply:
    client = rig.connect(name)
    rig.request(name, *words, client=client)
    rig.run(50)
    [reply] = rig.replies(name, client)
    return reply


def test_with_local_a_node_says_at_once_what_it_knows_itself() -> None:
    rig = three()
    asked(rig, "n1", "ADDJOB", "q", "b", 0, "REPLICATE", 2, "UNIQUE", KEY, "KEEP", 600)
    words = "SHOW", "KEY", "q", KEY, "local"
    told = {name: asked(rig, name, *words) for name in ("n1", "n2", "n3")}
    [other] = [name for name in ("n2", "n3") if told[name] is not None]
    assert shown(told["n1"])[b"state"] == b"queued"
    assert shown(told["n1"])[b"nodes"] == shown(told["n1"])[b"queued-at"] == [rig.id("n1")]
    assert shown(told[other])[b"state"] == b"waiting"
    assert shown(told[other])[b"nodes"] == [rig.id(other)]
    assert sum(each is None for each in told.values()) == 1

    rig.crash("n1")

    assert shown(asked(rig, other, *words))[b"nodes"] == [rig.id(other)]


@pytest.mark.parametrize("options", [("REPLICATE", 2), ("REPLICATE", 1, "RETRY", 0)])
def test_any_node_shows_and_cancels_a_job_of_another_one(options: tuple[str | int, ...]) -> None:
    rig = three()
    reply = asked(rig, "n1", "ADDJOB", "q", "b", 0, *options, "UNIQUE", KEY, "KEEP", 600)
    told = [shown(asked(rig, name, "SHOW", "KEY", "q", KEY)) for name in ("n1", "n2", "n3")]
    assert {each[b"id"] for each in told} == {reply.text}  # type: ignore[union-attr]
    assert {each[b"state"] for each in told} == {b"queued"}
    assert told[0][b"queued-at"] == [rig.id("n1")]

    assert asked(rig, "n3", "CANCEL", "KEY", "q", KEY) == 1

    assert asked(rig, "n2", "SHOW", "KEY", "q", KEY) is None
    assert asked(rig, "n1", "QLEN", "q") == 0
    assert asked(rig, "n2", "CANCEL", "KEY", "q", KEY) == 0


@pytest.mark.parametrize(
    ("command", "facts", "said"),
    [
        ("SHOW", None, b"TIMEOUT Of the other nodes 2 did not answer within 5 seconds: "),
        ("CANCEL", None, b"TIMEOUT Of the other nodes 2 did not answer within 5 seconds: "),
        ("SHOW", [fact(MOVED)], b"TIMEOUT After 5 seconds the job with the key is still"),
        ("CANCEL", [held()], b"TIMEOUT After 5 seconds the job with the key is still"),
    ],
)
def test_a_client_does_not_wait_for_a_silent_node_for_ever(
    command: str, facts: list[KeyFact] | None, said: bytes
) -> None:
    rig = keyed_rig(config=CALM)
    client = rig.connect()
    rig.request(command, "KEY", "q", KEY, client=client)
    for _ in range(52):
        for to, claim in claims(rig) if facts is not None else ():
            say(rig, to, claim, *facts or ())
        rig.advance(100)

    reply = rig.reply(client)

    assert isinstance(reply, Failure)
    assert reply.text.startswith(said)
    assert not rig.node.keys.searches
