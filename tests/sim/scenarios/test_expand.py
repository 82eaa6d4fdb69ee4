import random
from pathlib import Path

import attrs
import pytest

from disque_trio.sim.scenarios import partition_shapes
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.plan import Fault, Plan
from disque_trio.sim.scenarios.scenario import Scenario

HEAD = 'schema = 1\nname = "x"\n'
SECOND = 1_000_000


@pytest.fixture
def scenario_of(tmp_path: Path) -> "Reader":
    return Reader(tmp_path)


@attrs.frozen
class Reader:
    folder: Path

    def __call__(self, text: str) -> Scenario:
        path = self.folder / "x.toml"
        path.write_text(HEAD + text, "utf-8")
        return load(path)

    def faults(self, text: str, seed: int = 1) -> tuple[Fault, ...]:
        return expand(self(text), seed).faults


FULL = """
[cluster]
nodes = "3..7"
[link]
latency = { fast = "1ms..2ms", scale = "0.1..10 log" }
drop = "0..0.1"
[clock]
drift_ppm = "-200..200"
[[producer]]
rate = "1..5"
job = { replicate = "1..9", retry = ["0s", "1s..3s"], queue = ["a", "b"] }
[[consumer]]
workers = "1..2"
[[fault]]
kind = "partition"
shape = ["halves", "ring", "one-way"]
every = "5s..10s"
hold = "1s..20s"
[[fault]]
kind = "crash"
every = "7s"
hold = "2s"
[swarm]
families = ["partition", "crash", "drift"]
"""


def test_the_same_seed_makes_the_same_plan(scenario_of: Reader) -> None:
    scenario = scenario_of(FULL)

    assert expand(scenario, 7) == expand(scenario, 7)
    assert expand(scenario, 7) != expand(scenario, 8)


def test_what_is_drawn_stays_within_its_range(scenario_of: Reader) -> None:
    scenario = scenario_of(FULL)

    for seed in range(30):
        plan = expand(scenario, seed)
        assert 3 <= plan.nodes <= 7
        assert 0 <= plan.link.drop <= 0.1
        assert len(plan.clocks) in {0, plan.nodes}
        assert all(-200 <= clock.drift_ppm <= 200 for clock in plan.clocks)
        assert all(0 < add.at < plan.chaos for add in plan.adds)
        assert all(1 <= add.node <= plan.nodes for add in plan.adds)
        assert all((add.replicate or 1) <= plan.nodes for add in plan.adds)
        assert all(fault.at + fault.hold < plan.chaos for fault in plan.faults)
        assert plan.nodes <= len(plan.consumers) <= 2 * plan.nodes


def test_at_most_once_jobs_have_one_copy(scenario_of: Reader) -> None:
    adds = expand(scenario_of(FULL), 3).adds

    assert {add.replicate for add in adds if add.retry_s == 0} == {1}
    assert {add.retry_s for add in adds} == {0, 1, 2, 3}


def test_sync_may_be_left_to_the_node(scenario_of: Reader) -> None:
    text = FULL.replace('replicate = "1..9"', 'replicate = 3, sync = ["auto", "1..9"]')
    adds = expand(scenario_of(text), 3).adds

    assert {add.options["sync"] for add in adds if add.retry_s} == {"AUTO", 1, 2, 3}


def test_adds_come_in_order_with_bodies_of_their_own(scenario_of: Reader) -> None:
    adds = expand(scenario_of(FULL), 3).adds

    assert list(adds) == sorted(adds, key=lambda add: add.at)
    assert len({add.body for add in adds}) == len(adds)
    assert {add.size for add in adds} == {16}


def test_a_producer_keeps_its_pace(scenario_of: Reader) -> None:
    text = '[end]\nchaos="1000s"\n[[producer]]\nat="random"\nrate=2\nburst="1..3"\n'

    adds = expand(scenario_of(text), 1).adds

    assert 1800 < len(adds) < 2200
    assert {add.producer for add in adds} == {"p1"}
    assert {add.node for add in adds} == {1, 2, 3, 4, 5}


def test_a_producer_may_send_in_pipelines(scenario_of: Reader) -> None:
    text = '[[producer]]\nat=1\nrate=5\npipeline="1..4"\n'

    assert {add.pipeline for add in expand(scenario_of(text), 1).adds} == {1, 2, 3, 4}


def test_some_producers_die(scenario_of: Reader) -> None:
    text = '[[producer]]\nat=1\nrate=20\ndies=0.2\ndies_after="1ms..3ms"\n'

    deaths = [add.dies_after for add in expand(scenario_of(text), 1).adds]

    assert 0.1 < sum(each is not None for each in deaths) / len(deaths) < 0.3
    assert all(1_000 <= each <= 3_000 for each in deaths if each is not None)


def test_a_producer_adds_no_more_than_it_has(scenario_of: Reader) -> None:
    adds = expand(scenario_of("[[producer]]\nat=[1,2]\nrate=1000\njobs=5\n"), 1).adds

    assert len(adds) == 10


