import pytest

from tests.sim.checkers.scenario import JOB, Tale, broken


def held(fsync: str = "everysec") -> Tale:
    """A job on three nodes that keep journals, confirmed by 0.01 s."""
    tale = Tale(config=(("appendonly", "yes"), ("appendfsync", fsync)))
    tale.add(0)
    return tale


def fallen(tale: Tale, time: float, node: str, cause: str = "kill") -> None:
    tale.say(time, "crash", node, cause=cause)


def back(tale: Tale, time: float, node: str, *, has_job: bool, acked: bool = False,
         how: str = "kept") -> None:  # fmt: skip
    tale.say(time, "start", node, cause="empty" if how == "damaged" else "loaded")
    if has_job:
        tale.say(time, "hold", node, job=JOB, queue="q", cause="loaded")
    if acked:
        tale.say(time, "acked", node, job=JOB, cause="loaded")
    tale.say(time, "loaded", node, cause=how)


def complaints(tale: Tale) -> list[str]:
    return [v.detail for v in tale.verdict(end=60).violations if v.property == "S15"]


def test_what_was_confirmed_comes_back_after_a_kill() -> None:
    tale = held()
    fallen(tale, 1, "n1")
    back(tale, 2, "n1", has_job=True)

    assert broken(tale.verdict(end=2.5)) == []


def test_a_journal_that_has_lost_it_is_found_out() -> None:
    tale = held()
    fallen(tale, 1, "n1")
    back(tale, 2, "n1", has_job=False)

    [complaint] = complaints(tale)
    assert complaint.startswith("n1 had promised it 0.9")
    assert complaint.endswith("s before the crash (kill), and has not got it back")


@pytest.mark.parametrize(
    ("fsync", "crash", "found"),
    [
        ("always", 1.0, True),
        ("everysec", 1.0, False),  # within two seconds of the promise
        ("everysec", 5.0, True),
        ("no", 5.0, False),
    ],
)
def test_after_a_power_loss_it_depends_on_how_the_journal_is_synced(
    fsync: str, crash: float, *, found: bool
) -> None:
    tale = held(fsync)
    fallen(tale, crash, "n1", "power")
    back(tale, crash + 1, "n1", has_job=False, how="torn")

    assert bool(complaints(tale)) == found


def test_a_disk_that_was_not_well_may_be_behind() -> None:
    tale = held()
    tale.say(1, "disk.stall", "n2", detail="yes")
    fallen(tale, 5, "n2", "power")
    back(tale, 6, "n2", has_job=False)

    assert complaints(tale) == []


def test_a_damaged_journal_may_be_taken_away() -> None:
    tale = held("always")
    fallen(tale, 5, "n1")
    back(tale, 6, "n1", has_job=False, how="damaged")

    verdict = tale.verdict(end=6.5)
    assert verdict.marks["journal.damaged"] == verdict.marks["copy.destroyed"] == 1
    assert broken(verdict) == []


def test_what_was_not_promised_may_go() -> None:
    tale = held()
    tale.say(0.5, "hold", "n1", job="D-11111111-XXXXXXXXXXXXXXXXXXXXXXXX-05a1", cause="add")
    fallen(tale, 1, "n1")
    back(tale, 2, "n1", has_job=True)

    assert complaints(tale) == []


def test_an_ack_that_was_confirmed_is_not_forgotten() -> None:
    tale = held("always")
    tale.serve(1)
    tale.ack(2)
    fallen(tale, 3, "n1", "power")
    back(tale, 4, "n1", has_job=True)

    [complaint] = complaints(tale)
    assert complaint.startswith("n1 had confirmed its acknowledgement ")


def test_an_ack_that_comes_back_is_content() -> None:
    tale = held("always")
    tale.serve(1)
    tale.ack(2)
    fallen(tale, 3, "n1", "power")
    back(tale, 4, "n1", has_job=True, acked=True)

    assert complaints(tale) == []


def test_whom_a_copy_from_the_disk_lists_no_message_has_told() -> None:
    tale = held()
    tale.serve(1)
    tale.working(1, "n1", "n2", "n3")
    fallen(tale, 2, "n2")
    tale.ack(3, "n3", "c1")
    tale.told_of_ack(3.001, "n3", "n1")
    back(tale, 12, "n2", has_job=True)
    fallen(tale, 12.2, "n3")
    fallen(tale, 12.2, "n1")
    back(tale, 12.4, "n3", has_job=True, acked=True)
    back(tale, 12.4, "n1", has_job=True, acked=True)
    tale.requeue(12.8, "n2")
    tale.serve(12.8, "n2", "c2")

    assert tale.verdict().duplicates == {"D2": 1}


