import pytest

from tests.sim.checkers.trace import JOB, Trace, broken


def held(fsync: str = "everysec") -> Trace:
    """A job on three nodes that keep journals, confirmed by 0.01 s."""
    trace = Trace(config=(("appendonly", "yes"), ("appendfsync", fsync)))
    trace.add(0)
    return trace


def fallen(trace: Trace, time: float, node: str, cause: str = "kill") -> None:
    trace.row(time, "crash", node, cause=cause)


def back(trace: Trace, time: float, node: str, *, has_job: bool, acked: bool = False,
         how: str = "kept") -> None:  # fmt: skip
    trace.row(time, "start", node, cause="empty" if how == "damaged" else "loaded")
    if has_job:
        trace.row(time, "hold", node, job=JOB, queue="q", cause="loaded")
    if acked:
        trace.row(time, "acked", node, job=JOB, cause="loaded")
    trace.row(time, "loaded", node, cause=how)


def problems(trace: Trace) -> list[str]:
    return [v.detail for v in trace.verdict(end=60).violations if v.property == "S15"]


def test_what_was_confirmed_comes_back_after_a_kill() -> None:
    trace = held()
    fallen(trace, 1, "n1")
    back(trace, 2, "n1", has_job=True)

    assert broken(trace.verdict(end=2.5)) == []


def test_a_journal_that_has_lost_it_is_found_out() -> None:
    trace = held()
    fallen(trace, 1, "n1")
    back(trace, 2, "n1", has_job=False)

    [problem] = problems(trace)
    assert problem.startswith("n1 had promised it 0.9")
    assert problem.endswith("s before the crash (kill), and has not got it back")


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
    trace = held(fsync)
    fallen(trace, crash, "n1", "power")
    back(trace, crash + 1, "n1", has_job=False, how="torn")

    assert bool(problems(trace)) == found


@pytest.mark.parametrize(("paused", "found"), [(1.0, False), (3.0, True)])
def test_a_stopped_process_syncs_nothing(paused: float, *, found: bool) -> None:
    trace = held()
    trace.row(paused, "pause", "n1")
    fallen(trace, 8, "n1", "power")
    back(trace, 9, "n1", has_job=False)

    assert bool(problems(trace)) == found


@pytest.mark.parametrize(("added", "found"), [(0.5, True), (4.5, False)])
def test_a_start_syncs_what_was_written_before_a_kill(added: float, *, found: bool) -> None:
    trace = Trace(config=(("appendonly", "yes"), ("appendfsync", "everysec")))
    if added < 1:
        trace.add(added)
    fallen(trace, 1, "n1")
    back(trace, 4, "n1", has_job=added < 1)
    if added > 1:
        trace.add(added)
    fallen(trace, 5, "n1", "power")
    back(trace, 6, "n1", has_job=False, how="torn")

    assert bool(problems(trace)) == found


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [("kill", "power", False), ("kill", "kill", True), ("stop", "power", True)],
)
def test_power_that_fails_while_a_journal_is_loaded_takes_what_was_not_synced(
    first: str, second: str, *, found: bool
) -> None:
    """everything, seed 3906."""
    trace = held("no")
    fallen(trace, 1, "n1", first)
    trace.row(2, "start", "n1", cause="loaded")
    fallen(trace, 2.1, "n1", second)
    back(trace, 3, "n1", has_job=False)

    assert bool(problems(trace)) == found


def test_a_slow_process_syncs_all_the_same() -> None:
    trace = held()
    trace.row(1, "slow", "n1", detail="5")
    fallen(trace, 8, "n1", "power")
    back(trace, 9, "n1", has_job=False)

    assert problems(trace) != []


def test_a_disk_that_was_not_well_may_be_behind() -> None:
    trace = held()
    trace.row(1, "disk.stall", "n2", detail="yes")
    fallen(trace, 5, "n2", "power")
    back(trace, 6, "n2", has_job=False)

    assert problems(trace) == []


def test_a_damaged_journal_may_be_taken_away() -> None:
    trace = held("always")
    fallen(trace, 5, "n1")
    back(trace, 6, "n1", has_job=False, how="damaged")

    verdict = trace.verdict(end=6.5)
    assert verdict.marks["journal.damaged"] == verdict.marks["copy.destroyed"] == 1
    assert broken(verdict) == []


