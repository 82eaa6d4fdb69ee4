import pytest

from tests.sim.checkers.trace import JOB, ONCE, Trace, broken


def problems(trace: Trace) -> list[str]:
    """What was complained of under S2."""
    return [v.detail for v in trace.verdict(end=10).violations if v.property == "S2"]


def held() -> Trace:
    trace = Trace()
    trace.add(0)
    return trace


def acknowledged() -> Trace:
    trace = held()
    trace.serve(1)
    trace.ack(2)
    return trace


def test_a_copy_goes_once_all_holders_have_confirmed() -> None:
    trace = acknowledged()
    trace.setack(2.001, "n1", "n2")
    trace.setack(2.001, "n1", "n3")
    trace.collect(2.1, "n1", "n2", "n3")

    assert problems(trace) == []


def test_it_does_not_go_before() -> None:
    trace = acknowledged()
    trace.setack(2.001, "n1", "n2")
    trace.send(2.001, "setack", "n1", "n3", lost=2.1, detail="holders=3")
    trace.collect(2.2, "n1", "n2", "n3")

    assert problems(trace) == ["n1 drops it (collected) though only 1 of 2 other holders confirmed"]


def test_a_node_that_has_asked_no_other_has_no_confirmations() -> None:
    trace = acknowledged()
    trace.collect(2.2, "n1", "n2", "n3")

    assert problems(trace) == ["n1 drops it (collected) though n2 n3 have not confirmed"]


@pytest.mark.parametrize("is_asked", [False, True])
def test_a_holder_may_answer_what_was_asked_before_a_crash(is_asked: bool) -> None:
    """everything, seed 5533: n3 has no copy, and receives SETACK after a long delay."""
    trace = Trace(config=(("appendonly", "yes"), ("appendfsync", "always")))
    trace.add(0, to=("n2", "n3"))
    trace.crash(0.5, "n3", back=0.6)
    trace.serve(1)
    trace.ack(2)
    if is_asked:
        trace.send(2.001, "setack", "n1", "n3", lag=2, detail="holders=3")
    trace.row(2.1, "crash", "n1", cause="kill")
    trace.row(3, "start", "n1", cause="loaded")
    trace.row(3, "hold", "n1", job=JOB, queue="q", cause="loaded")
    trace.row(3, "acked", "n1", job=JOB, cause="loaded")
    trace.row(3, "loaded", "n1", cause="kept")
    trace.setack(3.1, "n1", "n2")
    trace.send(4.1, "gotack", "n3", "n1", detail="unknown")
    trace.row(4.2, "drop", "n1", job=JOB, cause="collected")

    assert (problems(trace) == []) == is_asked


def test_the_only_holder_asks_nobody() -> None:
    trace = Trace()
    trace.add(0, to=(), options="replicate=1 retry=10 ttl=3600")
    trace.serve(1)
    trace.ack(2)
    trace.row(2.001, "drop", "n1", job=JOB, cause="collected")

    assert problems(trace) == []


def imported(*asked: str, listed: tuple[str, ...] = ()) -> Trace:
    """n4 imports the job with a list of holders, and these confirm the acknowledgement to n1."""
    trace = Trace(nodes=5)
    trace.add(0)
    holders = ",".join(("n1", "n2", "n3", "n4", *listed))
    trace.row(1, "unqueue", "n1", job=JOB, cause="given")
    trace.row(1, "give", "n1", job=JOB, peer="n4", cause="given")
    trace.send(1, "yourjobs", "n1", "n4", detail=f"jobs={JOB} holders={holders}")
    trace.row(1.002, "hold", "n4", job=JOB, cause="yourjobs")
    trace.ack(2)
    for node in asked:
        trace.setack(2.001, "n1", node)
    trace.collect(2.2, "n1", *asked)
    return trace


def test_an_importer_is_asked_too() -> None:
    trace = imported("n2", "n3")

    assert problems(trace) == ["n1 drops it (collected) though n4 have not confirmed"]


def test_a_holder_without_a_name_cannot_be_asked() -> None:
    assert problems(imported("n2", "n3", "n4", listed=("?",))) == []


def test_those_with_a_name_are_asked_all_the_same() -> None:
    trace = imported("n2", "n3", "n4", listed=("?", "n5"))

    assert problems(trace) == ["n1 drops it (collected) though n5 have not confirmed"]


