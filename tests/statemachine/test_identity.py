import pytest

from disque_trio.statemachine import identity
from disque_trio.statemachine.base import MYSELF, Failure, Status
from disque_trio.statemachine.cluster import YIELDS
from disque_trio.statemachine.messages import Frame, GossipMessage, Meet, Ping, SetAck
from tests.cluster_rig import PORT, ClusterRig

SOON = 5000
GONE = identity.MEMORY + 2 * identity.PROBE_EVERY + 4000


def formed() -> ClusterRig:
    rig = ClusterRig("a", "b", "c")
    rig.form()
    rig.run(2000)
    return rig


def copied() -> ClusterRig:
    """`twin` runs from a copy of a's directory."""
    rig = formed()
    rig.copy("twin", of="a")
    rig.run(SOON)
    return rig


def yields(rig: ClusterRig, name: str) -> bool:
    return identity.is_yielding(rig.node(name))


# Two processes with one node ID.


def test_both_learn_of_each_other() -> None:
    rig = copied()

    a, twin = rig.node("a").cluster.duplicate, rig.node("twin").cluster.duplicate
    assert a is not None
    assert twin is not None
    assert (a.address, twin.address) == (b"10.0.0.4:7711", b"10.0.0.1:7711")


def test_the_one_that_was_started_later_yields() -> None:
    rig = copied()

    assert (yields(rig, "a"), yields(rig, "twin")) == (False, True)


def test_it_refuses_to_take_and_give_jobs_and_says_why() -> None:
    rig = copied()

    for words in (("ADDJOB", "q", "body", 0), ("GETJOB", "NOHANG", "FROM", "q"), ("PING",)):
        reply = rig.ask("twin", *words)
        assert isinstance(reply, Failure), words
        assert reply.text.startswith(b"DUPLICATEID Another process with the node ID of this one")
        assert b"10.0.0.1:7711" in reply.text
    assert rig.ask("a", "PING") == Status(b"PONG")


def test_whoever_waits_there_for_a_job_is_told() -> None:
    rig = formed()
    rig.copy("twin", of="a")
    waiting = rig.request("twin", "GETJOB", "FROM", "q")

    rig.run(SOON)

    (reply,) = rig.replies("twin", waiting)
    assert isinstance(reply, Failure)


def test_it_says_nothing_more_to_the_others() -> None:
    rig = copied()
    rig.run(SOON)
    rig.trace.clear()

    rig.run(20_000)

    assert [sent for sent in rig.trace if sent.sender == "twin" and sent.receiver != "a"] == []
    assert rig.peer("b", "a").ip == rig.ip("a")
    assert rig.peer("c", "a").ip == rig.ip("a")


def test_the_others_go_on_with_the_first() -> None:
    rig = copied()
    rig.run(SOON)

    rig.ask("a", "ADDJOB", "q", "body", 1000, "REPLICATE", 3)

    assert [len(rig.node(name).jobs) for name in ("a", "b", "c", "twin")] == [1, 1, 1, 0]


def test_when_the_first_is_stopped_the_other_takes_its_place() -> None:
    rig = copied()
    rig.crash("a")

    rig.run(GONE)

    assert rig.node("twin").cluster.duplicate is None
    assert rig.ask("twin", "PING") == Status(b"PONG")
    assert rig.peer("b", "twin").ip == rig.ip("twin")


def test_then_its_jobs_reach_clients_that_wait_elsewhere() -> None:
    rig = formed()
    rig.ask("a", "ADDJOB", "q", "body", 1000, "REPLICATE", 1, "RETRY", 0)
    rig.copy("twin", of="a")
    rig.ask("twin", "ADDJOB", "q", "of the copy", 1000, "REPLICATE", 1, "RETRY", 0)
    rig.run(SOON)
    rig.crash("a")
    waiting = rig.request("b", "GETJOB", "FROM", "q")
    assert rig.replies("b", waiting) == []

    rig.run(GONE)

    assert b"of the copy" in repr(rig.replies("b", waiting)).encode()


def test_when_the_copy_is_stopped_the_first_forgets_it() -> None:
    rig = copied()
    rig.crash("twin")

    rig.run(GONE)

    assert rig.node("a").cluster.duplicate is None


def test_the_first_keeps_its_place_when_it_is_restarted() -> None:
    # It is the younger process then; the other goes on yielding as long as somebody is there.
    rig = copied()
    rig.crash("a")
    rig.run(3000)
    rig.start("a")

    rig.run(GONE)

    assert (yields(rig, "a"), yields(rig, "twin")) == (False, True)


