from disque_trio.sim.picture import plan_words
from disque_trio.sim.scenarios.plan import Add, ClockPlan, Consumer, Fault, Latency, LinkPlan, Plan


def told(plan: Plan) -> dict[str, str]:
    return dict(plan_words.in_words(plan))


def test_an_empty_plan_says_that_there_is_nothing() -> None:
    said = told(Plan(scenario="s", seed=1, nodes=3))

    assert said["Work"] == "no clients"
    assert said["Faults"] == "none"


def test_of_a_live_cluster_no_plan_is_told() -> None:
    assert plan_words.in_words(Plan(scenario="live", seed=0, nodes=3)) == [
        ("Cluster", "3 nodes, live")
    ]


def test_durations_are_short() -> None:
    assert plan_words.duration(1_500_000) == "1.5 s"
    assert plan_words.duration(20_000) == "20 ms"
    assert plan_words.duration(500) == "500 µs"
    assert plan_words.span((1000, 1000)) == "1 ms"


def test_neighbours_are_named_by_their_range() -> None:
    assert plan_words.nodes(["n10", "n9", "n8", "n1", "n3", "n4"]) == "n1 n3 n4 n8–n10"
    assert plan_words.nodes(["0a1b2c3d", "4e5f6a7b"]) == "0a1b2c3d 4e5f6a7b"


def test_the_cluster_is_told_with_its_links_clocks_and_directives() -> None:
    link = LinkPlan(
        model="hostile",
        latency=Latency(fast=(500, 2000), p_slow=0.01),
        drop=0.05,
        bytes_per_second=9,
    )
    clocks = (ClockPlan(drift_ppm=200), ClockPlan(wall_offset_ms=-40))
    config = (("delivery-lease", "no"),)
    plan = Plan(
        scenario="s", seed=1, nodes=2, link=link, clocks=clocks, config=config,
        versions=(("0",), ("1", "3")),
    )  # fmt: skip

    assert told(plan)["Cluster"] == (
        "2 nodes on hostile links, 500 µs to 2 ms (1.00% take 100 ms to 2 s); "
        "5.00% of messages lost; 9 bytes/s; n1 drifts +200 ppm; "
        "n2's wall clock is off by -40 ms; delivery-lease no; "
        "n1 of version 0; n2 of version 1, then 3"
    )


def test_adds_of_the_same_kind_are_counted() -> None:
    adds = tuple(
        Add(at=at, node=1, producer="p1", queue="q", body="", retry_s=1) for at in (0, 1_000_000)
    )
    plan = Plan(scenario="s", seed=1, nodes=2, adds=adds)

    assert told(plan)["Work"] == "2 jobs from 1 producer between 0 µs and 1 s, to q: 2 × RETRY 1"


def test_consumers_are_told_with_their_mix() -> None:
    mix = (("ackjob", 3.0), ("none", 1.0))
    plan = Plan(
        scenario="s",
        seed=1,
        nodes=2,
        consumers=(Consumer(name="c1", node=1, queues=("q",), mix=mix),),
    )

    assert (
        told(plan)["Work"]
        == "no jobs are added; 1 consumer working 5 ms to 50 ms, then ackjob 75%, none 25%"
    )


def test_a_few_faults_are_told_each() -> None:
    assert plan_words.fault_in_words(
        Fault(kind="crash", at=2_000_000, hold=500_000, nodes=(1, 2, 3), mode="kill")
    ) == ("crash n1–n3 kill at 2 s for 500 ms")
    assert plan_words.fault_in_words(Fault(kind="partition", at=0, groups=((1,), (2, 3, 4)))) == (
        "partition n1 | n2–n4 at 0 µs"
    )
    assert plan_words.fault_in_words(
        Fault(kind="crash", when="send.gotjob", nth=2, target="event.node")
    ) == ("crash event.node upon send.gotjob number 2")


def test_many_faults_are_counted() -> None:
    faults = (*[Fault(kind="crash")] * 4, Fault(kind="pause"))

    assert (
        told(Plan(scenario="s", seed=1, nodes=2, faults=faults))["Faults"] == "4 crashes, 1 pause"
    )


def test_many_links_are_cut_short() -> None:
    links = tuple((1, peer) for peer in range(2, 12))

    assert plan_words.fault_in_words(Fault(kind="clog", links=links)).startswith(
        "clog n1→n2, n1→n3, n1→n4, n1→n5, n1→n6, n1→n7 and 4 more"
    )


def test_the_replay_command_names_the_scenario_file() -> None:
    assert (
        plan_words.replay(Plan(scenario="calm", seed=7, nodes=1))
        == "disque-trio sim run scenarios/calm.toml --seed 7"
    )
    assert (
        plan_words.replay(Plan(scenario="my/own.toml", seed=7, nodes=1))
        == "disque-trio sim run my/own.toml --seed 7"
    )
