import pytest

from disque_trio.sim.scenarios.plan import Latency, LinkPlan
from tests.sim.checkers.duplicated import acknowledged, again, behind_a_cut, leased
from tests.sim.checkers.trace import JOB, Trace, broken


@pytest.mark.parametrize("cause", ["nack", "enqueue"])
def test_d0_a_client_gave_it_back(cause: str) -> None:
    trace = leased()
    trace.row(2, f"{cause}.invoke", "n1", job=JOB, client="c1", ref=99)
    again(trace, 2.1, "n1", cause)

    assert trace.verdict().duplicates == {"D0": 1}


def test_d0_a_client_deleted_the_only_record_of_the_ack() -> None:
    trace = acknowledged()
    trace.row(6, "drop", "n1", job=JOB, cause="client-deljob")
    again(trace, 12)

    assert trace.verdict().duplicates == {"D0": 1}


def test_d1_the_worker_died() -> None:
    trace = leased()
    again(trace, 10.9)

    assert trace.verdict().duplicates == {"D1": 1}


def test_d1_the_ack_had_not_reached_any_node() -> None:
    trace = leased()
    trace.row(5, "pause", "n3")
    trace.row(5.1, "ack.invoke", "n3", job=JOB, client="c1", ref=99)
    again(trace, 10.9)

    assert trace.verdict().duplicates == {"D1": 1}


@pytest.mark.parametrize(("queued_at", "cause"), [(10.9, "D1"), (10.6, "DX")])
def test_a_stop_in_order_does_not_end_the_stay_in_the_queue(queued_at: float, cause: str) -> None:
    trace = leased(Trace(config=(("appendonly", "yes"),)))
    trace.requeue(queued_at, "n1")
    trace.row(11, "crash", "n1", cause="stop", detail="queues")
    trace.row(20, "start", "n1", cause="loaded")
    trace.row(20, "hold", "n1", job=JOB, cause="loaded")
    trace.row(20, "queue", "n1", job=JOB, cause="loaded")
    trace.row(20, "loaded", "n1", cause="kept")
    trace.serve(21, "n1", "c2")

    assert trace.verdict().duplicates == {cause: 1}


def test_d1_is_not_for_leases_that_go_on() -> None:
    trace = leased()
    again(trace, 10.6)

    verdict = trace.verdict()

    assert verdict.duplicates == {"DX": 1}
    assert "DX" in broken(verdict)


def test_d1_goes_back_over_the_giver() -> None:
    trace = leased()
    trace.requeue(10.9, "n3")
    trace.row(11, "unqueue", "n3", job=JOB, cause="given")
    trace.row(11, "give", "n3", job=JOB, peer="n2", cause="given")
    trace.send(11, "yourjobs", "n3", "n2", detail=f"jobs={JOB} holders=n1,n2,n3")
    again(trace, 11.002, "n2", "import")

    verdict = trace.verdict()

    assert verdict.duplicates == {"D1": 1}
    assert verdict.records[0].queued == 10_900_000


def test_d1_without_leases_counts_from_nothing() -> None:
    trace = leased(Trace(config=[("delivery-lease", "no")]))
    again(trace, 5)

    assert trace.verdict().duplicates == {"D1": 1}


def test_d2_a_cut_lay_between_ack_and_queuer() -> None:
    trace = leased()
    trace.cut(2, ["n1"], ["n2", "n3"], until=50)
    trace.ack(5)
    trace.send(5.001, "setack", "n1", "n2", lost=13)
    again(trace, 12)

    verdict = trace.verdict()

    assert verdict.duplicates == {"D2": 1}
    assert verdict.records[0].is_after_ack
    assert not verdict.records[0].is_dominated
    assert verdict.records[0].since_heal == 0


def test_d2_when_other_messages_found_a_way_round_the_cut() -> None:
    trace = leased()
    trace.cut(2, ["n1"], ["n2"], until=50)
    trace.ack(5)
    trace.send(5.001, "setack", "n1", "n2", lost=13)
    trace.setack(5.001, "n1", "n3")
    trace.send(6, "ping", "n3", "n2", job="")
    again(trace, 12)

    verdict = trace.verdict()

    assert verdict.duplicates == {"D2": 1}
    assert verdict.metrics.dominated == 1


