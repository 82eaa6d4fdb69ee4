import random

import pytest

from disque_trio.sim.model.network import STALL, Connection, Network, Packet, Rule
from disque_trio.sim.scenarios.plan import Latency, LinkPlan

SECOND = 1_000_000
STEADY = Latency(fast=(1_000, 1_000))
PLAIN = LinkPlan(latency=STEADY)


class Rig:
    """A network, one connection from 1 to 2, and what has come out of it."""

    def __init__(self, plan: LinkPlan = PLAIN, seed: int = 0) -> None:
        self.network = Network(plan, random.Random(seed))
        self.connection = self.network.connect(1, 2)
        self.now = 0
        self.came: list[str] = []
        self.lost: list[str] = []
        self.names: dict[Packet, str] = {}
        self._due: list[tuple[int, int, Packet]] = []
        self._count = 0

    def send(self, name: str, *, is_control: bool = False, size: int = 0) -> tuple[int, ...]:
        packet = Packet(self.connection.forth, is_control)
        self.names[packet] = name
        times = self.network.submit(self.now, packet, name, size)
        for time in times:
            self._count += 1
            self._due.append((time, self._count, packet))
        return times

    def run(self, until: int) -> None:
        """Let everything arrive that does by then."""
        for time, _, packet in sorted(self._due, key=lambda due: due[:2]):
            if time <= until:
                self.now = time
                self._arrive(packet)
        self._due = [due for due in self._due if due[0] > until]
        self.now = until

    def _arrive(self, packet: Packet) -> None:
        verdict = self.network.admit(self.now, packet)
        if verdict is not None:
            (self.came if verdict else self.lost).append(self.names[packet])

    def flush(self) -> list[int]:
        """What follows a heal: when it came, and that it came."""
        times = []
        for time, channel in self.network.flushes(self.now, 1, 2):
            times.append(time)
            self.came += [self.names[each] for each in self.network.flush(channel)]
        return times

    def stall_due(self) -> int | None:
        return self.network.stall_due(self.connection)


def hostile(**odds: float) -> LinkPlan:
    return LinkPlan(model="hostile", latency=STEADY, **odds)  # type: ignore[arg-type]


def test_a_packet_arrives_after_the_latency() -> None:
    rig = Rig()

    assert rig.send("a") == (1_000,)

    rig.run(1_000)
    assert rig.came == ["a"]


def test_packets_of_one_channel_never_overtake_each_other() -> None:
    rig = Rig(LinkPlan(latency=Latency(fast=(0, 10_000))))

    for number in range(100):
        rig.now = number * 10
        rig.send(f"{number}")
    rig.run(SECOND)

    assert rig.came == [f"{number}" for number in range(100)]


def test_channels_may_overtake_each_other() -> None:
    network = Network(LinkPlan(latency=Latency(fast=(0, 10_000))), random.Random(0))
    one, other = network.connect(1, 2), network.connect(1, 2)

    pairs = [
        (network.submit(0, Packet(one.forth, False)), network.submit(1, Packet(other.forth, False)))
        for one, other in [(network.connect(1, 2), network.connect(1, 2)) for _ in range(50)]
    ]

    assert one.epoch < other.epoch
    assert any(first > second for first, second in pairs)


def test_some_packets_are_slow() -> None:
    latency = Latency(fast=(1, 1), slow=(SECOND, SECOND), p_slow=0.5)
    network = Network(LinkPlan(latency=latency), random.Random(1))

    times = {network.latency(network.path(1, 2)) for _ in range(50)}

    assert times == {1, SECOND}


def test_bandwidth_makes_packets_wait_for_those_before() -> None:
    rig = Rig(LinkPlan(latency=STEADY, bytes_per_second=1_000_000))

    assert rig.send("a", size=5_000) == (6_000,)
    assert rig.send("b", size=5_000) == (11_000,)


def test_a_delay_is_added_to_the_latency() -> None:
    rig = Rig()
    rig.network.path(1, 2).delay = 50_000

    assert rig.send("a") == (51_000,)


def test_a_short_cut_delays_and_keeps_the_order() -> None:
    rig = Rig()
    rig.send("before")
    rig.network.cut(1, 2)
    rig.run(2_000)
    rig.send("during")
    rig.run(3 * SECOND)

    assert rig.came == []
    assert rig.network.mend(1, 2)
    (time,) = rig.flush()

    assert rig.came == ["before", "during"]
    assert 3 * SECOND + 1_000 <= time <= 4 * SECOND + 1_000


def test_what_arrives_before_the_burst_joins_it() -> None:
    rig = Rig()
    rig.network.cut(1, 2)
    rig.send("first")
    rig.run(SECOND)
    rig.network.mend(1, 2)
    ((_, channel),) = rig.network.flushes(rig.now, 1, 2)
    rig.send("second")
    rig.run(rig.now + 1_000)

    assert rig.came == []
    assert [rig.names[each] for each in rig.network.flush(channel)] == [
        "first",
        "second",
    ]


def test_a_burst_waits_if_the_path_is_cut_again() -> None:
    rig = Rig()
    rig.network.cut(1, 2)
    rig.send("a")
    rig.run(SECOND)
    rig.network.mend(1, 2)
    ((_, channel),) = rig.network.flushes(rig.now, 1, 2)
    rig.network.cut(1, 2)

    assert rig.network.flush(channel) == []
    assert rig.stall_due() == 1_000 + STALL


def test_cuts_add_up() -> None:
    network = Network(PLAIN, random.Random(0))

    assert network.cut(1, 2)
    assert not network.cut(1, 2)
    assert not network.mend(1, 2)
    assert network.path(1, 2).is_blocked
    assert network.mend(1, 2)
    assert not network.path(1, 2).is_blocked


