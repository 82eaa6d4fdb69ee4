"""A node that has had no answer gives its link up: what it cannot say then is excused, no more."""

import pytest

from disque_trio.sim.scenarios.plan import LinkPlan
from tests.sim.checkers.duplicated import again
from tests.sim.checkers.scenario import ONCE, Tale, broken

TIMEOUT = (("cluster-node-timeout", "4000"),)
"""A link is given up two seconds after the PING that was not answered."""


def tale_of(model: str = "hostile", **options: object) -> Tale:
    return Tale(link=LinkPlan(model=model), config=TIMEOUT, **options)  # type: ignore[arg-type]


def unsaid(
    *,
    model: str = "hostile",
    asked: float = 18,
    answered: float = 0,
    asked_again: float = 0,
    pair: tuple[str, str] = ("n1", "n2"),
) -> Tale:
    """Two nodes queue the job at once, and n1, the first, does not say so to n2."""
    tale = tale_of(model)
    tale.add(0)
    tale.serve(1)
    tale.working(1, "n1", "n2", "n3")
    tale.tell(asked, "ping", pair[0], pair[1], "", lag=None)
    if answered:
        tale.tell(answered, "pong", pair[1], pair[0], "")
    if asked_again:
        tale.tell(asked_again, "ping", pair[0], pair[1], "", lag=None)
    tale.requeue(20.1, "n1")
    tale.serve(20.1, "n1")
    tale.working(20.1, "n1", "n3")
    again(tale, 20.2)
    return tale


def causes(tale: Tale) -> dict[str, int]:
    return tale.verdict().duplicates


def test_what_could_not_be_said_for_want_of_a_link_is_no_fault_of_the_node() -> None:
    assert causes(unsaid()) == {"D1": 1, "D4": 1}


def test_nor_is_what_had_to_be_said_just_before_the_new_link() -> None:
    assert causes(unsaid(asked=17, asked_again=20.15)) == {"D1": 1, "D4": 1}


@pytest.mark.parametrize(
    "tale",
    [
        unsaid(asked=18.5),
        unsaid(answered=19),
        unsaid(asked=17, asked_again=19.5),
        unsaid(pair=("n2", "n1")),
        unsaid(pair=("n1", "n3")),
        unsaid(model="stream"),
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
def test_all_else_is(tale: Tale) -> None:
    assert causes(tale) == {"D1": 1, "DX": 1}


def fastacked(*, job: str = ONCE, lost: float | None = 2.5, is_sent: bool = True) -> Tale:
    """A job that n1 has delivered; FASTACK comes to n2, which has no copy and tells all."""
    tale = tale_of(consumers=())
    retry = 0 if job == ONCE else 900
    tale.add(0, job=job, to=(), options=f"replicate=1 retry={retry} ttl=3600")
    tale.serve(1, job=job)
    tale.tell(1.5, "ping", "n2", "n1", "", lag=None)
    tale.say(2 if is_sent else 4, "fastack.invoke", "n2", job=job, client="c1", ref=70)
    if is_sent:
        tale.tell(2, "deljob", "n2", "n1", job, lag=0.002, lost=lost)
    tale.tell(2 if is_sent else 4, "deljob", "n2", "n3", job)
    tale.say(4, "fastack.ok", "n2", job=job, client="c1", ref=70, detail="0")
    tale.heal(10)
    return tale


@pytest.mark.parametrize("is_sent", [True, False])
def test_a_copy_that_never_comes_again_may_stay_where_no_fastack_could_reach_it(
    *, is_sent: bool
) -> None:
    assert broken(fastacked(is_sent=is_sent).verdict(end=400)) == []


def test_one_that_would_come_again_may_not() -> None:
    assert "L3" in broken(
        fastacked(job="D-01234567-AAAAAAAAAAAAAAAAAAAAAAAA-003d").verdict(end=400)
    )


def test_nor_one_that_was_told() -> None:
    assert "L3" in broken(fastacked(lost=None).verdict(end=400))


def test_nor_one_that_an_acknowledgement_has_to_reach() -> None:
    tale = fastacked()
    tale.say(3, "ack.invoke", "n3", job=ONCE, client="c1", ref=71)
    tale.say(3, "hold", "n3", job=ONCE, cause="dummy")
    tale.say(3, "ack.ok", "n3", job=ONCE, client="c1", ref=71, detail="1")

    assert "L3" in broken(tale.verdict(end=400))


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
def test_who_waits_for_a_lost_answer_may_suspect_the_other_until_the_link_is_given_up(
    *, model: str, asked: float, opinion: str, is_due: bool
) -> None:
    tale = tale_of(model, consumers=())
    tale.tell(asked, "ping", "n1", "n2", "", lag=None)
    tale.heal(2)
    for node in ("n1", "n2", "n3"):
        words = f"n1 n2:{opinion} n3" if node == "n1" else "n1 n2 n3"
        tale.say(6, "nodes", node, detail=words)

    assert broken(tale.verdict(end=6)) == (["S18"] if is_due else [])