@pytest.mark.parametrize(("is_cut", "cause"), [(True, "D2"), (False, "D5")])
def test_an_announced_ack_counts_though_its_sender_has_forgotten_it(
    *, is_cut: bool, cause: str
) -> None:
    trace = leased()
    if is_cut:
        trace.cut(4, ["n1"], ["n2"], until=12)
    trace.ack(5)
    trace.send(5.001, "setack", "n1", "n2", lag=8)
    trace.setack(5.001, "n1", "n3")
    trace.row(11, "drop", "n1", job=JOB, cause="evicted")
    again(trace, 12.5)

    assert trace.verdict().duplicates == {cause: 1}


def lost_ack() -> Trace:
    """A job of two nodes, with RETRY 300 s, whose acknowledgement was lost on its way to n2."""
    trace = Trace(nodes=2)
    trace.add(0, to=("n2",), options="replicate=2 retry=300 ttl=3600")
    trace.serve(1)
    trace.working(1, "n1", "n2")
    trace.ack(5)
    trace.send(5.001, "setack", "n1", "n2", lost=8)
    return trace


@pytest.mark.parametrize(
    ("stopped", "stops", "cause"),
    [
        ("n1", [(6, None)], "D2"),
        ("n1", [(6, 290)], "D2"),
        ("n2", [(6, 290)], "D2"),
        ("n1", [(6, 150), (160, 290)], "D2"),
        ("n1", [(6, 20)], "DX"),
        ("n1", [(150, 160)], "DX"),
        ("n1", [], "DX"),
    ],
)
def test_d2_a_lost_ack_counts_until_there_was_time_to_repeat_it(
    stopped: str, stops: list[tuple[float, float | None]], cause: str
) -> None:
    trace = lost_ack()
    for since, until in stops:
        trace.row(since, "pause", stopped)
        if until is not None:
            trace.row(until, "resume", stopped)
    again(trace, 301)

    assert trace.verdict().duplicates == {cause: 1}


def test_a_slow_node_has_time_to_repeat_an_ack() -> None:
    trace = lost_ack()
    trace.row(6, "slow", "n1", detail="19")
    again(trace, 301)

    assert trace.verdict().duplicates == {"DX": 1}


def test_d3a_the_ack_died_with_its_node() -> None:
    trace = acknowledged()
    trace.crash(5.5, "n1")
    again(trace, 12)

    assert trace.verdict().duplicates == {"D3a": 1}


@pytest.mark.parametrize(("back", "cause"), [(None, "D3a"), (6, "DX")])
def test_d3a_another_node_with_the_ack_is_down(back: float | None, cause: str) -> None:
    """everything, seed 6141: the journal of the node of the ACKJOB is damaged, and that of a node
    that is down is not."""
    trace = acknowledged(Trace(config=(("appendonly", "yes"),)), told=("n3",))
    trace.row(5.2, "crash", "n3", cause="kill")
    if back is not None:
        trace.row(back, "start", "n3", cause="loaded")
        trace.row(back, "hold", "n3", job=JOB, queue="q", cause="loaded")
        trace.row(back, "acked", "n3", job=JOB, cause="loaded")
        trace.row(back, "loaded", "n3", cause="kept")
    trace.crash(5.5, "n1", back=6)
    again(trace, 300)

    assert trace.verdict().duplicates == {cause: 1}


def test_d3b_the_ack_was_evicted() -> None:
    trace = acknowledged()
    trace.row(6, "drop", "n1", job=JOB, cause="evicted")
    again(trace, 12)

    assert trace.verdict().duplicates == {"D3b": 1}


@pytest.mark.parametrize(("told", "cause"), [(11, "D3b"), (9, "DX"), (5.5, "DX")])
def test_d3b_another_holder_has_learned_it_just_now(told: float, cause: str) -> None:
    """everything, seed 5648."""
    trace = leased()
    trace.ack(5)
    trace.send(5.001, "setack", "n1", "n2", lost=5.5)
    trace.setack(told, "n1", "n3")
    trace.row(told + 0.5, "drop", "n1", job=JOB, cause="evicted")
    again(trace, 12 if told > 6 else 300)

    assert trace.verdict().duplicates == {cause: 1}


