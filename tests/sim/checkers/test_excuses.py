"""What the judge excuses of jobs with RETRY 0 and of repair, and how narrowly."""

import pytest

from disque_trio.sim.scenarios.plan import ClockPlan, Fault
from tests.sim.checkers.trace import JOB, ONCE, Trace, broken

DEAD = "redriven=0 left=604800000"


def journaled(fsync: str) -> Trace:
    """A job with RETRY 0 on n1, which keeps a journal."""
    trace = Trace(config=(("appendonly", "yes"), ("appendfsync", fsync)))
    trace.add(0, job=ONCE, to=(), options="replicate=1 retry=0 ttl=3600")
    return trace


def back(trace: Trace, time: float, *, is_queued: bool) -> None:
    trace.row(time, "start", "n1", cause="loaded")
    trace.row(time, "hold", "n1", job=ONCE, queue="q", cause="loaded")
    if is_queued:
        trace.row(time, "queue", "n1", job=ONCE, cause="delay-over")
    trace.row(time, "loaded", "n1", cause="torn")


def served_twice(
    *, fsync: str = "always", crash: str = "power", lag: float = 0.005, arrives: bool = False
) -> Trace:
    """It is handed out, the node crashes `lag` later, and hands it out again."""
    trace = journaled(fsync)
    trace.row(1, "unqueue", "n1", job=ONCE, cause="served")
    trace.row(1, "serve", "n1", job=ONCE, client="c1", cause="served")
    if arrives:
        trace.deliver(1.001, job=ONCE)
    trace.row(1 + lag, "crash", "n1", cause=crash)
    back(trace, 3, is_queued=True)
    trace.serve(4, job=ONCE)
    return trace


@pytest.mark.parametrize("crash", ["power", "kill"])
def test_what_had_not_left_the_node_when_it_crashed_was_not_served(crash: str) -> None:
    assert broken(served_twice(crash=crash).verdict(end=5)) == []


@pytest.mark.parametrize(
    "trace",
    [
        served_twice(arrives=True),
        served_twice(crash="kill", lag=0.5),
        served_twice(lag=0.5),
        served_twice(fsync="everysec"),
    ],
    ids=["it arrived", "the record was written", "it was synced long ago", "nothing waits"],
)
def test_all_else_was(trace: Trace) -> None:
    assert "S5" in broken(trace.verdict(end=5))


def acked_and_back(
    *, fsync: str = "everysec", crash: str = "power", job: str = ONCE, dies: bool = False
) -> Trace:
    """A job was handed out and acknowledged, and its node has lost the record of it. It `dies` of
    its LIMIT when it comes again."""
    trace = Trace(config=(("appendonly", "yes"), ("appendfsync", fsync)))
    retry = 0 if job == ONCE else 900
    trace.add(0, job=job, to=(), options=f"replicate=1 retry={retry} ttl=3600")
    trace.serve(1, job=job)
    trace.ack(1.1, job=job)
    trace.row(1.102, "drop", "n1", job=job, cause="collected")
    trace.row(1.5, "crash", "n1", cause=crash)
    trace.row(3, "start", "n1", cause="loaded")
    trace.row(3, "hold", "n1", job=job, queue="q", cause="loaded")
    trace.row(3, "loaded", "n1", cause="torn")
    if dies:
        trace.row(8, "dead", "n1", job=job, cause="nack-dead", detail=DEAD)
    trace.heal(10)
    return trace


def test_a_job_with_retry_0_may_wait_for_its_end_where_power_took_the_record() -> None:
    assert broken(acked_and_back().verdict(end=400)) == []


def test_one_that_would_come_again_may_not() -> None:
    assert "L3" in broken(acked_and_back(job=JOB).verdict(end=400))


def test_but_a_dead_one_does_not_come_again() -> None:
    assert broken(acked_and_back(job=JOB, dies=True).verdict(end=400)) == []


def test_nor_do_copies_that_it_has_sent_since() -> None:
    trace = acked_and_back(job=JOB, dies=True)
    trace.copy(9, "n1", "n2", record="replicate=1 dead=1")

    assert "L3" not in broken(trace.verdict(end=400))


@pytest.mark.parametrize(("sent", "is_found"), [(9, False), (0.5, True)])
def test_nor_once_all_have_started_again(sent: float, *, is_found: bool) -> None:
    """everything, seed 6140."""
    trace = acked_and_back(job=JOB, dies=True)
    trace.copy(sent, "n1", "n2", record="replicate=1 dead=1")
    for node in ("n1", "n2"):
        trace.row(9.5, "crash", node, cause="power")
        trace.row(9.6, "start", node, cause="loaded")
        trace.row(9.6, "hold", node, job=JOB, queue="q", cause="loaded", detail="dead=1")
        trace.row(9.6, "dead", node, job=JOB, cause="loaded", detail=DEAD)
        trace.row(9.6, "loaded", node, cause="torn")

    assert ("L3" in broken(trace.verdict(end=400))) == is_found


