from disque_trio.statemachine import federation, queue_announcements
from disque_trio.statemachine.base import CAPABILITIES, MYSELF, NodeId
from disque_trio.statemachine.messages import Frame, HaveJobs, Message, NeedJobs, Pong, Waiting
from disque_trio.statemachine.nodetable import remove
from tests.rig import CALM, N2, N3, Rig
from tests.statemachine.federating import give, ids

GRAIN = 8
WAITS = Waiting(b"q", 1)
ONE = NeedJobs(b"q", 1, waits=True)


def rig_of_ours(peers: int = 2) -> Rig:
    return Rig(peers=peers, config=CALM, ours=True)


def waiting(clients: int = 1) -> Rig:
    """A node at which so many clients wait, of which the others have been told."""
    rig = rig_of_ours()
    for _ in range(clients):
        rig.request("GETJOB", "FROM", "q", client=rig.connect())
    rig.sent()
    return rig


def offered(rig: Rig, *who: NodeId, count: int = 1) -> list[tuple[NodeId, Message]]:
    """These have jobs; what the node says to that."""
    for peer in who or (N2,):
        rig.message(peer, HaveJobs(b"q", count))
    return rig.sent()


# Telling that clients wait.


def test_a_client_that_waits_is_made_known_to_all_nodes_of_ours_and_original_ones_are_asked() -> (
    None
):
    rig = rig_of_ours()
    rig.node.cluster.nodes[N3].capabilities = 0

    rig.request("GETJOB", "FROM", "q")

    assert rig.sent() == [(N3, NeedJobs(b"q", 1)), (N2, WAITS)]


def test_clients_that_begin_to_wait_together_are_told_of_once() -> None:
    rig = rig_of_ours(peers=1)
    for _ in range(3):
        rig.machine.request(rig.connect(), [b"GETJOB", b"FROM", b"q"], rig.now)
    rig.take()

    assert rig.sent() == [(N2, Waiting(b"q", 3))]


def test_while_clients_wait_it_is_said_again_ever_more_rarely() -> None:
    rig = rig_of_ours(peers=1)
    start = rig.now.mono
    rig.request("GETJOB", "FROM", "q")

    told = []
    while rig.now.mono < start + 100_000:
        told += [round((rig.now.mono - start) / 1000) for _ in rig.sent()]
        rig.advance(100)

    assert told == [0, 4, 12, 28, 58, 88]


def test_a_client_that_comes_and_goes_is_not_told_of_each_time() -> None:
    rig = rig_of_ours(peers=1)
    for _ in range(100):
        rig.request("GETJOB", "TIMEOUT", 100, "FROM", "q")
        rig.advance(200)

    assert len(rig.sent()) == 3


# Asking those who have jobs.


def test_a_node_that_has_jobs_is_asked_for_as_many_as_clients_wait() -> None:
    assert offered(waiting(1), count=5) == [(N2, ONE)]
    assert offered(waiting(3), count=5) == [(N2, NeedJobs(b"q", 3, waits=True))]


def test_of_several_each_is_asked_for_what_it_has_until_there_is_enough() -> None:
    rig = waiting(4)
    rig.node.queues[b"q"].supply = None

    offered(rig, N2)
    assert offered(rig, N3, count=9) == [(N3, Waiting(b"q", 0))]

    # The first was asked for all, for it was the only one. It has given one of them.
    give(rig, N2, *ids(1))
    assert (N3, NeedJobs(b"q", 3, waits=True)) in rig.sent()


def test_an_offer_that_is_not_needed_is_declined_and_used_when_a_client_waits() -> None:
    rig = waiting()
    offered(rig, N2)

    assert offered(rig, N3) == [(N3, Waiting(b"q", 0))]
    give(rig, N2, *ids(1))
    rig.sent()

    rig.request("GETJOB", "FROM", "q")
    assert rig.sent() == [(N3, ONE)]


def test_without_waiting_clients_an_offer_is_declined_and_remembered() -> None:
    rig = rig_of_ours()
    rig.request("GETJOB", "TIMEOUT", 100, "FROM", "q")
    rig.advance(200)
    rig.sent()

    assert offered(rig) == [(N2, Waiting(b"q", 0))]
    rig.request("GETJOB", "FROM", "q")
    assert rig.sent() == [(N2, ONE)]


