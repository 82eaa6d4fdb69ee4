"""Copies of a job go to different zones first (`replica-zone`)."""

import attrs

from disque_trio.statemachine import nodetable
from disque_trio.statemachine.base import (
    CAPABILITIES,
    MYSELF,
    PFAIL,
    ZONES,
    Failure,
    NodeId,
    Status,
)
from disque_trio.statemachine.messages import Frame, GotJob, Ping, Pong, ReplJob
from disque_trio.statemachine.nodesfile import nodes_text, parse_nodes
from tests.rig import CALM, ME, N2, N3, N4, Rig
from tests.statemachine.commands.informed import fields_of
from tests.statemachine.repairing import SOON, asked, forget, held


def rig_in(mine: str, *theirs: str, seed: int = 0) -> Rig:
    """A machine in a zone, with peers in others, all of them well; an empty name is none."""
    config = attrs.evolve(CALM, replica_zone=mine)
    rig = Rig(peers=len(theirs), config=config, seed=seed, ours=True)
    for id, zone in zip((N2, N3, N4), theirs, strict=False):
        nodetable.learn_names(rig.node, rig.node.cluster.nodes[id], zone.encode(), b"")
    return rig


def copies_of(rig: Rig, *words: str | int) -> tuple[NodeId, ...]:
    """To whom a new job goes."""
    rig.request("ADDJOB", "q", "body", 1000, *words)
    return tuple(sorted(to for to, message in rig.sent() if isinstance(message, ReplJob)))


def test_a_copy_goes_to_another_zone() -> None:
    for seed in range(20):
        assert copies_of(rig_in("a", "a", "b", "a", seed=seed), "REPLICATE", 2) == (N3,)


def test_each_copy_goes_to_a_zone_of_its_own_as_far_as_there_are() -> None:
    for seed in range(20):
        chosen = copies_of(rig_in("a", "b", "b", "c", seed=seed), "REPLICATE", 3)
        assert chosen in {(N2, N4), (N3, N4)}


def test_with_fewer_zones_than_copies_the_rest_goes_anywhere() -> None:
    assert copies_of(rig_in("a", "a", "b", "b"), "REPLICATE", 4) == (N2, N3, N4)
    assert len(copies_of(rig_in("a", "a", "a", "b"), "REPLICATE", 3)) == 2


def test_nodes_that_name_no_zone_are_taken_to_be_in_one() -> None:
    for seed in range(20):
        assert copies_of(rig_in("", "", "b", "", seed=seed), "REPLICATE", 2) == (N3,)
    assert not rig_in("", "", "").node.cluster.is_crowded


def test_nodes_each_in_a_zone_of_its_own_need_no_choice() -> None:
    assert not rig_in("a", "b", "c").node.cluster.is_crowded


def test_sync_waits_a_moment_for_a_copy_in_another_zone() -> None:
    rig = rig_in("a", "a", "b")
    copies_of(rig, "REPLICATE", 3, "SYNC", 2)

    rig.message(N2, GotJob(next(iter(rig.node.jobs))))
    assert rig.replies() == [], "two copies, both in zone a"

    rig.message(N3, GotJob(next(iter(rig.node.jobs))))
    assert len(rig.replies()) == 1


def test_sync_does_not_wait_long_for_another_zone() -> None:
    rig = rig_in("a", "a", "b")
    copies_of(rig, "REPLICATE", 3, "SYNC", 2)
    rig.message(N2, GotJob(next(iter(rig.node.jobs))))

    rig.advance(49)
    assert rig.replies() == []
    rig.advance(60)

    assert len(rig.replies()) == 1


def test_an_addjob_that_times_out_with_enough_copies_in_one_zone_is_answered() -> None:
    rig = rig_in("a", "a", "b")
    rig.request("ADDJOB", "q", "body", 20, "REPLICATE", 3, "SYNC", 2)
    job = next(iter(rig.node.jobs))
    rig.message(N2, GotJob(job))

    rig.advance(30)

    assert rig.replies() == [Status(job)]