def test_if_both_yield_the_older_goes_on() -> None:
    rig = copied()
    first = rig.node("a").cluster
    first.incarnation |= YIELDS

    rig.run(2 * SOON)

    assert (yields(rig, "a"), yields(rig, "twin")) == (False, True)
    assert first.duplicate is not None


def test_a_journal_that_is_mended_does_not_end_the_refusal() -> None:
    rig = copied()
    twin = rig.machine("twin")
    twin.journal_failed("disk full", rig.now)

    twin.journal_mended(rig.now)

    reply = rig.ask("twin", "PING")
    assert isinstance(reply, Failure)
    assert reply.text.startswith(b"DUPLICATEID")


def test_a_journal_that_fails_is_not_forgotten_over_it() -> None:
    rig = formed()
    rig.copy("twin", of="a")
    rig.machine("twin").journal_failed("disk full", rig.now)
    rig.run(SOON)
    assert yields(rig, "twin")
    rig.crash("a")

    rig.run(GONE)

    reply = rig.ask("twin", "PING")
    assert isinstance(reply, Failure)
    assert reply.text.startswith(b"MISCONF")


# What is none.


def test_a_node_that_restarts_at_another_place_is_itself() -> None:
    rig = formed()
    rig.crash("a")
    rig.start("a", ip="10.0.0.9")

    rig.run(GONE)

    assert rig.node("a").cluster.duplicate is None
    assert not yields(rig, "a")


def test_a_node_that_meets_itself_at_another_address_is_itself() -> None:
    rig = formed()
    machine = rig.machine("a")
    link = machine.accepted("10.0.0.1", "10.0.0.8", rig.now)

    own = rig.node("a").cluster.incarnation
    rig.say("a", link, Frame(rig.id("a"), PORT, MYSELF, Ping(), 0, own))
    rig.run(1000)

    assert rig.node("a").cluster.duplicate is None
    assert rig.node("a").cluster.nodes.keys() == rig.node("b").cluster.nodes.keys()


def test_it_remembers_that_this_is_itself_and_asks_once() -> None:
    rig = formed()
    rig.node("a").cluster.myself.ip = "10.0.7.7"
    rig.run(30_000)
    cluster = rig.node("a").cluster

    assert cluster.own_addresses == {(rig.ip("a"), PORT): None}
    assert cluster.myself.ip == "10.0.7.7"
    assert cluster.duplicate is None


def test_processes_that_claim_the_id_are_asked_at_their_address_before_they_are_believed() -> None:
    rig = formed()
    link = rig.machine("a").accepted("10.0.0.1", "10.0.0.8", rig.now)

    rig.say("a", link, Frame(rig.id("a"), PORT, MYSELF, Meet(), 0, 1))
    rig.run(GONE)

    assert rig.node("a").cluster.duplicate is None


@pytest.mark.parametrize("incarnation", [0, 77])
def test_the_number_of_a_process_travels_in_gossip_alone(incarnation: int) -> None:
    rig = formed()
    link = rig.machine("a").accepted("10.0.0.1", "10.0.0.2", rig.now)

    rig.say("a", link, Frame(rig.id("b"), PORT, MYSELF, SetAck(b"x" * 40, 0), 0, incarnation))

    assert all(process.incarnation != 77 for process in rig.peer("a", "b").processes), rig.peer(
        "a", "b"
    ).processes


def test_original_nodes_announce_none_and_are_left_alone() -> None:
    rig = formed()
    link = rig.machine("b").accepted("10.0.0.2", "10.0.0.8", rig.now)
    before = rig.peer("b", "a").processes

    rig.say("b", link, Frame(rig.id("a"), PORT, MYSELF, Ping(), 0, 0))
    rig.say("b", link, Frame(rig.id("b"), PORT, MYSELF, Ping(), 0, 0))

    assert rig.peer("b", "a").processes == before
    assert isinstance(rig.trace[-1].message, GossipMessage)


def test_info_names_the_other_process() -> None:
    rig = copied()

    text = rig.ask("twin", "INFO", "cluster")

    assert isinstance(text, bytes)
    assert b"duplicate_node_id:1\r\nduplicate_node_id_address:10.0.0.1:7711\r\n" in text
    assert b"duplicate_node_id_yields:1" in text