def test_what_was_told_before_a_crash_and_not_written_was_not_told() -> None:
    tale = held()
    tale.serve(1)
    tale.working(1, "n1", "n2", "n3")
    tale.ack(2)
    tale.told_of_ack(2.001, "n1", "n2")
    fallen(tale, 3, "n2", "power")
    fallen(tale, 4, "n1")
    back(tale, 5, "n2", has_job=True)
    tale.requeue(12, "n2")
    tale.serve(12, "n2", "c2")

    assert tale.verdict().duplicates == {"D2": 1}


def test_news_may_wait_for_the_disk_for_a_moment() -> None:
    tale = held()
    tale.serve(9.9)
    tale.requeue(9.91, "n2")
    tale.serve(9.91, "n2", "c2")
    tale.tell(9.92, "working", "n1", "n2")

    assert tale.verdict().duplicates == {"D5": 1}


def test_a_node_whose_disk_fails_learns_of_no_more_holders() -> None:
    tale = held()
    tale.say(1, "disk.error", "n1", detail="yes")
    tale.tell(2, "repljob", "n2", "n1", detail=f"jobs={JOB} holders=n1,n2,n3,n4")
    tale.say(3, "disk.error", "n1", detail="no")
    tale.serve(30)
    tale.ack(31)
    tale.told_of_ack(32, "n1", "n2")
    tale.told_of_ack(32, "n1", "n3")
    tale.collect(33, "n1", "n2", "n3")

    assert "S2" not in broken(tale.verdict())


def test_what_was_told_before_a_crash_is_not_known_after_it_however_the_job_came_back() -> None:
    tale = held()
    tale.serve(1)
    tale.working(1, "n1", "n2", "n3")
    tale.ack(2)
    tale.tell(2.001, "setack", "n1", "n2", detail="holders=3", lost=2.5)
    tale.told_of_ack(2.001, "n1", "n3")
    fallen(tale, 3, "n3", "power")
    back(tale, 4, "n3", has_job=False)
    fallen(tale, 4, "n1")
    tale.requeue(12, "n2")
    tale.say(12.1, "unqueue", "n2", job=JOB, cause="given")
    tale.say(12.1, "give", "n2", peer="n3", job=JOB, cause="given")
    tale.tell(12.1, "yourjobs", "n2", "n3", detail=f"jobs={JOB} holders=n2,n3")
    tale.say(12.102, "hold", "n3", job=JOB, cause="yourjobs")
    tale.say(12.102, "queue", "n3", job=JOB, cause="import")
    tale.serve(12.2, "n3", "c2")

    assert tale.verdict().duplicates == {"D2": 1}


def test_a_node_that_cannot_write_down_an_ack_tells_nobody_of_it() -> None:
    tale = held()
    tale.serve(1)
    tale.working(1, "n1", "n2", "n3")
    tale.say(1.5, "disk.full", "n1", detail="yes")
    tale.say(2, "ack.invoke", "n1", job=JOB, client="c1", ref=70)
    tale.say(2.001, "acked", "n1", job=JOB, cause="ackjob")
    tale.say(2.002, "ack.refused", "n1", job=JOB, client="c1", ref=70, cause="MISCONF")
    tale.requeue(11.5, "n2")
    tale.say(11.6, "unqueue", "n2", job=JOB, cause="given")
    tale.say(11.6, "give", "n2", peer="n4", job=JOB, cause="given")
    tale.tell(11.6, "yourjobs", "n2", "n4", detail=f"jobs={JOB} holders=n2,n4")
    tale.say(11.602, "hold", "n4", job=JOB, cause="yourjobs")
    tale.say(11.602, "queue", "n4", job=JOB, cause="import")
    tale.serve(11.7, "n4", "c2")
    tale.tell(11.7, "working", "n4", "n1")
    tale.requeue(22, "n4")
    tale.serve(22, "n4", "c2")

    assert tale.verdict().duplicates == {"D2": 2}
