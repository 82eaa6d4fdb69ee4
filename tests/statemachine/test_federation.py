from disque_trio.statemachine import transfer
from disque_trio.statemachine.base import HANDSHAKE, MYSELF, NodeId
from disque_trio.statemachine.messages import Frame, NeedJobs, Pong
from tests.rig import CALM, JOB, N2, N3, Rig
from tests.statemachine.federating import give, ids

GRAIN = 8


def needs(rig: Rig) -> list[tuple[NodeId, int]]:
    """Who was asked for how many jobs of q."""
    return [
        (to, message.count)
        for to, message in rig.sent()
        if isinstance(message, NeedJobs) and message.queue == b"q"
    ]


# Asking.


def test_a_client_that_finds_nothing_makes_the_node_ask_all_nodes_for_one_job() -> None:
    rig = Rig(peers=2)

    rig.request("GETJOB", "FROM", "q")

    assert needs(rig) == [(N2, 1), (N3, 1)]


def test_so_does_one_that_does_not_wait() -> None:
    rig = Rig(peers=1)

    rig.request("GETJOB", "NOHANG", "FROM", "q")

    assert needs(rig) == [(N2, 1)]


def test_all_nodes_are_asked_with_growing_intervals() -> None:
    rig = Rig(peers=1, config=CALM)
    start = rig.now.mono
    rig.request("GETJOB", "FROM", "q")

    asked = []
    while rig.now.mono < start + 150_000:
        if needs(rig):
            asked.append(round((rig.now.mono - start) / 1000, 1))
        rig.advance(100)

    assert asked == [0, 4, 12, 28, 58, 88, 118, 148]


def test_asking_does_not_begin_anew_after_hours() -> None:
    rig = Rig(peers=1, config=CALM)
    rig.request("GETJOB", "FROM", "q")
    rig.advance(3_600_000)
    rig.sent()

    rig.advance(300_000)

    assert len(needs(rig)) == 10


def test_a_giver_is_asked_again_at_once_when_the_queue_runs_dry() -> None:
    rig = Rig(peers=2, config=CALM)
    rig.request("GETJOB", "FROM", "q")
    rig.sent()

    give(rig, N2, JOB)

    assert len(rig.replies()) == 1
    # One job in at least fifty milliseconds makes twenty a second.
    assert needs(rig) == [(N2, 20)]


def test_a_giver_is_asked_for_as_many_as_are_consumed() -> None:
    rig = Rig(peers=2, config=CALM)
    rig.request("GETJOB", "NOHANG", "FROM", "q")
    give(rig, N2, *ids(90))
    rig.advance(900)
    rig.sent()

    rig.request("GETJOB", "COUNT", 90, "FROM", "q")

    # Ninety jobs in nine tenths of a second, from one giver.
    assert needs(rig) == [(N2, 100)]
    assert transfer.import_rate(rig.node, rig.queue()) in range(98, 101)


def test_two_givers_share_what_is_consumed() -> None:
    rig = Rig(peers=2, config=CALM)
    rig.request("GETJOB", "NOHANG", "FROM", "q")
    give(rig, N2, *ids(40)[:20])
    give(rig, N3, *ids(40)[20:])
    rig.advance(1000)
    rig.sent()

    rig.request("GETJOB", "COUNT", 40, "FROM", "q")

    assert needs(rig) == [(N2, 20), (N3, 20)]


def test_a_giver_is_asked_ever_more_rarely_and_forgotten_after_five_seconds() -> None:
    rig = Rig(peers=1, config=CALM)
    rig.request("GETJOB", "NOHANG", "FROM", "q")
    give(rig, N2, JOB)
    rig.request("GETJOB", "FROM", "q")
    rig.request("GETJOB", "FROM", "q")
    rig.sent()
    start = rig.now.mono

    asked = []
    while rig.now.mono < start + 7_000:
        rig.advance(10)
        asked += [rig.now.mono - start for _, count in needs(rig) if count > 1]

    expected = [50, 150, 350, 750, 1550, 3150]
    assert len(asked) == len(expected)
    assert all(0 <= a - b <= 60 for a, b in zip(asked, expected, strict=True)), asked
    assert rig.queue().responders == {}


def test_a_queue_that_becomes_empty_without_imports_asks_no_node() -> None:
    rig = Rig(peers=1)
    rig.add("REPLICATE", 1)
    rig.sent()

    rig.request("GETJOB", "FROM", "q")

    assert rig.sent() == []


def test_a_leaving_node_asks_for_nothing() -> None:
    rig = Rig(peers=1)
    rig.ask("CLUSTER", "LEAVING", "yes")

    rig.request("GETJOB", "NOHANG", "FROM", "q")

    assert rig.sent() == []


def test_nothing_is_asked_for_while_deliveries_are_paused() -> None:
    rig = Rig(peers=1, config=CALM)
    rig.ask("PAUSE", "q", "out")
    rig.request("GETJOB", "FROM", "q")
    rig.advance(60_000)
    assert needs(rig) == []
    assert len(rig.outboxes) < 1500, "nothing polls"

    rig.ask("PAUSE", "q", "none", client=rig.connect())
    rig.advance(50)

    assert needs(rig) == [(N2, 1)]


def test_a_node_that_is_alone_asks_once_it_is_not_any_more() -> None:
    rig = Rig()
    rig.request("GETJOB", "FROM", "q")
    rig.advance(60_000)
    rig.ask("CLUSTER", "MEET", "127.0.0.2", 7711, client=rig.connect())
    rig.advance(200)
    newcomer = next(peer for peer in rig.node.cluster.nodes.values() if peer.flags & HANDSHAKE)
    rig.machine.linked(newcomer.link, "127.0.0.1", "127.0.0.2", rig.now)
    assert needs(rig) == []

    rig.machine.message(newcomer.link, Frame(N2, 7711, MYSELF, Pong()), rig.now)
    rig.advance(50)

    assert needs(rig) == [(N2, 1)]


# The import rate.


def test_the_import_rate_counts_two_buckets_of_a_second_and_rounds_up() -> None:
    rig = Rig(peers=1, config=CALM)
    rig.request("GETJOB", "NOHANG", "FROM", "q")
    rig.advance(10)
    give(rig, N2, *ids(3))
    # Three jobs in at least fifty milliseconds.
    assert transfer.import_rate(rig.node, rig.queue()) == 60

    rig.advance(1_990)
    assert transfer.import_rate(rig.node, rig.queue()) == 2
    give(rig, N2, *ids(5)[3:])
    assert transfer.import_rate(rig.node, rig.queue()) == 3
    rig.advance(2_000)
    assert transfer.import_rate(rig.node, rig.queue()) == 2


def test_five_seconds_after_the_last_bucket_began_nothing_is_imported() -> None:
    rig = Rig(peers=1, config=CALM)
    rig.request("GETJOB", "NOHANG", "FROM", "q")
    give(rig, N2, JOB)

    rig.advance(5_000)
    assert transfer.import_rate(rig.node, rig.queue()) == 1
    rig.advance(1)
    assert transfer.import_rate(rig.node, rig.queue()) == 0
