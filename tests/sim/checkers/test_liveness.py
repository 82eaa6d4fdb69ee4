import attrs
import pytest

from disque_trio.sim.scenarios.plan import Expect
from tests.sim.checkers.trace import ALL_CAUSES, JOB, ONCE, Trace, broken
from tests.sim.checkers.waits import waiting

BOUND = 10.25 + 35 + 17 + 1 + 1 + 1
"""RETRY and its spread, discovery, reconnection, poll, backlog and what else takes a moment."""
COLLECTION = 180.25 + 17 + 1


# L1


def test_a_job_comes_within_the_bound() -> None:
    trace = waiting()
    trace.serve(20 + BOUND - 2)

    verdict = trace.verdict(end=100)

    assert broken(verdict) == []
    assert verdict.checks["L1"] == 1
    assert verdict.metrics.redelivery.count == 1


def test_it_may_not_come_later() -> None:
    trace = waiting()
    trace.serve(20 + BOUND + 1)

    assert broken(trace.verdict()) == ["L1"]


def test_it_may_not_be_missing_when_the_bound_is_over() -> None:
    assert broken(waiting().verdict(end=20 + BOUND + 1)) == ["L1"]


def test_a_run_that_ends_before_proves_nothing() -> None:
    verdict = waiting().verdict(end=40)

    assert verdict.ok
    assert verdict.not_judged["L1"] == "of 1 the bound lies beyond the end of the run"


def test_without_consumers_nothing_need_come() -> None:
    assert waiting(consumers=()).verdict(end=200).ok


@pytest.mark.parametrize(("core", "due"), [("n1,n2", []), ("n1,n2,n3", ["L1"])])
def test_a_consumer_whose_node_has_left_may_be_outside_of_the_core(
    core: str, due: list[str]
) -> None:
    trace = Trace()
    trace.add(0)
    trace.row(1, "leave", "n1", detail="yes")
    trace.row(2, "leave", "n1", detail="no")
    trace.row(20, "chaos.end")
    trace.row(20.5, "rejoin")
    trace.row(20, "heal.end", detail=core)

    assert broken(trace.verdict(end=200)) == due


@pytest.mark.parametrize(
    ("report", "due"), [("n1:leaving n2 n3", []), ("n1 n2:leaving n3", ["L1"])]
)
def test_a_node_that_is_leaving_fetches_no_jobs_for_its_clients(
    report: str, due: list[str]
) -> None:
    """everything, seed 4055: the only node was down when it was told to stay."""
    trace = waiting()
    trace.row(21, "nodes", "n1", detail=report)

    assert [each for each in broken(trace.verdict(end=200)) if each == "L1"] == due


@pytest.mark.parametrize(("limit", "core", "due"), [
    ("q CONCURRENCY 2", "n1,n2", []),
    ("q CONCURRENCY 2", "n1,n2,n3", ["L1"]),
    ("r CONCURRENCY 2", "n1,n2", ["L1"]),
])  # fmt: skip
def test_a_node_outside_the_core_may_have_the_shares_of_limits(
    limit: str, core: str, due: list[str]
) -> None:
    """everything, seed 3321."""
    trace = Trace(consumers=("n1",))
    trace.row(0, "limit", "n1", detail=limit)
    trace.add(1)
    trace.heal(20, core=core)

    verdict = trace.verdict(end=200)

    assert [each for each in broken(verdict) if each == "L1"] == due
    if not due:
        assert verdict.not_judged["L1"] == "of 1 the limits may have no share for the core"


@pytest.mark.parametrize(("told", "due"), [(190, []), (100, ["L1"])])
def test_a_job_may_wait_in_a_queue_outside_of_the_core_as_long_as_its_holders_there_are_told(
    told: int, due: list[str]
) -> None:
    trace = Trace(consumers=("n3",))
    trace.add(0, to=("n2",), options="replicate=2 retry=10 ttl=3600")
    trace.row(20, "chaos.end")
    trace.row(20, "heal.end", detail="n2,n3")
    trace.row(20.5, "rejoin")
    trace.send(told, "queued", "n1", "n2")

    assert broken(trace.verdict(end=200)) == due


