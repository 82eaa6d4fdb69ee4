"""Jobs that nobody takes at their node, while the clients of another node always find some."""

from collections import Counter
from typing import Any

import pytest

from disque_trio.statemachine import federation, lifecycle
from disque_trio.statemachine.base import NodeId
from disque_trio.statemachine.messages import HaveJobs, NeedJobs, Waiting
from tests.cluster_rig import ClusterRig
from tests.rig import CALM, N2, N3, Rig
from tests.statemachine.federating import give, ids

LOOK = lifecycle.QUEUE_LOOK + 100


def busy(jobs: int = 20) -> Rig:
    """A node with these jobs, whose clients take some all the time."""
    rig = Rig(peers=2, config=CALM, ours=True)
    for _ in range(jobs):
        rig.add("REPLICATE", 1)
    rig.sent()
    return rig


def take(rig: Rig, count: int) -> None:
    rig.request("GETJOB", "COUNT", count, "FROM", "q")
    rig.replies()


def offers(rig: Rig) -> list[tuple[NodeId, int]]:
    return [(to, each.count) for to, each in rig.sent() if isinstance(each, HaveJobs)]


def needs(rig: Rig) -> list[tuple[NodeId, int, bool]]:
    return [(to, each.count, each.waits) for to, each in rig.sent() if isinstance(each, NeedJobs)]


# Where nobody takes them.


def test_jobs_that_nobody_takes_are_offered_to_all_nodes() -> None:
    rig = busy(jobs=3)

    rig.advance(LOOK)

    assert offers(rig) == [(N2, 3), (N3, 3)]


def test_jobs_that_are_taken_are_not() -> None:
    rig = busy()

    for _ in range(3):
        take(rig, 5)
        rig.advance(LOOK)

    assert offers(rig) == []


def test_they_are_offered_ever_more_rarely() -> None:
    rig = busy(jobs=1)

    looks = []
    for look in range(1, 71):
        rig.advance(lifecycle.QUEUE_LOOK)
        looks += [look] * bool(offers(rig))

    assert looks == [1, 2, 4, 8, 16, 32, 64]


def test_when_a_node_has_come_for_some_they_are_offered_often_again() -> None:
    rig = busy()
    rig.advance(5 * LOOK)
    rig.message(N2, NeedJobs(b"q", 5))
    rig.sent()

    rig.advance(LOOK)

    assert offers(rig) == [(N2, 15), (N3, 15)]


@pytest.mark.parametrize("way", ["out", "all"])
def test_those_of_a_paused_queue_are_not(way: str) -> None:
    rig = busy(jobs=3)
    rig.ask("PAUSE", "q", way)
    rig.sent()

    rig.advance(2 * LOOK)

    assert offers(rig) == []


def test_nor_is_an_empty_queue() -> None:
    rig = busy(jobs=1)
    take(rig, 1)
    rig.advance(3 * LOOK)

    assert offers(rig) == []


# Where clients take jobs.


def test_a_node_whose_clients_take_jobs_asks_for_as_many_as_they_have_taken() -> None:
    rig = busy()
    rig.message(N2, HaveJobs(b"q", 60))
    assert (N2, Waiting(b"q", 0)) in rig.sent()
    take(rig, 7)

    rig.advance(LOOK)

    assert needs(rig) == [(N2, 7, False)]


def test_it_goes_on_while_there_are_more() -> None:
    rig = busy()
    rig.message(N2, HaveJobs(b"q", 60))
    take(rig, 2)
    rig.advance(LOOK)
    rig.sent()

    asked = []
    for more in (True, True, False):
        give(rig, N2, *ids(2), more=more)
        take(rig, 2)
        rig.advance(federation.EVEN_OUT_AGAIN + 100)
        asked.append(needs(rig))

    assert asked == [[(N2, 2, False)], [(N2, 2, False)], []]


def test_one_whose_clients_take_none_asks_for_none() -> None:
    rig = busy(jobs=5)
    rig.message(N2, HaveJobs(b"q", 60))

    rig.advance(3 * LOOK)

    assert needs(rig) == []


def test_nor_does_one_without_jobs_where_clients_would_wait() -> None:
    rig = busy(jobs=1)
    rig.message(N2, HaveJobs(b"q", 60))
    take(rig, 1)

    rig.advance(2 * LOOK)

    assert needs(rig) == []


def test_no_more_are_asked_for_than_were_taken_however_many_nodes_have_some() -> None:
    rig = busy()
    rig.turn(jobs_per_request=10)
    rig.message(N2, HaveJobs(b"q", 60))
    rig.message(N3, HaveJobs(b"q", 60))
    take(rig, 12)

    rig.advance(LOOK)

    assert needs(rig) == [(N2, 10, False), (N3, 2, False)]


def test_if_one_node_has_enough_no_other_is_asked() -> None:
    rig = busy()
    rig.message(N2, HaveJobs(b"q", 60))
    rig.message(N3, HaveJobs(b"q", 60))
    take(rig, 3)

    rig.advance(LOOK)

    assert needs(rig) == [(N2, 3, False)]


def test_a_node_that_does_not_answer_is_asked_no_more() -> None:
    rig = busy()
    rig.message(N2, HaveJobs(b"q", 60))
    for _ in range(2):
        take(rig, 1)
        rig.advance(LOOK)
    rig.sent()

    take(rig, 1)
    rig.advance(LOOK)

    assert needs(rig) == []


# All of it.


def test_old_jobs_are_delivered_at_the_node_that_always_has_younger_ones() -> None:
    rig = ClusterRig("a", "b", "c")
    rig.form()
    for _ in range(50):
        rig.ask("b", "ADDJOB", "q", "old", 0, "REPLICATE", 1)
    rig.ask("a", "ADDJOB", "q", "new", 0, "REPLICATE", 1)
    bodies: Counter[object] = Counter()

    for _ in range(150):
        rig.ask("a", "ADDJOB", "q", "new", 0, "REPLICATE", 1)
        jobs: Any = rig.ask("a", "GETJOB", "FROM", "q")
        ((_, id, body),) = jobs
        rig.ask("a", "ACKJOB", id)
        bodies[body] += 1
        rig.run(1000)

    assert bodies[b"old"] == 50
