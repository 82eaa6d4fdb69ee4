"""Two jobs with one key meet after a cut: which one goes, and when neither does."""

import pytest

from disque_trio.statemachine import key_ordering
from disque_trio.statemachine.base import FAIL, TRACED, Reply, Status
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.events import Cause, Kind
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.key_facts import (
    DEAD,
    ENDED,
    HELD,
    IN_QUEUE,
    MOVED,
    WITH_WORKER,
    KeyFact,
)
from disque_trio.statemachine.key_ordering import (
    CHECK_EVERY,
    RECONCILE_EVERY,
    RECONCILES_FOR,
    RECONCILES_WITHIN,
)
from disque_trio.statemachine.knobs import DEFAULTS
from disque_trio.statemachine.messages import Enqueue, GotJob, KeyAnswer, KeyCancel, YourJobs
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
    say_all,
)

TICK = 10
TIMEOUT = 3000
EARLIER = held(JOB, EARLY)


def returns(rig: Rig) -> None:
    """The last node that was away answers again."""
    key_ordering.begin_reconcile(rig.node)
    rig.advance(RECONCILE_EVERY + TICK)


def undelivered(*options: bytes | str | int, key: bytes = KEY) -> tuple[Rig, Job]:
    """A job with a key that is to be delivered here, and two other nodes."""
    rig = keyed_rig(config=CALM)
    return rig, add(rig, *options, key=key)


def add(rig: Rig, *options: bytes | str | int, key: bytes = KEY) -> Job:
    client = rig.connect()
    words = ("ADDJOB", "q", "body", 0, "REPLICATE", 1, "UNIQUE", key, *options)
    rig.request(*words, client=client)
    say_all(rig)
    reply = rig.reply(client)
    assert isinstance(reply, Status)
    rig.sent()
    return rig.node.jobs[reply.text]


def early(state: int = IN_QUEUE, id: bytes = JOB, word: int = HELD) -> KeyFact:
    return KeyFact(id, EARLY, word, state, 0)


def test_the_later_one_goes_once_all_have_said_that_the_earlier_one_lives() -> None:
    rig, job = undelivered("KEEP", 60)
    rig.node.trace = []
    job.flags |= TRACED
    returns(rig)
    asked = claims(rig)
    assert [(to, claim.stamp) for to, claim in asked] == [(N2, 0), (N3, 0)]
    for to, claim in asked:
        rig.message(to, KeyAnswer(claim.number, claim.round, (EARLIER,)))
    assert [claim.about for _, claim in claims(rig)] == [JOB, JOB]
    assert job.id in rig.node.jobs
    rig.advance(200)

    say_all(rig, EARLIER)

    assert job.id not in rig.node.jobs
    assert not rig.node.keys.kept
    assert rig.ask("QLEN", "q") == 0
    [end] = [event for event in rig.node.trace if event.kind is Kind.ACKED]
    assert end.cause is Cause.YIELDED


def test_the_other_nodes_are_told_to_end_it() -> None:
    rig, job = undelivered()
    returns(rig)
    for to, claim in claims(rig):
        rig.message(to, KeyAnswer(claim.number, claim.round, (EARLIER,)))
    asked = claims(rig)

    for to, claim in asked:
        rig.message(to, KeyAnswer(claim.number, claim.round, (EARLIER,)))

    cancelled = [(to, said.id) for to, said in rig.sent() if isinstance(said, KeyCancel)]
    assert cancelled == [(N2, job.id), (N3, job.id)]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(held(OTHER, LATE), id="later"),
        pytest.param(early(DEAD), id="dead"),
        pytest.param(early(word=ENDED), id="ended"),
        pytest.param(early(WITH_WORKER, ONCE), id="delivered, and at most once"),
    ],
)
def test_it_stays_if_the_other_one_is(other: KeyFact) -> None:
    rig, job = undelivered()
    returns(rig)

    say_all(rig, other)

    assert job.id in rig.node.jobs
    assert not rig.node.keys.searches


def test_an_earlier_one_that_is_queued_may_be_delivered_at_most_once() -> None:
    rig, job = undelivered()
    returns(rig)

    say_all(rig, early(IN_QUEUE, ONCE))

    assert job.id not in rig.node.jobs


