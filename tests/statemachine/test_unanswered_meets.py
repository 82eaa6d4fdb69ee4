"""An operator's MEET that nobody answers goes on, and is reported."""

from disque_trio.statemachine import handshake
from disque_trio.statemachine.base import HANDSHAKE, MYSELF
from disque_trio.statemachine.messages import Frame, Pong
from tests.rig import CALM, UNKNOWN, Rig


def test_a_meet_goes_on_until_the_node_answers() -> None:
    rig = Rig()
    rig.ask("CLUSTER", "MEET", "10.0.0.9", 7711)
    (peer,) = handshake._unfinished(rig.node)

    for _ in range(10):
        rig.advance(10_000)
        rig.machine.unlinked(peer.link, rig.now)
    assert peer.id in rig.node.cluster.nodes
    assert [each.id for each in handshake.unanswered(rig.node)] == [peer.id]

    rig.advance(200)
    rig.machine.linked(peer.link, "10.0.0.1", "10.0.0.9", rig.now)
    rig.machine.message(peer.link, Frame(UNKNOWN, 7711, MYSELF, Pong()), rig.now)
    assert handshake.unanswered(rig.node) == []
    assert not rig.node.cluster.nodes[UNKNOWN].flags & HANDSHAKE


def test_info_tells_of_a_meet_without_an_answer() -> None:
    rig = Rig(config=CALM)
    rig.ask("CLUSTER", "MEET", "10.0.0.9", 7711)
    told = rig.ask("INFO", "cluster")
    assert isinstance(told, bytes)
    assert b"unanswered_meets:0\r\n" in told, "it may be under way"

    rig.advance(5000)

    told = rig.ask("INFO", "cluster")
    assert isinstance(told, bytes)
    assert b"unanswered_meets:1\r\n" in told
    assert b"unanswered_meet_address:10.0.0.9:7711@17711\r\n" in told
    assert b"unanswered_meet_seconds:5\r\n" in told


def test_info_names_the_others_without_an_answer() -> None:
    rig = Rig(config=CALM)
    for last in range(1, 12):
        rig.ask("CLUSTER", "MEET", f"10.0.0.{last}", 7711)

    rig.advance(5000)

    told = rig.ask("INFO", "cluster")
    assert isinstance(told, bytes)
    assert b"unanswered_meets:11\r\n" in told
    others = ",".join(f"10.0.0.{last}:7711@17711" for last in range(2, 9))
    assert f"unanswered_meet_others:{others}\r\n".encode() in told


def test_forget_ends_a_meet() -> None:
    rig = Rig()
    rig.ask("CLUSTER", "MEET", "10.0.0.9", 7711)
    rig.advance(5000)
    (peer,) = handshake.unanswered(rig.node)

    rig.ask("CLUSTER", "FORGET", peer.id)

    assert handshake.unanswered(rig.node) == []
