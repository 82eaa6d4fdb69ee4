import attrs
import pytest

from disque_trio.statemachine.base import CAPABILITIES, LIMITS
from disque_trio.statemachine.limit import MOST_LIMITS, Setting
from disque_trio.statemachine.limiting import PROMISE, restore, waits
from disque_trio.statemachine.messages import QueueLimit
from disque_trio.statemachine.nodesfile import nodes_text, parse_limits, parse_nodes
from tests.cluster_rig import ClusterRig
from tests.rig import N2, WALL, Rig
from tests.statemachine.limits import Workers, cluster


def settings(rig: ClusterRig) -> list[Setting]:
    return [rig.node(name).limits[b"q"].setting for name in rig.names()]


def test_a_setting_is_known_to_all_nodes_at_once() -> None:
    rig = cluster("CONCURRENCY", 3, "RATE", 10, "PER", "2.5", "BURST", 4, jobs=0)

    [setting] = set(settings(rig))
    assert (setting.concurrency, setting.rate, setting.period, setting.burst) == (3, 10, 2500, 4)


def test_the_later_of_two_settings_holds_once_nodes_can_reach_each_other_again() -> None:
    rig = cluster("CONCURRENCY", 3, jobs=0)
    rig.cut("a", "b")
    rig.cut("a", "c")
    rig.ask("a", "QUEUE", "LIMIT", "q", "CONCURRENCY", 4)
    rig.run(10)
    rig.ask("b", "QUEUE", "LIMIT", "q", "CONCURRENCY", 5)
    rig.run(5000)
    assert [each.concurrency for each in settings(rig)] == [4, 5, 5]

    rig.heal()
    rig.run(3000)

    assert [each.concurrency for each in settings(rig)] == [5, 5, 5]


def test_a_setting_is_later_than_the_one_before_whatever_the_clock() -> None:
    rig = Rig()
    rig.ask("QUEUE", "LIMIT", "q", "RATE", 5)
    first = rig.node.limits[b"q"].setting.epoch

    rig.ask("QUEUE", "LIMIT", "q", "RATE", 6)

    assert rig.node.limits[b"q"].setting.epoch == first + 1


def test_a_message_with_an_earlier_setting_changes_nothing() -> None:
    rig = Rig(peers=1, ours=True)
    rig.ask("QUEUE", "LIMIT", "q", "RATE", 5)

    rig.message(N2, QueueLimit(b"q", WALL - 1, 7, 0, 0, 0, 0))

    assert rig.node.limits[b"q"].setting.rate == 5


def test_a_rate_without_a_period_is_ignored() -> None:
    rig = Rig(peers=1, ours=True)

    rig.message(N2, QueueLimit(b"q", WALL, 0, 7, 0, 0, 0))
    rig.message(N2, QueueLimit(b"q", WALL, 1, 0, 0, 0, 0, 0, 7, 0, 0))

    assert rig.node.limits == {}


def test_a_node_that_does_not_know_limits_is_sent_none() -> None:
    rig = Rig(peers=2, ours=True)
    rig.node.cluster.nodes[N2].capabilities = CAPABILITIES & ~LIMITS

    rig.ask("QUEUE", "LIMIT", "q", "RATE", 5)

    assert len([each for each in rig.sent() if isinstance(each[1], QueueLimit)]) == 1


def test_limits_of_more_queues_than_a_node_keeps_are_refused() -> None:
    rig = Rig(peers=1, ours=True)
    for number in range(MOST_LIMITS):
        rig.message(N2, QueueLimit(b"%d" % number, WALL, 1, 0, 0, 0, 0))

    rig.message(N2, QueueLimit(b"q", WALL, 1, 0, 0, 0, 0))
    reply = rig.ask("QUEUE", "LIMIT", "q", "RATE", 5)

    assert b"1000 queues have limits" in repr(reply).encode()
    assert b"q" not in rig.node.limits


def test_removing_limits_that_there_are_not_is_no_setting() -> None:
    rig = Rig()

    rig.ask("QUEUE", "LIMIT", "q", "NONE")

    assert rig.node.limits == {}


def test_clients_are_served_when_limits_are_removed() -> None:
    rig = cluster("CONCURRENCY", 1, names="a")
    workers = Workers(rig)
    workers.wait("a", 4)
    assert workers.at("a") == 1
    queue = rig.node("a").queues[b"q"]
    assert waits(rig.node("a"), queue)

    rig.ask("a", "QUEUE", "LIMIT", "q", "NONE")

    assert workers.at("a") == 4
    assert not waits(rig.node("a"), queue)
    rig.run(3000)
    assert rig.node("a").limits[b"q"].due == 0


def test_limits_outlast_a_restart() -> None:
    of_queue = "CONCURRENCY", 3, "RATE", 10, "PER", 2, "BURST", 4, "LOOSE"
    of_group = "GROUP-CONCURRENCY", 5, "GROUP-RATE", 6, "PER", 7, "BURST", 8
    rig = cluster(*of_queue, *of_group, names="a", jobs=0)
    text = nodes_text(rig.node("a"), handshakes=False)

    [(name, setting)] = parse_limits(text)

    assert (name, setting) == (b"q", rig.node("a").limits[b"q"].setting)
    assert setting.is_loose
    assert attrs.astuple(setting.of_group)[1:5] == (5, 6, 7000, 8)
    assert parse_nodes(text)[0].id == rig.id("a")
    assert not parse_limits(nodes_text(rig.node("a"), handshakes=True))


@pytest.mark.parametrize(
    "line", [b"vars limit q:1:2:3:4:5:0", b"vars limit 71:1:2", b"vars met x:1"]
)
def test_other_lines_of_nodes_conf_are_no_limits(line: bytes) -> None:
    assert parse_limits(line) == []


def test_a_process_leaves_its_part_to_no_keeper_until_the_promises_before_it_have_ended() -> None:
    rig = cluster("CONCURRENCY", 3)
    workers = Workers(rig)
    rig.crash("b")
    rig.run(100)
    rig.start("b")
    restarted = rig.now.mono

    assert rig.node("b").limits[b"q"].setting.concurrency == 3
    assert rig.node("b").limits[b"q"].promised_until == restarted + PROMISE
    workers.wait("a", 3)
    rig.run(5000)
    assert workers.at("a") == 3


def test_a_removal_is_forgotten_after_a_day() -> None:
    rig = Rig()
    gone = [(b"old", Setting(WALL - 86_400_001)), (b"new", Setting(WALL - 86_399_000))]

    restore(rig.node, gone)

    assert list(rig.node.limits) == [b"new"]


def test_a_paused_queue_does_not_wait_for_its_limits() -> None:
    rig = cluster("CONCURRENCY", 1, names="a")
    workers = Workers(rig)
    workers.wait("a", 2)
    rig.ask("a", "PAUSE", "q", "out")
    node = rig.node("a")

    assert not waits(node, node.queues[b"q"])