@pytest.mark.parametrize("is_told", [False, True])
def test_a_dead_copy_that_never_left_has_to_go(*, is_told: bool) -> None:
    """n2 had one all the time, without a word of the acknowledgement, or with one later on."""
    trace = acked_and_back(job=JOB, dies=True)
    trace.copy(0.5, "n1", "n2")
    trace.row(9, "dead", "n2", job=JOB, cause="jobstate", detail=DEAD)
    if is_told:
        trace.send(9.5, "setack", "n1", "n2", detail="holders=2")

    assert "L3" in broken(trace.verdict(end=400))


@pytest.mark.parametrize(("fsync", "crash"), [("always", "power"), ("everysec", "kill")])
@pytest.mark.parametrize(("job", "dies"), [(ONCE, False), (JOB, True)])
def test_nor_one_whose_record_had_to_be_kept(
    fsync: str, crash: str, job: str, *, dies: bool
) -> None:
    found = broken(acked_and_back(fsync=fsync, crash=crash, job=job, dies=dies).verdict(end=400))

    assert found == ["S15", "L3"]


def unrepaired(*, removed: str = "n1", had_it: bool = False, restarts: bool = False) -> Trace:
    """Of four nodes n1 adds a job with two copies, tells n2 that n3 has one too, and one goes."""
    config = (("replica-repair-after", "1"), ("appendonly", "yes"), ("appendfsync", "always"))
    trace = Trace(nodes=4, config=config, consumers=())
    ref = 77
    trace.row(
        0, "add.invoke", "n1", queue="q", client="p1", ref=ref,
        detail="timeout=1000 replicate=2 retry=900 ttl=3600 body=b",
    )  # fmt: skip
    trace.row(0, "hold", "n1", job=JOB, cause="add")
    trace.send(0, "repljob", "n1", "n3", lag=None, lost=0.01, detail=f"jobs={JOB} holders=n1,n3")
    trace.send(0.05, "repljob", "n1", "n2", detail=f"jobs={JOB} holders=n1,n3,n2")
    trace.row(0.052, "hold", "n2", job=JOB, cause="repljob")
    trace.row(0.06, "queue", "n1", job=JOB, cause="first")
    trace.row(0.06, "add.ok", "n1", job=JOB, client="p1", ref=ref)
    if had_it:
        trace.copy(1, "n1", "n3")
        trace.row(1.5, "drop", "n3", job=JOB, cause="evicted")
    trace.row(2, "crash", removed, cause="kill")
    trace.row(2, "remove", removed)
    if restarts:
        trace.row(2.1, "crash", "n2", cause="kill")
        trace.row(2.2, "start", "n2", cause="loaded")
        trace.row(2.2, "hold", "n2", job=JOB, cause="loaded")
    trace.row(3, "chaos.end")
    trace.row(3.5, "rejoin")
    core = [node for node in ("n1", "n2", "n3", "n4") if node != removed]
    trace.row(3, "heal.end", detail=",".join(core))
    return trace


@pytest.mark.parametrize("restarts", [False, True])
def test_a_copy_that_never_came_is_found_to_be_missing_when_its_sender_is_gone(
    *, restarts: bool
) -> None:
    assert "L7" in broken(unrepaired(restarts=restarts).verdict(end=800))


@pytest.mark.parametrize(
    ("core", "had_it"), [("n1,n2,n3,n4", False), ("n1,n2,n4", False), ("n1,n2,n3,n4", True)]
)
def test_nor_does_a_node_know_better_that_has_added_the_job_and_forgotten_it(
    core: str, *, had_it: bool
) -> None:
    trace = Trace(nodes=4, config=(("replica-repair-after", "1"),), consumers=())
    options = "replicate=3 sync=1 retry=900 ttl=3600"
    trace.add(0, to=(), options=options)
    for peer in ("n3", "n2"):
        lag = 0.002 if had_it or peer == "n2" else None
        trace.send(0.05, "repljob", "n1", peer, lag=lag, detail=f"jobs={JOB} holders=n1,n3,n2")
        if lag:
            trace.row(0.052, "hold", peer, job=JOB, cause="repljob")
    if had_it:
        trace.row(1.5, "drop", "n3", job=JOB, cause="evicted")
    trace.crash(2, "n1", back=2.5)
    trace.row(3.2, "nodes", "n2", detail="n2 n1 n3 n4")
    trace.heal(3, core=core)

    assert ("L7" in broken(trace.verdict(end=800))) == had_it


