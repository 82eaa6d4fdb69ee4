import pytest

from disque_trio.statemachine import federation
from disque_trio.statemachine.base import QUEUED, NodeId
from disque_trio.statemachine.messages import Fail, NeedJobs, YourJobs
from disque_trio.statemachine.nodetable import remove
from tests.rig import CALM, JOB, N2, N3, N4, Rig, copy_of
from tests.statemachine.federating import give, ids


def asked_in_vain(*who: NodeId, count: int = 1) -> Rig:
    """A node without jobs that has been asked for some."""
    rig = Rig(peers=3, config=CALM)
    for peer in who or (N2,):
        rig.message(peer, NeedJobs(b"q", count))
    rig.sent()
    return rig


def gifts(rig: Rig) -> list[tuple[NodeId, int]]:
    """Who was given how many jobs."""
    sent = rig.sent()
    return [(to, len(each.copies)) for to, each in sent if isinstance(each, YourJobs)]


def add(rig: Rig, queue: str = "q") -> None:
    rig.add("REPLICATE", 1, queue=queue)


def feed_job(rig: Rig, *words: bytes) -> None:
    """Add a job, in a batch that is not over."""
    args = [b"ADDJOB", b"q", b"", b"0", b"REPLICATE", b"1", *words]
    rig.machine.request(rig.client, args, rig.now)


def add_at_once(rig: Rig, count: int) -> None:
    for _ in range(count):
        feed_job(rig)
    rig.take()


def test_who_asked_in_vain_is_given_the_first_job_that_comes_and_no_other() -> None:
    rig = asked_in_vain()

    add(rig)
    assert gifts(rig) == [(N2, 1)]
    add(rig)

    assert gifts(rig) == []
    assert len(rig.queue()) == 1
    assert rig.node.asked == {}


def test_a_client_that_waits_here_comes_first() -> None:
    rig = asked_in_vain()
    rig.request("GETJOB", "FROM", "q")
    other = rig.connect()

    rig.ask("ADDJOB", "q", "body", 0, "REPLICATE", 1, client=other)
    assert gifts(rig) == []
    assert len(rig.replies()) == 1
    rig.ask("ADDJOB", "q", "body", 0, "REPLICATE", 1, client=other)

    assert gifts(rig) == [(N2, 1)]


def test_several_are_answered_in_the_order_in_which_they_asked() -> None:
    rig = asked_in_vain(N3, N2, N3)

    add(rig)
    add(rig)

    assert gifts(rig) == [(N3, 1), (N2, 1)]


def test_who_asked_for_many_gets_half_of_what_a_batch_has_brought() -> None:
    rig = asked_in_vain(count=50)

    add_at_once(rig, 8)

    assert gifts(rig) == [(N2, 4)]


@pytest.mark.parametrize(
    ("wanted", "gaps", "worth"),
    [
        (1, (), 5000),
        (1, (4000,), 9000),
        (1, (4000, 8000), 17_000),
        (1, (4000, 8000, 16_000), 31_000),
        (1, (1000,), 5000),
        (1, (60_000,), 5000),
        (50, (), 2500),
        (50, (100, 200), 2500),
    ],
)
def test_an_ask_is_remembered_until_who_still_waits_asks_anew(
    wanted: int, gaps: tuple[int, ...], worth: int
) -> None:
    rig, late = asked_in_vain(count=wanted), asked_in_vain(count=wanted)
    for gap in gaps:
        for each in (rig, late):
            each.advance(gap)
            each.message(N2, NeedJobs(b"q", wanted))
    rig.advance(worth)
    late.advance(worth + 1)

    add(rig)
    add(late)

    assert (gifts(rig), gifts(late)) == ([(N2, 1)], [])


def test_a_node_whose_client_waits_is_remembered_all_the_time() -> None:
    asker = Rig(peers=2, config=CALM)
    asker.request("GETJOB", "FROM", "q")
    rig = Rig(peers=2, config=CALM)
    for second in range(200):
        for _ in [to for to, each in asker.sent() if to == N2 and isinstance(each, NeedJobs)]:
            rig.message(N2, NeedJobs(b"q", 1))
        rig.advance(1000)
        asker.advance(1000)
        ask = rig.node.asked[b"q"][N2]
        assert ask.one_until >= rig.node.mono, second


def test_of_who_asked_for_one_and_for_many_the_one_is_remembered_longer() -> None:
    rig = asked_in_vain()
    rig.message(N2, NeedJobs(b"q", 50))
    rig.advance(3000)

    add_at_once(rig, 8)

    assert gifts(rig) == [(N2, 1)]


def test_nothing_is_given_to_who_fails_is_forgotten_or_has_no_link() -> None:
    failing, forgotten, apart = asked_in_vain(), asked_in_vain(), asked_in_vain()
    failing.message(N3, Fail(N2))
    remove(forgotten.node, forgotten.node.cluster.nodes[N2])
    apart.lose_link(N2)

    for rig in (failing, forgotten, apart):
        add(rig)
        assert gifts(rig) == []
        assert len(rig.queue()) == 1


