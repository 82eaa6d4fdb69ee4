"""S26: a dead job is neither queued nor served before it is redriven, and dies for a reason."""

from typing import Any

import pytest

from disque_trio.sim.scenarios.plan import LinkPlan
from tests.sim.checkers.trace import JOB, ONCE, Trace, broken

OPTIONS = "replicate=3 retry=10 ttl=3600 limit=2"
RECORD = "replicate=3 retry=10000 delay=0 made=1000000 body=1 limit=2 left=3600000 due=10000"
WEEK = 604_800_000


def added(limit: int = 2, **rest: object) -> Trace:
    trace = Trace(**rest)  # type: ignore[arg-type]
    options = OPTIONS.replace("limit=2", f"limit={limit}") if limit else OPTIONS[:-8]
    trace.add(1, options=options)
    return trace


def state(
    trace: Trace,
    time: float,
    node: str = "n1",
    cause: str = "nack-dead",
    *,
    redriven: int = 0,
    left: int = WEEK,
) -> None:
    kind = "redrive" if cause == "redriven" or left != WEEK else "dead"
    detail = f"redriven={redriven} left={left}"
    trace.row(time, kind, node, job=JOB, cause=cause, detail=detail)


def buried(trace: Trace, time: float, *, told: tuple[str, ...] = ("n2", "n3")) -> None:
    """A worker buries it at the first node, and the others are told."""
    trace.row(time - 0.01, "nack.invoke", "n1", job=JOB, client="c1", ref=5)
    state(trace, time)
    for node in told:
        trace.send(time, "jobstate", "n1", node, detail="dead redriven=0")
        state(trace, time + 0.002, node, "jobstate")
    trace.row(time + 0.01, "nack.ok", "n1", job=JOB, client="c1", ref=5, detail="1")


def test_a_job_that_was_buried_need_not_come_again() -> None:
    trace = added()
    trace.serve(2)
    buried(trace, 3)
    trace.heal(10)

    verdict = trace.verdict(500)

    assert broken(verdict) == []
    assert verdict.marks["dead.buried"] == 1
    assert verdict.marks["dead.told"] == 2


def copied_to_n3(trace: Trace, sent: float, *arrivals: float, ref: int = 70) -> None:
    """n1 sends a copy, which n3 takes at the last arrival as that of a job that lives."""
    detail = f"jobs={JOB} holders=n1,n2"
    trace.row(sent, "send", "n1", peer="n3", job=JOB, cause="repljob", detail=detail, ref=ref)
    for time in arrivals:
        trace.row(time, "recv", "n3", peer="n1", job=JOB, cause="repljob", detail=detail, ref=ref)
    trace.row(arrivals[-1], "hold", "n3", job=JOB, cause="repljob", detail=RECORD)


def test_a_copy_of_a_dead_job_comes_as_dead() -> None:
    trace = added(link=LinkPlan(model="hostile"))
    buried(trace, 3, told=())
    copied_to_n3(trace, 4, 5)

    assert "S26" in broken(trace.verdict(6))


@pytest.mark.parametrize(("stalled", "is_right"), [("n1", True), ("n2", False)])
def test_unless_the_disk_of_its_sender_kept_it_back(stalled: str, *, is_right: bool) -> None:
    """everything, seed 673: the job died while its copies waited for the journal."""
    trace = added(link=LinkPlan(model="hostile"))
    trace.row(2, "disk.stall", stalled, detail="yes")
    buried(trace, 3, told=())
    trace.row(3.9, "disk.stall", stalled, detail="no")
    copied_to_n3(trace, 4, 5)

    assert ("S26" not in broken(trace.verdict(6))) == is_right


@pytest.mark.parametrize("arrivals", [(4,), (4, 4), (4, 6)])
def test_unless_it_was_sent_before_however_often_it_comes(arrivals: tuple[float, ...]) -> None:
    trace = added(link=LinkPlan(model="hostile"))
    copied_to_n3(trace, 2, *arrivals)
    buried(trace, 3, told=())

    assert "S26" not in broken(trace.verdict(7))