def test_a_long_cut_breaks_a_connection_that_has_something_to_say() -> None:
    rig = Rig()
    rig.network.cut(1, 2)
    rig.send("a")
    rig.run(1_000)

    assert rig.stall_due() == 1_000 + STALL
    assert [rig.names[each] for each in rig.network.abandon(rig.connection.forth)] == ["a"]
    assert rig.stall_due() is None


def test_a_silent_connection_survives_any_cut() -> None:
    rig = Rig()
    rig.network.cut(1, 2)
    rig.network.cut(2, 1)

    assert rig.stall_due() is None


def test_a_one_way_cut_lets_the_other_way_through_until_acknowledgements_are_missed() -> None:
    rig = Rig()
    rig.network.cut(2, 1)

    rig.send("a")
    rig.run(1_000)

    assert rig.came == ["a"]
    assert rig.stall_due() == 1_000 + STALL

    rig.network.mend(2, 1)
    assert rig.stall_due() is None


def test_a_clog_keeps_packets_and_breaks_nothing() -> None:
    rig = Rig()
    rig.network.clog(1, 2)
    rig.send("a")
    rig.run(100 * SECOND)

    assert rig.came == []
    assert rig.stall_due() is None
    assert rig.network.release(1, 2)
    rig.flush()
    assert rig.came == ["a"]


def test_a_cut_under_a_clog_goes_on_after_its_release() -> None:
    rig = Rig()
    rig.network.clog(1, 2)
    rig.network.cut(1, 2)
    rig.send("a")
    rig.run(SECOND)

    rig.network.release(1, 2)

    assert rig.flush() == []
    assert rig.stall_due() == 1_000 + STALL


@pytest.mark.parametrize(
    ("cut", "model", "can"),
    [
        ((1, 2), "stream", False),
        ((2, 1), "stream", False),
        ((3, 1), "stream", True),
        ((1, 2), "hostile", False),
        ((2, 1), "hostile", True),
    ],
)
def test_a_connection_needs_both_ways_unless_links_are_hostile(
    cut: tuple[int, int], model: str, can: bool
) -> None:
    network = Network(LinkPlan(model=model), random.Random(0))
    network.cut(*cut)

    assert network.can_connect(network.connect(1, 2)) is can


def test_hostile_links_lose_some_packets() -> None:
    rig = Rig(hostile(drop=0.5))

    arrivals = [len(rig.send(f"{number}")) for number in range(100)]

    assert 20 < sum(arrivals) < 80


def test_hostile_links_repeat_some_packets() -> None:
    rig = Rig(hostile(duplicate=0.5))

    arrivals = [rig.send(f"{number}") for number in range(100)]

    twice = [times for times in arrivals if len(times) == 2]
    assert 20 < len(twice) < 80
    assert all(first == 1_000 <= second <= 11_000 for first, second in twice)


def test_hostile_links_reorder_some_packets() -> None:
    rig = Rig(hostile(reorder=0.5))
    names = [f"{number}" for number in range(100)]
    for name in names:
        rig.send(name)
        rig.now += 100

    rig.run(SECOND)

    assert rig.came != names
    assert sorted(rig.came) == sorted(names)


def test_hostile_links_spare_what_makes_and_ends_connections() -> None:
    rig = Rig(hostile(drop=1.0))

    assert rig.send("a") == ()
    assert rig.send("hello", is_control=True) == (1_000,)


def test_a_cut_of_a_hostile_link_loses_what_it_meets() -> None:
    rig = Rig(hostile())
    rig.network.cut(1, 2)
    rig.send("a")
    rig.send("hello", is_control=True)

    rig.run(1_000)

    assert rig.lost == ["a"]
    assert rig.came == ["hello"]
    assert rig.stall_due() is None


def test_a_clog_of_a_hostile_link_keeps_packets() -> None:
    rig = Rig(hostile())
    rig.network.clog(1, 2)
    rig.send("a")
    rig.run(1_000)

    rig.network.release(1, 2)
    rig.flush()

    assert rig.came == ["a"]


def test_a_rule_swallows_what_it_names_as_often_as_it_says() -> None:
    rig = Rig()
    rig.network.path(1, 2).rules.append(Rule(only="setack", count=2))

    arrivals = [len(rig.send(name)) for name in ("setack", "gotack", "setack", "setack")]

    assert arrivals == [0, 1, 0, 1]


def test_a_rule_may_swallow_a_share() -> None:
    rig = Rig()
    rig.network.path(1, 2).rules.append(Rule(share=0.5))

    assert 20 < sum(len(rig.send("a")) for _ in range(100)) < 80


def test_a_rule_holds_in_its_direction() -> None:
    rig = Rig()
    rig.network.path(2, 1).rules.append(Rule())

    assert rig.send("a") == (1_000,)


def test_reliable_links_lose_and_slow_nothing_by_themselves() -> None:
    plan = LinkPlan(
        model="hostile", latency=Latency(fast=(1, 1), p_slow=1.0), drop=1.0, duplicate=1.0
    )
    rig = Rig(plan)
    assert rig.send("lost") == ()

    rig.network.become_reliable()

    assert rig.send("a") == (1,)


def test_equal_seeds_make_equal_networks() -> None:
    plan = LinkPlan(model="hostile", drop=0.1, duplicate=0.1, reorder=0.1)
    one, other = Rig(plan, seed=5), Rig(plan, seed=5)

    assert [one.send("a") for _ in range(200)] == [other.send("a") for _ in range(200)]


def test_connections_are_numbered() -> None:
    network = Network(PLAIN, random.Random(0))

    epochs = [network.connect(1, 2).epoch for _ in range(3)]

    assert epochs == [1, 2, 3]
    assert isinstance(network.connect(1, 2), Connection)
