"""S6: nobody who knows of the wait of a NACK queues the job before it is over."""

import pytest

from disque_trio.sim.scenarios.plan import LinkPlan
from tests.sim.checkers.trace import JOB, Trace, broken


def given_back(
    *told: str,
    lost: tuple[str, ...] = (),
    fsync: str = "",
    cut: float | None = None,
    config: tuple[tuple[str, str], ...] = (),
    link: LinkPlan | None = None,
) -> Trace:
    """At 2 s a worker gives the job back to n1 for ten seconds, of which these nodes hear."""
    disk = (("appendonly", "yes"), ("appendfsync", fsync)) if fsync else ()
    trace = Trace(config=(*disk, *config), link=link)
    trace.add(1)
    if cut is not None:
        trace.cut(cut, ["n1"], ["n3"], until=20)
    trace.serve(1.5, "n1")
    trace.row(2, "nack.invoke", "n1", job=JOB, client="c1", ref=90)
    trace.row(2, "postpone", "n1", job=JOB, cause="nack", detail="wait=10000")
    for peer in told:
        trace.send(2, "postponed", "n1", peer, detail="wait=10000 nacks=1 new")
        trace.row(2.01, "postpone", peer, job=JOB, cause="postponed", detail="wait=10000")
    for peer in lost:
        trace.send(2, "postponed", "n1", peer, detail="wait=10000 nacks=1 new", lost=2.005)
    trace.row(2.01, "nack.ok", "n1", job=JOB, client="c1", ref=90, detail="1")
    return trace


def queue(trace: Trace, time: float, node: str, cause: str = "backed-off") -> None:
    trace.row(time, "queue", node, job=JOB, queue="q", cause=cause)


def test_a_job_may_be_queued_when_the_wait_is_over() -> None:
    trace = given_back("n2", "n3")
    queue(trace, 12.01, "n1")

    assert "S6" not in broken(trace.verdict())


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_who_knows_of_the_wait_does_not_queue_it_before(node: str) -> None:
    trace = given_back("n2", "n3")
    queue(trace, 9, node)

    assert "S6" in broken(trace.verdict())


def test_a_client_may_end_the_wait() -> None:
    trace = given_back("n2", "n3")
    queue(trace, 5, "n2", "enqueue")
    queue(trace, 9, "n1")

    assert "S6" not in broken(trace.verdict())


def test_a_holder_is_told() -> None:
    trace = given_back("n2")
    queue(trace, 9, "n3", "retry")

    assert "S6" in broken(trace.verdict())


def test_what_was_lost_is_not_known() -> None:
    trace = given_back("n2", lost=("n3",))
    queue(trace, 9, "n3", "retry")

    assert "S6" not in broken(trace.verdict())


@pytest.mark.parametrize("is_answered", [True, False])
def test_who_knows_answers_a_warning(is_answered: bool) -> None:
    trace = given_back("n2", lost=("n3",))
    trace.send(5, "willqueue", "n3", "n2")
    if is_answered:
        trace.send(5.01, "postponed", "n2", "n3", detail="wait=7000 nacks=1", lost=5.02)
    queue(trace, 9, "n3", "retry")

    assert ("S6" in broken(trace.verdict())) != is_answered


@pytest.mark.parametrize(("cut", "is_excused"), [(1.9, True), (4, False)])
def test_a_cut_excuses_that_a_holder_is_not_told_only_if_it_was_there(
    cut: float, is_excused: bool
) -> None:
    trace = given_back("n2", cut=cut)
    queue(trace, 9, "n3", "retry")

    assert ("S6" not in broken(trace.verdict())) == is_excused


@pytest.mark.parametrize(("fsync", "is_excused"), [("everysec", True), ("always", False)])
def test_a_node_that_starts_again_may_have_lost_only_what_was_not_on_its_disk(
    fsync: str, is_excused: bool
) -> None:
    trace = given_back("n2", "n3", fsync=fsync)
    trace.row(2.5, "crash", "n1", cause="power")
    trace.row(5, "start", "n1", cause="loaded")
    trace.row(5, "hold", "n1", job=JOB, queue="q", cause="loaded")
    trace.row(5, "loaded", "n1", cause="torn")
    queue(trace, 9, "n1")

    assert ("S6" not in broken(trace.verdict())) == is_excused


@pytest.mark.parametrize(("flipped", "is_excused"), [("n1", True), ("n2", False)])
def test_or_what_was_lost_with_a_changed_bit(flipped: str, *, is_excused: bool) -> None:
    trace = given_back("n2", "n3", fsync="always")
    trace.row(2.2, "disk.flip", flipped)
    trace.row(2.5, "crash", "n1", cause="power")
    trace.row(5, "start", "n1", cause="loaded")
    trace.row(5, "hold", "n1", job=JOB, queue="q", cause="loaded")
    trace.row(5, "loaded", "n1", cause="torn")
    queue(trace, 9, "n1")

    assert ("S6" not in broken(trace.verdict())) == is_excused