def test_each_holder_in_the_core_is_to_be_told_or_it_queues_the_job_itself() -> None:
    trace = Trace(consumers=("n3",))
    trace.add(0)
    trace.row(20, "chaos.end")
    trace.row(20, "heal.end", detail="n2,n3")
    trace.row(20.5, "rejoin")
    trace.send(190, "queued", "n1", "n2")

    assert "L1" in broken(trace.verdict(end=200))


@pytest.mark.parametrize(("told", "due"), [(True, []), (False, ["L1"])])
def test_a_copy_of_a_repair_begins_its_period_when_it_comes_and_those_of_others_go_on(
    told: bool, due: list[str]
) -> None:
    trace = Trace(consumers=("n3",))
    trace.add(0, to=("n2",), options="replicate=2 retry=10 ttl=3600")
    trace.row(20, "chaos.end")
    trace.row(20, "heal.end", detail="n2,n3")
    trace.row(20.5, "rejoin")
    if told:
        trace.send(190, "queued", "n1", "n2")
    trace.copy(195, "n2", "n3")

    assert broken(trace.verdict(end=200)) == due


@pytest.mark.parametrize("word", ["queued", "working"])
@pytest.mark.parametrize(
    ("teller", "told", "due"), [("n1", 60, []), ("n1", 25, ["L1"]), ("n3", 60, ["L1"])]
)
def test_a_node_outside_of_the_core_may_put_a_delivery_off(
    teller: str, told: int, due: list[str], word: str
) -> None:
    trace = Trace(consumers=("n3",))
    trace.add(0, to=("n2",), options="replicate=2 retry=10 ttl=3600")
    trace.row(20, "chaos.end")
    trace.row(20, "heal.end", detail="n2,n3")
    trace.row(20.5, "rejoin")
    trace.send(told, word, teller, "n2")
    trace.serve(20 + BOUND + 6, "n2", client="c3")

    assert [v.property for v in trace.verdict(end=120).violations] == due


def given(
    *, at: float = 60, receiver: str = "n1", told: tuple[str, ...] = ("n3",), server: str = "n2"
) -> Trace:
    """n2 and n3 have the job. n2 queues it, tells others, and gives it to a node that ignores it;
    in the next period it is served where it is queued, or moves to a node that has no copy."""
    trace = Trace(4, consumers=("n4",))
    trace.add(0, node="n2", to=("n3",), options="replicate=2 retry=10 ttl=3600", is_queued=False)
    trace.row(20, "chaos.end")
    trace.row(20, "heal.end", detail="n2,n3,n4")
    trace.row(20.5, "rejoin")
    trace.requeue(at, "n2", "delay-over")
    for node in told:
        trace.send(at, "queued", "n2", node)
    move(trace, at + 0.01, receiver)
    late = 20 + BOUND + 6
    trace.requeue(late - 0.01, "n2")
    trace.send(late - 0.01, "queued", "n2", "n3")
    if server != "n2":
        move(trace, late - 0.01, server)
        if server == "n4":
            trace.row(late - 0.008, "hold", server, job=JOB, cause="yourjobs")
        trace.requeue(late - 0.008, server, "import")
    trace.serve(late, server, client="c4")
    return trace


def move(trace: Trace, time: float, receiver: str) -> None:
    trace.row(time, "unqueue", "n2", job=JOB, cause="given")
    trace.row(time, "give", "n2", job=JOB, peer=receiver, cause="given")
    trace.send(time, "yourjobs", "n2", receiver, detail=f"jobs={JOB} holders=n2,n3")


@pytest.mark.parametrize("server", ["n2", "n3", "n4"])
def test_so_may_one_to_which_the_job_was_given(server: str) -> None:
    assert broken(given(server=server).verdict(end=120)) == []


@pytest.mark.parametrize(
    "trace",
    [
        given(receiver="n4"),
        given(at=25),
        given(told=()),
        given(told=("n1",)),
        given(at=60, told=("n4",)),
    ],
    ids=[
        "it is in the core",
        "long ago",
        "a holder was not told",
        "only it was told",
        "only another was told",
    ],
)
def test_no_other_move_puts_a_delivery_off(trace: Trace) -> None:
    assert "L1" in broken(trace.verdict(end=120))


