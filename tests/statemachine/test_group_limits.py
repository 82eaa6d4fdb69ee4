"""Limits of each group of a queue (decision 161)."""

import pytest

from disque_trio.statemachine import limiting
from disque_trio.statemachine.knobs import Knobs
from disque_trio.statemachine.messages import LimitPoll, LimitReport
from tests.cluster_rig import ClusterRig
from tests.rig import N2, Rig
from tests.statemachine.limits import Workers, cluster, leased_of

TENANTS = [f"tenant-{number}" for number in range(10)]
"""Of which each node keeps some."""


def add(rig: ClusterRig, name: str, *groups: str, count: int = 1, **options: int) -> None:
    """So many jobs of each of these groups come; one named "" has none."""
    retry = options.get("retry", 30)
    for _ in range(count):
        for group in groups:
            words = ("GROUP", group) if group else ()
            rig.ask(name, "ADDJOB", "q", "body", 0, "REPLICATE", 1, "RETRY", retry, *words)


def groups_of(rig: ClusterRig, workers: Workers) -> list[bytes | None]:
    """Of the jobs that workers have, in the order in which they got them."""
    workers.take()
    return [rig.node(name).jobs[id].group for name, _, id in workers.got]


def in_use(rig: ClusterRig) -> list[int]:
    """Of how many groups each node knows the limits."""
    return [len(rig.node(name).group_limits) for name in rig.names()]


def test_each_group_has_as_many_leases_as_the_limit_says() -> None:
    rig = cluster("GROUP-CONCURRENCY", 2, names="a", jobs=0)
    add(rig, "a", "x", count=5)
    add(rig, "a", "y", count=5)
    workers = Workers(rig)

    workers.wait("a", 6)

    assert sorted(map(str, groups_of(rig, workers))) == ["b'x'", "b'x'", "b'y'", "b'y'"]


def test_a_group_that_has_used_up_its_limit_keeps_no_other_waiting() -> None:
    rig = cluster("GROUP-CONCURRENCY", 1, names="a", jobs=0)
    add(rig, "a", "x", count=50)
    workers = Workers(rig)
    workers.wait("a", 3)
    assert groups_of(rig, workers) == [b"x"]

    add(rig, "a", "y", "z")

    assert groups_of(rig, workers) == [b"x", b"y", b"z"]


def test_jobs_without_a_group_are_not_limited() -> None:
    rig = cluster("GROUP-CONCURRENCY", 1, "GROUP-RATE", 1, "PER", 60, names="a", jobs=5)
    workers = Workers(rig)

    workers.wait("a", 5)

    assert groups_of(rig, workers) == [None] * 5


def test_jobs_of_a_lower_priority_are_served_past_a_group_that_waits() -> None:
    rig = cluster("GROUP-CONCURRENCY", 1, names="a", jobs=0)
    for _ in range(3):
        rig.ask("a", "ADDJOB", "q", "body", 0, "GROUP", "x", "PRIORITY", 5)
    add(rig, "a", "", "y", "x")
    workers = Workers(rig)

    workers.wait("a", 5)

    assert groups_of(rig, workers) == [b"x", None, b"y"]


@pytest.mark.parametrize(("before", "priority"), [(0, 0), (0, 5), (5, 0)])
def test_a_job_without_a_group_is_served_past_a_group_that_waits(
    before: int, priority: int
) -> None:
    rig = cluster("GROUP-CONCURRENCY", 1, names="a", jobs=0)
    workers = Workers(rig)
    workers.wait("a", 3)
    for each in (before, before, 5):
        rig.ask("a", "ADDJOB", "q", "body", 0, "GROUP", "x", "PRIORITY", each)
    assert groups_of(rig, workers) == [b"x"]

    rig.ask("a", "ADDJOB", "q", "body", 0, "PRIORITY", priority)

    assert groups_of(rig, workers) == [b"x", None]


def test_a_queue_whose_groups_all_wait_has_no_job_in_turn() -> None:
    rig = cluster("CONCURRENCY", 5, "GROUP-CONCURRENCY", 1, names="a", jobs=0)
    add(rig, "a", "x", count=3)
    Workers(rig).wait("a", 3)

    rig.run(2000)

    assert rig.node("a").queues[b"q"].in_turn() == 0


