import pytest

from disque_trio.statemachine import federation
from disque_trio.statemachine.base import QUEUED, NodeId
from disque_trio.statemachine.messages import Fail, NeedJobs, YourJobs
from disque_trio.statemachine.nodetable import remove
from tests.rig import CALM, JOB, N2, N3, Rig
from tests.statemachine.federating import give


def asked_in_vain(*who: NodeId, count: int = 1) -> Rig:
    """A node without jobs that has been asked for some."""
    rig = Rig(peers=2, config=CALM)
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


def feed_job(rig: Rig) -> None:
    """Add a job, in a batch that is not over."""
    rig.machine.request(rig.client, [b"ADDJOB", b"q", b"", b"0", b"REPLICATE", b"1"], rig.now)


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


@pytest.mark.parametrize(("wanted", "worth"), [(1, 31_000), (50, 2500)])
def test_an_ask_is_remembered_until_it_is_asked_anew(wanted: int, worth: int) -> None:
    rig, late = asked_in_vain(count=wanted), asked_in_vain(count=wanted)
    rig.advance(worth)
    late.advance(worth + 1)

    add(rig)
    add(late)

    assert (gifts(rig), gifts(late)) == ([(N2, 1)], [])


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