def test_a_job_that_dies_and_is_redriven_waits_no_more() -> None:
    trace = given_back("n2", "n3")
    trace.row(4, "dead", "n1", job=JOB, cause="nack-dead", detail="redriven=0 left=604800000")
    trace.row(5, "redrive.invoke", "n1", queue="q", client="a1", ref=9)
    trace.row(5, "redrive", "n1", job=JOB, cause="redriven", detail="redriven=1 left=3600000")
    queue(trace, 9, "n1", "retry")

    assert "S6" not in broken(trace.verdict())


@pytest.mark.parametrize("cause", ["kill", "power"])
def test_what_was_written_comes_back_after_a_kill_however_seldom_the_disk_is_synced(
    cause: str,
) -> None:
    trace = given_back("n2", "n3", fsync="everysec")
    trace.row(2.5, "crash", "n1", cause=cause)
    trace.row(5, "start", "n1", cause="loaded")
    trace.row(5, "hold", "n1", job=JOB, queue="q", cause="loaded")
    trace.row(5, "loaded", "n1", cause="torn")
    queue(trace, 9, "n1")

    assert ("S6" in broken(trace.verdict())) == (cause == "kill")


def test_the_original_s_file_has_no_place_for_a_wait() -> None:
    trace = given_back("n2", "n3", fsync="always", config=(("aof-format", "disque"),))
    trace.row(2.5, "crash", "n1", cause="kill")
    trace.row(5, "start", "n1", cause="loaded")
    trace.row(5, "hold", "n1", job=JOB, queue="q", cause="loaded")
    trace.row(5, "loaded", "n1", cause="torn")
    queue(trace, 9, "n1")

    assert "S6" not in broken(trace.verdict())


@pytest.mark.parametrize(("node", "is_excused"), [("n2", True), ("n1", False), ("n3", False)])
def test_a_worker_that_goes_on_ends_the_wait_at_its_node_only(node: str, is_excused: bool) -> None:
    trace = given_back("n2", "n3")
    trace.row(3, "working.invoke", "n2", job=JOB, client="c2", ref=91)
    trace.row(3.01, "working.ok", "n2", job=JOB, client="c2", ref=91, detail="10")
    queue(trace, 11.9, node, "retry")

    assert ("S6" not in broken(trace.verdict())) == is_excused


@pytest.mark.parametrize("is_stopped", [True, False])
def test_so_may_one_without_an_answer_whose_node_was_stopped(*, is_stopped: bool) -> None:
    """workers-engine, seeds 400319 and 400405: it did WORKING after the NACK that came later."""
    trace = given_back("n2", "n3")
    trace.row(1.6, "working.invoke", "n1", job=JOB, client="c1", ref=91)
    if is_stopped:
        trace.row(1.7, "pause", "n1")
        trace.row(1.9, "resume", "n1")
    trace.row(1.8, "working.unknown", "n1", job=JOB, client="c1", ref=91, cause="timeout")
    queue(trace, 11.9, "n1", "retry")

    assert ("S6" not in broken(trace.verdict())) == is_stopped


@pytest.mark.parametrize(
    ("sender", "detail", "is_excused"),
    [
        ("n3", "nack", True),
        ("n3", "by-client", True),
        ("n3", "", False),
        ("n3", "redelivery", False),
        ("n1", "nack", False),
    ],
)
def test_an_older_return_without_a_delay_may_come_later_and_end_the_wait(
    sender: str, detail: str, *, is_excused: bool
) -> None:
    """everything, seed 3472: RELEASE."""
    trace = given_back("n2")
    trace.send(1.9, "queued", sender, "n2", lag=1, detail=detail)
    queue(trace, 11, "n2", "retry")

    assert ("S6" not in broken(trace.verdict())) == is_excused


@pytest.mark.parametrize(("sent", "is_excused"), [(1.9, True), (2.5, False)])
def test_so_may_one_of_the_same_node_on_a_link_that_keeps_no_order(
    sent: float, *, is_excused: bool
) -> None:
    trace = given_back("n2", link=LinkPlan(model="hostile"))
    trace.send(sent, "queued", "n1", "n2", lag=1, detail="nack")
    queue(trace, 11, "n2", "retry")

    assert ("S6" not in broken(trace.verdict())) == is_excused


