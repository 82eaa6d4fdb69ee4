import pytest

from disque_trio.statemachine import keeping
from disque_trio.statemachine.knobs import Knobs
from disque_trio.statemachine.limiting import keeper
from disque_trio.statemachine.messages import LimitGrant, LimitPoll, LimitReport
from disque_trio.statemachine.messages import QueueLimit as Setting
from tests.cluster_rig import ClusterRig
from tests.rig import N2, WALL, Rig
from tests.statemachine.limits import Workers, cluster, keeper_of, leased


def test_leases_at_all_nodes_together_are_never_more_than_the_limit() -> None:
    rig = cluster("CONCURRENCY", 4, jobs=12)
    workers = Workers(rig)
    for name in rig.names():
        workers.wait(name, 3)

    for _ in range(25):
        rig.run(50)
        assert leased(rig) <= 4
        workers.acknowledge()

    rig.run(1000)
    assert leased(rig) == 4


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_no_node_waits_for_long_while_others_have_work(limit: int) -> None:
    rig = cluster("CONCURRENCY", limit, jobs=12)
    workers = Workers(rig)
    for name in rig.names():
        workers.wait(name, 4)
    done = dict.fromkeys(rig.names(), 0)

    for _ in range(30 * limit):
        rig.run(100 // limit)
        workers.take()
        for name, _, _ in workers.got[:1]:
            done[name] += 1
        workers.acknowledge()

    assert min(done.values()) >= 3, done


def test_a_lease_that_ends_lets_the_next_client_of_its_node_be_served_at_once() -> None:
    rig = cluster("CONCURRENCY", 1, names="a")
    workers = Workers(rig)
    workers.wait("a", 2)
    assert workers.at("a") == 1
    [(_, first, _)] = workers.got

    workers.acknowledge()

    assert workers.at("a") == 1
    assert workers.got[0][1] is not first


@pytest.mark.parametrize("names", ["a", "abc"])
def test_a_rate_is_used_up_and_not_exceeded(names: str) -> None:
    rig = cluster("RATE", 100, "BURST", 10, names=names, jobs=240 // len(names))
    workers = Workers(rig)
    for name in names:
        workers.wait(name, 4)
    began, done = rig.now.mono, 0

    while rig.now.mono < began + 2000:
        rig.run(5)
        workers.take()
        done += len(workers.got)
        workers.acknowledge(len(workers.got))

    assert 185 <= done <= 10 + 200 + 100


@pytest.mark.parametrize("names", ["a", "abc"])
@pytest.mark.parametrize("concurrency", [3, 7])
def test_both_limits_together_are_used_up_and_not_exceeded(names: str, concurrency: int) -> None:
    rig = cluster("CONCURRENCY", concurrency, "RATE", 20, names=names, jobs=120 // len(names))
    workers = Workers(rig)
    for name in names:
        workers.wait(name, 4)
    began, times = rig.now.mono, list[int]()

    while rig.now.mono < began + 4000:
        rig.run(5)
        assert leased(rig) <= concurrency
        workers.take()
        times += [rig.now.mono] * len(workers.got)
        workers.acknowledge(len(workers.got))

    assert 60 <= len(times) <= 2 + 20 * 5.05
    assert max(sum(at <= each < at + 1000 for each in times) for at in times) <= 2 + 20 * 2.05


@pytest.mark.parametrize("latency", [15, 40, 120, 200])
@pytest.mark.parametrize("limit", [("RATE", 20), ("CONCURRENCY", 9, "RATE", 20)])
def test_slow_links_do_not_void_tokens(latency: int, limit: tuple[str | int, ...]) -> None:
    """everything, seed 918: a queue stood nearly still, for each report voided the answer to the
    last one."""
    rig = cluster(*limit, jobs=120, latency=latency)
    workers = Workers(rig)
    for name in "abc":
        workers.wait(name, 4)
    rig.run(3000)
    workers.acknowledge(len(workers.got))
    began, done = rig.now.mono, 0

    while rig.now.mono < began + 4000:
        rig.run(5)
        workers.take()
        done += len(workers.got)
        workers.acknowledge(len(workers.got))

    assert 60 <= done <= 2 + 20 * 5.05


@pytest.mark.parametrize("latency", [15, 40, 120, 200])
def test_slow_links_do_not_void_leases(latency: int) -> None:
    rig = cluster("CONCURRENCY", 9, jobs=400, latency=latency)
    workers = Workers(rig)
    for name in "abc":
        workers.wait(name, 4)
    rig.run(3000)
    done, free = 0, 0

    for _ in range(400):
        rig.run(10)
        workers.take()
        free += 9 - len(workers.got)
        done += 3
        workers.acknowledge(3)

    assert free < 400 * 3  # two thirds of the leases are in use


def test_tokens_for_a_node_that_has_not_left_its_part_wait_for_its_report() -> None:
    rig = cluster("RATE", 10)
    Workers(rig).wait("a")
    rig.run(200)
    node = rig.node(keeper_of(rig))
    limit = node.limits[b"q"]
    for id, share in limit.shares.items():
        share.wanted = 0 if id == node.cluster.myself.id else 5
        share.voted_until = 0
    limit.level = 5

    keeping._arm(node, limit)

    assert limit.due > node.mono + 20


def test_tokens_are_not_hoarded_while_all_leases_are_in_use() -> None:
    rig = cluster("CONCURRENCY", 3, "RATE", 20, jobs=40)
    workers = Workers(rig)
    for name in rig.names():
        workers.wait(name, 4)
    rig.run(10_000)
    assert leased(rig) == 3
    assert all(rig.node(name).limits[b"q"].tokens <= 3 for name in rig.names())

    done = 0
    for _ in range(200):
        workers.take()
        done += len(workers.got)
        workers.acknowledge(len(workers.got))
        rig.run(5)

    assert done <= 3 + 2 + 20 * 2.05


def test_a_pause_fills_the_bucket_up_to_the_burst() -> None:
    rig = cluster("RATE", 1, "PER", 10, "BURST", 3, names="a", jobs=9)
    workers = Workers(rig)
    workers.wait("a")
    rig.run(100)
    assert workers.at("a") == 0
    rig.run(10_000)
    workers.acknowledge()

    rig.run(60_000)
    assert len(workers.got) == 0
    workers.acknowledge()
    rig.run(10)


def test_several_jobs_at_once_count_each() -> None:
    rig = cluster("CONCURRENCY", 3, names="a")

    reply = rig.ask("a", "GETJOB", "NOHANG", "COUNT", 5, "FROM", "q")

    assert isinstance(reply, list)
    assert len(reply) == 3
    assert rig.ask("a", "GETJOB", "NOHANG", "COUNT", 5, "FROM", "q") is not None
    assert leased(rig) == 3


def test_many_jobs_of_several_queues_end_where_the_limits_do() -> None:
    rig = cluster("CONCURRENCY", 3, names="a")
    rig.node("a").knobs = Knobs(ids_at_once=2)

    reply = rig.ask("a", "GETJOB", "NOHANG", "COUNT", 5, "FROM", "q", "p", "o")

    assert isinstance(reply, list)
    assert len(reply) == 3


def test_a_job_with_retry_0_has_no_lease_that_counts() -> None:
    rig = cluster("CONCURRENCY", 1, names="a", retry=0)
    workers = Workers(rig)

    workers.wait("a", 3)

    assert workers.at("a") == 3


# Nodes that cannot reach each other.


def busy(limit: int = 6, retry: int = 30) -> tuple[ClusterRig, Workers, str]:
    """Nodes with clients, and the keeper of the limit, before there is a fault."""
    rig = cluster("CONCURRENCY", limit, retry=retry, jobs=10)
    workers = Workers(rig)
    for name in rig.names():
        workers.wait(name, limit)
    rig.run(500)
    return rig, workers, keeper_of(rig)


def isolate(rig: ClusterRig, name: str) -> None:
    for other in rig.names():
        if other != name:
            rig.cut(name, other)


def play(rig: ClusterRig, workers: Workers, limit: int, duration: int) -> None:
    for _ in range(duration // 250):
        rig.run(250)
        assert leased(rig) <= limit
        workers.acknowledge()
        for name in rig.names():
            node = rig.node(name)
            if len(node.queues[b"q"]) < 5 and not node.cluster.is_leaving:
                rig.ask(name, "ADDJOB", "q", "body", 0, "REPLICATE", 1, "RETRY", 2)


def test_each_side_of_a_partition_delivers_its_part_only() -> None:
    rig, workers, keeper = busy(retry=2)
    isolate(rig, keeper)

    play(rig, workers, 6, 8000)
    rig.run(3000)
    workers.take()

    assert leased(rig) <= 6
    assert rig.node(keeper).leased.get(b"q", 0) <= 2


def test_each_side_of_a_partition_has_the_whole_of_loose_limits() -> None:
    rig = cluster("CONCURRENCY", 6, "LOOSE", jobs=20)
    workers = Workers(rig)
    for name in rig.names():
        workers.wait(name, 9)
    rig.run(500)
    assert leased(rig) == 6
    keeper = keeper_of(rig)
    isolate(rig, keeper)

    rig.run(12_000)

    alone = rig.node(keeper).leased.get(b"q", 0)
    assert (alone, leased(rig) - alone) == (6, 6)
    rig.heal()
    rig.run(5000)
    workers.acknowledge(12)
    rig.run(2000)
    assert leased(rig) == 6


def test_each_side_of_a_partition_has_the_whole_of_a_loose_rate() -> None:
    rig = cluster("RATE", 30, "LOOSE", jobs=240)
    workers = Workers(rig)
    for name in rig.names():
        workers.wait(name, 4)
    rig.run(500)
    keeper = keeper_of(rig)
    isolate(rig, keeper)
    rig.run(6000)
    workers.take()
    workers.acknowledge(len(workers.got))
    counts = dict.fromkeys(rig.names(), 0)

    for _ in range(200):
        rig.run(10)
        workers.take()
        for name, _, _ in workers.got:
            counts[name] += 1
        workers.acknowledge(len(workers.got))

    others = sum(counts.values()) - counts[keeper]
    assert 50 <= counts[keeper] <= 2 + 30 * 3.05
    assert 50 <= others <= 2 + 30 * 3.05


def test_in_calm_loose_limits_hold_while_the_keeper_changes() -> None:
    rig, workers, keeper = busy(retry=2)
    rig.ask(keeper, "QUEUE", "LIMIT", "q", "CONCURRENCY", 6, "LOOSE")
    rig.run(50)
    rig.ask(keeper, "CLUSTER", "LEAVING", "yes")

    play(rig, workers, 6, 6000)


def test_without_its_keeper_the_others_go_on_with_what_is_in_use_and_then_with_their_part() -> None:
    rig, workers, keeper = busy(retry=2)
    others = [name for name in rig.names() if name != keeper]
    rig.crash(keeper)
    workers.got = [each for each in workers.got if each[0] != keeper]

    play(rig, workers, 6, 10_000)
    rig.run(1000)

    assert leased(rig) == 4
    assert keeper_of(rig, others[0]) in others


@pytest.mark.parametrize("seed", range(3))
def test_leases_that_a_lost_keeper_has_given_count_at_nodes_that_have_given_none(seed: int) -> None:
    rig = ClusterRig(*"abc", seed=seed)
    rig.form()
    rig.ask("a", "QUEUE", "LIMIT", "q", "CONCURRENCY", 3)
    rig.run(50)
    lost = keeper_of(rig)
    others = [name for name in "abc" if name != lost]
    workers = Workers(rig)
    for name in (lost, others[0]):
        for _ in range(3):
            rig.ask(name, "ADDJOB", "q", "body", 0, "REPLICATE", 1, "RETRY", 30)
    workers.wait(lost, 3)
    rig.run(2000)

    for name in others:
        rig.cut(lost, name)
    workers.wait(others[0], 3)

    for _ in range(40):
        rig.run(500)
        assert leased(rig) == 3


def test_a_partition_ends_with_one_keeper_and_the_whole_limit() -> None:
    rig, workers, keeper = busy(retry=2)
    isolate(rig, keeper)
    play(rig, workers, 6, 8000)
    rig.heal()

    play(rig, workers, 6, 7000)
    rig.run(1500)

    assert {keeper_of(rig, name) for name in rig.names()} == {keeper}
    assert leased(rig) == 6


@pytest.mark.parametrize("limit", [("RATE", 2), ("CONCURRENCY", 4), ("CONCURRENCY", 4, "RATE", 2)])
def test_a_node_that_does_not_reach_the_keeper_has_its_part(limit: tuple[str | int, ...]) -> None:
    """everything, seed 2066: the keeper of its part began anew with each poll of the other one."""
    rig = cluster(*limit, names="abcd", jobs=0)
    first = keeper(rig.node("a"), rig.node("a").limits[b"q"])
    [name, *_] = [each for each in "abcd" if rig.id(each) != first]
    [lost] = [each for each in "abcd" if rig.id(each) == first]
    rig.cut(lost, name)
    rig.run(10_000)
    for each in (lost, name):
        for _ in range(200):
            rig.ask(each, "ADDJOB", "q", "body", 0, "REPLICATE", 1, "RETRY", 2)
    workers = Workers(rig)
    workers.wait(lost, 4)
    workers.wait(name, 4)
    for _ in range(50):  # until all that other keepers may have granted has expired
        rig.run(100)
        workers.acknowledge(len(workers.got))
    at = {lost: 0, name: 0}

    for _ in range(200):
        rig.run(100)
        for each in at:
            at[each] += workers.at(each)
        workers.acknowledge(len(workers.got))

    # A quarter of 2 tokens a second in 20 seconds; or of 4 leases, each for 0.1 s.
    assert at[name] >= 8
    assert at[lost] >= at[name]


def test_a_majority_may_deliver_with_a_limit_of_one() -> None:
    rig, workers, keeper = busy(limit=1, retry=2)
    isolate(rig, keeper)

    play(rig, workers, 1, 9000)
    rig.run(1000)

    assert [rig.node(name).leased.get(b"q", 0) for name in rig.names() if name == keeper] == [0]
    assert leased(rig) == 1


def test_a_node_that_leaves_is_no_keeper() -> None:
    rig, workers, keeper = busy(retry=2)
    others = [name for name in rig.names() if name != keeper]
    rig.ask(keeper, "CLUSTER", "LEAVING", "yes")

    play(rig, workers, 6, 6000)

    assert keeper_of(rig, others[0]) != keeper


def test_an_idle_queue_costs_no_messages() -> None:
    rig, workers, _ = busy(retry=2)
    for name, _ in workers.clients:
        rig.ask(name, "PURGE", "q")
    for _ in range(12):
        rig.run(200)
        workers.acknowledge(len(workers.got))
    rig.run(10_000)
    before = len(rig.sent(LimitPoll)) + len(rig.sent(LimitReport))

    rig.run(20_000)

    assert len(rig.sent(LimitPoll)) + len(rig.sent(LimitReport)) == before


def limit_messages(rig: ClusterRig, duration: int) -> int:
    """How many polls and reports are sent in that time."""
    before = len(rig.sent(LimitPoll)) + len(rig.sent(LimitReport))
    rig.run(duration)
    return len(rig.sent(LimitPoll)) + len(rig.sent(LimitReport)) - before


def test_nor_do_leases_of_a_queue_with_a_rate_alone_where_two_nodes_are_apart() -> None:
    rig = cluster("RATE", 20, names="abcd", jobs=6, retry=3600)
    limit = rig.node("a").limits[b"q"]
    [first] = [each for each in "abcd" if rig.id(each) == keeper(rig.node("a"), limit)]
    rig.cut(first, next(each for each in "abcd" if each != first))
    rig.run(10_000)
    workers = Workers(rig)
    for name in "abcd":
        workers.wait(name, 6)
    rig.run(45_000)

    assert sum(workers.at(name) for name in "abcd") == 24
    assert limit_messages(rig, 10_000) == 0


@pytest.mark.parametrize("limit", [("CONCURRENCY", 4), ("CONCURRENCY", 4, "RATE", 2)])
def test_nor_does_the_demand_of_a_node_that_is_gone(limit: tuple[str | int, ...]) -> None:
    rig = cluster(*limit, jobs=20)
    first = keeper(rig.node("a"), rig.node("a").limits[b"q"])
    name = next(each for each in "abc" if rig.id(each) != first)
    workers = Workers(rig)
    workers.wait(name, 10)
    rig.run(1000)
    rig.crash(name)
    rig.run(60_000)

    assert limit_messages(rig, 10_000) == 0


def test_lowering_a_limit_waits_for_leases_to_end() -> None:
    rig, workers, _ = busy()
    assert leased(rig) == 6
    rig.ask("a", "QUEUE", "LIMIT", "q", "CONCURRENCY", 2)

    for _ in range(15):
        rig.run(200)
        workers.acknowledge()

    rig.run(1000)
    assert leased(rig) == 2


# One node, and messages of others.


def limited(concurrency: int = 2, rate: int = 0) -> Rig:
    rig = Rig(peers=2, ours=True)
    rig.message(N2, Setting(b"q", WALL, concurrency, rate, 1000, 0, 0))
    rig.add("REPLICATE", 1)
    rig.take()
    rig.sent()
    return rig


def test_messages_about_queues_without_limits_are_ignored() -> None:
    rig = Rig(peers=1, ours=True)

    rig.message(N2, LimitPoll(b"q", 1))
    rig.message(N2, LimitReport(b"q", 1, 1, 0, 0, 1, 0))
    rig.message(N2, LimitGrant(b"q", 1, 5, 5))

    assert rig.sent() == []


def test_a_node_without_jobs_leaves_its_part_to_the_keeper_and_wants_nothing() -> None:
    rig = Rig(peers=1, ours=True)
    rig.message(N2, Setting(b"q", WALL, 2, 0, 0, 0, 0))

    rig.message(N2, LimitPoll(b"q", 7))

    [(_, report)] = rig.sent()
    assert isinstance(report, LimitReport)
    assert (report.used, report.slots, report.wanted) == (0, 0, 0)
    assert report.poll == (7 if keeps(rig, N2) else 0)


def keeps(rig: Rig, id: bytes) -> bool:
    return keeper(rig.node, rig.node.limits[b"q"], id) == id


def test_an_old_answer_is_void() -> None:
    rig = limited()
    limit = rig.node.limits[b"q"]
    rig.message(N2, LimitGrant(b"q", limit.number + 1, 5, 5))

    assert limit.slots == 0


def test_an_answer_of_another_node_than_the_keeper_is_void() -> None:
    rig = limited()
    limit = rig.node.limits[b"q"]
    for peer in rig.node.cluster.nodes.values():
        peer.capabilities = 0

    rig.message(N2, LimitGrant(b"q", limit.number, 5, 5))

    assert limit.slots == 0
