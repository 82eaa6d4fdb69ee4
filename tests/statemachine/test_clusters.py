import itertools

from disque_trio.statemachine.base import FAIL, LEAVING, MYSELF, NOADDR, PFAIL, WAIT_REPL
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.messages import Fail, Meet, Ping, Pong
from tests.cluster_rig import ClusterRig

HEARTBEAT = 110
"""A heartbeat, and the grain of the timers."""
TIMEOUT = 2000
"""The node timeout of a `ClusterRig`."""


# Joining.


def test_seven_nodes_find_each_other() -> None:
    rig = ClusterRig("a", "b", "c", "d", "e", "f", "g")

    rig.form()

    assert rig.node("g").cluster.size == 7
    assert len(rig.node("g").cluster.reachable) == 6


def test_a_cluster_that_is_formed_stays_so() -> None:
    rig = ClusterRig("a", "b", "c", "d")
    rig.form()

    rig.run(60_000)

    assert rig.is_formed()
    assert not any(p.flags & ~MYSELF for n in "abcd" for p in rig.node(n).cluster.nodes.values())
    assert rig.sent(Fail) == []


def test_the_frames_of_joining_are_those_of_the_original() -> None:
    rig = ClusterRig("a", "b", "c")

    rig.meet("a", "b")
    rig.meet("a", "c")
    rig.run(300)

    assert [(s.sender, s.receiver, s.message) for s in rig.trace] == [
        ("a", "b", Meet()),
        ("a", "c", Meet()),
        ("b", "a", Pong()),
        ("c", "a", Pong()),
        ("b", "a", Ping()),
        ("c", "a", Ping()),
        *[(s.sender, s.receiver, s.message) for s in rig.sent(Pong, "a")],
    ]
    told = [s.message.gossip for s in rig.sent(Pong, "a") if isinstance(s.message, Pong)]
    assert [len(entries) for entries in told] == [1, 1]


def test_two_clusters_that_meet_become_one() -> None:
    rig = ClusterRig("a", "b", "c", "d")
    rig.meet("a", "b")
    rig.meet("c", "d")
    rig.run(1000)

    rig.meet("b", "c")

    rig.run_until(rig.is_formed, 10_000)


# Moving, leaving, forgetting.


def test_a_node_that_restarts_elsewhere_is_found_there() -> None:
    rig = ClusterRig("a", "b", "c")
    rig.form()
    name = rig.id("c")
    rig.crash("c")
    rig.run(500)

    rig.start("c", ip="10.0.0.77")
    # It looks for a second process with its ID where the one before it was, which takes a while.
    rig.run(5_000)

    assert rig.id("c") == name
    assert rig.is_formed()
    assert rig.peer("a", "c").ip == "10.0.0.77"


def test_a_node_that_leaves_is_known_as_leaving_everywhere() -> None:
    rig = ClusterRig("a", "b", "c")
    rig.form()

    rig.ask("c", "CLUSTER", "LEAVING", "yes")
    rig.run(2_500)

    assert rig.peer("a", "c").flags == LEAVING
    assert rig.peer("b", "c").flags == LEAVING
    rig.ask("c", "CLUSTER", "LEAVING", "no")
    rig.run(2_500)
    assert rig.peer("a", "c").flags == 0


def test_a_forgotten_node_stays_out_for_a_minute_though_others_know_it() -> None:
    rig = ClusterRig("a", "b", "c")
    rig.form()

    rig.ask("a", "CLUSTER", "FORGET", rig.id("c"))
    rig.run(59_000)
    assert rig.sees("a", "c") is None

    rig.run(5_000)
    assert rig.is_formed()


def test_a_node_that_is_forgotten_everywhere_stays_out() -> None:
    rig = ClusterRig("a", "b", "c")
    rig.form()
    rig.crash("c")
    rig.run(3_000)
    gone = next(name for name in rig.node("a").cluster.nodes if name not in map(rig.id, "ab"))

    rig.ask("a", "CLUSTER", "FORGET", gone)
    rig.ask("b", "CLUSTER", "FORGET", gone)
    rig.run(70_000)

    assert rig.is_formed()


def test_a_forgotten_node_goes_on_being_answered_and_comes_back_by_meet() -> None:
    rig = ClusterRig("a", "b")
    rig.form()
    rig.ask("a", "CLUSTER", "FORGET", rig.id("b"))
    rig.run(3_000)
    assert rig.peer("b", "a").flags == 0
    assert rig.sees("a", "b") is None

    rig.meet("b", "a")
    rig.run(1_000)

    assert rig.is_formed()


def test_a_soft_reset_keeps_the_id_and_forgets_all_nodes() -> None:
    rig = ClusterRig("a", "b")
    rig.form()
    name = rig.id("a")

    rig.ask("a", "CLUSTER", "RESET", "SOFT")
    rig.run(1_000)

    assert list(rig.node("a").cluster.nodes) == [name]
    assert not rig.node("a").cron.due
    assert rig.node("a").cluster.blacklist == {}
    assert rig.node("a").cluster.reachable == []


def test_after_a_hard_reset_the_old_name_has_no_address() -> None:
    rig = ClusterRig("a", "b")
    rig.form()
    old = rig.id("a")

    rig.ask("a", "CLUSTER", "RESET", "HARD")
    rig.run(3_000)

    assert rig.id("a") != old
    assert list(rig.node("a").cluster.nodes) == [rig.id("a")]
    lost = rig.node("b").cluster.nodes[old]
    assert (lost.flags, lost.ip, lost.port) == (NOADDR, "", 0)
    assert rig.node("b").cluster.reachable == []
    assert rig.node("b").cluster.size == 2