def test_a_node_that_came_back_empty_asks_whom_its_new_copy_names() -> None:
    trace = Trace(nodes=4)
    trace.add(0)
    trace.crash(1, "n2", back=1.5)
    trace.send(2, "repljob", "n1", "n2", detail=f"jobs={JOB} holders=n1,n2")
    trace.row(2.002, "hold", "n2", job=JOB, cause="repljob")
    trace.ack(3, "n2")
    trace.send(3.001, "setack", "n2", "n1", detail="holders=2")
    trace.row(3.003, "acked", "n1", job=JOB, cause="setack")
    trace.send(3.003, "gotack", "n1", "n2", detail="known")
    trace.collect(3.1, "n2", "n1")

    assert problems(trace) == []


def test_holders_that_were_forgotten_are_not_waited_for() -> None:
    trace = acknowledged()
    trace.setack(2.001, "n1", "n2")
    trace.send(2.001, "setack", "n1", "n3", lost=2.1, detail="holders=3")
    trace.row(2.15, "forget", "n1", peer="n3")
    trace.collect(2.2, "n1", "n2")

    assert problems(trace) == []


def test_a_confirmation_may_come_from_a_node_that_has_lost_its_name_since() -> None:
    trace = acknowledged()
    trace.setack(2.001, "n1", "n2")
    trace.send(2.001, "setack", "n1", "n3", detail="holders=3")
    trace.row(2.003, "acked", "n3", job=JOB, cause="setack")
    trace.send(2.003, "gotack", "n3", "n1", lag=0.3, detail="known")
    trace.row(2.1, "wipe", "n3")
    trace.row(2.1, "start", "n3", cause="fresh")
    trace.row(2.303, "drop", "n1", job=JOB, cause="collected")

    assert problems(trace) == []


def confirmed_by_all_of_whom_one_is_wiped() -> Trace:
    trace = acknowledged()
    trace.setack(2.001, "n1", "n2")
    trace.setack(2.001, "n1", "n3")
    trace.row(2.1, "wipe", "n3")
    trace.row(2.1, "start", "n3", cause="fresh")
    trace.send(2.2, "repljob", "n2", "n3", detail=f"jobs={JOB} holders=n1,n2,n3")
    trace.row(2.202, "hold", "n3", job=JOB, cause="repljob")
    return trace


def confirms_again(trace: Trace, holders: int) -> None:
    trace.send(2.3, "setack", "n1", "n3", detail=f"holders={holders}")
    trace.row(2.302, "acked", "n3", job=JOB, cause="setack")
    trace.send(2.302, "gotack", "n3", "n1", detail="known")


def test_a_node_may_confirm_under_two_names() -> None:
    trace = confirmed_by_all_of_whom_one_is_wiped()
    confirms_again(trace, holders=4)
    trace.row(2.4, "drop", "n1", job=JOB, cause="collected")

    assert problems(trace) == []


def test_two_names_are_not_three() -> None:
    trace = confirmed_by_all_of_whom_one_is_wiped()
    confirms_again(trace, holders=5)
    trace.row(2.4, "drop", "n1", job=JOB, cause="collected")

    assert problems(trace) == ["n1 drops it (collected) though only 2 of 4 other holders confirmed"]


def wiped_node_collects(holders: int) -> list[str]:
    """n3 has lost its data and its name, gets the job back, and collects its acknowledgement."""
    trace = held()
    trace.row(1, "wipe", "n3")
    trace.row(1, "start", "n3", cause="fresh")
    trace.send(1.1, "repljob", "n1", "n3", detail=f"jobs={JOB} holders=n1,n2,n3,n3")
    trace.row(1.102, "hold", "n3", job=JOB, cause="repljob")
    trace.ack(2, "n3")
    for node in ("n1", "n2"):
        trace.send(2.001, "setack", "n3", node, detail=f"holders={holders}")
        trace.row(2.003, "acked", node, job=JOB, cause="setack")
        trace.send(2.003, "gotack", node, "n3", detail="known")
    trace.row(2.1, "drop", "n3", job=JOB, cause="collected")
    return problems(trace)


def test_a_wiped_node_may_list_its_own_former_name() -> None:
    assert wiped_node_collects(holders=4) == []


def test_its_two_names_are_not_three() -> None:
    assert wiped_node_collects(holders=5) == [
        "n3 drops it (collected) though only 2 of 4 other holders confirmed"
    ]


@pytest.mark.parametrize(("went", "due"), [(3_590.0, ["S2"]), (3_662.0, [])])
def test_a_dummy_ack_is_kept_for_as_long_as_the_job_may_live(went: float, due: list[str]) -> None:
    trace = Trace()
    trace.row(1, "hold", "n1", job=JOB, cause="dummy")
    trace.row(went, "drop", "n1", job=JOB, cause="expired")

    assert broken(trace.verdict()) == due