def test_sync_does_not_wait_for_a_zone_that_cannot_be_reached() -> None:
    rig = rig_in("a", "a", "b")
    copies_of(rig, "REPLICATE", 3, "SYNC", 2)
    nodetable.mark(rig.node, rig.node.cluster.nodes[N3], PFAIL)

    rig.message(N2, GotJob(next(iter(rig.node.jobs))))

    assert len(rig.replies()) == 1


def test_a_lost_copy_is_made_again_in_another_zone() -> None:
    for name in range(5):
        rig = rig_in("a", "b", "a", "c")
        held(rig, (ME, N2), name=name)
        forget(rig, N2)

        rig.advance(SOON)

        assert [to for to, _ in asked(rig)] == [N4]


def pong(rig: Rig, zone: bytes, link: int = 0, name: bytes = b"") -> None:
    """N2 answers, on the link that this node has dialled if no other is given."""
    link = link or rig.node.cluster.nodes[N2].link
    rig.machine.message(link, Frame(N2, 7711, MYSELF, Pong((), zone, name), CAPABILITIES), rig.now)


def test_a_node_learns_the_zone_that_another_names_in_its_pong() -> None:
    rig = rig_in("a", "a")
    peer = rig.node.cluster.nodes[N2]

    pong(rig, b"b")
    assert peer.zone == b"b"

    pong(rig, b"")
    assert peer.zone == b"", "it names none any more"


def test_a_zone_is_believed_on_a_link_that_was_dialled_alone() -> None:
    rig = rig_in("a", "a")

    pong(rig, b"b", link=rig.machine.accepted("127.0.0.1", "127.0.0.2", rig.now))

    assert rig.node.cluster.nodes[N2].zone == b"a"


def test_a_zone_is_named_to_nodes_that_understand_it_alone() -> None:
    rig = rig_in("a", "a")
    for capabilities, zone in ((CAPABILITIES, b"a"), (CAPABILITIES & ~ZONES, b""), (0, b"")):
        link = rig.machine.accepted("127.0.0.1", "127.0.0.2", rig.now)
        rig.machine.message(link, Frame(N2, 7711, MYSELF, Ping(), capabilities), rig.now)

        messages = [message for _, message in rig.take().messages]
        assert [each.zone for each in messages if isinstance(each, Pong)] == [zone]


def test_the_zone_can_be_changed_and_is_named_by_cluster_nodes() -> None:
    rig = rig_in("a", "b")

    rig.ask("CONFIG", "SET", "replica-zone", "eu-1a")

    assert rig.node.cluster.myself.zone == b"eu-1a"
    told = rig.ask("INFO", "cluster")
    assert isinstance(told, bytes)
    assert b"replica_zone:eu-1a\r\n" in told
    shown = rig.ask("CLUSTER", "NODES")
    assert isinstance(shown, bytes)
    assert [line.split()[-1] for line in shown.splitlines()] == [b"zone=eu-1a", b"zone=b"]
    assert isinstance(rig.ask("CONFIG", "SET", "replica-zone", "a b"), Failure)


def test_zones_are_not_in_nodes_conf_for_which_earlier_versions_have_no_place() -> None:
    rig = rig_in("a", "b")

    text = nodes_text(rig.node, handshakes=False)

    assert b"zone" not in text
    assert len(parse_nodes(text)[1]) == 1


def test_a_node_tells_its_name_behind_its_zone_and_cluster_nodes_shows_it() -> None:
    rig = rig_in("a", "b")

    rig.ask("CONFIG", "SET", "node-name", "web1")
    pong(rig, b"b", name=b"web2")

    assert rig.node.cluster.myself.name == b"web1"
    assert fields_of(rig, "cluster")["node_name"] == "web1"
    shown = rig.ask("CLUSTER", "NODES")
    assert isinstance(shown, bytes)
    assert [line.split()[-1] for line in shown.splitlines()] == [b"name=web1", b"name=web2"]
    assert b"name=" not in nodes_text(rig.node, handshakes=False)
    assert isinstance(rig.ask("CONFIG", "SET", "node-name", "a b"), Failure)


def test_a_name_that_cannot_be_is_not_taken_from_a_peer() -> None:
    rig = rig_in("a", "b")

    pong(rig, b"b", name=b"web 2 myself")

    assert rig.node.cluster.nodes[N2].name == b""
