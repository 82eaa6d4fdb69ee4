"""Copies go to other hosts first, where several nodes share one."""

from collections import Counter

import attrs

from disque_trio.statemachine import nodetable, repair
from disque_trio.statemachine.base import PFAIL, NodeId
from disque_trio.statemachine.cluster import Link
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.copies import spread
from disque_trio.statemachine.messages import Frame, Ping, ReplJob
from tests.rig import CALM, ME, N2, N3, N4, UNKNOWN, Rig
from tests.statemachine.repairing import SOON, asked, forget, held

HERE, THERE, ELSEWHERE = "10.0.0.1", "10.0.0.2", "10.0.0.3"


def rig_at(mine: str, *theirs: str, seed: int = 0, config: Config = CALM) -> Rig:
    """A machine at an address, with peers at others, all of them well."""
    rig = Rig(peers=len(theirs), config=config, seed=seed)
    nodes = rig.node.cluster.nodes
    for id, ip in zip((ME, N2, N3, N4), (mine, *theirs), strict=False):
        nodes[id].ip = ip
    nodetable.refresh(rig.node)
    return rig


def copies_of(rig: Rig, replicas: int) -> tuple[NodeId, ...]:
    """To whom a new job goes."""
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", replicas)
    return tuple(sorted(to for to, message in rig.sent() if isinstance(message, ReplJob)))


def test_nodes_are_crowded_when_some_share_an_address_and_not_all() -> None:
    assert rig_at(HERE, HERE, THERE).node.cluster.is_crowded
    assert not rig_at(HERE, THERE, ELSEWHERE).node.cluster.is_crowded
    assert not rig_at(HERE, HERE, HERE).node.cluster.is_crowded
    assert not rig_at("", THERE).node.cluster.is_crowded, "an address that is not known is none"
    assert not Rig().node.cluster.is_crowded


def test_a_node_that_cannot_be_reached_shares_no_address() -> None:
    rig = rig_at(HERE, HERE, THERE)

    nodetable.mark(rig.node, rig.node.cluster.nodes[N2], PFAIL)

    assert not rig.node.cluster.is_crowded


def test_crowding_is_known_as_soon_as_addresses_are() -> None:
    rig = rig_at("", HERE, THERE)
    cluster = rig.node.cluster

    nodetable.learn_own_ip(rig.node, HERE)
    assert cluster.is_crowded

    nodetable.learn_address(
        rig.node, cluster.nodes[N2], Link(9, None, HERE, ELSEWHERE), Frame(N2, 7711, 0, Ping())
    )
    assert not cluster.is_crowded


def test_a_copy_goes_to_the_other_host() -> None:
    for seed in range(20):
        assert copies_of(rig_at(HERE, HERE, THERE, HERE, seed=seed), 2) == (N3,)


def test_each_copy_goes_to_a_host_of_its_own_as_far_as_there_are() -> None:
    for seed in range(20):
        chosen = copies_of(rig_at(HERE, THERE, THERE, ELSEWHERE, seed=seed), 3)
        assert chosen in {(N2, N4), (N3, N4)}


def test_where_there_are_not_enough_hosts_the_same_one_will_do() -> None:
    assert copies_of(rig_at(HERE, HERE, THERE, THERE), 4) == (N2, N3, N4)
    assert len(copies_of(rig_at(HERE, HERE, HERE, THERE), 3)) == 2


def test_by_default_workers_want_a_copy_for_each_machine_and_not_for_each_worker() -> None:
    workers = attrs.evolve(CALM, workers=2)

    alone = rig_at(HERE, HERE, config=workers)
    alone.request("ADDJOB", "q", "body", 0)
    assert alone.sent() == []
    assert copies_of(rig_at(HERE, HERE, config=workers), 2) == (N2,), "but who says so gets it"

    two = rig_at(HERE, HERE, THERE, THERE, config=workers)
    two.request("ADDJOB", "q", "body", 0)
    ((to, message),) = two.sent()
    assert to in {N3, N4}
    assert isinstance(message, ReplJob)
    assert message.copies[0].replicas == 2


def test_by_default_nodes_that_are_no_workers_want_three_copies_wherever_they_are() -> None:
    rig = rig_at(HERE, HERE, HERE)

    rig.request("ADDJOB", "q", "body", 0)

    assert [to for to, _ in rig.sent()] == [N2, N3]


def test_a_worker_whose_address_is_not_known_counts_as_one_machine() -> None:
    assert rig_at("", config=attrs.evolve(CALM, workers=2)).node.cluster.places == 1


def test_nodes_of_one_host_are_chosen_equally_often() -> None:
    rig = rig_at(HERE, THERE, THERE, ELSEWHERE)
    chosen: Counter[NodeId] = Counter()
    for _ in range(600):
        rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2, "ASYNC")
        chosen.update(to for to, message in rig.sent() if isinstance(message, ReplJob))

    assert all(150 < chosen[each] < 250 for each in (N2, N3, N4)), chosen


def test_the_next_node_that_is_asked_is_at_another_host_too() -> None:
    for seed in range(10):
        rig = rig_at(HERE, HERE, THERE, ELSEWHERE, seed=seed)
        (first,) = copies_of(rig, 2)

        rig.advance(60)

        asked_now = {to for to, message in rig.sent() if isinstance(message, ReplJob)}
        assert asked_now | {first} == {N3, N4}


def test_a_lost_copy_is_made_again_at_another_host() -> None:
    for name in range(5):
        rig = rig_at(HERE, THERE, HERE, ELSEWHERE)
        held(rig, (ME, N2), name=name)
        forget(rig, N2)

        rig.advance(SOON)

        assert [to for to, _ in asked(rig)] == [N4]


def test_a_node_without_an_answer_is_asked_after_those_at_a_holders_host() -> None:
    rig = rig_at(HERE, THERE, HERE, ELSEWHERE)
    held(rig, (ME, N2))
    forget(rig, N2)
    rig.advance(SOON)
    assert [to for to, _ in asked(rig)] == [N4]

    rig.advance(repair.PATIENCE + SOON)

    assert [to for to, _ in asked(rig)] == [N3]


def test_holders_that_are_not_known_take_no_address() -> None:
    rig = rig_at(HERE, HERE, THERE)

    assert spread(rig.node, (ME, UNKNOWN), [N2, N3], 2) == [N3, N2]