def test_a_dummy_ack_goes_once_everybody_was_asked_and_answered() -> None:
    trace = held()
    trace.row(1, "ack.invoke", "n1", job=ONCE, client="c1", ref=9)
    trace.row(1, "hold", "n1", job=ONCE, cause="dummy")
    for node in ("n2", "n3"):
        trace.send(1, "setack", "n1", node, ONCE, detail="holders=0")
    trace.send(1.002, "gotack", "n2", "n1", ONCE, detail="unknown")
    trace.row(1.1, "drop", "n1", job=ONCE, cause="collected")

    assert problems(trace) == ["n1 drops it (collected) though 1 node has not confirmed"]


@pytest.mark.parametrize(
    ("cause", "problem"),
    [
        ("collected", "it is not acknowledged here"),
        ("deljob", "no DELJOB has come"),
        ("fastack", ""),
        ("client-deljob", ""),
        ("expired", "it is 2.000 s old, and TTL is 3600 s"),
        ("moved", "it is to be delivered at least once"),
        ("handed-over", "it was not added here"),
        ("add-failed", "its producer has been told that it exists"),
        ("dummy-dismissed", "it is not a dummy ack"),
        ("evicted", "it is not acknowledged"),
    ],
)
def test_every_cause_of_a_drop_has_its_condition(cause: str, problem: str) -> None:
    trace = held()
    trace.row(2, "drop", "n2", job=JOB, cause=cause)

    expected = f"n2 drops it ({cause}) though {problem}"
    assert problems(trace) == ([expected] if problem else [])


def test_a_drop_for_no_known_reason_is_none() -> None:
    trace = held()
    trace.row(2, "drop", "n2", job=JOB, cause="mislaid")

    assert problems(trace) == ["n2 drops it for an unknown reason (mislaid)"]


def test_what_is_due_may_go() -> None:
    trace = Trace()
    trace.add(0, options="replicate=3 retry=1 ttl=2")
    for node in ("n1", "n2", "n3"):
        trace.row(2, "drop", node, job=JOB, cause="expired")

    assert problems(trace) == []


def test_a_leaving_node_may_hand_a_new_job_over() -> None:
    trace = Trace()
    trace.row(-0.5, "leave", "n1", detail="yes")
    trace.add(0, is_queued=False, options="replicate=2 retry=10 ttl=3600")
    trace.row(0.005, "drop", "n1", job=JOB, cause="handed-over")

    assert trace.verdict().ok


@pytest.mark.parametrize(
    ("node", "leaves", "due"),
    [
        ("n1", 1, []),
        ("n1", 4, ["n1 drops it (handed-over) though the node is not leaving"]),
        ("n2", 1, ["n1 drops it (handed-over) though the node is not leaving"]),
    ],
)
def test_so_may_one_that_got_the_orders_to_leave_and_to_stay_while_it_was_stopped(
    node: str, leaves: float, due: list[str]
) -> None:
    """It handles requests of clients between the two orders, once it goes on."""
    trace = Trace()
    trace.row(0.5, "pause", "n1")
    trace.row(leaves, "leave", node, detail="yes")
    trace.row(leaves + 1, "leave", node, detail="no")
    trace.row(3, "resume", "n1")
    trace.add(3, is_queued=False, options="replicate=2 retry=10 ttl=3600")
    trace.row(3.005, "drop", "n1", job=JOB, cause="handed-over")

    assert problems(trace) == due


def test_so_may_a_node_that_is_short_of_memory() -> None:
    trace = Trace(config=[("maxmemory", "80kb")])
    trace.add(0, is_queued=False, options="replicate=2 retry=10 ttl=3600")
    trace.row(0.005, "drop", "n1", job=JOB, cause="handed-over")

    assert trace.verdict().ok


def test_no_other_node_may() -> None:
    trace = Trace()
    trace.add(0, is_queued=False, options="replicate=2 retry=10 ttl=3600")
    trace.row(0.005, "drop", "n1", job=JOB, cause="handed-over")

    assert problems(trace) == ["n1 drops it (handed-over) though the node is not leaving"]


def test_a_job_that_was_cleaned_up_is_never_confirmed() -> None:
    trace = Trace()
    trace.add(0, is_queued=False)
    trace.row(0.005, "drop", "n1", job=JOB, cause="add-failed")

    assert "n1 confirms the job to its producer, and has cleaned it up" in problems(trace)


def test_a_failed_add_may_be_cleaned_up() -> None:
    trace = Trace()
    trace.add(0, is_queued=False, outcome="unknown")
    trace.row(0.005, "drop", "n1", job=JOB, cause="add-failed")
    for node in ("n2", "n3"):
        trace.send(0.005, "deljob", "n1", node)
        trace.row(0.007, "drop", node, job=JOB, cause="deljob")

    assert trace.verdict().ok


