"""Faults of processes and clocks, and what operators do."""

import itertools

import attrs
import pytest

from disque_trio.sim.scenarios.plan import Add, ClockPlan, Consumer, Fault, LinkPlan
from tests.sim.model.faulting import at
from tests.sim.runs import SECOND, between, of, plan, play, times

# Processes.


def test_a_crash_takes_the_memory_and_a_start_brings_the_node_back() -> None:
    rows = play(plan(at(5, "crash", 3, nodes=(2,))))

    assert [(row.time, row.node, row.cause) for row in of(rows, "crash")] == [
        (5 * SECOND, "n2", "kill")
    ]
    (start,) = of(between(rows, 0, 20), "start")
    assert (start.time, start.node, start.cause) == (8 * SECOND, "n2", "empty")
    assert not [row for row in between(rows, 5.001, 8) if row.node == "n2" and not row.client]
    assert of(between(rows, 8.5, 20), "recv", node="n2", peer="n1")


def test_a_power_failure_is_told_apart() -> None:
    rows = play(plan(at(5, "crash", 3, nodes=(2,), mode="power")))

    assert [row.cause for row in of(rows, "crash")] == ["power"]


def test_what_is_down_cannot_crash() -> None:
    rows = play(plan(at(5, "crash", 4, nodes=(2,)), at(6, "crash", 9, nodes=(2,))))

    assert times(rows, "crash") == [5 * SECOND]
    assert times(between(rows, 0, 20), "start") == [9 * SECOND]


def test_a_client_of_a_crashed_node_does_not_know_what_became_of_its_job() -> None:
    add = Add(at=5 * SECOND, node=2, producer="p1", queue="q", body="b", replicate=3)

    rows = play(plan(Fault(kind="crash", at=5 * SECOND + 500, nodes=(2,)), adds=(add,)))

    (unknown,) = of(rows, "add.unknown")
    assert unknown.cause == "disconnect"
    assert unknown.ref == of(rows, "add.invoke")[0].ref


def test_consumers_of_a_crashed_node_come_back_to_it() -> None:
    rows = play(plan(at(5, "crash", 3, nodes=(2,)), workers=(2,)))

    assert of(between(rows, 8, 20), "get.deliver", client="c2", node="n2")


def test_a_restart_is_a_crash_and_a_start() -> None:
    rows = play(plan(at(5, "restart", nodes=(3,))))

    assert times(rows, "crash", node="n3") == [5 * SECOND]
    assert times(between(rows, 0, 20), "start", node="n3") == [5 * SECOND]


def test_a_removed_node_never_comes_back_and_is_forgotten_in_the_end() -> None:
    rows = play(plan(at(5, "remove", nodes=(3,))))

    assert times(rows, "remove") == [5 * SECOND]
    assert not of(between(rows, 5, 1000), "start")
    assert of(rows, "heal.end")[0].detail == "n1,n2"
    assert {row.node for row in of(rows, "forget", peer="n3")} >= {"n1", "n2"}
    assert rows[-1].time < 60 * SECOND


def test_a_wiped_node_comes_back_as_another() -> None:
    rows = play(plan(at(5, "wipe", nodes=(3,)), seconds=30, jobs=50))

    assert times(rows, "wipe", node="n3") == [5 * SECOND]
    assert [row.cause for row in of(between(rows, 0, 30), "start")] == ["fresh"]
    assert of(between(rows, 10, 30), "hold", node="n3", cause="repljob")
    before = {row.job[2:10] for row in of(between(rows, 0, 5), "add.ok", node="n3")}
    after = {row.job[2:10] for row in of(between(rows, 6, 30), "add.ok", node="n3")}
    assert before
    assert after
    assert not before & after
    assert of(rows, "rejoin")


def test_a_paused_node_does_nothing_and_then_everything_at_once() -> None:
    rows = play(plan(at(5, "pause", 1, nodes=(2,)), config=(("cluster-node-timeout", "60000"),)))

    assert [row.kind for row in of(rows, "pause", "resume")] == ["pause", "resume"]
    window = [row for row in between(rows, 5, 6) if row.node == "n2" and not row.client]
    assert {row.kind for row in window} <= {"pause"}
    assert of(between(rows, 6, 6.000001), "recv", node="n2")
    assert not of(rows, "lost")


def test_a_crash_ends_a_pause() -> None:
    rows = play(plan(at(5, "pause", 10, nodes=(2,)), at(6, "crash", 1, nodes=(2,))))

    assert not of(rows, "resume")
    assert of(between(rows, 8, 15), "recv", node="n2")


def test_a_slow_node_takes_its_time_for_each_batch() -> None:
    rows = play(plan(at(5, "slow", 5, nodes=(2,), amount=100)))

    moments = sorted(
        {
            row.time
            for row in between(rows, 5.2, 9.8)
            if row.node == "n2" and not row.client and row.kind != "lost"
        }
    )
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert gaps
    assert min(gaps) >= 100_000
    assert [row.detail for row in of(rows, "slow")] == ["100", "0"]