def test_a_node_that_was_reset_may_join_again() -> None:
    rig = ClusterRig("a", "b")
    rig.form()
    old = rig.id("a")
    rig.ask("a", "CLUSTER", "RESET", "HARD")

    rig.ask("b", "CLUSTER", "FORGET", old)
    rig.meet("b", "a")
    rig.run(1_000)

    assert rig.is_formed()


# Failing.


def test_a_dead_node_is_suspected_and_then_convicted_by_all() -> None:
    rig = ClusterRig("a", "b", "c", "d")
    rig.form()
    dead = rig.id("d")
    rig.crash("d")

    rig.run(TIMEOUT + 4_000)

    for name in "abc":
        assert rig.node(name).cluster.nodes[dead].flags == FAIL
        assert len(rig.node(name).cluster.reachable) == 2
    assert {type(s.message) for s in rig.sent(Fail)} == {Fail}


def test_suspicion_comes_a_timeout_after_the_unanswered_ping() -> None:
    rig = ClusterRig("a", "b")
    rig.form()
    rig.run(1_000)
    rig.silence("b", "a")
    peer = rig.peer("a", "b")
    rig.run_until(lambda: bool(peer.ping_sent), 2_000)
    asked = peer.ping_sent

    rig.run_until(lambda: bool(peer.flags & PFAIL), 5_000)

    assert TIMEOUT < rig.now.mono - asked <= TIMEOUT + HEARTBEAT


def test_one_of_two_nodes_is_never_convicted() -> None:
    rig = ClusterRig("a", "b")
    rig.form()
    rig.cut("a", "b")

    rig.run(20_000)

    assert rig.peer("a", "b").flags == PFAIL
    assert rig.sent(Fail) == []


def test_a_minority_does_not_convict_the_majority() -> None:
    rig = ClusterRig("a", "b", "c", "d", "e")
    rig.form()
    for one in "ab":
        for other in "cde":
            rig.cut(one, other)

    rig.run(20_000)

    assert rig.peer("a", "c").flags == PFAIL
    assert rig.peer("c", "a").flags == FAIL
    rig.heal()
    rig.run(3_000)
    assert rig.peer("a", "c").flags == 0
    assert rig.peer("c", "a").flags == 0


def test_a_node_that_restarts_is_well_at_its_first_answer() -> None:
    rig = ClusterRig("a", "b", "c")
    rig.form()
    rig.crash("c")
    rig.run(10_000)

    rig.start("c")
    rig.run(300)

    assert rig.peer("a", "c").flags == 0
    assert rig.peer("b", "c").flags == 0
    rig.run(2_000)
    assert rig.is_formed()


def test_a_link_that_carries_no_answers_is_replaced_before_the_node_is_suspected() -> None:
    rig = ClusterRig("a", "b")
    rig.form()
    rig.run(5_000)
    peer = rig.peer("a", "b")
    link = peer.link
    rig.silence("b", "a")
    rig.run_until(lambda: peer.link not in (0, link), 5_000)

    rig.heal()
    rig.run(200)

    assert peer.flags == 0
    assert peer.ping_sent == 0


def test_a_hanging_dial_is_given_up_and_repeated() -> None:
    rig = ClusterRig("a", "b")
    rig.form()
    rig.run(TIMEOUT)
    rig.silence("a", "b")
    rig.crash("b")
    rig.start("b")
    rig.run(TIMEOUT * 3)
    assert not rig.peer("a", "b").is_connected

    rig.heal()
    rig.run(TIMEOUT * 2)

    assert rig.is_formed()


# The heartbeat.


def test_every_node_is_pinged_once_in_half_a_node_timeout_at_least() -> None:
    rig = ClusterRig("a", "b", "c")
    rig.form()
    start = rig.now.mono

    rig.run(20_000)

    pings = [sent.at for sent in rig.sent(Ping, "a", "b") if sent.at > start]
    gaps = [after - before for before, after in itertools.pairwise(pings)]
    assert max(gaps) <= TIMEOUT // 2 + 2 * HEARTBEAT


def test_with_a_long_node_timeout_about_one_node_is_pinged_a_second() -> None:
    rig = ClusterRig("a", "b", "c", "d", config=Config(cluster_node_timeout=600_000))
    rig.form()
    start = rig.now.mono

    rig.run(50_000)

    pings = [sent for sent in rig.sent(Ping, "a") if sent.at > start]
    assert 44 <= len(pings) <= 50
    assert {sent.receiver for sent in pings} == {"b", "c", "d"}


# Restarting.


def test_what_nodes_conf_says_brings_a_whole_cluster_back() -> None:
    rig = ClusterRig("a", "b", "c")
    rig.form()
    for name in "abc":
        rig.crash(name)
    for name in "abc":
        rig.start(name)

    rig.run(1_000)

    assert rig.is_formed()


def test_two_nodes_are_enough_for_a_job_with_two_copies() -> None:
    rig = ClusterRig("a", "b")
    rig.form()

    reply = rig.ask("a", "ADDJOB", "q", "body", 1000, "REPLICATE", 2)

    assert getattr(reply, "text", None) in rig.node("b").jobs
    assert all(job.state != WAIT_REPL for job in rig.node("b").jobs.values())