def test_a_lease_that_ends_lets_the_next_job_of_its_group_be_served_at_once() -> None:
    rig = cluster("GROUP-CONCURRENCY", 1, names="a", jobs=0)
    add(rig, "a", "x", "y", count=3)
    workers = Workers(rig)
    workers.wait("a", 3)
    assert groups_of(rig, workers) == [b"x", b"y"]

    workers.acknowledge()

    assert groups_of(rig, workers) == [b"y", b"x"]


@pytest.mark.parametrize("way", ["ACKJOB", "FASTACK", "NACK", "DELJOB", "RELEASE"])
def test_whatever_ends_a_lease_frees_its_place(way: str) -> None:
    rig = cluster("GROUP-CONCURRENCY", 1, names="a", jobs=0)
    add(rig, "a", "x", count=2)
    workers = Workers(rig)
    workers.wait("a", 2)
    workers.take()
    [(_, _, id)] = workers.got

    rig.ask("a", way, id)

    workers.take()
    assert len(workers.got) == 2


def test_leases_of_a_group_at_all_nodes_together_are_never_more_than_the_limit() -> None:
    rig = cluster("GROUP-CONCURRENCY", 2, jobs=0)
    workers = Workers(rig)
    for name in rig.names():
        add(rig, name, "x", "y", count=10)
    for name in rig.names():
        workers.wait(name, 4)

    for _ in range(25):
        rig.run(50)
        assert leased_of(rig, "x") <= 2
        assert leased_of(rig, "y") <= 2
        workers.acknowledge()

    rig.run(1000)
    assert (leased_of(rig, "x"), leased_of(rig, "y")) == (2, 2)