def test_of_two_copies_in_one_batch_the_first_is_taken() -> None:
    trace = added()
    trace.send(2, "repljob", "n1", "n3", lag=2, detail=f"jobs={JOB} holders=n1,n2")
    buried(trace, 3, told=())
    copied_to_n3(trace, 3.5, 4)

    assert "S26" not in broken(trace.verdict(5))


@pytest.mark.parametrize("is_later", [False, True])
def test_a_job_may_be_given_away_just_before_its_node_hears_that_it_is_dead(
    *, is_later: bool
) -> None:
    """dead-letters, seed 300473: the message left 5 ms later."""
    trace = added()
    trace.row(2.9 if not is_later else 3.1, "give", "n1", job=JOB, peer="n3", cause="given")
    buried(trace, 3, told=())
    detail = f"jobs={JOB} holders=n1,n2,n3"
    trace.send(3.2, "yourjobs", "n1", "n3", detail=detail)
    trace.row(3.21, "hold", "n3", job=JOB, cause="yourjobs", detail=RECORD)

    assert ("S26" in broken(trace.verdict(3.3))) == is_later


@pytest.mark.parametrize("kind", ["queue", "serve"])
def test_nor_may_it(kind: str) -> None:
    trace = added()
    trace.serve(2)
    buried(trace, 3)
    trace.row(20, kind, "n1", job=JOB, cause="retry" if kind == "queue" else "served", client="c1")

    assert "S26" in broken(trace.verdict())


def test_a_holder_that_was_not_told_in_calm_may_not_queue_it() -> None:
    trace = added()
    trace.serve(2)
    buried(trace, 3, told=("n2",))
    trace.row(12, "queue", "n3", job=JOB, cause="retry")

    assert "S26" in broken(trace.verdict())


def test_behind_a_cut_it_may() -> None:
    trace = added()
    trace.serve(2)
    trace.cut(2.5, ["n1", "n2"], ["n3"], until=30)
    buried(trace, 3, told=("n2",))
    trace.row(12, "queue", "n3", job=JOB, cause="retry")

    verdict = trace.verdict()

    assert "S26" not in broken(verdict)
    assert verdict.marks["dead.unheard"] == 1


@pytest.mark.parametrize(("limit", "due"), [(1, []), (2, ["S26"]), (0, ["S26"])])
def test_a_limit_kills_when_it_is_reached(limit: int, due: list[str]) -> None:
    trace = added(limit)
    trace.serve(2)
    state(trace, 12, cause="retry")

    assert broken(trace.verdict()) == due


@pytest.mark.parametrize(("limit", "due"), [(2, []), (3, ["S26"])])
def test_a_nack_that_lets_the_job_wait_counts_once(limit: int, due: list[str]) -> None:
    trace = added(limit)
    trace.serve(2)
    trace.row(3, "postpone", "n1", job=JOB, cause="nack", detail="wait=2000")
    for node in ("n2", "n3"):
        trace.send(3, "postponed", "n1", node, detail="wait=2000 nacks=1 new")
        trace.row(3.002, "postpone", node, job=JOB, cause="postponed", detail="wait=2000")
    trace.row(5, "queue", "n1", job=JOB, cause="backed-off")
    trace.row(6, "unqueue", "n1", job=JOB, cause="served")
    state(trace, 7, cause="nack")

    assert broken(trace.verdict()) == due


def test_a_nack_does_not_let_a_job_wait_beyond_its_limit() -> None:
    trace = added(limit=1)
    trace.serve(2)
    trace.row(3, "postpone", "n1", job=JOB, cause="nack", detail="wait=2000")

    assert "S26" in broken(trace.verdict())


def test_a_job_is_not_queued_beyond_its_limit() -> None:
    trace = added(limit=1)
    trace.serve(2)
    trace.row(12, "queue", "n1", job=JOB, cause="retry")

    verdict = trace.verdict()

    assert "S26" in broken(verdict)
    assert verdict.marks["limit.exceeded"] == 1


def test_a_dead_job_is_kept_for_as_long_as_is_configured() -> None:
    trace = added(config=[("dead-letter-ttl", "60")])
    trace.serve(2)
    state(trace, 3)

    assert broken(trace.verdict()) == ["S26"]