def test_what_was_not_promised_may_go() -> None:
    trace = held()
    trace.row(0.5, "hold", "n1", job="D-11111111-XXXXXXXXXXXXXXXXXXXXXXXX-05a1", cause="add")
    fallen(trace, 1, "n1")
    back(trace, 2, "n1", has_job=True)

    assert problems(trace) == []


@pytest.mark.parametrize("is_answered", [True, False])
@pytest.mark.parametrize(("wall", "found"), [(3_000_000, True), (3_601_000, False)])
def test_a_life_is_counted_by_the_clock_that_made_the_record(
    wall: int, *, found: bool, is_answered: bool
) -> None:
    """Creation stamps do not go back with the clock: they say two hours more. The options of a job
    are unknown if its producer had no reply (everything, seed 3555)."""
    trace = Trace(config=(("appendonly", "yes"), ("appendfsync", "always")))
    record = "replicate=1 retry=10000 delay=0 made=7200000000000000 body=1 left=3600000 due=1000"
    asked = "timeout=1000 replicate=1 retry=10 ttl=3600 body=b"
    trace.row(1, "add.invoke", "n1", queue="q", client="p1", ref=99, detail=asked)
    trace.row(1, "hold", "n1", job=JOB, cause="add", detail=record, wall=1000)
    if is_answered:
        trace.row(1.01, "add.ok", "n1", job=JOB, client="p1", ref=99)
    else:
        trace.send(1.01, "gotjob", "n1", "n2")
    fallen(trace, 5, "n1")
    trace.row(6, "start", "n1", cause="loaded")
    trace.row(6, "loaded", "n1", cause="kept", wall=wall)

    assert bool(problems(trace)) == found


@pytest.mark.parametrize(("wall", "found"), [(15_000, True), (16_500, False)])
def test_the_journal_of_a_replica_counts_what_was_left_when_it_came(
    wall: int, *, found: bool
) -> None:
    """n2 was sent the job when nine of its 25 s had passed (everything, seed 3555)."""
    trace = Trace(config=(("appendonly", "yes"), ("appendfsync", "always")))
    record = "replicate=2 retry=10000 delay=0 made=7200000000000000 body=1 left={} due=1000"
    asked = "timeout=1000 replicate=2 retry=10 ttl=25 body=b"
    trace.row(1, "add.invoke", "n1", queue="q", client="p1", ref=99, detail=asked)
    add = record.format(25_000)
    trace.row(1, "hold", "n1", job=JOB, cause="add", detail=add, wall=7_200_000)
    late = record.format(16_000)
    trace.row(10, "hold", "n2", job=JOB, cause="repljob", detail=late, wall=1000)
    trace.send(10.01, "gotjob", "n2", "n1")
    fallen(trace, 12, "n2")
    trace.row(13, "start", "n2", cause="loaded")
    trace.row(13, "loaded", "n2", cause="kept", wall=wall)

    assert bool(problems(trace)) == found


@pytest.mark.parametrize(("left", "found"), [(8000, False), (60_000, True)])
def test_a_dead_copy_comes_back_while_its_node_knew_it_to_be_kept(
    left: int, *, found: bool
) -> None:
    trace = held()
    for node in ("n1", "n2", "n3"):
        trace.row(5, "dead", node, job=JOB, cause="jobstate", detail=f"redriven=0 left={left}")
    fallen(trace, 6, "n1")
    trace.row(7, "redrive", "n2", job=JOB, cause="redriven", detail="redriven=1 left=60000")
    back(trace, 14, "n1", has_job=False)

    assert bool(problems(trace)) is found


@pytest.mark.parametrize(("ahead", "found"), [(0, True), (49_000, True), (50_000, False)])
def test_a_clock_that_is_set_forward_may_end_the_life_of_a_dead_copy(
    ahead: int, *, found: bool
) -> None:
    trace = held()
    detail = "redriven=0 left=60000"
    trace.row(5, "dead", "n1", job=JOB, cause="jobstate", detail=detail, wall=5000)
    fallen(trace, 6, "n1")
    trace.row(14, "start", "n1", cause="loaded")
    trace.row(14, "loaded", "n1", cause="kept", wall=14_000 + ahead)

    assert bool(problems(trace)) is found


