import pytest

from disque_trio.sim.model.faults import draw_core
from disque_trio.sim.scenarios.fault_kinds import IN_PLANS, FaultKind
from disque_trio.sim.scenarios.plan import Fault, LinkPlan, Plan
from tests.sim.model.faulting import at, pairs
from tests.sim.runs import FAST_DETECTION, SECOND, between, of, plan, play, times

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


# Triggers.


def test_a_fault_may_happen_upon_the_nth_event() -> None:
    fault = Fault(
        kind="crash", when="send.gotjob", nth=3, target="event.node", hold=SECOND, at=5 * SECOND
    )

    rows = play(plan(fault))

    third = of(between(rows, 5, 20), "send", cause="gotjob")[2]
    (crash,) = of(rows, "crash")
    assert (crash.time, crash.node) == (third.time, third.node)


def test_a_triggered_fault_happens_as_often_as_it_says() -> None:
    fault = Fault(kind="restart", when="add.ok", nth=2, target="event.node", count=3)

    rows = play(plan(fault))

    oks = of(rows, "add.ok")
    occurrences = of(rows, "crash")
    assert len(occurrences) == 3
    assert [row.time for row in occurrences] == [oks[1].time, oks[3].time, oks[5].time]


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


def test_no_fault_happens_after_the_chaos() -> None:
    faults = (
        Fault(kind="restart", when="serve", target="event.node", count=1000),
        at(25, "crash", nodes=(1,)),
    )

    rows = play(plan(*faults, jobs=60))

    assert all(time < 20 * SECOND for time in times(rows, "crash"))


def test_an_occurrence_without_effect_does_not_count() -> None:
    faults = (
        at(0, "crash", 10, nodes=(1,)),
        Fault(kind="crash", when="send.ping", nodes=(1,), count=1, hold=SECOND),
    )

    rows = play(plan(*faults))

    assert len(times(rows, "crash", node="n1")) == 2


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", IN_PLANS, ids=lambda kind: kind.name)
def test_a_cluster_gets_over_every_kind_of_fault_which_writes_its_rows(kind: FaultKind) -> None:
    fault = Fault(
        kind=kind.name,
        at=5 * SECOND,
        hold=5 * SECOND,
        nodes=(2,),
        groups=((1, 2), (3, 4)) if kind.name == "partition" else (),
        amount=500_000 if kind.amount == "share" else 200,
        queue="q",
    )

    journal = (("appendonly", "yes"),) if kind.part == "disk" else ()

    rows = play(plan(fault, nodes=4, config=(*FAST_DETECTION, *journal)))

    assert of(rows, "rejoin")
    assert all(of(rows, each) for each in (kind.row, kind.end_row) if each)
    if kind.is_level:
        assert kind.is_ended_by(kind.row, of(rows, kind.row)[-1].detail)
    delivered = {row.job for row in of(rows, "get.deliver")}
    assert {row.job for row in of(rows, "add.ok")} <= delivered


def test_a_plan_without_faults_has_no_rows_of_the_world() -> None:
    rows = play(Plan(scenario="s", seed=1, nodes=2, chaos=SECOND))

    kinds = {row.kind for row in rows}
    assert kinds - {"send", "recv"} == {
        *("start", "nodes", "chaos.end", "heal.end", "rejoin", "pairs", "end"),
    }


@pytest.mark.parametrize(("nodes", "size"), [(0, 0), (1, 1), (4, 3), (5, 3)])
def test_the_core_is_a_majority_of_the_nodes_that_are_left(nodes: int, size: int) -> None:
    assert len(draw_core(range(nodes), 1)) == size