@pytest.mark.parametrize(
    ("named", "is_ordered"),
    [
        ({"queue": "q"}, True),
        ({"job": JOB}, True),
        ({"job": JOB[:-5] + "ffff1"}, False),
        ({}, False),
    ],
)
def test_it_is_redriven_when_somebody_orders_it_and_not_otherwise(
    named: dict[str, Any], *, is_ordered: bool
) -> None:
    trace = added()
    trace.serve(2)
    buried(trace, 3)
    if named:
        trace.row(4, "redrive.invoke", "n1", client="a1", ref=9, **named)
    for node, cause in (("n1", "redriven"), ("n2", "jobstate"), ("n3", "jobstate")):
        state(trace, 5, node, cause, redriven=1, left=3_600_000)
    trace.row(5, "queue", "n1", job=JOB, cause="redriven")
    trace.serve(6)

    verdict = trace.verdict()

    assert broken(verdict) == ([] if is_ordered else ["S26"])
    assert verdict.duplicates == {"D0": 1}


@pytest.mark.parametrize(
    ("node", "answered", "is_excused"),
    [("n1", 4, True), ("n1", 2.5, False), ("n1", None, True), ("n2", 4, False)],
)
def test_an_order_is_for_what_was_dead_at_its_node_before_the_answer(
    node: str, answered: float | None, *, is_excused: bool
) -> None:
    trace = added()
    trace.row(2.1, "redrive.invoke", node, queue="q", client="a1", ref=9)
    trace.serve(2)
    if answered == 2.5:
        trace.row(2.5, "redrive.ok", node, queue="q", client="a1", ref=9, detail="0")
    buried(trace, 3)
    if answered == 4:
        trace.row(4, "redrive.ok", node, queue="q", client="a1", ref=9, detail="1")
    for each, cause in (("n1", "redriven"), ("n2", "jobstate"), ("n3", "jobstate")):
        state(trace, 5, each, cause, redriven=1, left=3_600_000)
    trace.row(5, "queue", "n1", job=JOB, cause="redriven")

    assert ("S26" not in broken(trace.verdict())) == is_excused


def test_nobody_forgets_a_redrive() -> None:
    trace = added()
    trace.serve(2)
    buried(trace, 3)
    trace.row(4, "redrive.invoke", "n1", queue="q", client="a1", ref=9)
    state(trace, 5, "n1", "redriven", redriven=1, left=3_600_000)
    state(trace, 6, "n1", "jobstate")

    assert "S26" in broken(trace.verdict())


@pytest.mark.parametrize(
    ("kind", "is_lost", "is_dead", "is_found"),
    [
        ("fastack", True, True, False),
        ("fastack", False, True, True),
        ("fastack", True, False, True),
        ("ackjob", True, True, True),
    ],
)
def test_a_dead_copy_that_no_fastack_could_reach_stays(
    kind: str, *, is_lost: bool, is_dead: bool, is_found: bool
) -> None:
    trace = Trace(consumers=())
    trace.add(1, to=(), options=OPTIONS.replace("replicate=3", "replicate=1"))
    trace.serve(2)
    if kind == "fastack":
        trace.row(3, "fastack.invoke", "n2", job=JOB, client="c1", ref=99)
        trace.send(3, "deljob", "n2", "n1", lost=4 if is_lost else None)
        trace.row(3.001, "fastack.ok", "n2", job=JOB, client="c1", ref=99, detail="0")
    else:
        trace.row(3, "hold", "n2", job=JOB, cause="dummy")
        trace.ack(3, "n2")
        trace.send(3, "setack", "n2", "n1", detail="holders=0", lost=4)
    if is_dead:
        state(trace, 12, "n1", "nack-dead")
    trace.heal(20)

    assert ("L3" in broken(trace.verdict(end=400))) == is_found


