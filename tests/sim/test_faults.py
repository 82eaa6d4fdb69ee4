import itertools

import pytest

from disque_trio.sim.plan import Add, ClockPlan, Fault, LinkPlan, Plan
from disque_trio.sim.rows import Row
from disque_trio.sim.words import FAULTS
from tests.sim.runs import SECOND, between, of, plan, play, times

KINDS = (*(kind for kind in FAULTS if kind != "swizzle"), "cut", "restart", "remove")


def at(second: float, kind: str, hold: float = 0, **rest: object) -> Fault:
    times = {"at": int(second * SECOND), "hold": int(hold * SECOND)}
    return Fault(kind=kind, **times, **rest)  # type: ignore[arg-type]


def pairs(rows: list[Row]) -> list[tuple[str, str]]:
    return [(row.node, row.peer) for row in rows]


# Links.


def test_a_partition_cuts_all_links_between_its_groups_and_heals_after_its_time() -> None:
    rows = play(plan(at(5, "partition", 3, groups=((1,), (2, 3)))))

    cuts = of(rows, "cut")
    assert sorted(pairs(cuts)) == [("n1", "n2"), ("n1", "n3"), ("n2", "n1"), ("n3", "n1")]
    assert {row.time for row in cuts} == {5 * SECOND}
    assert sorted(pairs(of(rows, "heal"))) == sorted(pairs(cuts))
    assert {row.time for row in of(rows, "heal")} == {8 * SECOND}


def test_nothing_crosses_a_partition() -> None:
    rows = play(plan(at(5, "partition", 3, groups=((1,), (2, 3)))))

    crossing = [
        row for row in between(rows, 5, 8) if row.kind == "recv" and "n1" in {row.node, row.peer}
    ]
    assert crossing == []
    assert of(between(rows, 8, 20), "recv", node="n1")


def test_a_short_cut_only_delays() -> None:
    quiet = (("cluster-node-timeout", "60000"),)

    rows = play(plan(at(5, "partition", 1, groups=((1,), (2, 3))), config=quiet))

    assert not of(rows, "lost")


def test_a_long_cut_loses_what_was_sent_into_it() -> None:
    quiet = (("cluster-node-timeout", "60000"),)

    rows = play(plan(at(5, "partition", 10, groups=((1,), (2, 3))), config=quiet))

    broken = of(rows, "lost", detail="broken")
    assert broken
    assert all(13 * SECOND <= row.time < 16 * SECOND for row in broken)


def test_without_an_end_a_fault_lasts_until_the_heal() -> None:
    rows = play(plan(at(5, "cut", links=((1, 2),)), seconds=11))

    assert times(rows, "heal") == times(rows, "chaos.end") == [11 * SECOND]


def test_overlapping_cuts_end_with_the_last() -> None:
    rows = play(plan(at(5, "cut", 2, links=((1, 2),)), at(6, "cut", 3, links=((1, 2),))))

    assert times(rows, "cut") == [5 * SECOND]
    assert times(rows, "heal") == [9 * SECOND]


def test_a_one_way_cut_stops_one_way() -> None:
    rows = play(plan(at(5, "cut", 1, links=((1, 2),))))

    window = between(rows, 5, 6)
    assert not of(window, "recv", node="n2", peer="n1")
    assert of(window, "recv", node="n1", peer="n2")


def test_faults_of_links_may_name_nodes_instead() -> None:
    rows = play(plan(at(5, "cut", 1, nodes=(2,))))

    assert sorted(pairs(of(rows, "cut"))) == [
        ("n1", "n2"),
        ("n2", "n1"),
        ("n2", "n3"),
        ("n3", "n2"),
    ]


def test_a_clog_holds_messages_and_loses_none() -> None:
    quiet = (("cluster-node-timeout", "60000"),)

    rows = play(plan(at(5, "clog", 9, nodes=(2,)), config=quiet))

    assert not of(between(rows, 5, 14), "recv", node="n2")
    assert not of(rows, "lost")
    assert len(times(rows, "release")) == 4


def test_a_drop_swallows_the_messages_that_it_names() -> None:
    rows = play(plan(at(0, "drop", 10, nodes=(1, 2, 3), mode="setack")))

    window = between(rows, 0, 10)
    assert of(window, "send", cause="setack")
    assert not of(window, "recv", cause="setack")
    assert {row.cause for row in of(rows, "lost")} == {"setack"}
    assert of(between(rows, 10, 100), "recv", cause="setack")


