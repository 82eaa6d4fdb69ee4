"""A node that has had no answer gives its link up: what it cannot say then is excused, no more."""

import attrs
import pytest

from disque_trio.sim.scenarios.plan import LinkPlan
from tests.sim.checkers.duplicated import again
from tests.sim.checkers.trace import ONCE, Trace, broken

RETRIED = "D-01234567-AAAAAAAAAAAAAAAAAAAAAAAA-003d"
"""A job with RETRY."""

TIMEOUT = (("cluster-node-timeout", "4000"),)
"""A link is given up two seconds after the PING that was not answered."""


def trace_of(model: str = "hostile", **options: object) -> Trace:
    return Trace(link=LinkPlan(model=model), config=TIMEOUT, **options)  # type: ignore[arg-type]


def unsent_serves(
    *,
    model: str = "hostile",
    asked: float = 18,
    answered: float = 0,
    asked_again: float = 0,
    pair: tuple[str, str] = ("n1", "n2"),
) -> Trace:
    """Two nodes queue the job at once, and n1, the first, does not say so to n2."""
    trace = trace_of(model)
    trace.add(0)
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    trace.send(asked, "ping", pair[0], pair[1], "", lag=None)
    if answered:
        trace.send(answered, "pong", pair[1], pair[0], "")
    if asked_again:
        trace.send(asked_again, "ping", pair[0], pair[1], "", lag=None)
    trace.requeue(20.1, "n1")
    trace.serve(20.1, "n1")
    trace.working(20.1, "n1", "n3")
    again(trace, 20.2)
    return trace


def causes(trace: Trace) -> dict[str, int]:
    return trace.verdict().duplicates


def test_what_could_not_be_said_for_want_of_a_link_is_no_fault_of_the_node() -> None:
    assert causes(unsent_serves()) == {"D1": 1, "D4": 1}


def test_nor_is_what_had_to_be_said_just_before_the_new_link() -> None:
    assert causes(unsent_serves(asked=17, asked_again=20.15)) == {"D1": 1, "D4": 1}


@pytest.mark.parametrize(
    "trace",
    [
        unsent_serves(asked=18.5),
        unsent_serves(answered=19),
        unsent_serves(asked=17, asked_again=19.5),
        unsent_serves(pair=("n2", "n1")),
        unsent_serves(pair=("n1", "n3")),
        unsent_serves(model="stream"),
    ],
    ids=[
        "it still had its link",
        "it had its answer",
        "it had a new link",
        "the other had none",
        "the link was another's",
        "streams lose nothing",
    ],
)
def test_all_else_is(trace: Trace) -> None:
    assert causes(trace) == {"D1": 1, "DX": 1}


def fastacked(*, job: str = ONCE, lost: float | None = 2.5, is_sent: bool = True) -> Trace:
    """A job that n1 has delivered; FASTACK comes to n2, which has no copy and tells all."""
    trace = trace_of(consumers=())
    retry = 0 if job == ONCE else 900
    trace.add(0, job=job, to=(), options=f"replicate=1 retry={retry} ttl=3600")
    trace.serve(1, job=job)
    trace.send(1.5, "ping", "n2", "n1", "", lag=None)
    trace.row(2 if is_sent else 4, "fastack.invoke", "n2", job=job, client="c1", ref=70)
    if is_sent:
        trace.send(2, "deljob", "n2", "n1", job, lag=0.002, lost=lost)
    trace.send(2 if is_sent else 4, "deljob", "n2", "n3", job)
    trace.row(4, "fastack.ok", "n2", job=job, client="c1", ref=70, detail="0")
    trace.heal(10)
    return trace


@pytest.mark.parametrize("is_sent", [True, False])
def test_a_copy_that_never_comes_again_may_stay_where_no_fastack_could_reach_it(
    *, is_sent: bool
) -> None:
    assert broken(fastacked(is_sent=is_sent).verdict(end=400)) == []