@pytest.mark.parametrize(("at", "due"), [(190, []), (100, ["L1"])])
def test_a_job_that_was_given_away_has_as_long_until_the_end(at: float, due: list[str]) -> None:
    trace = Trace(consumers=("n3",))
    trace.add(0, node="n2", to=(), options="replicate=1 retry=10 ttl=3600")
    trace.row(20, "chaos.end")
    trace.row(20, "heal.end", detail="n2,n3")
    trace.row(20.5, "rejoin")
    move(trace, at, "n1")

    assert broken(trace.verdict(end=200)) == due


@pytest.mark.parametrize(("times", "end", "due"), [(1, 100, []), (2, 118, ["L1"])])
def test_a_slow_working_may_begin_the_period_anew_once(
    times: int, end: int, due: list[str]
) -> None:
    trace = waiting()
    for time in range(times):
        trace.row(50 + 10 * time, "unqueue", "n1", job=JOB, cause="working")
        trace.requeue(55 + 10 * time, "n1")

    assert broken(trace.verdict(end=end)) == due


def test_delay_counts() -> None:
    trace = Trace()
    trace.add(0, options="replicate=3 retry=10 ttl=3600 delay=100", is_queued=False)
    trace.heal(20)

    assert trace.verdict(end=20 + BOUND + 10).ok


def test_a_copy_outside_the_core_cannot_be_expected() -> None:
    trace = Trace()
    trace.add(0, node="n3", to=(), options="replicate=1 retry=10 ttl=3600")
    trace.row(20, "heal.end", detail="n1,n2")
    trace.row(21, "rejoin")

    assert trace.verdict(end=200).ok


@pytest.mark.parametrize(("core", "due"), [("n1,n2", []), ("n1,n2,n3", ["L1"])])
def test_nor_can_its_delivery_there(core: str, due: list[str]) -> None:
    trace = Trace(consumers=("n1",))
    trace.add(0, node="n3", to=(), options="replicate=1 retry=10 ttl=3600")
    trace.heal(20, core=core)
    trace.serve(20 + BOUND + 6, "n3", client="c3")

    assert [v.property for v in trace.verdict(end=120).violations] == due


@pytest.mark.parametrize(("versions", "due"), [((), ["L1"]), ((("0",),) * 3, [])])
def test_a_limit_that_some_nodes_do_not_know_may_leave_nothing_to_the_others(
    versions: tuple[tuple[str, ...], ...], due: list[str]
) -> None:
    """everything, seed 88: one node of eight knew the limit, and its part was less than a lease."""
    trace = Trace(consumers=("n1",))
    trace.plan = attrs.evolve(trace.plan, versions=versions)
    trace.add(0, options="replicate=3 retry=10 ttl=3600")
    trace.row(1, "limit", "n1", queue="q", detail="q GROUP-CONCURRENCY 1")
    trace.heal(20)

    found = broken(trace.verdict(end=20 + BOUND + 300))
    assert [each for each in found if each == "L1"] == due


def lost(destroyed: int, expect: Expect | None = None) -> Trace:
    trace = Trace(expect=expect)
    trace.add(0)
    for number, node in enumerate(("n1", "n2", "n3")):
        if number < destroyed:
            trace.crash(1, node, back=2)
        else:
            trace.send(1, "deljob", node, node)
            trace.row(1.002, "drop", node, job=JOB, cause="deljob")
    trace.heal(20)
    return trace


def test_a_job_of_which_faults_destroy_all_copies_is_excused() -> None:
    verdict = lost(3).verdict(end=200)

    assert verdict.ok
    assert (verdict.lost, verdict.excused) == (0, 1)


def test_a_job_that_is_nowhere_is_lost() -> None:
    verdict = lost(2).verdict(end=200)

    assert "L1" in broken(verdict)
    assert (verdict.lost, verdict.lost_jobs, verdict.excused) == (1, (JOB,), 0)


def test_a_control_arm_has_to_lose() -> None:
    expect = Expect(must_lose=True, duplicates=ALL_CAUSES)

    assert lost(3, expect).verdict(end=200).ok
    assert broken(waiting(expect=expect).verdict(end=40)) == ["expect"]


# L2


def served_once() -> Trace:
    trace = waiting()
    trace.serve(10)
    return trace


def test_a_job_that_nobody_acknowledges_comes_again() -> None:
    trace = served_once()
    trace.requeue(25, "n1")
    trace.serve(25)

    assert trace.verdict(end=30).ok


def test_it_may_not_stay_away() -> None:
    assert broken(served_once().verdict(end=20 + BOUND + 1)) == ["L2"]