def test_a_holder_that_a_node_with_a_full_list_can_ask_has_no_excuse() -> None:
    assert "L7" in broken(unrepaired(removed="n2").verdict(end=800))


def test_a_copy_that_came_and_went_is_none_of_these() -> None:
    assert "L7" in broken(unrepaired(had_it=True).verdict(end=800))


@pytest.mark.parametrize("to", [("n2", "n3"), ("n2",)])
@pytest.mark.parametrize(
    "says",
    [
        "replicate=3 retry=10 ttl=3600 async",
        "retry=10 ttl=3600 async",
        "replicate=3 sync=1 retry=10 ttl=3600",
        "sync=1 retry=10 ttl=3600",
    ],
)
def test_an_async_job_waits_for_a_lost_node_only_if_a_copy_could_not_be_sent(
    to: tuple[str, ...], says: str
) -> None:
    trace = Trace(nodes=4, consumers=())
    record = (
        "replicate=3 retry=10000 delay=0 made=7000000000 body=1908338681 left=3600000 due=10000"
    )
    if "replicate" not in says:
        # Then the node decides, by how many nodes it knows.
        trace.row(0.1, "start", "n5", cause="fresh")
    trace.add(0.5, to=to, options=says, record=record)
    trace.ack(1)
    for node in to:
        trace.setack(1.01, "n1", node)
    trace.row(3, "crash", "n4", cause="kill")
    trace.row(4, "chaos.end")
    trace.row(4.5, "rejoin")
    trace.row(4, "heal.end", detail="n1,n2,n3")

    assert ("L3" in broken(trace.verdict(end=900))) == (len(to) == 2)


APART = (ClockPlan(wall_offset_ms=10_000),)


def early(
    *,
    format_: str = "disque",
    clocks: tuple[ClockPlan, ...] = APART,
    faults: tuple[Fault, ...] = (),
    is_loaded: bool = True,
) -> Trace:
    """A node is restarted while a job waits for DELAY 5, and queues it after four seconds."""
    config = (("appendonly", "yes"), ("aof-format", format_))
    trace = Trace(config=config, clocks=clocks, faults=faults)
    trace.add(0, options="replicate=3 retry=10 ttl=3600 delay=5", is_queued=False)
    if is_loaded:
        trace.row(1, "crash", "n1", cause="kill")
        trace.row(2, "start", "n1", cause="loaded")
        trace.row(2, "hold", "n1", job=JOB, queue="q", cause="loaded")
        trace.row(2, "loaded", "n1", cause="torn")
    trace.requeue(4, "n1", "delay-over")
    return trace


@pytest.mark.parametrize(
    "trace",
    [early(), early(clocks=(), faults=(Fault(kind="clock-step", at=0, nodes=(1,), amount=9),))],
    ids=["from the start", "by a jump"],
)
def test_the_original_s_journal_counts_a_delay_by_the_creator_s_clock_which_differs(
    trace: Trace,
) -> None:
    assert "S6" not in broken(trace.verdict())


@pytest.mark.parametrize(
    "trace",
    [early(format_="framed"), early(clocks=()), early(is_loaded=False)],
    ids=["our journal", "clocks do not differ", "nothing is loaded"],
)
def test_no_other_delay_may_be_cut_short(trace: Trace) -> None:
    assert "S6" in broken(trace.verdict())


@pytest.mark.parametrize(("cause", "due"), [("empty", []), ("fresh", ["L7"])])
def test_a_node_with_a_new_name_that_comes_back_with_it_is_not_noticed(
    cause: str, due: list[str]
) -> None:
    """everything, seed 62: its second loss counts, and not the name it had at the first."""
    trace = Trace(nodes=4, config=(("replica-repair-after", "1"),), consumers=())
    trace.add(0, to=("n2", "n3", "n4"), options="replicate=4 retry=900 ttl=3600")
    trace.row(1, "crash", "n4", cause="kill")
    trace.row(1.5, "start", "n4", cause="fresh")
    trace.copy(2, "n1", "n4")
    trace.row(4, "crash", "n4", cause="kill")
    trace.row(4.5, "start", "n4", cause=cause)
    trace.row(5, "crash", "n2", cause="kill")
    trace.row(5, "remove", "n2")
    trace.heal(6, core="n1,n3,n4")

    assert [each for each in broken(trace.verdict(end=800)) if each == "L7"] == due