def test_a_drop_may_swallow_a_share() -> None:
    rows = play(plan(at(0, "drop", links=((1, 2), (2, 1)), amount=500_000)))

    window = between(rows, 0, 19)
    assert of(window, "lost", node="n1", peer="n2")
    assert of(window, "recv", node="n2", peer="n1")


def test_a_delay_makes_messages_late() -> None:
    rows = play(plan(at(5, "delay", 5, links=((1, 2),), amount=200)))

    sent = {row.ref: row.time for row in of(between(rows, 5, 10), "send", node="n1", peer="n2")}
    waits = [row.time - sent[row.ref] for row in of(rows, "recv") if row.ref in sent]
    assert waits
    assert min(waits) > 200_000
    assert [row.detail for row in of(rows, "delay")] == ["200", "0"]


def test_hostile_links_lose_what_a_cut_meets() -> None:
    rows = play(plan(at(5, "cut", 1, links=((1, 2),)), link=LinkPlan(model="hostile")))

    lost = of(rows, "lost")
    assert lost
    assert set(pairs(lost)) == {("n1", "n2")}
    assert all(5 * SECOND <= row.time <= 6 * SECOND for row in lost)


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


# Triggers.


def test_a_fault_may_strike_upon_the_nth_event() -> None:
    fault = Fault(
        kind="crash", when="send.gotjob", nth=3, target="event.node", hold=SECOND, at=5 * SECOND
    )

    rows = play(plan(fault))

    third = of(between(rows, 5, 20), "send", cause="gotjob")[2]
    (crash,) = of(rows, "crash")
    assert (crash.time, crash.node) == (third.time, third.node)


def test_a_triggered_fault_strikes_as_often_as_it_says() -> None:
    fault = Fault(kind="restart", when="add.ok", nth=2, target="event.node", count=3)

    rows = play(plan(fault))

    oks = of(rows, "add.ok")
    strikes = of(rows, "crash")
    assert len(strikes) == 3
    assert [row.time for row in strikes] == [oks[1].time, oks[3].time, oks[5].time]


def test_the_peer_of_an_event_may_be_the_victim() -> None:
    fault = Fault(kind="pause", when="recv.gotjob", target="event.peer", hold=SECOND)

    rows = play(plan(fault))

    (pause,) = of(rows, "pause")
    assert pause.node == of(rows, "recv", cause="gotjob")[0].peer


def test_a_message_may_be_cut_on_its_way() -> None:
    fault = Fault(kind="cut", when="send.setack", target="event.node", hold=5 * SECOND)

    rows = play(plan(fault))

    first = of(rows, "send", cause="setack")[0]
    arrival = times(rows, "recv", ref=first.ref)
    assert all(time > first.time + 5 * SECOND for time in arrival)


def test_kinds_of_events_with_and_without_causes_may_be_named() -> None:
    for when, kind in (("hold", "hold"), ("hold.repljob", "hold"), ("add.ok", "add.ok")):
        rows = play(plan(Fault(kind="clock-step", amount=1, nodes=(1,), when=when)))

        wanted = (
            of(rows, kind) if "." not in when or kind == when else of(rows, kind, cause="repljob")
        )
        assert times(rows, "clock.step") == [wanted[0].time]


def test_nothing_strikes_after_the_chaos() -> None:
    faults = (
        Fault(kind="restart", when="serve", target="event.node", count=1000),
        at(25, "crash", nodes=(1,)),
    )

    rows = play(plan(*faults, jobs=60))

    assert all(time < 20 * SECOND for time in times(rows, "crash"))


def test_a_strike_without_effect_does_not_count() -> None:
    faults = (
        at(0, "crash", 10, nodes=(1,)),
        Fault(kind="crash", when="send.ping", nodes=(1,), count=1, hold=SECOND),
    )

    rows = play(plan(*faults))

    assert len(times(rows, "crash", node="n1")) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_cluster_gets_over_every_kind_of_fault(kind: str) -> None:
    fault = Fault(
        kind=kind,
        at=5 * SECOND,
        hold=5 * SECOND,
        nodes=(2,),
        groups=((1, 2), (3, 4)) if kind == "partition" else (),
        amount=200 if kind != "drop" else 500_000,
        queue="q",
    )

    rows = play(plan(fault, nodes=4))

    assert of(rows, "rejoin")
    delivered = {row.job for row in of(rows, "get.deliver")}
    assert {row.job for row in of(rows, "add.ok")} <= delivered


def test_a_plan_without_faults_has_no_rows_of_the_world() -> None:
    rows = play(Plan(scenario="s", seed=1, nodes=2, chaos=SECOND))

    kinds = {row.kind for row in rows}
    assert kinds == {"start", "send", "recv", "chaos.end", "heal.end", "rejoin", "end"}