def test_d3b_it_had_survived_the_cut_that_kept_it() -> None:
    trace = leased()
    trace.cut(4, ["n1"], ["n2", "n3"], until=6)
    trace.ack(5)
    trace.send(5.001, "setack", "n1", "n2", lost=5.5)
    trace.row(7, "drop", "n1", job=JOB, cause="evicted")
    again(trace, 40)

    assert trace.verdict().duplicates == {"D3b": 1}


def test_d3c_the_ack_was_collected_over_an_unlisted_copy() -> None:
    trace = acknowledged(told=("n3",))
    trace.send(5.001, "setack", "n1", "n3", detail="holders=2")
    trace.collect(5.1, "n1", "n3")
    again(trace, 12)

    assert trace.verdict().duplicates == {"D3c": 1}


@pytest.mark.parametrize(("listed_at", "cause"), [(2, "D3c"), (1, "DX")])
def test_d3c_a_kill_had_shortened_the_list_of_the_collector(listed_at: float, cause: str) -> None:
    """everything, seed 5: the record of the list was not written yet, and another node was down."""
    trace = Trace(config=(("appendonly", "yes"),))
    trace.add(0, to=())
    trace.send(0, "repljob", "n1", "n3", detail=f"jobs={JOB} holders=n3")
    trace.row(0.002, "hold", "n3", job=JOB, cause="repljob")
    trace.serve(0.1)
    trace.send(listed_at, "repljob", "n1", "n3", detail=f"jobs={JOB} holders=n1,n3 no-reply")
    trace.row(2.003, "crash", "n3", cause="kill")
    trace.row(3, "crash", "n1", cause="power")
    trace.row(4, "start", "n3", cause="loaded")
    trace.row(4, "hold", "n3", job=JOB, cause="loaded")
    trace.ack(5, "n3")
    trace.collect(5.1, "n3")
    trace.row(6, "start", "n1", cause="loaded")
    trace.row(6, "hold", "n1", job=JOB, cause="loaded")
    again(trace, 14, "n1")

    assert trace.verdict().duplicates == {cause: 1}


def test_d4_both_sides_queued_it() -> None:
    trace = behind_a_cut()
    again(trace, 10)

    assert trace.verdict().duplicates == {"D4": 1}


def test_d4_the_first_queue_still_had_it_after_the_heal() -> None:
    trace = Trace()
    trace.add(0)
    trace.cut(1, ["n1"], ["n2", "n3"], until=30)
    again(trace, 10)
    trace.send(10, "working", "n2", "n1", lost=18)
    trace.serve(60, "n1", "c1")

    verdict = trace.verdict()

    assert verdict.duplicates == {"D4": 1}
    assert verdict.records[0].since_heal == 30_000_000


def test_d4_a_node_told_of_the_queueing_need_not_know_of_the_lease() -> None:
    trace = Trace()
    trace.add(0)
    trace.send(3, "queued", "n1", "n2")
    trace.cut(4, ["n1"], ["n2"], until=30)
    trace.serve(13)
    again(trace, 13.5)

    assert trace.verdict().duplicates == {"D4": 1}


def test_d4_the_message_was_lost_without_a_cut() -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(5)
    trace.send(5, "working", "n1", "n2", lost=5.001)
    again(trace, 10)

    assert trace.verdict().duplicates == {"D4": 1}


def test_d5_the_message_was_under_way() -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(9.9)
    trace.send(9.9, "working", "n1", "n2", lag=0.3)
    trace.send(9.9, "working", "n1", "n3")
    again(trace, 10)

    assert trace.verdict().duplicates == {"D5": 1}


def test_d5_a_node_was_stopped() -> None:
    trace = Trace()
    trace.add(0)
    trace.row(4, "pause", "n2")
    trace.serve(5)
    trace.row(10, "resume", "n2")
    again(trace, 10)

    assert trace.verdict().duplicates == {"D5": 1}


def test_d5_the_ack_was_under_way() -> None:
    trace = leased()
    trace.ack(10.8)
    trace.send(10.801, "setack", "n1", "n2", lag=0.2)
    again(trace, 10.9)

    assert trace.verdict().duplicates == {"D5": 1}