@pytest.mark.parametrize(
    ("fsync", "how", "redriven", "is_told", "found"),
    [
        # A sync takes 5 ms: one that is under way, and with `always` the record's own.
        ("always", "power", 5.991, False, False),
        ("always", "power", 5.988, False, True),
        ("always", "kill", 5.996, False, False),
        ("always", "kill", 5.993, False, True),
        ("everysec", "kill", 5.993, False, True),
        ("always", "power", 5.991, True, True),
        ("always", "kill", 5.996, True, True),
        ("everysec", "power", 4.5, False, False),
        ("everysec", "power", 4.5, True, False),
        ("everysec", "power", 3.5, True, True),
    ],
)
def test_a_crash_may_take_a_redrive_that_is_not_written_and_of_which_nobody_was_told(
    fsync: str, how: str, redriven: float, *, is_told: bool, found: bool
) -> None:
    trace = held(fsync)
    if is_told:
        trace.send(redriven + 0.001, "jobstate", "n1", "n2")
    trace.row(3, "dead", "n1", job=JOB, cause="nack-dead", detail="redriven=0 left=604800000")
    trace.row(redriven, "redrive", "n1", job=JOB, cause="redriven", detail="redriven=1 left=60000")
    fallen(trace, 6, "n1", how)
    trace.row(7, "start", "n1", cause="loaded")
    trace.row(7, "hold", "n1", job=JOB, queue="q", cause="loaded")
    trace.row(7, "dead", "n1", job=JOB, cause="loaded", detail="redriven=0 left=604796000")
    trace.row(7, "loaded", "n1", cause="kept")

    assert [each for each in problems(trace) if "redriven" in each] == (
        ["n1 had it as (1, False) (redriven, dead), and now as (0, True)"] if found else []
    )


@pytest.mark.parametrize("is_full", [False, True])
def test_a_stop_writes_the_death_of_a_job_unless_the_disk_is_full(*, is_full: bool) -> None:
    """everything, seed 1543."""
    trace = held("always")
    if is_full:
        trace.row(2, "disk.full", "n1", detail="yes")
    trace.row(3, "dead", "n1", job=JOB, cause="retry", detail="redriven=0 left=604800000")
    fallen(trace, 6, "n1", "stop")
    trace.row(7, "start", "n1", cause="loaded")
    trace.row(7, "hold", "n1", job=JOB, queue="q", cause="loaded")
    trace.row(7, "loaded", "n1", cause="kept")

    assert any("redriven" in each for each in problems(trace)) != is_full


def test_an_ack_that_was_confirmed_is_not_forgotten() -> None:
    trace = held("always")
    trace.serve(1)
    trace.ack(2)
    fallen(trace, 3, "n1", "power")
    back(trace, 4, "n1", has_job=True)

    [problem] = problems(trace)
    assert problem.startswith("n1 had confirmed its acknowledgement ")


@pytest.mark.parametrize(("file", "found"), [("framed", True), ("disque", False)])
def test_a_file_in_the_original_s_format_forgets_what_is_acknowledged(
    file: str, *, found: bool
) -> None:
    config = (("appendonly", "yes"), ("appendfsync", "always"), ("aof-format", file))
    trace = Trace(config=config)
    trace.add(0)
    trace.serve(1)
    trace.ack(2)
    fallen(trace, 3, "n1")
    back(trace, 4, "n1", has_job=False)

    assert bool(problems(trace)) is found


def test_an_ack_that_comes_back_is_content() -> None:
    trace = held("always")
    trace.serve(1)
    trace.ack(2)
    fallen(trace, 3, "n1", "power")
    back(trace, 4, "n1", has_job=True, acked=True)

    assert problems(trace) == []


