import pytest

from tests.sim.checkers.scenario import JOB, ONCE, Tale, broken


def told(tale: Tale) -> list[str]:
    """What was complained of under S2."""
    return [v.detail for v in tale.verdict(end=10).violations if v.property == "S2"]


def held() -> Tale:
    tale = Tale()
    tale.add(0)
    return tale


def acknowledged() -> Tale:
    tale = held()
    tale.serve(1)
    tale.ack(2)
    return tale


def test_a_copy_goes_once_all_holders_have_confirmed() -> None:
    tale = acknowledged()
    tale.told_of_ack(2.001, "n1", "n2")
    tale.told_of_ack(2.001, "n1", "n3")
    tale.collect(2.1, "n1", "n2", "n3")

    assert told(tale) == []


def test_it_does_not_go_before() -> None:
    tale = acknowledged()
    tale.told_of_ack(2.001, "n1", "n2")
    tale.tell(2.001, "setack", "n1", "n3", lost=2.1, detail="holders=3")
    tale.collect(2.2, "n1", "n2", "n3")

    assert told(tale) == ["n1 drops it (collected) though only 1 of 2 other holders have confirmed"]


def test_who_has_asked_nobody_has_no_confirmations() -> None:
    tale = acknowledged()
    tale.collect(2.2, "n1", "n2", "n3")

    assert told(tale) == ["n1 drops it (collected) though n2 n3 have not confirmed"]


def test_the_only_holder_asks_nobody() -> None:
    tale = Tale()
    tale.add(0, to=(), options="replicate=1 retry=10 ttl=3600")
    tale.serve(1)
    tale.ack(2)
    tale.say(2.001, "drop", "n1", job=JOB, cause="collected")

    assert told(tale) == []


def test_an_importer_is_asked_too() -> None:
    tale = Tale(nodes=4)
    tale.add(0)
    tale.say(1, "unqueue", "n1", job=JOB, cause="given")
    tale.say(1, "give", "n1", job=JOB, peer="n4", cause="given")
    tale.tell(1, "yourjobs", "n1", "n4", detail=f"jobs={JOB} holders=n1,n2,n3,n4")
    tale.say(1.002, "hold", "n4", job=JOB, cause="yourjobs")
    tale.ack(2)
    tale.told_of_ack(2.001, "n1", "n2")
    tale.told_of_ack(2.001, "n1", "n3")
    tale.collect(2.2, "n1", "n2", "n3")

    assert told(tale) == ["n1 drops it (collected) though n4 have not confirmed"]


def test_a_node_that_came_back_empty_asks_whom_its_new_copy_names() -> None:
    tale = Tale(nodes=4)
    tale.add(0)
    tale.crash(1, "n2", back=1.5)
    tale.tell(2, "repljob", "n1", "n2", detail=f"jobs={JOB} holders=n1,n2")
    tale.say(2.002, "hold", "n2", job=JOB, cause="repljob")
    tale.ack(3, "n2")
    tale.tell(3.001, "setack", "n2", "n1", detail="holders=2")
    tale.say(3.003, "acked", "n1", job=JOB, cause="setack")
    tale.tell(3.003, "gotack", "n1", "n2", detail="known")
    tale.collect(3.1, "n2", "n1")

    assert told(tale) == []


def test_holders_that_were_forgotten_are_not_waited_for() -> None:
    tale = acknowledged()
    tale.told_of_ack(2.001, "n1", "n2")
    tale.tell(2.001, "setack", "n1", "n3", lost=2.1, detail="holders=3")
    tale.say(2.15, "forget", "n1", peer="n3")
    tale.collect(2.2, "n1", "n2")

    assert told(tale) == []


def test_a_confirmation_may_come_from_a_node_that_has_lost_its_name_since() -> None:
    tale = acknowledged()
    tale.told_of_ack(2.001, "n1", "n2")
    tale.tell(2.001, "setack", "n1", "n3", detail="holders=3")
    tale.say(2.003, "acked", "n3", job=JOB, cause="setack")
    tale.tell(2.003, "gotack", "n3", "n1", lag=0.3, detail="known")
    tale.say(2.1, "wipe", "n3")
    tale.say(2.1, "start", "n3", cause="fresh")
    tale.say(2.303, "drop", "n1", job=JOB, cause="collected")

    assert told(tale) == []