def test_a_queue_that_is_not_here_any_more_declines_too() -> None:
    rig = rig_of_ours()

    assert offered(rig) == [(N2, Waiting(b"q", 0))]
    assert offered(rig, count=0) == []
    assert rig.node.queues == {}


def test_a_paused_queue_declines_and_asks_when_the_pause_ends() -> None:
    rig = waiting()
    rig.ask("PAUSE", "q", "out")

    assert offered(rig) == [(N2, Waiting(b"q", 0))]
    rig.ask("PAUSE", "q", "none")

    assert (N2, ONE) in rig.sent()


def test_a_supplier_with_none_left_is_forgotten_and_the_next_is_asked() -> None:
    rig = waiting()
    offered(rig, N2, N3)

    rig.message(N2, HaveJobs(b"q", 0))

    assert rig.sent() == [(N3, ONE)]


def test_a_supplier_without_an_answer_is_given_up_the_next_asked_and_all_nodes_told() -> None:
    rig = waiting()
    offered(rig, N2, N3)

    rig.advance(federation.ANSWER_WITHIN - GRAIN)
    assert rig.sent() == []
    rig.advance(50)

    assert rig.sent() == [(N3, ONE), (N2, WAITS), (N3, WAITS)]


def test_whose_link_is_gone_is_not_asked() -> None:
    rig = waiting()
    offered(rig, N2, N3)
    rig.lose_link(N3)
    remove(rig.node, rig.node.cluster.nodes[N2])
    rig.sent()

    rig.advance(federation.ANSWER_WITHIN + GRAIN)

    assert not [each for each in rig.sent() if isinstance(each[1], NeedJobs)]


def test_while_the_giver_has_more_it_is_asked_again_at_once() -> None:
    rig = waiting(2)
    offered(rig, N2, count=1)
    rig.sent()

    give(rig, N2, *ids(1), more=True)

    assert (N2, ONE) in rig.sent()


def test_a_busy_queue_has_jobs_before_they_are_asked_for() -> None:
    rig = waiting(federation.BUSY)
    offered(rig, count=50)
    give(rig, N2, *ids(federation.BUSY), more=True)

    # Ten jobs in at least fifty milliseconds makes two hundred a second.
    assert (N2, NeedJobs(b"q", 100)) in rig.sent()


def test_clients_of_a_busy_queue_are_fetched_what_they_take_until_it_can_be_asked_again() -> None:
    rig = waiting(federation.BUSY + 1)
    offered(rig, count=50)
    give(rig, N2, *ids(federation.BUSY), more=True)

    # One still waits, and two hundred a second makes ten in fifty milliseconds.
    assert (N2, NeedJobs(b"q", 11, waits=True)) in rig.sent()


# Clients that do not wait.


def test_for_a_client_that_does_not_wait_one_job_is_fetched() -> None:
    rig = rig_of_ours(peers=1)
    rig.request("GETJOB", "NOHANG", "FROM", "q")
    assert rig.sent() == [(N2, WAITS)]

    assert offered(rig, count=7) == [(N2, NeedJobs(b"q", 1))]
    rig.message(N2, HaveJobs(b"q", 6))
    assert rig.sent() == [(N2, Waiting(b"q", 0))]


def test_but_not_when_it_has_not_come_back_for_a_second() -> None:
    rig = rig_of_ours(peers=1)
    rig.request("GETJOB", "NOHANG", "FROM", "q")
    rig.sent()
    rig.advance(federation.POLL_MEMORY + 1)

    assert offered(rig) == [(N2, Waiting(b"q", 0))]


def test_clients_that_poll_at_two_nodes_do_not_take_the_job_from_each_other() -> None:
    rig = rig_of_ours(peers=1)
    rig.request("GETJOB", "NOHANG", "FROM", "q")
    offered(rig)
    give(rig, N2, *ids(1))
    rig.sent()

    rig.message(N2, NeedJobs(b"q", 1))

    assert rig.sent() == [(N2, HaveJobs(b"q", 1))]
    assert rig.ask("QLEN", "q") == 1


# New links.


def come_up(rig: Rig, peer: NodeId) -> None:
    """Our link to the node is new, and it says what it can."""
    rig.lose_link(peer)
    rig.advance(200)
    link = rig.node.cluster.nodes[peer].link
    rig.machine.linked(link, "127.0.0.1", "127.0.0.2", rig.now)
    frame = Frame(peer, 7711, MYSELF, Pong(), CAPABILITIES)
    rig.machine.message(link, frame, rig.now)
    rig.take()