def test_no_message_tells_the_holders_that_a_copy_from_the_disk_lists() -> None:
    trace = held()
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    fallen(trace, 2, "n2")
    trace.ack(3, "n3", "c1")
    trace.setack(3.001, "n3", "n1")
    back(trace, 12, "n2", has_job=True)
    fallen(trace, 12.2, "n3")
    fallen(trace, 12.2, "n1")
    back(trace, 12.4, "n3", has_job=True, acked=True)
    back(trace, 12.4, "n1", has_job=True, acked=True)
    trace.requeue(12.8, "n2")
    trace.serve(12.8, "n2", "c2")

    assert trace.verdict().duplicates == {"D2": 1}


def test_what_was_told_before_a_crash_and_not_written_was_not_told() -> None:
    trace = held()
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    trace.ack(2)
    trace.setack(2.001, "n1", "n2")
    fallen(trace, 3, "n2", "power")
    fallen(trace, 4, "n1")
    back(trace, 5, "n2", has_job=True)
    trace.requeue(12, "n2")
    trace.serve(12, "n2", "c2")

    assert trace.verdict().duplicates == {"D2": 1}


def test_messages_may_wait_for_the_disk_for_a_moment() -> None:
    trace = held()
    trace.serve(9.9)
    trace.requeue(9.91, "n2")
    trace.serve(9.91, "n2", "c2")
    trace.send(9.92, "working", "n1", "n2")

    assert trace.verdict().duplicates == {"D5": 1}


def test_a_node_whose_disk_fails_learns_of_no_more_holders() -> None:
    trace = held()
    trace.row(1, "disk.error", "n1", detail="yes")
    trace.send(2, "repljob", "n2", "n1", detail=f"jobs={JOB} holders=n1,n2,n3,n4")
    trace.row(3, "disk.error", "n1", detail="no")
    trace.serve(30)
    trace.ack(31)
    trace.setack(32, "n1", "n2")
    trace.setack(32, "n1", "n3")
    trace.collect(33, "n1", "n2", "n3")

    assert "S2" not in broken(trace.verdict())


def test_what_was_told_before_a_crash_is_not_known_after_it_however_the_job_came_back() -> None:
    trace = held()
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    trace.ack(2)
    trace.send(2.001, "setack", "n1", "n2", detail="holders=3", lost=2.5)
    trace.setack(2.001, "n1", "n3")
    fallen(trace, 3, "n3", "power")
    back(trace, 4, "n3", has_job=False)
    fallen(trace, 4, "n1")
    trace.requeue(12, "n2")
    trace.row(12.1, "unqueue", "n2", job=JOB, cause="given")
    trace.row(12.1, "give", "n2", peer="n3", job=JOB, cause="given")
    trace.send(12.1, "yourjobs", "n2", "n3", detail=f"jobs={JOB} holders=n2,n3")
    trace.row(12.102, "hold", "n3", job=JOB, cause="yourjobs")
    trace.row(12.102, "queue", "n3", job=JOB, cause="import")
    trace.serve(12.2, "n3", "c2")

    assert trace.verdict().duplicates == {"D2": 1}


def test_a_node_that_cannot_write_an_ack_announces_it_to_no_other() -> None:
    trace = held()
    trace.serve(1)
    trace.working(1, "n1", "n2", "n3")
    trace.row(1.5, "disk.full", "n1", detail="yes")
    trace.row(2, "ack.invoke", "n1", job=JOB, client="c1", ref=70)
    trace.row(2.001, "acked", "n1", job=JOB, cause="ackjob")
    trace.row(2.002, "ack.refused", "n1", job=JOB, client="c1", ref=70, cause="MISCONF")
    trace.requeue(11.5, "n2")
    trace.row(11.6, "unqueue", "n2", job=JOB, cause="given")
    trace.row(11.6, "give", "n2", peer="n4", job=JOB, cause="given")
    trace.send(11.6, "yourjobs", "n2", "n4", detail=f"jobs={JOB} holders=n2,n4")
    trace.row(11.602, "hold", "n4", job=JOB, cause="yourjobs")
    trace.row(11.602, "queue", "n4", job=JOB, cause="import")
    trace.serve(11.7, "n4", "c2")
    trace.send(11.7, "working", "n4", "n1")
    trace.requeue(22, "n4")
    trace.serve(22, "n4", "c2")

    assert trace.verdict().duplicates == {"D2": 2}
