"""Connections that break, nodes that fail, leave or are silent, and the end of the worker."""

import pytest

from disque_trio.statemachine.base import NULL_ARRAY
from disque_trio.worker.engine.records import Dead, Done, Queue, Reason, Release, Retry
from tests.worker.engine.talking import FEATURES, ONCE, ONE, TOKEN, TWO, Talk, lease, plain


def test_it_takes_jobs_from_the_next_node_if_the_first_fails_and_comes_back() -> None:
    talk = Talk()
    talk.greet()
    talk.lose("n1")
    talk.greet()
    assert talk.last(b"GETJOB").node == "n2"

    talk.wait(251)
    talk.greet()
    wake = talk.last(b"CLIENT")
    assert (wake.node, wake.words) == ("n2", (b"CLIENT", b"UNBLOCK", b"7"))
    talk.answer(b"GETJOB", NULL_ARRAY)

    assert talk.last(b"GETJOB").node == "n1"


def test_while_no_node_answers_one_is_tried_again_every_second() -> None:
    talk = Talk()
    for _ in range(10):
        for name in ("n1", "n2", "n3"):
            talk.lose(name)
        dials = talk.count(b"INFO")
        talk.wait(1_001)
        assert talk.count(b"INFO") > dials

    talk.greet()

    assert talk.count(b"GETJOB")


def test_a_wait_that_had_not_begun_when_it_was_to_end_is_ended_again() -> None:
    talk = Talk()
    talk.greet()
    talk.stop()
    talk.answer(b"CLIENT", 0)
    talk.wait(21)
    assert talk.count(b"CLIENT") == 3  # once CLIENT ID

    talk.answer(b"CLIENT", 1)
    talk.answer(b"GETJOB", NULL_ARRAY)

    assert talk.engine.is_stopped


def test_a_node_that_does_not_greet_is_not_waited_for() -> None:
    talk = Talk()
    talk.wait(501)
    assert {send.node for send in talk.said} == {"n1", "n2"}

    talk.asked = {link: sends for link, sends in talk.asked.items() if sends[0].node != "n1"}
    talk.greet()

    assert talk.last(b"GETJOB").node == "n2"


def test_a_silent_node_is_left() -> None:
    talk = Talk()
    fetch = talk.deliver()
    talk.wait(10_001)
    talk.greet()

    assert talk.closes == [fetch.link]
    assert talk.last(b"GETJOB").node == "n2"


def test_after_a_pause_of_the_process_what_has_come_is_read_first() -> None:
    talk = Talk()
    talk.greet()
    talk.sleep(30_000)
    talk.engine.tick(talk.now)
    talk.listen()
    assert talk.closes == []

    talk.deliver(lease(ONE))
    assert talk.drops == [(ONE, Reason.LEASE_OVER)]


def test_a_node_that_leaves_keeps_the_jobs_that_it_has_given() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.refuse(b"GETJOB", b"LEAVING This node is leaving the cluster")
    talk.greet()
    assert talk.last(b"GETJOB").node == "n2"

    talk.finish(ONE, Done())
    talk.wait(3)
    talk.greet()

    assert talk.last(b"ACKJOB").node == "n1"


def test_when_a_connection_ends_its_jobs_are_renewed_at_once_elsewhere() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.lose("n1")
    talk.wait(21)
    talk.greet()
    talk.wait(21)

    assert talk.last(b"WORKING").words == (b"WORKING", ONE + b"@" + TOKEN)
    assert talk.last(b"WORKING").node == "n2"
    assert talk.cancels == []


def test_the_node_at_which_a_job_was_added_is_asked_before_others() -> None:
    talk = Talk()
    talk.engine.state.origins[b"11111111"] = "n3"
    talk.deliver(lease(ONE))
    talk.lose("n1")
    talk.wait(21)
    talk.greet()
    talk.wait(21)

    assert talk.last(b"WORKING").node == "n3"


def test_an_acknowledgement_without_a_reply_goes_to_another_node() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.finish(ONE, Done())
    talk.wait(3)
    talk.greet()
    talk.lose("n1")
    talk.wait(3)
    talk.greet()

    assert talk.last(b"ACKJOB").node == "n2"
    assert talk.count(b"ACKJOB") == 2


def test_a_snooze_is_told_to_a_node_that_can_put_the_job_off() -> None:
    talk = Talk(features=FEATURES + b",release-delay")
    talk.greet()
    talk.lose("n1")
    talk.greet()  # n2 can
    talk.wait(1_001)
    talk.features = FEATURES
    talk.greet()  # n1 cannot
    talk.answer(b"GETJOB", NULL_ARRAY)
    assert talk.deliver(lease(ONE)).node == "n1"

    talk.finish(ONE, Release(30_000_000))
    talk.greet()

    told = talk.last(b"RELEASE")
    assert (told.node, told.words[2:]) == ("n2", (b"DELAY", b"30.000"))


@pytest.mark.parametrize("is_known", [True, False])
def test_a_snooze_waits_for_a_node_that_can_put_the_job_off(is_known: bool) -> None:
    talk = Talk(features=FEATURES + b",release-delay")
    talk.deliver(lease(ONE))
    talk.lose("n1")
    talk.features = b""
    if is_known:
        talk.greet()
    talk.finish(ONE, Release(30_000_000))
    talk.greet()  # n2 cannot
    talk.features = FEATURES + b",release-delay"
    talk.wait(5_000)
    talk.greet()
    talk.wait(1_000)

    told = talk.last(b"RELEASE")
    assert (talk.count(b"RELEASE"), told.words[2:]) == (1, (b"DELAY", b"30.000"))
    assert told.node in ("n1", "n3")
    assert talk.count(b"ENQUEUE") == 0