@pytest.mark.parametrize("names", ["a", "abc"])
def test_the_rate_of_each_group_is_used_up_and_not_exceeded(names: str) -> None:
    rig = cluster("GROUP-RATE", 20, "BURST", 5, names=names, jobs=0)
    for name in names:
        add(rig, name, "x", "y", count=120 // len(names))
    workers = Workers(rig)
    for name in names:
        workers.wait(name, 4)
    began, done = rig.now.mono, list[bytes | None]()

    while rig.now.mono < began + 2000:
        rig.run(5)
        done += groups_of(rig, workers)
        workers.acknowledge(len(workers.got))

    for group in (b"x", b"y"):
        assert 35 <= done.count(group) <= 5 + 40 + 20


def test_the_limits_of_the_queue_hold_besides() -> None:
    rig = cluster("CONCURRENCY", 3, "GROUP-CONCURRENCY", 2, names="a", jobs=0)
    add(rig, "a", *"xyz", count=3)
    workers = Workers(rig)

    workers.wait("a", 9)
    assert groups_of(rig, workers) == [b"x", b"y", b"z"]
    workers.acknowledge(3)

    assert len(groups_of(rig, workers)) == 3


def test_several_jobs_at_once_are_of_groups_that_may_deliver() -> None:
    rig = cluster("GROUP-CONCURRENCY", 2, names="a", jobs=0)
    add(rig, "a", "x", "y", count=5)

    reply = rig.ask("a", "GETJOB", "COUNT", 10, "FROM", "q")

    assert isinstance(reply, list)
    assert len(reply) == 4


def test_a_client_that_does_not_wait_gets_a_job_once_its_group_may_deliver() -> None:
    rig = cluster("GROUP-RATE", 10, jobs=0)
    add(rig, "a", "x", count=5)
    times: list[int] = []

    while len(times) < 3 and rig.now.mono < 100_000:
        if isinstance(rig.ask("a", "GETJOB", "NOHANG", "FROM", "q"), list):
            times.append(rig.now.mono)
        rig.run(20)

    assert times[2] - times[0] <= 400
    assert times[2] - times[0] >= 50


def test_clients_of_a_node_whose_jobs_wait_are_given_those_of_another_node() -> None:
    rig = cluster("GROUP-CONCURRENCY", 1, jobs=0)
    add(rig, "a", "x", count=3)
    workers = Workers(rig)
    workers.wait("a", 3)
    rig.run(1000)
    assert groups_of(rig, workers) == [b"x"]

    add(rig, "b", "y")
    rig.run(1000)

    assert groups_of(rig, workers) == [b"x", b"y"]


def test_a_group_that_is_out_of_use_is_forgotten_by_all_nodes() -> None:
    rig = cluster("GROUP-CONCURRENCY", 1, "GROUP-RATE", 5, jobs=0)
    add(rig, "a", "x")
    workers = Workers(rig)
    workers.wait("a", 2)
    rig.run(1000)
    assert min(in_use(rig)) == 1
    workers.acknowledge()

    rig.run(60_000)

    assert in_use(rig) == [0, 0, 0]
    assert not rig.node("a").group_leases


def test_the_first_job_of_a_group_does_not_wait_for_a_token() -> None:
    rig = cluster("GROUP-RATE", 1, "PER", 10, jobs=0)
    workers = Workers(rig)
    workers.wait("a", 2)
    rig.run(15_000)

    add(rig, "a", "x", count=2)
    rig.run(500)
    assert len(groups_of(rig, workers)) == 1

    rig.run(8000)
    assert len(groups_of(rig, workers)) == 1
    rig.run(3000)
    assert len(groups_of(rig, workers)) == 2


def test_a_group_that_comes_back_has_no_more_than_its_burst() -> None:
    rig = cluster("GROUP-RATE", 1, "PER", 5, "BURST", 2, jobs=0)
    workers = Workers(rig)
    workers.wait("a", 4)
    rig.run(15_000)
    add(rig, "a", "x")
    rig.run(200)
    assert len(groups_of(rig, workers)) == 1
    workers.acknowledge()

    rig.run(30_000)
    assert in_use(rig) == [0, 0, 0]
    add(rig, "a", "x", count=5)
    rig.run(500)

    assert len(groups_of(rig, workers)) == 2


def test_a_group_does_not_wait_for_a_node_that_was_lost_long_ago() -> None:
    rig = cluster("GROUP-CONCURRENCY", 3, jobs=0)
    rig.crash("c")
    rig.run(60_000)
    workers = Workers(rig)
    workers.wait("a", 20)

    add(rig, "a", *TENANTS, count=2)
    rig.run(1000)

    assert [leased_of(rig, each) for each in TENANTS] == [2] * len(TENANTS)


def test_a_group_waits_for_leases_of_a_node_that_has_just_been_lost() -> None:
    rig = cluster("GROUP-CONCURRENCY", 3, jobs=0)
    workers = Workers(rig)
    workers.wait("c", 30)
    add(rig, "c", *TENANTS, count=3)
    rig.run(2000)
    assert [leased_of(rig, each) for each in TENANTS] == [3] * len(TENANTS)

    for name in "ab":
        rig.cut(name, "c")
    add(rig, "a", *TENANTS, count=3)
    workers.wait("a", 30)

    for _ in range(40):
        rig.run(500)
        assert max(leased_of(rig, each) for each in TENANTS) <= 3


def test_a_keeper_that_follows_another_one_does_not_grant_the_burst_of_a_group_again() -> None:
    rig = cluster("GROUP-RATE", 1, "PER", 30, "BURST", 3, jobs=0)
    rig.run(100_000)
    workers = Workers(rig)
    workers.wait("a", 60)
    add(rig, "a", *TENANTS, count=6)
    rig.run(1000)
    assert all(groups_of(rig, workers).count(each.encode()) == 3 for each in TENANTS)

    for name in "ab":
        rig.cut(name, "c")
    rig.run(10_000)

    assert all(groups_of(rig, workers).count(each.encode()) <= 4 for each in TENANTS)


def test_groups_are_served_when_their_limits_are_removed() -> None:
    rig = cluster("GROUP-CONCURRENCY", 1, names="a", jobs=0)
    add(rig, "a", "x", count=4)
    workers = Workers(rig)
    workers.wait("a", 4)
    queue = rig.node("a").queues[b"q"]
    assert limiting.waits(rig.node("a"), queue)

    rig.ask("a", "QUEUE", "LIMIT", "q", "NONE")

    assert workers.at("a") == 4
    assert in_use(rig) == [0]
    assert not limiting.waits(rig.node("a"), queue)


def test_a_lease_may_end_after_the_limits_were_removed() -> None:
    rig = cluster("GROUP-CONCURRENCY", 1, names="a", jobs=0)
    add(rig, "a", "x")
    workers = Workers(rig)
    workers.wait("a")
    rig.ask("a", "QUEUE", "LIMIT", "q", "NONE")

    workers.acknowledge()

    assert not rig.node("a").jobs
    assert not rig.node("a").group_leases


def test_a_change_holds_for_groups_in_use() -> None:
    rig = cluster("GROUP-CONCURRENCY", 1, jobs=0)
    add(rig, "a", "x", count=4)
    workers = Workers(rig)
    workers.wait("a", 4)
    rig.run(1000)

    rig.ask("b", "QUEUE", "LIMIT", "q", "GROUP-CONCURRENCY", 3)
    rig.run(2000)

    assert leased_of(rig, "x") == 3


def test_groups_beyond_those_that_a_node_keeps_wait_until_one_is_out_of_use() -> None:
    rig = cluster("GROUP-CONCURRENCY", 1, names="a", jobs=0)
    rig.node("a").knobs = Knobs(groups_in_use=2)
    add(rig, "a", *"xyz")
    workers = Workers(rig)
    workers.wait("a", 3)
    assert groups_of(rig, workers) == [b"x", b"y"]

    workers.acknowledge()
    rig.run(10_000)

    assert groups_of(rig, workers) == [b"y", b"z"]


def test_a_group_without_a_place_keeps_no_other_waiting() -> None:
    rig = cluster("GROUP-CONCURRENCY", 1, names="a", jobs=0)
    rig.node("a").knobs = Knobs(groups_in_use=2)
    add(rig, "a", *"xyzw", "", count=2)
    workers = Workers(rig)
    workers.wait("a", 10)

    assert sorted(map(str, groups_of(rig, workers))) == ["None", "None", "b'x'", "b'y'"]
    for _ in range(100):
        if workers.got:
            workers.acknowledge()
        rig.run(500)
        workers.take()

    assert not rig.node("a").jobs
    assert not rig.node("a").placeless


@pytest.mark.parametrize("asked", [1, 2, 64])
def test_groups_ask_a_few_at_a_time(asked: int) -> None:
    rig = cluster("GROUP-CONCURRENCY", 1, jobs=0)
    for name in rig.names():
        rig.node(name).knobs = Knobs(groups_asked=asked)
    add(rig, "a", *(f"tenant-{number}" for number in range(20)), "")
    workers = Workers(rig)
    workers.wait("a", 21)

    assert len(rig.node("a").limits[b"q"].awaited) <= asked
    rig.run(6000)

    assert len(groups_of(rig, workers)) == 21
    assert not rig.node("a").limits[b"q"].awaited


def test_an_answer_that_does_not_come_keeps_no_other_group_waiting() -> None:
    rig = cluster("GROUP-CONCURRENCY", 1, names="a", jobs=0)
    rig.node("a").knobs = Knobs(groups_asked=1)
    rig.node("a").limits[b"q"].awaited[b"x"] = rig.now.mono
    workers = Workers(rig)
    workers.wait("a")

    add(rig, "a", "y")

    assert groups_of(rig, workers) == [b"y"]


def test_nobody_keeps_groups_of_a_queue_without_limits() -> None:
    rig = Rig(peers=1, ours=True)

    rig.message(N2, LimitPoll(b"q", 1, b"x"))
    rig.message(N2, LimitReport(b"q", 1, 0, 0, 0, 1, 1000, 0, b"x"))

    assert not rig.node.group_limits


def test_an_expired_job_takes_no_place() -> None:
    rig = cluster("GROUP-CONCURRENCY", 1, names="a", jobs=0)
    rig.ask("a", "ADDJOB", "q", "body", 0, "GROUP", "x", "TTL", 1, "RETRY", 0)
    add(rig, "a", "x")
    rig.node("a").timers.disarm(next(iter(rig.node("a").jobs.values())))
    rig.run(1500)
    workers = Workers(rig)

    workers.wait("a", 2)

    assert groups_of(rig, workers) == [b"x"]


def test_groups_that_wait_are_seen_in_qpeek_behind_the_others() -> None:
    rig = cluster("GROUP-CONCURRENCY", 1, names="a", jobs=0)
    add(rig, "a", "x", count=3)
    Workers(rig).wait("a", 1)
    rig.ask("a", "GETJOB", "NOHANG", "FROM", "q")
    add(rig, "a", "y")

    reply = rig.ask("a", "QPEEK", "q", 10)

    assert isinstance(reply, list)
    assert len(reply) == 3