@pytest.mark.parametrize("is_dead", [True, False])
def test_it_may_after_a_start_as_well(*, is_dead: bool) -> None:
    """everything, seed 6167."""
    trace = fastacked(job=RETRIED)
    trace.plan = attrs.evolve(trace.plan, config=(("appendonly", "yes"),))
    dead = "redriven=0 left=604800000"
    if is_dead:
        trace.row(5, "dead", "n1", job=RETRIED, cause="nack-dead", detail=dead)
    trace.row(6, "crash", "n1", cause="kill")
    trace.row(7, "start", "n1", cause="loaded")
    trace.row(7, "hold", "n1", job=RETRIED, queue="q", cause="loaded")
    if is_dead:
        trace.row(7, "dead", "n1", job=RETRIED, cause="loaded", detail=dead)
    trace.row(7, "loaded", "n1", cause="kept")

    assert ("L3" in broken(trace.verdict(end=400))) != is_dead


@pytest.mark.parametrize("lost", [2.5, None])
def test_nor_can_it_reach_a_copy_of_it_that_was_made_later(lost: float | None) -> None:
    trace = fastacked(lost=lost)
    trace.copy(6, "n1", "n3", ONCE)

    found = broken(trace.verdict(end=400))

    assert found == ([] if lost else ["L3"])


def test_one_that_would_come_again_may_not() -> None:
    assert "L3" in broken(fastacked(job=RETRIED).verdict(end=400))


def test_nor_one_that_was_told() -> None:
    assert "L3" in broken(fastacked(lost=None).verdict(end=400))


def held_up(*, sent: float = 0, lost: float | None = 2.5, again: float | None = None) -> Trace:
    """n3 gets its copy after a FASTACK at n2, which has no copy and tells all."""
    trace = trace_of(consumers=())
    trace.add(0, job=ONCE, to=(), options="replicate=1 retry=0 ttl=3600")
    trace.serve(1, job=ONCE)
    trace.row(2, "fastack.invoke", "n2", job=ONCE, client="c1", ref=70)
    trace.send(2, "deljob", "n2", "n1", ONCE)
    trace.row(2.002, "drop", "n1", job=ONCE, cause="deljob")
    trace.send(2, "deljob", "n2", "n3", ONCE, lost=lost)
    trace.row(2, "fastack.ok", "n2", job=ONCE, client="c1", ref=70, detail="0")
    for each in (sent, again):
        if each is not None:
            trace.send(each, "repljob", "n1", "n3", ONCE, lag=5 - each, detail=f"jobs={ONCE}")
    trace.row(5, "hold", "n3", job=ONCE, cause="repljob")
    trace.heal(10)
    return trace


def test_a_copy_that_was_under_way_at_the_time_of_a_fastack_that_is_lost_may_stay() -> None:
    assert broken(held_up().verdict(end=400)) == []


@pytest.mark.parametrize(
    "trace",
    [held_up(sent=3), held_up(again=3), held_up(lost=None)],
    ids=["it was sent later", "it was sent again later", "the FASTACK came before it"],
)
def test_one_that_was_sent_later_or_came_after_the_fastack_may_not(trace: Trace) -> None:
    assert broken(trace.verdict(end=400)) == ["L3"]


def test_nor_one_that_an_acknowledgement_has_to_reach() -> None:
    trace = fastacked()
    trace.row(3, "ack.invoke", "n3", job=ONCE, client="c1", ref=71)
    trace.row(3, "hold", "n3", job=ONCE, cause="dummy")
    trace.row(3, "ack.ok", "n3", job=ONCE, client="c1", ref=71, detail="1")

    assert "L3" in broken(trace.verdict(end=400))