def test_with_a_token_a_nack_is_repeated_and_without_one_it_is_not() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.finish(ONE, Retry(0))
    talk.greet()
    talk.lose("n1")
    talk.wait(3)
    talk.greet()
    assert talk.last(b"NACK").node == "n2"

    talk = Talk(features=b"")
    talk.deliver(plain(ONE))
    talk.finish(ONE, Retry(0))
    talk.greet()
    talk.lose("n1")
    assert talk.drops == [(ONE, Reason.UNKNOWN)]


def test_without_a_token_a_burial_is_not_repeated() -> None:
    talk = Talk(features=b"")
    talk.deliver(plain(ONE))
    talk.finish(ONE, Dead(b"unreadable"))
    talk.greet()
    talk.lose("n1")
    talk.wait(3)
    talk.greet()

    assert talk.drops == [(ONE, Reason.UNKNOWN)]
    assert talk.count(b"ADDJOB") == 1


def test_while_no_node_can_be_reached_acknowledgements_wait_in_peace() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.finish(ONE, Done())
    for _ in range(20):
        talk.wait(500)
        for node in ("n1", "n2", "n3"):
            talk.lose(node)
    assert talk.count(b"INFO") < 40

    talk.wait(30_000)
    talk.greet()
    talk.wait(30_000)
    talk.greet()
    assert talk.count(b"ACKJOB") >= 1


def test_of_several_that_are_refused_together_each_is_told_alone() -> None:
    talk = Talk()
    talk.deliver(lease(ONE), lease(TWO))
    for id in (ONE, TWO):
        talk.finish(id, Retry(2_000_000))
    talk.greet()
    if talk.count(b"NACK") == 1:
        talk.refuse(b"NACK", b"ERR DELAY is longer than the life of one of them")
    talk.refuse(b"NACK", b"ERR DELAY is longer than the life of one")
    talk.answer(b"NACK", 1)

    assert talk.drops == [(ONE, Reason.REFUSED)]
    assert not talk.engine.state.jobs


def test_a_node_that_is_busy_sends_an_acknowledgement_to_another() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.finish(ONE, Done())
    talk.wait(3)
    talk.greet()
    talk.refuse(b"ACKJOB", b"LOADING Disque is loading the dataset in memory")
    talk.wait(3)
    talk.greet()

    assert talk.last(b"ACKJOB").node == "n2"


def test_nodes_may_come_and_go() -> None:
    talk = Talk()
    talk.greet()
    talk.engine.know(talk.now, ["n4", "n2"])
    talk.listen()
    talk.greet()
    talk.answer(b"GETJOB", NULL_ARRAY)

    assert talk.last(b"GETJOB").node == "n4"


def test_a_node_that_cannot_greet_is_left() -> None:
    talk = Talk()
    talk.refuse(b"INFO", b"NOAUTH Authentication required.")
    talk.greet()

    assert talk.last(b"GETJOB").node == "n2"


# The end.


def test_an_idle_worker_ends_its_wait_and_stops() -> None:
    talk = Talk()
    talk.greet()
    talk.stop()
    talk.greet()
    assert talk.last(b"CLIENT").words == (b"CLIENT", b"UNBLOCK", b"7")

    talk.answer(b"GETJOB", NULL_ARRAY)

    assert talk.engine.is_stopped


def test_it_gives_back_what_has_not_begun_and_lets_the_rest_run_and_be_renewed() -> None:
    talk = Talk(Queue(name=b"q", prefetch=1), concurrency=1)
    talk.deliver(lease(ONE), lease(TWO))
    talk.stop()
    assert talk.drops == [(TWO, Reason.RELEASED)]
    talk.greet()
    assert talk.last(b"RELEASE").words == (b"RELEASE", TWO + b"@" + TOKEN)
    talk.answer(b"RELEASE", 1)

    talk.wait(3_001)
    assert talk.count(b"WORKING") == 1

    talk.answer(b"WORKING", 10)
    talk.finish(ONE, Done())
    talk.wait(3)
    talk.answer(b"ACKJOB", 1)
    assert talk.engine.is_stopped


def test_jobs_that_come_while_it_stops_are_given_back() -> None:
    talk = Talk()
    talk.greet()
    talk.stop()
    talk.deliver(lease(ONE))
    talk.greet()

    assert talk.starts == []
    assert talk.count(b"RELEASE") == 1


def test_jobs_that_nobody_else_can_get_are_run_even_then() -> None:
    talk = Talk()
    talk.greet()
    talk.stop()
    talk.deliver(lease(ONCE, ms=0))

    assert talk.starts == [ONCE]


def test_its_time_is_bounded() -> None:
    talk = Talk(drain=2_000_000, abort=500_000)
    talk.deliver(lease(ONE), lease(ONCE, ms=0))
    talk.stop()
    talk.wait(2_001)
    assert talk.cancels == [(ONE, Reason.SHUTDOWN), (ONCE, Reason.SHUTDOWN)]

    talk.finish(ONE, None)
    talk.greet()
    assert talk.last(b"RELEASE").words == (b"RELEASE", ONE + b"@" + TOKEN)
    assert not talk.engine.is_stopped

    talk.wait(501)
    assert talk.engine.is_stopped


def test_the_second_order_to_stop_cancels_at_once() -> None:
    talk = Talk()
    talk.deliver(lease(ONE))
    talk.stop()
    talk.stop()

    assert talk.cancels == [(ONE, Reason.SHUTDOWN)]


def test_a_job_whose_delay_the_worker_keeps_is_given_back_when_it_stops() -> None:
    talk = Talk(features=b"")
    talk.deliver(plain(ONE))
    talk.finish(ONE, Retry(9_000_000))
    talk.stop()
    talk.greet()

    assert talk.last(b"NACK").words == (b"NACK", ONE)