def test_an_acknowledged_one_may() -> None:
    trace = served_once()
    trace.ack(11)

    assert "L2" not in broken(trace.verdict(end=20 + BOUND + 1))


def test_each_delivery_starts_the_wait_anew() -> None:
    trace = served_once()
    trace.requeue(60, "n1")
    trace.serve(60)

    verdict = trace.verdict(end=60 + BOUND - 2)

    assert verdict.ok
    assert "L2" in verdict.not_judged


# L3


def acknowledged() -> Trace:
    trace = waiting()
    trace.serve(10)
    trace.ack(11)
    trace.setack(21, "n1", "n2")
    trace.setack(21, "n1", "n3")
    return trace


def test_acknowledged_jobs_are_collected() -> None:
    trace = acknowledged()
    trace.collect(22, "n1", "n2", "n3")

    verdict = trace.verdict(end=400)

    assert verdict.ok
    assert verdict.checks["L3"] == 1
    assert verdict.metrics.collection.longest == 11_001_000


@pytest.mark.parametrize(("core", "due"), [("n1,n3", []), ("n1,n2,n3", ["L3"])])
def test_a_list_from_the_disk_may_name_a_node_outside_of_the_core(
    core: str, due: list[str]
) -> None:
    """everything, with limits of groups in most runs: such a node cannot be asked."""
    trace = Trace(config=(("appendonly", "yes"),))
    trace.add(0, to=(), options="replicate=1 retry=10 ttl=3600")
    trace.send(1, "repljob", "n3", "n1", detail=f"jobs={JOB} holders=n1,n2 no-reply")
    trace.row(3, "crash", "n1", cause="kill")
    trace.row(4, "start", "n1", cause="loaded")
    trace.row(4, "hold", "n1", job=JOB, cause="loaded")
    trace.heal(20, core=core)
    trace.ack(21)

    assert [each for each in broken(trace.verdict(end=400)) if each == "L3"] == due


def test_they_may_not_stay_for_ever() -> None:
    assert broken(acknowledged().verdict(end=21 + COLLECTION + 2)) == ["L3"]


@pytest.mark.parametrize("is_told", [False, True])
def test_a_job_without_retries_that_was_moved_stays_until_it_expires_or_its_node_is_told_of_the_ack(
    *, is_told: bool
) -> None:
    trace = Trace()
    trace.add(0, ONCE, to=("n2",), options="replicate=2 retry=0 ttl=3600", is_queued=False)
    trace.row(1, "drop", "n2", job=ONCE, cause="moved")
    trace.send(1, "yourjobs", "n2", "n3", ONCE, detail=f"jobs={ONCE} holders=n1,n2")
    trace.row(1.002, "hold", "n3", job=ONCE, cause="yourjobs")
    trace.ack(2, job=ONCE)
    trace.row(3, "drop", "n1", job=ONCE, cause="collected")
    if is_told:
        trace.ack(4, "n3", job=ONCE)
    trace.heal(20)

    assert ("L3" in broken(trace.verdict(end=20 + COLLECTION + 5))) is is_told


def test_until_the_bound_they_may() -> None:
    verdict = acknowledged().verdict(end=150)

    assert verdict.ok
    assert "L3" in verdict.not_judged


def test_the_collection_waits_for_holders_that_are_gone() -> None:
    trace = acknowledged()
    trace.crash(21.5, "n3")

    assert trace.verdict(end=400).ok


def test_in_calm_the_collection_is_quick() -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(1)
    trace.ack(2)
    trace.heal(3)

    verdict = trace.verdict(end=30)

    assert broken(verdict) == ["L3"]


# L4


@pytest.mark.parametrize(("end", "due"), [(61, []), (65, ["L4"])])
def test_nothing_outlives_its_ttl(end: int, due: list[str]) -> None:
    trace = Trace(consumers=())
    trace.add(0, options="replicate=3 retry=10 ttl=60")

    assert broken(trace.verdict(end=end)) == due


def test_a_dummy_ack_does_not_either() -> None:
    trace = Trace(consumers=())
    trace.row(0, "hold", "n1", job=JOB, cause="dummy")

    assert trace.verdict(end=0x3D * 60 - 1).ok
    assert broken(trace.verdict(end=0x3D * 60 + 10)) == ["L4"]