@pytest.mark.parametrize(
    ("model", "asked", "opinion", "is_due"),
    [
        ("hostile", 1.9, "pfail", False),
        ("hostile", 0.5, "pfail", True),
        ("hostile", 1.9, "fail", True),
        ("hostile", 1.9, "noaddr", True),
        ("stream", 1.9, "pfail", True),
    ],
)
def test_a_node_that_waits_for_a_lost_answer_may_suspect_the_other_until_it_gives_the_link_up(
    *, model: str, asked: float, opinion: str, is_due: bool
) -> None:
    trace = trace_of(model, consumers=())
    trace.send(asked, "ping", "n1", "n2", "", lag=None)
    trace.heal(2)
    for node in ("n1", "n2", "n3"):
        words = f"n1 n2:{opinion} n3" if node == "n1" else "n1 n2 n3"
        trace.row(6, "nodes", node, detail=words)

    assert broken(trace.verdict(end=6)) == (["S18"] if is_due else [])


def believing(
    *, model: str = "hostile", told: float | None = 1.9, asked: float | None = 3
) -> Trace:
    """In the end, n1 has a verdict on n2."""
    trace = trace_of(model, consumers=())
    trace.heal(2)
    if told:
        trace.send(told, "fail", "n3", "n1", "", detail="n2")
    if asked:
        trace.send(asked, "ping", "n1", "n2", "", lag=None)
    for node in ("n1", "n2", "n3"):
        words = "n1 n2:fail n3" if node == "n1" else "n1 n2 n3"
        trace.row(6, "nodes", node, detail=words)
    return trace


@pytest.mark.parametrize(
    ("model", "told", "asked", "is_due"),
    [
        ("hostile", 3, 3, False),
        ("hostile", None, 3, True),
        ("hostile", 1.9, 3, True),
        ("hostile", 3, None, True),
        ("stream", 5.999, 5.999, False),
        ("stream", 1.9, 5.999, True),
        ("stream", 3, 3, True),
    ],
)
def test_a_node_may_believe_a_verdict_that_came_after_the_heal_until_its_ping_is_answered(
    *, model: str, told: float | None, asked: float | None, is_due: bool
) -> None:
    trace = believing(model=model, told=told, asked=asked)

    assert broken(trace.verdict(end=6)) == (["S18"] if is_due else [])


def exchange(
    trace: Trace,
    asked: float,
    *,
    answered: float | None = None,
    ping_lost: float | None = None,
    pong_lost: float | None = None,
) -> Trace:
    """n1 pings n2; n2 answers when it has the PING, or at the time given."""
    trace.send(asked, "ping", "n1", "n2", "", lost=ping_lost)
    if ping_lost is None:
        trace.send(answered or asked + 0.002, "pong", "n2", "n1", "", lost=pong_lost)
    return trace


def test_a_node_may_believe_an_older_verdict_if_its_ping_or_the_answer_was_lost() -> None:
    told_early = believing(asked=None)
    assert broken(exchange(told_early, 3, ping_lost=3.1).verdict(end=6)) == []
    voted = believing(told=None, asked=None)
    assert broken(exchange(voted, 3, pong_lost=3.1).verdict(end=6)) == []


def test_also_at_once_after_the_next_ping() -> None:
    trace = exchange(believing(asked=5.999), 3, pong_lost=3.1)

    assert broken(trace.verdict(end=6)) == []


def old_answer_lost() -> Trace:
    """n2 answers the first of two PINGs after n1 has sent the second, which it never gets."""
    trace = believing(asked=None)
    exchange(trace, 2.9, answered=3.1, pong_lost=3.2)
    trace.send(3, "ping", "n1", "n2", "", lag=None)
    return trace


@pytest.mark.parametrize(
    "trace",
    [
        exchange(believing(asked=None), 0.5, pong_lost=0.6),
        exchange(believing(asked=None), 3),
        exchange(believing(model="stream", asked=None), 3, pong_lost=3.1),
        exchange(believing(asked=4), 3, pong_lost=3.1),
        exchange(exchange(believing(asked=None), 3, pong_lost=3.1), 4),
        old_answer_lost(),
    ],
    ids=[
        "it should have given the link up",
        "it was answered",
        "streams lose nothing",
        "the next answer was not lost",
        "the next was answered",
        "it was the answer to another",
    ],
)
def test_no_other_loss_excuses_it(trace: Trace) -> None:
    assert broken(trace.verdict(end=6)) == ["S18"]