def test_nobody_sends_deljob_without_a_reason() -> None:
    trace = held()
    trace.send(2, "deljob", "n1", "n2", lag=None)

    assert problems(trace) == ["n1 sends DELJOB without a reason"]


def test_only_who_has_a_copy_vouches_for_one() -> None:
    trace = Trace(nodes=5)
    trace.add(0)
    for node in ("n4", "n5"):
        trace.row(1, "ack.invoke", node, job=JOB, client=f"c{node}", ref=9)
        trace.row(1, "hold", node, job=JOB, cause="dummy")
    trace.send(1, "setack", "n4", "n5", detail="holders=0")
    trace.send(1.002, "gotack", "n5", "n4", detail="known")

    assert problems(trace) == ["n5 confirms an ack for a copy that it does not have"]


def test_a_node_without_a_copy_passes_a_fastack_on() -> None:
    trace = Trace(nodes=4)
    trace.add(0)
    trace.serve(1)
    trace.row(2, "fastack.invoke", "n4", job=JOB, client="c1", ref=9)
    for node in ("n1", "n2", "n3"):
        trace.send(2, "deljob", "n4", node)
        trace.row(2.002, "drop", node, job=JOB, cause="deljob")
    trace.row(2.1, "fastack.ok", "n4", job=JOB, client="c1", ref=9, detail="0")

    assert trace.verdict().ok


@pytest.mark.parametrize("kind", ["queue", "drop"])
def test_a_node_can_only_use_what_it_holds(kind: str) -> None:
    trace = Trace(nodes=4)
    trace.add(0)
    trace.row(2, kind, "n4", job=JOB, cause="retry" if kind == "queue" else "expired")

    assert "S2" in broken(trace.verdict())


def test_a_node_does_not_queue_a_job_twice() -> None:
    trace = held()
    trace.requeue(2, "n1")

    assert problems(trace) == ["n1 queues it (retry) though it has it queued"]


def test_a_node_takes_no_job_that_it_has() -> None:
    trace = held()
    trace.copy(2, "n1", "n2")

    assert problems(trace) == ["n2 takes it (repljob) though it has it (repljob)"]


def test_where_a_live_node_was_killed_its_trace_may_have_a_hole() -> None:
    trace = Trace(is_live=True)
    trace.add(0)
    trace.crash(1, "n2", back=2)
    trace.requeue(3, "n2")

    assert problems(trace) == []


@pytest.mark.parametrize(("is_disk_faulty", "due"), [(True, []), (False, ["S2"])])
@pytest.mark.parametrize("is_batch", [True, False])
def test_a_node_in_trouble_with_its_disk_learns_of_no_more_holders(
    *, is_disk_faulty: bool, due: list[str], is_batch: bool
) -> None:
    trace = Trace(config=(("appendonly", "yes"),))
    trace.add(0, to=("n2",), options="replicate=2 retry=10 ttl=3600")
    if is_disk_faulty:
        trace.row(1, "disk.full", "n1", detail="yes")
        trace.row(1.5, "disk.full", "n1", detail="no")
    other = JOB.replace("A", "C")
    word = f"jobs={JOB} holders=n2,n3"
    if is_batch:
        word = f"jobs={other},{JOB} holders=n2;n2,n3"
    trace.send(2, "yourjobs", "n2", "n1", "" if is_batch else JOB, detail=word)
    trace.serve(3)
    trace.ack(4)
    trace.send(4.001, "setack", "n1", "n2", detail="holders=2")
    trace.row(4.003, "acked", "n2", job=JOB, cause="setack")
    trace.send(4.003, "gotack", "n2", "n1", detail="known")
    trace.collect(4.01, "n1", "n2")

    assert broken(trace.verdict()) == due


@pytest.mark.parametrize(("at", "due"), [(2.1, []), (2.099, ["n4"])])
def test_a_list_that_comes_in_the_batch_in_which_a_record_goes_may_come_after_it(
    at: float, due: list[str]
) -> None:
    trace = Trace(nodes=4)
    trace.add(0)
    trace.serve(1)
    trace.ack(2)
    for peer in ("n2", "n3"):
        trace.setack(2.001, "n1", peer)
    trace.send(2, "repljob", "n3", "n1", lag=at - 2, detail=f"jobs={JOB} holders=n1,n2,n3,n4")
    trace.collect(2.1, "n1", "n2", "n3")

    assert problems(trace) == [
        f"n1 drops it (collected) though {n} have not confirmed" for n in due
    ]