def confirmed_by_all_of_whom_one_is_wiped() -> Tale:
    tale = acknowledged()
    tale.told_of_ack(2.001, "n1", "n2")
    tale.told_of_ack(2.001, "n1", "n3")
    tale.say(2.1, "wipe", "n3")
    tale.say(2.1, "start", "n3", cause="fresh")
    tale.tell(2.2, "repljob", "n2", "n3", detail=f"jobs={JOB} holders=n1,n2,n3")
    tale.say(2.202, "hold", "n3", job=JOB, cause="repljob")
    return tale


def confirms_again(tale: Tale, holders: int) -> None:
    tale.tell(2.3, "setack", "n1", "n3", detail=f"holders={holders}")
    tale.say(2.302, "acked", "n3", job=JOB, cause="setack")
    tale.tell(2.302, "gotack", "n3", "n1", detail="known")


def test_a_node_may_confirm_under_two_names() -> None:
    tale = confirmed_by_all_of_whom_one_is_wiped()
    confirms_again(tale, holders=4)
    tale.say(2.4, "drop", "n1", job=JOB, cause="collected")

    assert told(tale) == []


def test_two_names_are_not_three() -> None:
    tale = confirmed_by_all_of_whom_one_is_wiped()
    confirms_again(tale, holders=5)
    tale.say(2.4, "drop", "n1", job=JOB, cause="collected")

    assert told(tale) == ["n1 drops it (collected) though only 2 of 4 other holders have confirmed"]


@pytest.mark.parametrize(("went", "due"), [(3_590.0, ["S2"]), (3_662.0, [])])
def test_a_dummy_ack_is_kept_for_as_long_as_the_job_may_live(went: float, due: list[str]) -> None:
    tale = Tale()
    tale.say(1, "hold", "n1", job=JOB, cause="dummy")
    tale.say(went, "drop", "n1", job=JOB, cause="expired")

    assert broken(tale.verdict()) == due


def test_a_dummy_ack_goes_once_everybody_was_asked_and_answered() -> None:
    tale = held()
    tale.say(1, "ack.invoke", "n1", job=ONCE, client="c1", ref=9)
    tale.say(1, "hold", "n1", job=ONCE, cause="dummy")
    for node in ("n2", "n3"):
        tale.tell(1, "setack", "n1", node, ONCE, detail="holders=0")
    tale.tell(1.002, "gotack", "n2", "n1", ONCE, detail="unknown")
    tale.say(1.1, "drop", "n1", job=ONCE, cause="collected")

    assert told(tale) == ["n1 drops it (collected) though 1 nodes have not confirmed"]