def test_a_job_at_most_once_waits_to_be_asked_for_and_so_do_those_behind_it() -> None:
    rig = asked_in_vain(count=50)
    for words in ((), (b"RETRY", b"0"), (), (), (), (), (), ()):
        feed_job(rig, *words)
    rig.take()

    assert gifts(rig) == [(N2, 1)]
    assert [job.retry for job in rig.queue().peek(1)] == [0]

    rig.message(N2, NeedJobs(b"q", 1))
    assert gifts(rig) == [(N2, 1)]


def test_behind_a_job_at_most_once_the_ask_is_kept() -> None:
    rig = asked_in_vain()
    rig.add("REPLICATE", 1, "RETRY", 0)
    add(rig)
    assert gifts(rig) == []

    rig.ask("GETJOB", "FROM", "q")
    rig.sent()
    add(rig)

    assert gifts(rig) == [(N2, 1)]


def test_jobs_behind_one_that_has_been_out_wait_too() -> None:
    rig = Rig(peers=2, config=CALM)
    out = rig.add("REPLICATE", 1, "RETRY", 100)
    rig.ask("GETJOB", "FROM", "q")
    rig.message(N2, NeedJobs(b"q", 50))
    feed_job(rig)
    rig.machine.request(rig.client, [b"NACK", out.id], rig.now)
    rig.take()

    assert gifts(rig) == []
    assert len(rig.queue()) == 2


def test_what_is_imported_is_not_given_on() -> None:
    rig = asked_in_vain(N2)

    give(rig, N3, JOB)

    assert gifts(rig) == []
    assert len(rig.queue()) == 1


def test_a_queue_that_is_paused_gives_when_it_is_so_no_longer() -> None:
    rig = asked_in_vain()
    rig.ask("PAUSE", "q", "out")
    add(rig)
    assert gifts(rig) == []

    rig.ask("PAUSE", "q", "none")

    assert gifts(rig) == [(N2, 1)]


def test_a_flush_takes_back_what_was_about_to_be_given() -> None:
    rig = asked_in_vain()
    feed_job(rig)

    rig.request("DEBUG", "FLUSHALL")

    assert gifts(rig) == []


def test_only_the_latest_queues_of_reasonable_names_are_remembered() -> None:
    rig = asked_in_vain()
    rig.message(N2, NeedJobs(b"x" * (federation.MAX_ASKED_NAME + 1), 1))
    assert list(rig.node.asked) == [b"q"]

    for number in range(federation.MAX_ASKED):
        rig.message(N3, NeedJobs(b"%d" % number, 1))

    assert len(rig.node.asked) == federation.MAX_ASKED
    assert b"q" not in rig.node.asked


def test_of_each_queue_only_some_askers_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(federation, "MAX_ASKERS", 1)
    rig = asked_in_vain(N2, N3)

    assert list(rig.node.asked[b"q"]) == [N2]


def test_whose_ask_is_stale_makes_room_and_has_lost_his_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = asked_in_vain(N2, N3)
    rig.advance(6000)
    rig.message(N2, NeedJobs(b"q", 1))
    assert list(rig.node.asked[b"q"]) == [N3, N2]

    monkeypatch.setattr(federation, "MAX_ASKERS", 1)
    rig.message(N4, NeedJobs(b"q", 1))
    assert list(rig.node.asked[b"q"]) == [N2]
    rig.advance(20_000)
    rig.message(N4, NeedJobs(b"q", 1))

    assert list(rig.node.asked[b"q"]) == [N4]


def test_a_job_that_comes_again_is_not_given_to_who_has_asked_before() -> None:
    rig = Rig(peers=2, config=CALM)
    job = rig.add("REPLICATE", 1, "RETRY", 1)
    rig.ask("GETJOB", "FROM", "q")
    rig.message(N2, NeedJobs(b"q", 1))
    rig.sent()

    rig.advance(1500)
    assert job.state == QUEUED
    assert gifts(rig) == []
    add(rig)

    assert gifts(rig) == []


def given_unasked(*words: str) -> Rig:
    rig = Rig(peers=2, config=CALM)
    rig.request("GETJOB", *words, "FROM", "q")
    copies = [copy_of(each) for each in ids(2)]
    rig.message(N2, YourJobs(tuple(copies), unasked=True))
    rig.sent()
    return rig


def test_what_has_come_too_late_for_whoever_asked_goes_to_the_next_who_asks() -> None:
    rig = given_unasked("NOHANG")

    rig.message(N3, NeedJobs(b"q", 1))

    assert gifts(rig) == [(N3, 1)]


def test_what_a_client_waits_for_is_kept_however_it_comes() -> None:
    rig = given_unasked()

    rig.message(N3, NeedJobs(b"q", 1))

    assert gifts(rig) == []


def test_what_is_given_unasked_says_so() -> None:
    rig = asked_in_vain()
    add(rig)

    assert [each.unasked for _, each in rig.sent() if isinstance(each, YourJobs)] == [True]