def test_over_a_new_link_a_node_is_told_of_waiting_clients_and_jobs() -> None:
    rig = rig_of_ours()
    rig.request("GETJOB", "FROM", "q")
    other = rig.connect()
    rig.ask("ADDJOB", "other", "", 0, "REPLICATE", 1, client=other)
    rig.message(N2, Waiting(b"other", 1))
    rig.message(N2, Waiting(b"other", 0))
    rig.sent()

    come_up(rig, N2)

    sent = rig.sent()
    assert (N2, WAITS) in sent
    assert (N2, HaveJobs(b"other", 1)) in sent
    assert not [each for to, each in sent if to == N3]


def test_of_many_queues_some_are_told_at_a_time() -> None:
    rig = rig_of_ours(peers=1)
    rig.turn(announced_queues=4)
    rig.request("GETJOB", "FROM", *[f"q{number}" for number in range(10)])
    rig.sent()

    come_up(rig, N2)
    told = [len(rig.sent())]
    for _ in range(3):
        rig.advance(queue_announcements.ANNOUNCE_EVERY + GRAIN)
        told.append(len(rig.sent()))

    assert told == [4, 4, 2, 0]


def test_a_node_that_goes_meanwhile_is_told_no_more() -> None:
    rig = rig_of_ours(peers=1)
    rig.turn(announced_queues=4)
    rig.request("GETJOB", "FROM", *[f"q{number}" for number in range(10)])
    come_up(rig, N2)
    rig.lose_link(N2)
    rig.sent()

    rig.advance(50)

    assert rig.sent() == []
    assert rig.node.announcements.names == {}


def test_clients_that_come_after_a_new_link_are_made_known_at_once() -> None:
    rig = rig_of_ours()
    rig.request("GETJOB", "TIMEOUT", 100, "FROM", "q")
    rig.advance(200)
    come_up(rig, N2)
    rig.sent()

    rig.request("GETJOB", "FROM", "q")

    assert rig.sent() == [(N2, WAITS), (N3, WAITS)]


def test_a_link_that_has_lost_messages_is_told_once_more() -> None:
    rig = waiting()
    link = rig.node.cluster.nodes[N2].link
    rig.machine.dropped(link, 3)
    rig.machine.dropped(link, 3)
    assert rig.sent() == []

    rig.advance(queue_announcements.ANNOUNCE_AGAIN + GRAIN)

    assert rig.sent() == [(N2, WAITS)]


def test_what_an_original_node_has_lost_is_not_said_again() -> None:
    rig = Rig(peers=1, config=CALM)
    rig.request("GETJOB", "FROM", "q")
    rig.machine.dropped(rig.node.cluster.nodes[N2].link, 3)
    rig.sent()

    rig.advance(2000)

    assert rig.sent() == []


def test_a_node_that_cannot_write_its_journal_asks_for_nothing() -> None:
    rig = rig_of_ours(peers=1)
    rig.request("GETJOB", "TIMEOUT", 100, "FROM", "q")
    rig.advance(200)
    rig.machine.journal_failed("no space", rig.now)
    rig.sent()

    assert offered(rig) == [(N2, Waiting(b"q", 0))]


def test_a_node_that_answers_for_the_first_time_is_told_often_for_it_may_not_know_us_yet() -> None:
    rig = waiting()
    rig.node.cluster.nodes[N2].resent_on = 0
    # Its entry may be old: the handshake took long.
    rig.node.cluster.nodes[N2].created = rig.now.mono - 10_000
    come_up(rig, N2)
    rig.sent()

    told = when_told(rig)

    # After 4 s everybody is told anyway.
    assert len([moment for moment in told if moment < 3700]) == 3
    assert rig.node.announcements.since == {}


def test_a_node_that_has_answered_before_is_told_once() -> None:
    rig = waiting()
    rig.node.cluster.nodes[N2].resent_on = rig.node.cluster.nodes[N2].link
    come_up(rig, N2)
    rig.sent()

    assert [moment for moment in when_told(rig) if moment < 3000] == []


def when_told(rig: Rig) -> list[int]:
    told, start = [], rig.now.mono
    while rig.now.mono < start + 10_000:
        rig.advance(10)
        told += [rig.now.mono - start for to, each in rig.sent() if (to, each) == (N2, WAITS)]
    return told