@pytest.mark.parametrize(
    ("cause", "complaint"),
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
def test_every_cause_of_a_drop_has_its_condition(cause: str, complaint: str) -> None:
    tale = held()
    tale.say(2, "drop", "n2", job=JOB, cause=cause)

    expected = f"n2 drops it ({cause}) though {complaint}"
    assert told(tale) == ([expected] if complaint else [])


def test_a_drop_for_no_known_reason_is_none() -> None:
    tale = held()
    tale.say(2, "drop", "n2", job=JOB, cause="mislaid")

    assert told(tale) == ["n2 drops it for an unknown reason (mislaid)"]


def test_what_is_due_may_go() -> None:
    tale = Tale()
    tale.add(0, options="replicate=3 retry=1 ttl=2")
    for node in ("n1", "n2", "n3"):
        tale.say(2, "drop", node, job=JOB, cause="expired")

    assert told(tale) == []


def test_a_leaving_node_may_hand_a_new_job_over() -> None:
    tale = Tale()
    tale.say(-0.5, "leave", "n1", detail="yes")
    tale.add(0, is_queued=False, options="replicate=2 retry=10 ttl=3600")
    tale.say(0.005, "drop", "n1", job=JOB, cause="handed-over")

    assert tale.verdict().ok


def test_so_may_a_node_that_is_short_of_memory() -> None:
    tale = Tale(config=[("maxmemory", "80kb")])
    tale.add(0, is_queued=False, options="replicate=2 retry=10 ttl=3600")
    tale.say(0.005, "drop", "n1", job=JOB, cause="handed-over")

    assert tale.verdict().ok


def test_no_other_node_may() -> None:
    tale = Tale()
    tale.add(0, is_queued=False, options="replicate=2 retry=10 ttl=3600")
    tale.say(0.005, "drop", "n1", job=JOB, cause="handed-over")

    assert told(tale) == ["n1 drops it (handed-over) though the node is not leaving"]


def test_a_job_that_was_cleaned_up_is_never_confirmed() -> None:
    tale = Tale()
    tale.add(0, is_queued=False)
    tale.say(0.005, "drop", "n1", job=JOB, cause="add-failed")

    assert "n1 confirms the job to its producer, and has cleaned it up" in told(tale)


def test_a_failed_add_may_be_cleaned_up() -> None:
    tale = Tale()
    tale.add(0, is_queued=False, outcome="unknown")
    tale.say(0.005, "drop", "n1", job=JOB, cause="add-failed")
    for node in ("n2", "n3"):
        tale.tell(0.005, "deljob", "n1", node)
        tale.say(0.007, "drop", node, job=JOB, cause="deljob")

    assert tale.verdict().ok


def test_nobody_sends_deljob_without_a_reason() -> None:
    tale = held()
    tale.tell(2, "deljob", "n1", "n2", lag=None)

    assert told(tale) == ["n1 sends DELJOB without a reason"]


def test_only_who_has_a_copy_vouches_for_one() -> None:
    tale = Tale(nodes=5)
    tale.add(0)
    for node in ("n4", "n5"):
        tale.say(1, "ack.invoke", node, job=JOB, client=f"c{node}", ref=9)
        tale.say(1, "hold", node, job=JOB, cause="dummy")
    tale.tell(1, "setack", "n4", "n5", detail="holders=0")
    tale.tell(1.002, "gotack", "n5", "n4", detail="known")

    assert told(tale) == ["n5 confirms an ack for a copy that it does not have"]


def test_a_node_without_a_copy_passes_a_fastack_on() -> None:
    tale = Tale(nodes=4)
    tale.add(0)
    tale.serve(1)
    tale.say(2, "fastack.invoke", "n4", job=JOB, client="c1", ref=9)
    for node in ("n1", "n2", "n3"):
        tale.tell(2, "deljob", "n4", node)
        tale.say(2.002, "drop", node, job=JOB, cause="deljob")
    tale.say(2.1, "fastack.ok", "n4", job=JOB, client="c1", ref=9, detail="0")

    assert tale.verdict().ok


@pytest.mark.parametrize("kind", ["queue", "drop"])
def test_a_node_can_only_use_what_it_holds(kind: str) -> None:
    tale = Tale(nodes=4)
    tale.add(0)
    tale.say(2, kind, "n4", job=JOB, cause="retry" if kind == "queue" else "expired")

    assert "S2" in broken(tale.verdict())


def test_a_node_does_not_queue_a_job_twice() -> None:
    tale = held()
    tale.requeue(2, "n1")

    assert told(tale) == ["n1 queues it (retry) though it has it queued"]


def test_a_node_takes_no_job_that_it_has() -> None:
    tale = held()
    tale.copy(2, "n1", "n2")

    assert told(tale) == ["n2 takes it (repljob) though it has it (repljob)"]


def test_where_a_live_node_was_killed_its_trace_may_have_a_hole() -> None:
    tale = Tale(is_live=True)
    tale.add(0)
    tale.crash(1, "n2", back=2)
    tale.requeue(3, "n2")

    assert told(tale) == []


@pytest.mark.parametrize(("is_unwell", "due"), [(True, []), (False, ["S2"])])
@pytest.mark.parametrize("is_batch", [True, False])
def test_a_node_in_trouble_with_its_disk_learns_of_no_more_holders(
    *, is_unwell: bool, due: list[str], is_batch: bool
) -> None:
    tale = Tale(config=(("appendonly", "yes"),))
    tale.add(0, to=("n2",), options="replicate=2 retry=10 ttl=3600")
    if is_unwell:
        tale.say(1, "disk.full", "n1", detail="yes")
        tale.say(1.5, "disk.full", "n1", detail="no")
    other = JOB.replace("A", "C")
    word = f"jobs={JOB} holders=n2,n3"
    if is_batch:
        word = f"jobs={other},{JOB} holders=n2;n2,n3"
    tale.tell(2, "yourjobs", "n2", "n1", "" if is_batch else JOB, detail=word)
    tale.serve(3)
    tale.ack(4)
    tale.tell(4.001, "setack", "n1", "n2", detail="holders=2")
    tale.say(4.003, "acked", "n2", job=JOB, cause="setack")
    tale.tell(4.003, "gotack", "n2", "n1", detail="known")
    tale.collect(4.01, "n1", "n2")

    assert broken(tale.verdict()) == due
