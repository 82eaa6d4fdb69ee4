"""What the judge excuses of jobs with RETRY 0 and of repair, and how narrowly."""

import pytest

from tests.sim.checkers.scenario import JOB, ONCE, Tale, broken


def journaled(fsync: str) -> Tale:
    """A job with RETRY 0 on n1, which keeps a journal."""
    tale = Tale(config=(("appendonly", "yes"), ("appendfsync", fsync)))
    tale.add(0, job=ONCE, to=(), options="replicate=1 retry=0 ttl=3600")
    return tale


def back(tale: Tale, time: float, *, is_queued: bool) -> None:
    tale.say(time, "start", "n1", cause="loaded")
    tale.say(time, "hold", "n1", job=ONCE, queue="q", cause="loaded")
    if is_queued:
        tale.say(time, "queue", "n1", job=ONCE, cause="delay-over")
    tale.say(time, "loaded", "n1", cause="torn")


def served_twice(
    *, fsync: str = "always", crash: str = "power", lag: float = 0.01, arrives: bool = False
) -> Tale:
    """It is handed out, the node crashes `lag` later, and hands it out again."""
    tale = journaled(fsync)
    tale.say(1, "unqueue", "n1", job=ONCE, cause="served")
    tale.say(1, "serve", "n1", job=ONCE, client="c1", cause="served")
    if arrives:
        tale.deliver(1.001, job=ONCE)
    tale.say(1 + lag, "crash", "n1", cause=crash)
    back(tale, 3, is_queued=True)
    tale.serve(4, job=ONCE)
    return tale


def test_what_had_not_left_the_node_when_its_power_failed_was_not_served() -> None:
    assert broken(served_twice().verdict(end=5)) == []


@pytest.mark.parametrize(
    "tale",
    [
        served_twice(arrives=True),
        served_twice(crash="kill"),
        served_twice(lag=0.5),
        served_twice(fsync="everysec"),
    ],
    ids=["it arrived", "the record was written", "it was synced long ago", "nothing waits"],
)
def test_all_else_was(tale: Tale) -> None:
    assert "S5" in broken(tale.verdict(end=5))


def acked_and_back(*, fsync: str = "everysec", crash: str = "power", job: str = ONCE) -> Tale:
    """A job was handed out and acknowledged, and its node has lost the record of it."""
    tale = Tale(config=(("appendonly", "yes"), ("appendfsync", fsync)))
    retry = 0 if job == ONCE else 900
    tale.add(0, job=job, to=(), options=f"replicate=1 retry={retry} ttl=3600")
    tale.serve(1, job=job)
    tale.ack(1.1, job=job)
    tale.say(1.102, "drop", "n1", job=job, cause="collected")
    tale.say(1.5, "crash", "n1", cause=crash)
    tale.say(3, "start", "n1", cause="loaded")
    tale.say(3, "hold", "n1", job=job, queue="q", cause="loaded")
    tale.say(3, "loaded", "n1", cause="torn")
    tale.heal(10)
    return tale


def test_a_job_with_retry_0_may_wait_for_its_end_where_power_took_the_record() -> None:
    assert broken(acked_and_back().verdict(end=400)) == []


def test_one_that_would_come_again_may_not() -> None:
    assert "L3" in broken(acked_and_back(job=JOB).verdict(end=400))


@pytest.mark.parametrize(("fsync", "crash"), [("always", "power"), ("everysec", "kill")])
def test_nor_one_whose_record_had_to_be_kept(fsync: str, crash: str) -> None:
    found = broken(acked_and_back(fsync=fsync, crash=crash).verdict(end=400))

    assert found == ["S15", "L3"]


def unrepaired(*, removed: str = "n1", had_it: bool = False) -> Tale:
    """Of four nodes n1 adds a job with two copies, tells n2 that n3 has one too, and one goes."""
    tale = Tale(nodes=4, config=(("replica-repair-after", "1"),), consumers=())
    ref = 77
    tale.say(
        0, "add.invoke", "n1", queue="q", client="p1", ref=ref,
        detail="timeout=1000 replicate=2 retry=900 ttl=3600 body=b",
    )  # fmt: skip
    tale.say(0, "hold", "n1", job=JOB, cause="add")
    tale.tell(0, "repljob", "n1", "n3", lag=None, lost=0.01, detail=f"jobs={JOB} holders=n1,n3")
    tale.tell(0.05, "repljob", "n1", "n2", detail=f"jobs={JOB} holders=n1,n3,n2")
    tale.say(0.052, "hold", "n2", job=JOB, cause="repljob")
    tale.say(0.06, "queue", "n1", job=JOB, cause="first")
    tale.say(0.06, "add.ok", "n1", job=JOB, client="p1", ref=ref)
    if had_it:
        tale.copy(1, "n1", "n3")
        tale.say(1.5, "drop", "n3", job=JOB, cause="evicted")
    tale.say(2, "crash", removed, cause="kill")
    tale.say(2, "remove", removed)
    tale.say(3, "chaos.end")
    tale.say(3.5, "rejoin")
    core = [node for node in ("n1", "n2", "n3", "n4") if node != removed]
    tale.say(3, "heal.end", detail=",".join(core))
    return tale


def test_who_was_told_of_a_copy_that_never_came_by_one_that_is_gone_counts_it() -> None:
    assert "L7" not in broken(unrepaired().verdict(end=800))


def test_who_can_be_asked_by_one_that_knows_better_has_no_excuse() -> None:
    assert "L7" in broken(unrepaired(removed="n2").verdict(end=800))


def test_a_copy_that_came_and_went_is_none_of_these() -> None:
    assert "L7" in broken(unrepaired(had_it=True).verdict(end=800))


@pytest.mark.parametrize("to", [("n2", "n3"), ("n2",)])
def test_an_async_job_waits_for_a_lost_node_only_if_a_copy_could_not_be_sent(
    to: tuple[str, ...],
) -> None:
    tale = Tale(nodes=4, consumers=())
    tale.add(0, to=to, options="replicate=3 retry=10 ttl=3600 async")
    tale.ack(1)
    for node in to:
        tale.told_of_ack(1.01, "n1", node)
    tale.say(3, "crash", "n4", cause="kill")
    tale.say(4, "chaos.end")
    tale.say(4.5, "rejoin")
    tale.say(4, "heal.end", detail="n1,n2,n3")

    assert ("L3" in broken(tale.verdict(end=900))) == (len(to) == 2)