def test_it_stays_if_one_node_knows_that_the_earlier_one_has_ended() -> None:
    rig, job = undelivered()
    returns(rig)
    for to, claim in claims(rig):
        rig.message(to, KeyAnswer(claim.number, claim.round, (EARLIER,)))
    asked = claims(rig)

    rig.message(N2, KeyAnswer(asked[0][1].number, asked[0][1].round, (EARLIER,)))
    rig.message(N3, KeyAnswer(asked[1][1].number, asked[1][1].round, (fact(ENDED),)))

    assert job.id in rig.node.jobs


@pytest.mark.parametrize("how", ["GETJOB", "NACK", "GETJOB and RELEASE"])
def test_a_job_that_was_delivered_stays(how: str) -> None:
    rig, job = undelivered()
    rig.request("GETJOB", "FROM", "q")
    if how == "NACK":
        rig.request("NACK", job.id)
    elif "RELEASE" in how:
        rig.request("RELEASE", job.id)
    rig.sent()

    returns(rig)

    assert claims(rig) == []


def test_one_that_is_delivered_before_all_have_answered_stays() -> None:
    rig, job = undelivered()
    returns(rig)
    asked = claims(rig)
    rig.request("GETJOB", "FROM", "q")

    for to, claim in asked:
        rig.message(to, KeyAnswer(claim.number, claim.round, (EARLIER,)))
    rig.advance(200)

    assert job.id in rig.node.jobs
    assert not rig.node.keys.searches


def test_one_in_its_delay_goes_too() -> None:
    rig, job = undelivered("DELAY", 30)
    returns(rig)

    say_all(rig, EARLIER)

    assert job.id not in rig.node.jobs


def test_it_waits_for_what_becomes_of_an_earlier_addjob_or_of_a_job_that_moves() -> None:
    rig, job = undelivered()
    returns(rig)
    say_all(rig, pending(JOB, EARLY))
    rig.advance(200)
    say_all(rig, early(word=MOVED))
    assert job.id in rig.node.jobs
    rig.advance(200)

    say_all(rig, EARLIER)

    assert job.id not in rig.node.jobs