@pytest.mark.parametrize(("core", "is_found"), [("n1,n3", False), ("n1,n2,n3", True)])
def test_word_of_a_fastack_may_be_under_way_from_a_node_that_is_cut_off_for_ever(
    core: str, *, is_found: bool
) -> None:
    trace = Trace(consumers=())
    trace.add(1, job=ONCE, to=(), options="replicate=1 retry=0 ttl=3600")
    trace.serve(2, job=ONCE)
    trace.row(3, "fastack.invoke", "n2", job=ONCE, client="c1", ref=99)
    trace.send(3, "deljob", "n2", "n1", ONCE, lag=None)
    trace.row(3.001, "fastack.ok", "n2", job=ONCE, client="c1", ref=99, detail="0")
    trace.heal(20, core=core)

    assert ("L3" in broken(trace.verdict(end=400))) == is_found


def outlived(
    *, forgets: bool = True, is_dead: bool = True, told: bool = False, consumers: str = "",
    retry: int = 10, ttl: int = 3600, is_evicted: bool = False,
) -> Trace:  # fmt: skip
    """n1 acknowledges the job, and crashes or evicts that before it has told n2."""
    trace = Trace(consumers=consumers.split())
    job = JOB if retry else ONCE
    trace.add(1, job=job, to=("n2",), options=f"replicate=2 retry={retry} ttl={ttl} limit=2")
    trace.serve(2, job=job)
    trace.ack(3, job=job)
    trace.send(3.001, "setack", "n1", "n2", job, detail="holders=2", lost=None if told else 3.002)
    if is_evicted:
        trace.row(3.1, "drop", "n1", job=job, cause="evicted")
    elif forgets:
        trace.crash(3.1, "n1", back=4)
    if is_dead:
        trace.requeue(12, "n2")
        state(trace, 13, "n2", "nack-dead")
    if ttl < 20:
        trace.row(1 + ttl, "drop", "n1", job=JOB, cause="expired")
    trace.heal(20)
    return trace


@pytest.mark.parametrize(
    "trace",
    [
        outlived(consumers="n2"),
        outlived(is_dead=False),
        outlived(is_dead=False, retry=0, consumers="n2"),
        outlived(forgets=False, ttl=15, consumers="n2"),
        outlived(is_evicted=True, consumers="n2"),  # everything, seeds 900 and 1033
    ],
    ids=["it is dead", "nobody asks for its queue", "RETRY 0", "the ack expired", "and evicted"],
)
def test_a_copy_that_nobody_gets_may_outlive_the_ack(trace: Trace) -> None:
    assert "L3" not in broken(trace.verdict(end=400))


@pytest.mark.parametrize(
    "trace",
    [
        outlived(forgets=False),
        outlived(is_dead=False, consumers="n2"),
        outlived(told=True),
        outlived(is_dead=False, forgets=False),
        outlived(is_dead=False, forgets=False, retry=0),
        outlived(told=True, ttl=15),
    ],
    ids=[
        "one still knows of it",
        "it lives",
        "it was told of it",
        "it lives, and one knows",
        "RETRY 0, and one knows",
        "it was told of it before that expired",
    ],
)
def test_no_other_may(trace: Trace) -> None:
    assert "L3" in broken(trace.verdict(end=400))


@pytest.mark.parametrize(
    ("left", "finds"), [(3_600_000, False), (1_800_000, True), (WEEK - 1, True)]
)
def test_a_job_that_is_redriven_lives_as_long_as_a_new_one(left: int, *, finds: bool) -> None:
    trace = added()
    buried(trace, 5, told=("n2", "n3"))
    trace.row(9, "redrive.invoke", "n1", queue="q", client="a", ref=1)
    state(trace, 9, cause="redriven", redriven=1, left=left)

    assert ("S26" in broken(trace.verdict())) == finds


@pytest.mark.parametrize(
    ("left", "finds"), [(3_599_000, False), (1_800_000, True), (WEEK - 1, True)]
)
def test_who_is_told_of_a_redrive_lets_the_job_live_as_long(left: int, *, finds: bool) -> None:
    trace = added()
    buried(trace, 5, told=("n2", "n3"))
    trace.row(9, "redrive.invoke", "n1", queue="q", client="a", ref=1)
    state(trace, 9, cause="redriven", redriven=1, left=3_600_000)
    trace.row(9.01, "redrive", "n2", job=JOB, cause="jobstate", detail=f"redriven=1 left={left}")

    assert ("S26" in broken(trace.verdict())) == finds