def test_another_producer_leaves_the_first_ones_adds_alone(scenario_of: Reader) -> None:
    one = "[[producer]]\nat=1\nrate=5\n"

    alone = expand(scenario_of(one), 1)
    joined = expand(scenario_of(one + "[[producer]]\nat=2\nrate=9\njob={queue=['a','b']}\n"), 1)

    assert alone.adds == tuple(add for add in joined.adds if add.producer == "p1")


def test_another_family_leaves_the_draws_of_faults_alone(scenario_of: Reader) -> None:
    text = "[[fault]]\nkind='crash'\nevery='1s..5s'\n[[producer]]\nrate='1..9'\n"

    plain = expand(scenario_of(text), 1)
    swarm = expand(scenario_of(text + "[swarm]\nfamilies=['drift']\noptions=true\n"), 1)

    assert plain.faults == swarm.faults
    assert [add.at for add in plain.adds] == [add.at for add in swarm.adds]


# Swarm.


def test_each_family_is_left_out_by_some_seeds_and_kept_by_others(scenario_of: Reader) -> None:
    scenario = scenario_of(FULL)

    kinds = [frozenset(f.kind for f in expand(scenario, seed).faults) for seed in range(60)]
    drifts = [bool(expand(scenario, seed).clocks) for seed in range(60)]

    assert any("crash" in each for each in kinds)
    assert any("crash" not in each for each in kinds)
    assert any("crash" in each and len(each) > 1 for each in kinds)
    assert frozenset() in kinds
    assert set(drifts) == {True, False}


def test_a_swarm_leaves_out_options_and_ways_to_end_a_job(scenario_of: Reader) -> None:
    scenario = scenario_of(
        "[[producer]]\nrate=9\njob={delay='1s',ttl='9s',async=1}\n"
        "[[consumer]]\nack={ackjob=1,nack=1,die=1}\n[swarm]\noptions=true\nacks=true\n"
    )
    plans = [expand(scenario, seed) for seed in range(30)]

    assert {plan.adds[0].delay_s for plan in plans} == {None, 1}
    assert {plan.adds[0].ttl_s for plan in plans} == {None, 9}
    assert {plan.adds[0].is_async for plan in plans} == {False, True}
    mixes = {tuple(way for way, _ in plan.consumers[0].mix) for plan in plans}
    assert mixes == {
        ("ackjob",),
        ("ackjob", "nack"),
        ("ackjob", "die"),
        ("ackjob", "nack", "die"),
    }


def test_built_in_families_silence_links_and_clocks(scenario_of: Reader) -> None:
    text = """
[link]
latency = { p_slow = 0.1 }
drop = 0.1
duplicate = 0.1
reorder = 0.1
bandwidth = "1MB"
[clock]
drift_ppm = 5
wall_offset = "1s"
[swarm]
p = 0
families = ["loss", "duplication", "reordering", "slow-tail", "bandwidth", "drift", "wall-offset"]
"""
    plan = expand(scenario_of(text), 1)

    assert plan.clocks == ()
    assert (plan.link.drop, plan.link.duplicate, plan.link.reorder) == (0, 0, 0)
    assert plan.link.latency.p_slow == 0
    assert plan.link.bytes_per_second == 0


# Faults.


def test_a_fault_comes_every_so_often_until_the_chaos_ends(scenario_of: Reader) -> None:
    faults = scenario_of.faults("[[fault]]\nkind='crash'\nevery='20s'\nhold='10s'\n")

    assert [(fault.at, fault.hold) for fault in faults] == [
        (20 * SECOND, 10 * SECOND),
        (40 * SECOND, 10 * SECOND),
    ]
    assert all(fault.mode == "kill" and len(fault.nodes) == 1 for fault in faults)


def test_a_fault_that_outlives_the_chaos_ends_with_it(scenario_of: Reader) -> None:
    faults = scenario_of.faults("[[fault]]\nkind='pause'\nat='50s'\nhold='10s'\nnodes=[2]\n")

    assert [(fault.at, fault.hold, fault.nodes) for fault in faults] == [(50 * SECOND, 0, (2,))]