def test_it_does_not_wait_for_ever() -> None:
    rig, job = undelivered()
    returns(rig)
    say_all(rig, pending(JOB, EARLY))

    for _ in range(RECONCILES_WITHIN // 100 + 2):
        rig.advance(100)
        say_all(rig, pending(JOB, EARLY))

    assert job.id in rig.node.jobs
    assert not rig.node.keys.searches


# Who has to be there.


def test_nothing_is_asked_while_a_node_is_away() -> None:
    rig, job = undelivered()
    away = rig.node.cluster.nodes[N3]
    mark(rig.node, away, FAIL)
    returns(rig)
    rig.advance(CHECK_EVERY)
    assert claims(rig) == []

    away.flags &= ~FAIL
    rig.advance(CHECK_EVERY + TICK)
    say_all(rig, EARLIER)

    assert job.id not in rig.node.jobs


def test_it_stays_if_a_node_goes_before_it_has_answered() -> None:
    rig, job = undelivered()
    returns(rig)
    asked = claims(rig)
    mark(rig.node, rig.node.cluster.nodes[N3], FAIL)

    rig.message(N2, KeyAnswer(asked[0][1].number, asked[0][1].round, (EARLIER,)))

    assert job.id in rig.node.jobs
    assert not rig.node.keys.searches


def test_originals_need_not_answer() -> None:
    rig, job = undelivered()
    original(rig, N3)
    returns(rig)

    say_all(rig, EARLIER)

    assert job.id not in rig.node.jobs


def test_without_keys_nothing_is_asked_and_no_timer_runs() -> None:
    rig = keyed_rig(config=CALM)
    rig.add("REPLICATE", 1)

    returns(rig)

    assert claims(rig) == []
    assert not rig.node.keys.reconciliation.due


# Which jobs, and when.


def test_a_few_jobs_are_asked_about_at_a_time() -> None:
    rig = keyed_rig(config=CALM)
    for number in range(DEFAULTS.meetings + 5):
        add(rig, key=b"k%d" % number)
    rig.take()
    rig.sent()

    returns(rig)
    first = claims(rig)
    assert len(first) == 2 * DEFAULTS.meetings
    for to, claim in first:
        rig.message(to, KeyAnswer(claim.number, claim.round, ()))
    rig.advance(RECONCILE_EVERY + TICK)

    assert len(claims(rig)) == 2 * 5


def test_jobs_that_come_a_moment_later_are_asked_about_too() -> None:
    rig = keyed_rig(config=CALM)
    add(rig, key=b"another")
    returns(rig)
    say_all(rig)

    rig.message(N2, YourJobs((keyed_copy(JOB),)))
    rig.advance(TICK)
    assert {claim.key for _, claim in claims(rig)} == {KEY}
    rig.hold(keyed_copy(OTHER, b"third", holders=(N3, ME)))
    rig.message(N2, Enqueue(OTHER))
    rig.advance(TICK)
    assert b"third" in {claim.key for _, claim in claims(rig)}

    rig.advance(RECONCILES_FOR)
    rig.sent()
    late = add(rig, key=b"late")
    rig.advance(RECONCILE_EVERY + TICK)
    assert late.id in rig.node.jobs
    assert b"late" not in {claim.key for _, claim in claims(rig)}


def test_a_job_that_has_gone_meanwhile_is_left_out() -> None:
    rig, job = undelivered()
    key_ordering.begin_reconcile(rig.node)
    rig.request("ACKJOB", job.id)
    kept = add(rig, key=b"another")

    rig.advance(RECONCILE_EVERY + TICK)

    assert {claim.key for _, claim in claims(rig)} <= {b"another"}
    assert kept.id in rig.node.jobs


# Several nodes.


def asked(rig: ClusterRig, name: str, *words: bytes | str | int) -> Reply:
    client = rig.connect(name)
    rig.request(name, *words, client=client)
    rig.run(500)
    [reply] = rig.replies(name, client)
    return reply


def cut_in_two() -> ClusterRig:
    """Two nodes on each side, which have noticed."""
    rig = ClusterRig("n1", "n2", "n3", "n4", config=Config(cluster_node_timeout=TIMEOUT))
    rig.form(60_000)
    rig.run(2000)
    for one in ("n1", "n2"):
        for other in ("n3", "n4"):
            rig.cut(one, other)
    rig.run(3 * TIMEOUT)
    return rig


@pytest.mark.parametrize("options", [("REPLICATE", 2), ("REPLICATE", 1, "RETRY", 0)])
@pytest.mark.parametrize("delay", [(), ("DELAY", 600)])
def test_after_a_cut_only_the_earlier_one_of_two_jobs_is_left(
    options: tuple[str | int, ...], delay: tuple[str | int, ...]
) -> None:
    rig = cut_in_two()
    words = ("ADDJOB", "q", "b", 0, *options, *delay, "UNIQUE", KEY)
    first, second = asked(rig, "n1", *words), asked(rig, "n3", *words)
    assert first != second

    rig.heal()
    rig.run(10 * TIMEOUT)

    lengths = [asked(rig, name, "QLEN", "q") for name in rig.names()]
    assert lengths == ([0] * 4 if delay else [1, 0, 0, 0])
    held_by = [name for name in rig.names() if rig.node(name).keys.index.get((b"q", KEY))]
    assert set(held_by) <= {"n1", "n2"}
    assert asked(rig, "n4", *words) == first


def test_if_the_later_one_was_delivered_both_stay() -> None:
    rig = cut_in_two()
    words = ("ADDJOB", "q", "b", 0, "REPLICATE", 2, "UNIQUE", KEY)
    first, second = asked(rig, "n1", *words), asked(rig, "n3", *words)
    assert asked(rig, "n3", "GETJOB", "FROM", "q") == [[b"q", second.text, b"b"]]  # type: ignore[union-attr]

    rig.heal()
    rig.run(5 * TIMEOUT)

    assert asked(rig, "n1", "GETJOB", "FROM", "q") == [[b"q", first.text, b"b"]]  # type: ignore[union-attr]
    assert asked(rig, "n3", "ACKJOB", second.text) == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("copies", [1, 2])
def test_an_addjob_that_ends_a_moment_after_a_return_is_asked_about(copies: int) -> None:
    rig = keyed_rig(config=CALM)
    add(rig, key=b"another")
    returns(rig)
    say_all(rig)
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", copies, "UNIQUE", KEY)
    say_all(rig)
    for id, job in list(rig.node.adding.items()):
        assert job.job is not None
        rig.message(job.job.holders[-1], GotJob(id))
    rig.sent()

    rig.advance(RECONCILE_EVERY + TICK)

    assert KEY in {claim.key for _, claim in claims(rig) if not claim.stamp}