def counted(*, sent: float = 2, heard: float = 3, paused: tuple[float, float] | None) -> Trace:
    """n2 knows of the wait from n3, when QUEUED and WORKING of n1 come, or n1 was stopped before
    and may not know what n2 understands."""
    trace = Trace(nodes=3)
    trace.add(0, options="replicate=3 retry=2 ttl=3600")
    if paused:
        trace.row(paused[0], "pause", "n1")
        trace.row(paused[1], "resume", "n1")
    trace.serve(1.5, "n1")
    trace.row(2, "nack.invoke", "n1", job=JOB, client="c1", ref=90)
    trace.row(2, "postpone", "n1", job=JOB, cause="nack", detail="wait=10000")
    trace.send(2, "postponed", "n1", "n3", detail="wait=10000 nacks=1 new")
    for name, detail in (("queued", "nack"), ("working", "")):
        trace.send(sent, name, "n1", "n2", detail=detail, lag=heard - sent)
    trace.row(2.01, "postpone", "n3", job=JOB, cause="postponed", detail="wait=10000")
    trace.row(2.01, "nack.ok", "n1", job=JOB, client="c1", ref=90, detail="1")
    return trace


STOP = (1.0, 1.4)


@pytest.mark.parametrize(
    ("paused", "heard", "time", "is_excused"),
    [
        (STOP, 3, 5.1, True),
        (STOP, 6, 5.1, True),
        (STOP, 3, 4.2, False),
        (None, 3, 5.1, False),
    ],
)
def test_a_node_that_was_told_as_an_original_may_queue_the_job_after_its_period(
    paused: tuple[float, float] | None, heard: float, time: float, is_excused: bool
) -> None:
    trace = counted(heard=heard, paused=paused)
    queue(trace, time, "n2", "retry")

    assert ("S6" not in broken(trace.verdict())) == is_excused


@pytest.mark.parametrize(("heard", "is_excused"), [(3, True), (2.5, False)])
def test_word_of_the_same_nack_that_comes_later_may_end_the_wait_at_a_node(
    heard: float, is_excused: bool
) -> None:
    trace = counted(heard=heard, paused=STOP)
    trace.send(2.8, "postponed", "n3", "n2", detail="wait=9200 nacks=1")
    trace.row(2.9, "postpone", "n2", job=JOB, cause="postponed", detail="wait=9200")
    queue(trace, 5.1, "n2", "retry")

    assert ("S6" not in broken(trace.verdict())) == is_excused


@pytest.mark.parametrize(("stop", "is_excused"), [((1.6, 1.9), True), ((2.4, 2.6), False)])
def test_a_stop_that_ends_links_excuses_that_a_holder_is_not_told(
    stop: tuple[float, float], is_excused: bool
) -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(1.5, "n1")
    if stop[1] < 2:
        trace.row(stop[0], "pause", "n1")
        trace.row(stop[1], "resume", "n1")
    trace.row(2, "nack.invoke", "n1", job=JOB, client="c1", ref=90)
    trace.row(2, "postpone", "n1", job=JOB, cause="nack", detail="wait=10000")
    trace.row(2.01, "nack.ok", "n1", job=JOB, client="c1", ref=90, detail="1")
    if stop[0] > 2:
        trace.row(stop[0], "pause", "n1")
        trace.row(stop[1], "resume", "n1")
    queue(trace, 9, "n3", "retry")

    assert ("S6" not in broken(trace.verdict())) == is_excused


@pytest.mark.parametrize(("until", "is_excused"), [(4.8, True), (2.5, False)])
def test_a_warning_needs_no_answer_while_there_may_be_no_link(
    until: float, is_excused: bool
) -> None:
    trace = given_back(lost=("n2", "n3"))
    trace.row(2.2, "pause", "n1")
    trace.row(until, "resume", "n1")
    trace.send(until + 0.1 if is_excused else 8, "willqueue", "n3", "n1")
    queue(trace, 9, "n3", "retry")

    assert ("S6" not in broken(trace.verdict())) == is_excused


@pytest.mark.parametrize(("told", "is_excused"), [(4, True), (3.9, False)])
def test_one_batch_may_complete_an_addjob_and_then_tell_of_the_wait(
    told: float, is_excused: bool
) -> None:
    trace = Trace()
    trace.add(1, is_queued=False, outcome="unknown")
    trace.requeue(1.5, "n3", "retry")
    trace.serve(1.6, "n3")
    trace.row(2, "nack.invoke", "n3", job=JOB, client="c1", ref=90)
    trace.row(2, "postpone", "n3", job=JOB, cause="nack", detail="wait=10000")
    trace.send(2, "postponed", "n3", "n1", detail="wait=10000 nacks=1 new", lag=told - 2)
    queue(trace, 4, "n1", "first")

    assert ("S6" not in broken(trace.verdict())) == is_excused


@pytest.mark.parametrize("verb", ["nack", "release"])
@pytest.mark.parametrize(
    ("told", "time", "finds"), [("n2", 5, True), ("n3", 5, False), ("n2", 12.5, False)]
)
def test_who_gives_back_a_job_that_waits_changes_nothing(
    verb: str, told: str, time: float, *, finds: bool
) -> None:
    trace = given_back(told)
    queue(trace, time, "n2", verb)

    assert ("S6" in broken(trace.verdict())) == finds