def test_a_fault_comes_at_most_so_often(scenario_of: Reader) -> None:
    text = "[[fault]]\nkind='wipe'\nat='1s'\nevery='1s'\ncount=3\n"

    assert [fault.at // SECOND for fault in scenario_of.faults(text)] == [1, 2, 3]


def test_a_fault_upon_an_event_keeps_its_trigger(scenario_of: Reader) -> None:
    text = """
[[fault]]
kind = "crash"
mode = "power"
hold = "3s"
when = { event = "send.gotjob", nth = 2 }
target = "event.node"
count = 3
"""
    assert scenario_of.faults(text) == (
        Fault(
            kind="crash",
            mode="power",
            hold=3 * SECOND,
            when="send.gotjob",
            nth=2,
            target="event.node",
            count=3,
        ),
    )


def test_a_fault_with_a_chance_is_in_some_runs_only(scenario_of: Reader) -> None:
    scenario = scenario_of("[[fault]]\nkind='crash'\nat='1s'\np=0.5\n")

    assert {len(expand(scenario, seed).faults) for seed in range(20)} == {0, 1}


def test_amounts_come_in_the_units_of_plans(scenario_of: Reader) -> None:
    text = """
[[fault]]
kind = "clock-step"
at = "1s"
amount = "-2s"
[[fault]]
kind = "clock-rate"
at = "2s"
amount = "-500ppm"
[[fault]]
kind = "drop"
at = "3s"
amount = "5%"
message = "setack"
"""
    faults = scenario_of.faults(text)

    assert [fault.amount for fault in faults] == [-2000, -500, 50_000]
    assert faults[2].mode == "setack"


def test_a_swizzle_clogs_half_of_the_nodes_and_releases_each(scenario_of: Reader) -> None:
    text = "[[fault]]\nkind='swizzle'\nat='1s'\nhold='5s'\nstagger='1s'\n[cluster]\nnodes=6\n"

    faults = scenario_of.faults(text)

    assert [fault.kind for fault in faults] == ["clog"] * 3
    assert [fault.at // SECOND for fault in faults] == [1, 2, 3]
    assert sorted((fault.at + fault.hold) // SECOND for fault in faults) == [9, 10, 11]
    assert all(len(fault.links) == 10 for fault in faults)


def test_partitions_that_are_no_groups_are_cuts(scenario_of: Reader) -> None:
    text = "[[fault]]\nkind='partition'\nshape='{}'\nat='1s'\n"

    assert scenario_of.faults(text.format("halves"))[0].kind == "partition"
    assert scenario_of.faults(text.format("ring"))[0].kind == "cut"
    assert scenario_of.faults(text.format("bridge"))[0].kind == "cut"
    assert scenario_of.faults(text.format("one-way"))[0].kind == "cut"


def test_link_faults_take_every_shape(scenario_of: Reader) -> None:
    for shape in (*partition_shapes.GROUPS, *partition_shapes.LINKS):
        (fault,) = scenario_of.faults(
            f"[[fault]]\nkind='delay'\nshape='{shape}'\nat='1s'\namount='10ms'\n"
        )
        assert fault.links
        assert all(source != target for source, target in fault.links)


# Shapes.


def _reachable(nodes: int, cut: tuple[tuple[int, int], ...]) -> dict[int, list[int]]:
    return {
        node: [other for other in range(1, nodes + 1) if (other, node) not in cut]
        for node in range(1, nodes + 1)
    }


@pytest.mark.parametrize("nodes", [5, 7, 9])
def test_in_a_ring_each_sees_another_majority(nodes: int) -> None:
    reachable = _reachable(nodes, partition_shapes.ring(nodes, 1, random.Random(1)))

    assert all(len(others) > nodes // 2 for others in reachable.values())
    assert all(len(others) < nodes for others in reachable.values())
    assert len({tuple(others) for others in reachable.values()}) == nodes


def test_a_bridge_is_the_only_node_that_sees_everybody() -> None:
    reachable = _reachable(5, partition_shapes.bridge(5, 1, random.Random(1)))

    assert sorted(len(others) for others in reachable.values()) == [3, 3, 3, 3, 5]


def test_one_way_cuts_one_direction() -> None:
    for seed in range(10):
        cut = partition_shapes.one_way(5, 2, random.Random(seed))
        assert len(cut) == 6
        assert not {(target, source) for source, target in cut} & set(cut)


def test_groups_share_no_node_and_leave_none_out() -> None:
    for shape in partition_shapes.GROUPS.values():
        for seed in range(10):
            groups = shape(6, 2, random.Random(seed))
            assert sorted(node for group in groups for node in group) == [1, 2, 3, 4, 5, 6]


def test_a_single_node_has_no_links(scenario_of: Reader) -> None:
    for shape in (*partition_shapes.GROUPS, *partition_shapes.LINKS):
        text = f"[[fault]]\nkind='partition'\nshape='{shape}'\nat='1s'\n[cluster]\nnodes=1\n"
        assert scenario_of.faults(text) == ()


def test_an_empty_scenario_is_a_plan_too(scenario_of: Reader) -> None:
    assert expand(scenario_of(""), 5) == Plan(scenario="x", seed=5, nodes=5)


def test_observers_move_nothing_else(scenario_of: Reader) -> None:
    observed = scenario_of(FULL + "[[observer]]\ncount = 2\nevery = '10ms..20ms'\n")

    for seed in range(5):
        plan, before = expand(observed, seed), expand(scenario_of(FULL), seed)

        assert [each.name for each in plan.observers] == ["o1", "o2"]
        assert {each.every for each in plan.observers} == {(10_000, 20_000)}
        assert attrs.evolve(plan, observers=()) == before


def test_a_share_of_the_seeds_has_observers(scenario_of: Reader) -> None:
    scenario = scenario_of(FULL + "[[observer]]\nshare = 0.3\n")

    assert 10 < sum(bool(expand(scenario, seed).observers) for seed in range(100)) < 50
