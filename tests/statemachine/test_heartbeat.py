from disque_trio.statemachine import heartbeat, membership, nodetable
from disque_trio.statemachine.base import LEAVING
from disque_trio.statemachine.messages import Ping
from tests.rig import N2, N3, Rig

BEAT = 100
GRAIN = 8
TIMEOUT = 15_000


def well(rig: Rig) -> None:
    """Everybody has answered just now, and the heart has seen it."""
    for peer in rig.node.cluster.nodes.values():
        peer.ping_sent = 0
        peer.pong_received = rig.now.mono
    membership.on_cron(rig.node, rig.node.cron)
    rig.take()


def wait(rig: Rig) -> int:
    """How long until the next beat."""
    return rig.node.cron.due - rig.now.mono


def test_an_idle_heartbeat_beats_when_a_node_is_to_be_pinged() -> None:
    rig = Rig(peers=2)
    rig.node.cron.runs = 10

    well(rig)

    assert wait(rig) == 9 * BEAT


def test_beats_that_are_left_out_count() -> None:
    rig = Rig(peers=2)
    rig.node.cron.runs = 10

    well(rig)

    assert rig.node.cron.runs == 19
    rig.advance(9 * BEAT + GRAIN)
    pings = [name for name, message in rig.sent(gossip=True) if isinstance(message, Ping)]
    assert len(pings) == 1


def test_the_answer_to_a_ping_is_waited_for_at_every_beat() -> None:
    rig = Rig(peers=2)
    rig.node.cron.runs = 9

    well(rig)

    assert wait(rig) == BEAT


def test_the_next_beat_comes_in_time_for_the_next_silence() -> None:
    rig = Rig(peers=2)
    rig.node.cron.runs = 10
    well(rig)
    silent = rig.node.cluster.nodes[N3]
    silent.pong_received = rig.now.mono - TIMEOUT // 2 + 250

    rig.node.cron.runs = 10
    membership.on_cron(rig.node, rig.node.cron)

    assert wait(rig) == 3 * BEAT


def test_no_beat_is_left_out_while_a_link_is_down() -> None:
    rig = Rig(peers=2)
    rig.node.cron.runs = 10
    well(rig)
    rig.advance(250)

    rig.machine.unlinked(rig.node.cluster.nodes[N2].link, rig.now)

    assert 0 < wait(rig) <= BEAT
    rig.advance(BEAT + GRAIN)
    assert rig.node.cluster.nodes[N2].link


def test_a_roused_heartbeat_keeps_its_rhythm() -> None:
    rig = Rig(peers=2)
    rig.node.cron.runs = 10
    well(rig)
    rig.advance(250)

    heartbeat.rouse(rig.node)

    assert wait(rig) == 50
    assert rig.node.cron.runs == 13


def test_rousing_a_heartbeat_that_does_not_rest_changes_nothing() -> None:
    rig = Rig(peers=2)
    rig.node.cron.runs = 9
    well(rig)
    rig.advance(30)

    heartbeat.rouse(rig.node)

    assert wait(rig) == 70
    assert rig.node.cron.runs == 10


def test_a_heartbeat_that_is_roused_as_it_is_due_beats() -> None:
    rig = Rig(peers=2)
    rig.node.cron.runs = 10
    well(rig)
    due = rig.node.mono = rig.node.cron.due

    heartbeat.rouse(rig.node)

    assert rig.node.cron.due == due
    assert rig.node.cron.runs == 19


def test_new_nodes_and_changed_flags_rouse_the_heartbeat() -> None:
    rig = Rig(peers=2)
    rig.node.cron.runs = 10
    well(rig)

    membership.meet(rig.node, "10.0.0.9", 7711)

    assert wait(rig) == BEAT
    well_again = Rig(peers=2)
    well_again.node.cron.runs = 10
    well(well_again)
    nodetable.mark(well_again.node, well_again.node.cluster.nodes[N2], LEAVING)
    assert wait(well_again) == BEAT