def test_d5_an_ack_race_is_none_of_a_cut_that_had_healed() -> None:
    trace = leased()
    trace.cut(3, ["n1"], ["n2"], until=4)
    trace.ack(10.8)
    trace.send(10.801, "setack", "n1", "n2", lag=0.2)
    again(trace, 10.9)

    assert trace.verdict().duplicates == {"D5": 1}


def test_d2_if_the_cut_came_while_the_ack_was_under_way() -> None:
    trace = leased()
    trace.ack(10.8)
    trace.send(10.801, "setack", "n1", "n2", lag=None)
    trace.cut(10.85, ["n1"], ["n2"], until=14)
    again(trace, 10.9)

    assert trace.verdict().duplicates == {"D2": 1}


def test_d5_two_nodes_wake_within_a_message_of_each_other_after_a_restart() -> None:
    trace = Trace()
    trace.add(0, is_queued=False)
    trace.crash(2, "n1", back=3)
    trace.copy(4, "n3", "n1")
    for time, node, other in ((10, "n1", "n2"), (10.008, "n2", "n1")):
        trace.requeue(time, node)
        trace.serve(time, node, f"c{node}")
        trace.send(time, "queued", node, other, lag=0.02)
        trace.send(time, "working", node, other, lag=0.02)

    assert trace.verdict().duplicates == {"D5": 1}


def moved(*, told: float = 0.002, lost: float | None = None) -> Trace:
    """n3 has moved a job to n4, which serves it twice: the second time after an ack at n2, which
    is not told of n4's copy in time."""
    trace = Trace(nodes=4)
    trace.add(0, to=("n2", "n3"), is_queued=False)
    trace.requeue(10.9, "n3")
    trace.row(11, "unqueue", "n3", job=JOB, cause="given")
    trace.row(11, "give", "n3", job=JOB, peer="n4", cause="given")
    trace.send(11, "yourjobs", "n3", "n4", detail=f"jobs={JOB} holders=n1,n2,n3,n4")
    trace.row(11.002, "hold", "n4", job=JOB, cause="yourjobs")
    trace.requeue(11.002, "n4", "import")
    trace.requeue(11.001, "n1")
    trace.serve(11.001, "n1", "c1")
    trace.ack(11.003, "n2")
    trace.setack(11.005, "n2", "n1")
    for node in ("n1", "n2"):
        trace.send(11.002, "queued", "n4", node, lag=told, lost=lost)
    trace.serve(11.02, "n4", "c2")
    return trace


def test_d5_the_importers_message_about_its_copy_was_under_way() -> None:
    assert moved(told=0.1).verdict().duplicates == {"D5": 1}


def test_d2_the_importers_message_was_lost() -> None:
    assert moved(lost=11.003).verdict().duplicates == {"D2": 1}


def test_d5_the_link_was_given_up_for_slowness() -> None:
    trace = Trace(link=LinkPlan(latency=Latency(p_slow=0.1)))
    trace.add(0)
    trace.serve(5)
    trace.working(5, "n1", "n3")
    again(trace, 10)

    assert trace.verdict().duplicates == {"D5": 1}


def test_a_node_that_tells_no_other_explains_nothing() -> None:
    trace = Trace()
    trace.add(0)
    trace.serve(5)
    again(trace, 10)

    assert trace.verdict().duplicates == {"DX": 1}


@pytest.mark.parametrize(("is_cut", "cause"), [(True, "D2"), (False, "DX")])
def test_a_crash_explains_no_silence_before_it(*, is_cut: bool, cause: str) -> None:
    trace = Trace(config=(("appendonly", "yes"),))
    leased(trace)
    if is_cut:
        trace.cut(4.5, ["n1"], ["n2"], until=5.5)
    trace.ack(5)
    trace.setack(5.001, "n1", "n3")
    trace.crash(6, "n2")
    trace.row(7, "start", "n2", cause="loaded")
    trace.row(7, "hold", "n2", job=JOB, cause="loaded")
    trace.row(7, "loaded", "n2", cause="kept")
    again(trace, 20)

    assert trace.verdict().duplicates == {cause: 1}