def test_what_a_slow_node_receives_of_a_batch_it_handles_at_that_moment() -> None:
    slow = at(5, "slow", 15, nodes=(2,), amount=2)
    worker = Consumer(name="c1", node=1, queues=("q",), count=5, mix=(("together", 1.0),))
    apart = 5 * SECOND
    bursts = [attrs.evolve(add, at=add.at // apart * apart, node=1) for add in plan(jobs=40).adds]
    rows = play(plan(slow, adds=tuple(bursts), consumers=(worker,), link=LinkPlan(batches=True)))

    received = {(row.time, row.job) for row in of(rows, "recv", node="n2", cause="deljob")}
    dropped = of(rows, "drop", node="n2", cause="deljob")
    assert dropped
    assert {(row.time, row.job) for row in dropped} <= received


# Clocks.


def test_a_clock_may_step() -> None:
    rows = play(plan(at(5, "clock-step", nodes=(2,), amount=-3_600_000)))

    seen = [row for row in rows if row.node == "n2" and row.mono]
    offsets = {row.wall - row.mono for row in seen}
    assert len(offsets) <= 4  # Two faces, each rounded down.
    assert max(offsets) - min(offsets) == pytest.approx(3_600_000, abs=2)
    assert of(rows, "clock.step")[0].detail == "-3600000"


def test_a_clock_may_run_fast_for_a_while_and_then_as_planned() -> None:
    rows = play(plan(at(5, "clock-rate", 5, nodes=(2,), amount=100_000)))

    assert [row.detail for row in of(rows, "clock.rate")] == ["100000", "0"]
    begin, end = of(rows, "clock.rate")
    assert end.mono - begin.mono == 5_500


def test_a_planned_drift_is_what_a_rate_goes_back_to() -> None:
    drifting = (ClockPlan(), ClockPlan(drift_ppm=200))

    rows = play(plan(at(5, "clock-rate", 5, nodes=(2,), amount=500), clocks=drifting))

    assert [row.detail for row in of(rows, "clock.rate")] == ["500", "200"]


def test_a_wall_clock_may_stand_still() -> None:
    rows = play(plan(at(5, "wall-freeze", 5, nodes=(2,))))

    frozen = {row.wall for row in between(rows, 5, 10) if row.node == "n2" and row.mono}
    assert len(frozen) == 1
    assert [row.kind for row in of(rows, "wall.freeze", "wall.thaw")] == [
        "wall.freeze",
        "wall.thaw",
    ]


# What operators do.


def test_a_leaving_node_is_given_no_new_copies_until_it_stays() -> None:
    rows = play(plan(at(5, "leave", 8, nodes=(2,)), nodes=4, jobs=40))

    assert not of(between(rows, 6, 13), "hold", node="n2", cause="repljob")
    assert of(between(rows, 15, 20), "hold", node="n2", cause="repljob")
    assert [row.detail for row in of(rows, "leave")] == ["yes", "no"]


def test_a_new_node_joins_and_takes_part() -> None:
    rows = play(plan(at(5, "join", nodes=(1,)), nodes=3, seconds=40, jobs=70))

    assert times(between(rows, 0, 40), "start", node="n4") == [5 * SECOND]
    assert of(rows, "hold", node="n4")
    assert of(rows, "heal.end")[0].detail == "n1,n2,n3,n4"
    assert of(rows, "rejoin")


def test_a_forgotten_node_is_met_again_in_the_end() -> None:
    rows = play(plan(at(5, "forget", nodes=(3,))))

    assert sorted(row.node for row in of(rows, "forget")) == ["n1", "n2"]
    assert not of(between(rows, 6, 20), "hold", node="n3", cause="repljob")
    assert of(rows, "rejoin")


def test_nodes_that_lost_sight_of_each_other_in_a_partition_meet_when_it_is_over() -> None:
    faults = (
        at(2, "partition", groups=((1,), (2, 3))),
        at(10, "forget", 5, nodes=(1,)),
        at(12, "wipe", nodes=(3,)),
    )

    rows = play(plan(*faults))

    (rejoin,) = of(rows, "rejoin")
    assert rejoin.time < 30 * SECOND


def test_a_paused_queue_gives_no_jobs_until_the_pause_ends() -> None:
    faults = at(5, "pause-queue", 5, nodes=(1, 2, 3), queue="q", mode="out")

    rows = play(plan(faults))

    assert not of(between(rows, 5.1, 10), "serve")
    assert of(between(rows, 10, 11), "serve")


@pytest.mark.parametrize(("mode", "paused"), [("out", ["n1"]), ("bcast", ["n2", "n3", "n1"])])
def test_a_pause_that_a_node_refuses_ends_where_it_was_noted(mode: str, paused: list[str]) -> None:
    """n1 has no memory for a queue that is not there."""
    faults = (
        at(4, "memory", 3, nodes=(1,), amount=1_000_000),
        at(5, "pause-queue", 8, nodes=(1,), queue="other", mode=mode),
    )

    rows = of(between(play(plan(*faults)), 5, 6), "pause-queue")

    assert [row.node for row in rows if not row.detail.endswith(" none")] == paused
    refused = [row for row in rows if row.cause == "OOM"]
    assert sorted(row.node for row in refused) == sorted(paused)
    assert {row.detail for row in refused} == {"other none"}


def test_a_pause_that_a_node_carries_out_lasts() -> None:
    rows = play(plan(at(5, "pause-queue", 8, nodes=(1,), queue="other", mode="out")))

    assert [(row.time, row.detail) for row in of(rows, "pause-queue")] == [
        (5 * SECOND, "other out"), (13 * SECOND, "other none"),
    ]  # fmt: skip
