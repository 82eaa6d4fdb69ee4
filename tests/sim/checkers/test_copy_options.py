import attrs
import pytest

from disque_trio.sim.checkers.obligations import read_options
from tests.sim.checkers.trace import JOB, UPTIME, Trace, broken

HOUR = 3_600_000
WEEK = 604_800_000


def says(*, retry: int = 10_000, delay: int = 0, replicate: int = 3, made: int = 7_000_000_000,
         body: int = 1908338681, left: int = HOUR, due: int = 10_000) -> str:  # fmt: skip
    """What a record says of `JOB`; the body is "b"."""
    return (
        f"replicate={replicate} retry={retry} delay={delay} made={made} body={body} "
        f"left={left} due={due}"
    )


def told(first: str, copy: str, *, queue: str = "q", options: str = "", cause: str = "repljob",
         at: float = 0.002) -> Trace:  # fmt: skip
    """A job on n1, and a copy on n2; what their records say."""
    trace = Trace()
    options = options or "replicate=3 retry=10 ttl=3600"
    trace.row(
        0, "add.invoke", "n1", queue="q", client="p1", ref=90,
        detail=f"timeout=1000 {options} body=b",
    )  # fmt: skip
    trace.row(0, "hold", "n1", job=JOB, cause="add", detail=first)
    for peer in ("n2", "n3"):
        trace.send(0, "repljob", "n1", peer, lag=at, detail=f"jobs={JOB} holders=n1")
        trace.row(at, "hold", peer, job=JOB, queue=queue, cause=cause, detail=copy)
    trace.row(at + 0.001, "queue", "n1", job=JOB, cause="first")
    trace.row(at + 0.002, "add.ok", "n1", job=JOB, client="p1", ref=90)
    return trace


def problems(trace: Trace) -> list[str]:
    return [v.detail for v in trace.verdict(end=3).violations if v.property == "S16"]


def test_copies_that_say_what_was_asked_for_are_content() -> None:
    trace = told(says(), says(left=HOUR + 1000, due=10_240))

    assert broken(trace.verdict(end=3)) == []


@pytest.mark.parametrize(
    ("copy", "problem"),
    [
        (says(replicate=1), "replicate=1, the first record 3"),
        (says(retry=20_000, due=20_000), "retry=20000, the first record 10000"),
        (says(delay=5_000, due=15_000), "delay=5000, the first record 0"),
        (says(made=8_000_000_000), "made=8000000000, the first record 7000000000"),
        (says(body=5), "another body than the first record"),
        (says(left=HOUR - 5000), "3595000 ms of its TTL left, and 3601000 are"),
        (says(left=HOUR + 5000), "3605000 ms of its TTL left, and 3601000 are"),
        (says(due=0), "0 ms until it is queued, DELAY and RETRY are 10000"),
        (says(due=11_000), "11000 ms until it is queued, DELAY and RETRY are 10000"),
    ],
)
def test_a_copy_that_says_something_else_is_found_out(copy: str, problem: str) -> None:
    found = problems(told(says(), copy))

    assert f"the record (repljob) has {problem}" in found


def test_a_copy_stands_in_the_queue_of_the_job() -> None:
    assert (
        problems(told(says(), says(), queue="other"))
        == ["the record (repljob) has the queue other, the first record q"] * 2
    )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("replicate=2 retry=10 ttl=3600", "replicate=3, ADDJOB said 2"),
        ("replicate=3 retry=5 ttl=3600", "retry=10000, ADDJOB said 5000"),
        ("replicate=3 retry=10 ttl=60", "a TTL of 3600000 ms, ADDJOB said 60000"),
        ("replicate=3 retry=10 ttl=3600 delay=4", "delay=0, ADDJOB said 4000"),
    ],
)
def test_the_first_record_says_what_addjob_said(options: str, problem: str) -> None:
    found = problems(told(says(), says(), options=options))

    assert found == [f"its first record has {problem}"]


def test_repair_tells_what_is_left_of_a_delay() -> None:
    trace = told(
        says(delay=9000, due=9000),
        says(delay=4000, made=5_007_000_000_000 - 5_000_000_000_000 + 5_000_000_000, due=14_000),
        options="replicate=3 retry=10 ttl=3600 delay=9",
    )

    assert [each for each in problems(trace) if "made=" in each or "delay=" in each] == []


def test_a_life_is_told_in_whole_seconds() -> None:
    trace = told(says(), says(left=HOUR + 2000))

    assert problems(trace) == []
    assert UPTIME  # the trace's clocks


@pytest.mark.parametrize(("died", "is_found"), [(1.999, False), (1.5, True)])
def test_a_journal_may_hold_back_a_copy_from_before_a_death(died: float, *, is_found: bool) -> None:
    """everything, seed 6691: the rest of its life is that of a job that lives."""
    trace = told(says(), says())
    trace.plan = attrs.evolve(trace.plan, config=(("appendonly", "yes"),))
    trace.row(died, "dead", "n1", job=JOB, cause="nack-dead", detail="redriven=0 left=40000")
    trace.row(1.2, "crash", "n2", cause="kill")
    trace.row(1.3, "start", "n2", cause="empty")
    trace.send(2, "repljob", "n1", "n2", detail=f"jobs={JOB} holders=n1,n2")
    trace.row(2.002, "hold", "n2", job=JOB, queue="q", cause="repljob", detail=says())

    assert bool(problems(trace)) == is_found


def test_a_faulty_disk_at_the_sender_shortens_no_life() -> None:
    trace = told(says(), says())
    trace.row(1, "disk.error", "n1", detail="yes")
    trace.row(1.2, "crash", "n2", cause="kill")
    trace.row(1.3, "start", "n2", cause="empty")
    trace.send(2, "repljob", "n1", "n2", detail=f"jobs={JOB} holders=n1,n2")
    trace.row(2.002, "hold", "n2", job=JOB, cause="repljob", detail=says(left=HOUR - 9000))

    assert problems(trace) == [
        "the record (repljob) has 3591000 ms of its TTL left, and 3599000 are"
    ]


LEAVES = [(1, "leave", {"detail": "yes"}), (4, "leave", {"detail": "no"})]
PAUSES = [(1, "pause-queue", {"detail": "q in"}), (4, "pause-queue", {"detail": "q none"})]
SHORT = [(1, "memory", {"detail": "1000"}), (4, "memory", {"detail": "0"})]
WAS_SHORT = [(-5, "memory", {"detail": "1000"}), (-4, "memory", {"detail": "0"})]
STARTS = [(-5, "crash", {}), (-0.1, "start", {"cause": "fresh"})]
"""Of a node that does not know the others yet."""


@pytest.mark.parametrize(
    ("events", "left", "due"),
    [
        (LEAVES, HOUR - 3000, []),
        (PAUSES, HOUR - 3000, []),
        (STARTS, HOUR - 3000, []),
        (SHORT, HOUR - 3000, []),
        (WAS_SHORT, HOUR - 3000, ["3597000 ms of its TTL left, and 3601000 are"]),
        (LEAVES, HOUR - 7000, ["3593000 ms of its TTL left, and 3601000 are"]),
        (STARTS, HOUR - 7000, ["3593000 ms of its TTL left, and 3601000 are"]),
        ([], HOUR - 3000, ["3597000 ms of its TTL left, and 3601000 are"]),
    ],
)
def test_of_the_copies_of_a_batch_the_first_is_taken_that_is_not_refused(
    events: list[tuple[float, str, dict[str, str]]], left: int, due: list[str]
) -> None:
    trace = sent_twice()
    for time, kind, more in events:
        trace.row(time, kind, "n2", detail=more.get("detail", ""), cause=more.get("cause", ""))
    trace.row(6, "hold", "n2", job=JOB, cause="repljob", detail=says(replicate=2, left=left))

    assert problems(trace) == [f"the record (repljob) has {each}" for each in due]


def test_a_job_may_die_between_two_copies_of_a_batch() -> None:
    trace = sent_twice()
    for time, kind, more in PAUSES:
        trace.row(time, kind, "n2", detail=more.get("detail", ""), cause=more.get("cause", ""))
    trace.row(4.5, "dead", "n1", job=JOB, cause="nack-dead", detail=f"redriven=0 left={WEEK}")
    trace.row(6, "hold", "n2", job=JOB, cause="repljob", detail=says(replicate=2))

    assert problems(trace) == []


def test_a_copy_may_end_between_two_copies_of_a_batch() -> None:
    trace = sent_twice()
    trace.send(1, "repljob", "n1", "n2", detail=f"jobs={JOB} holders=n1")
    trace.row(1.002, "hold", "n2", job=JOB, cause="repljob", detail=says(replicate=2))
    trace.row(6, "drop", "n2", job=JOB, cause="deljob")
    late = says(replicate=2, left=HOUR - 3000)
    trace.row(6, "hold", "n2", job=JOB, cause="repljob", detail=late)

    assert problems(trace) == []


def sent_twice() -> Trace:
    """n2 gets two copies in one batch, which were sent five seconds apart."""
    trace = Trace(nodes=2)
    trace.row(
        0, "add.invoke", "n1", queue="q", client="p1", ref=90,
        detail="timeout=1000 replicate=2 retry=10 ttl=3600 body=b",
    )  # fmt: skip
    trace.row(0, "hold", "n1", job=JOB, cause="add", detail=says(replicate=2))
    for sent in (0, 5):
        detail = f"jobs={JOB} holders=n1"
        trace.send(sent, "repljob", "n1", "n2", lag=6 - sent, detail=detail)
    return trace


def test_a_record_that_does_not_say_is_not_judged() -> None:
    trace = Trace()
    trace.add(0)

    assert "S16" in trace.verdict(end=3).not_judged


def dead_copies(given: int, *, outcome: str) -> Trace:
    """n2 buries a job whose ADDJOB has `outcome`, and gives n3 a copy that says `given` is left."""
    trace = Trace()
    trace.add(0, to=("n2",), record=says(), is_queued=False, outcome=outcome)
    trace.row(5, "dead", "n2", job=JOB, cause="nack-dead", detail=f"redriven=0 left={WEEK}")
    trace.send(9, "repljob", "n2", "n3", detail=f"jobs={JOB} holders=n2")
    copy = says(left=given, due=0).replace(" left=", " dead=1 left=")
    trace.row(9.002, "hold", "n3", job=JOB, cause="repljob", detail=copy)
    trace.row(9.002, "dead", "n3", job=JOB, cause="repljob", detail=f"redriven=0 left={given}")
    return trace


@pytest.mark.parametrize("outcome", ["ok", "unknown"])
@pytest.mark.parametrize(
    ("given", "due"),
    [
        (WEEK - 3000, []),
        (WEEK, ["604800000 ms of its TTL left, and 604797000 are"]),
        (HOUR - 9000, ["3591000 ms of its TTL left, and 604797000 are"]),
    ],
    ids=["what is left of it", "a whole life", "what is left of the TTL"],
)
def test_a_dead_copy_has_what_its_giver_had_left(outcome: str, given: int, due: list[str]) -> None:
    found = problems(dead_copies(given, outcome=outcome))

    assert found == [f"the record (repljob) has {each}" for each in due]


@pytest.mark.parametrize(("dead", "is_found"), [(" dead=1", False), (" redriven=1", True)])
def test_a_record_from_before_a_redrive_has_the_life_of_then(dead: str, *, is_found: bool) -> None:
    trace = Trace(4, config=(("appendonly", "yes"), ("appendfsync", "always")))
    trace.add(0, record=says())
    trace.row(3, "dead", "n1", job=JOB, cause="nack-dead", detail=f"redriven=0 left={WEEK}")
    trace.row(6, "redrive", "n1", job=JOB, cause="redriven", detail=f"redriven=1 left={HOUR}")
    trace.row(6.01, "crash", "n1", cause="power")
    trace.row(7, "start", "n1", cause="loaded")
    record = says(left=WEEK - 4000, due=0).replace(" left=", f"{dead} left=")
    trace.row(7, "hold", "n1", job=JOB, queue="q", cause="loaded", detail=record)
    trace.row(7, "loaded", "n1", cause="kept")
    trace.send(8, "repljob", "n1", "n4", detail=f"jobs={JOB} holders=n1")
    again = record.replace(f"left={WEEK - 4000}", f"left={WEEK - 5000}")
    trace.row(8.002, "hold", "n4", job=JOB, queue="q", cause="repljob", detail=again)

    assert any("of its TTL left" in each for each in problems(trace)) == is_found


@pytest.mark.parametrize(("fell", "is_found"), [(6.5, False), (9, True)])
def test_a_power_cut_may_take_the_life_that_another_node_has_given_a_dead_job(
    fell: float, *, is_found: bool
) -> None:
    """everything, seed 2061."""
    trace = Trace(4, config=(("appendonly", "yes"), ("appendfsync", "everysec")))
    trace.add(0, record=says())
    trace.row(3, "dead", "n1", job=JOB, cause="nack-dead", detail=f"redriven=0 left={WEEK // 2}")
    trace.row(6, "dead", "n1", job=JOB, cause="jobstate", detail=f"redriven=0 left={WEEK}")
    trace.row(fell, "crash", "n1", cause="power")
    trace.row(10, "start", "n1", cause="loaded")
    record = says(left=WEEK // 2 - 7000, due=0).replace(" left=", " dead=1 left=")
    trace.row(10, "hold", "n1", job=JOB, queue="q", cause="loaded", detail=record)
    trace.row(10, "loaded", "n1", cause="kept")

    assert any("of its TTL left" in each for each in problems(trace)) == is_found


@pytest.mark.parametrize(("sent", "is_found"), [(5, False), (5.001, True)])
def test_a_copy_may_be_older_than_what_happened_to_the_job_in_the_same_batch(
    sent: float, *, is_found: bool
) -> None:
    trace = Trace()
    trace.add(0, to=("n2",), record=says())
    trace.row(5, "dead", "n2", job=JOB, cause="jobstate", detail=f"redriven=0 left={WEEK}")
    trace.send(sent, "yourjobs", "n2", "n3", detail=f"jobs={JOB} holders=n2")
    copy = says(left=HOUR - 5000)
    trace.row(sent + 0.002, "hold", "n3", job=JOB, cause="yourjobs", detail=copy)

    assert any("of its TTL left" in each for each in problems(trace)) == is_found


@pytest.mark.parametrize(("resumed", "is_found"), [(5.0, False), (4.9, True)])
def test_a_copy_may_be_as_old_as_its_sender_was_stopped_before_it_left(
    resumed: float, *, is_found: bool
) -> None:
    trace = Trace()
    trace.add(0, to=(), record=says())
    trace.row(2, "pause", "n1")
    trace.row(resumed, "resume", "n1")
    trace.send(5, "repljob", "n1", "n3", detail=f"jobs={JOB} holders=n1,n3")
    trace.row(5.002, "hold", "n3", job=JOB, cause="repljob", detail=says(left=HOUR - 2000))

    assert any("of its TTL left" in each for each in problems(trace)) == is_found


@pytest.mark.parametrize(
    ("stalled", "came", "is_found"), [("n1", 5, False), ("n1", 60, False), ("n2", 5, True)]
)
def test_a_copy_may_be_as_old_as_its_sender_waited_for_its_disk(
    stalled: str, came: float, *, is_found: bool
) -> None:
    trace = Trace(config=(("appendonly", "yes"),))
    trace.add(0, to=(), record=says())
    trace.row(1, "disk.stall", stalled, detail="yes")
    trace.row(5, "disk.stall", stalled, detail="no")
    detail = f"jobs={JOB} holders=n1,n3"
    trace.send(5, "repljob", "n1", "n3", lag=came - 5 + 0.002, detail=detail)
    trace.row(came + 0.002, "hold", "n3", job=JOB, cause="repljob", detail=says(left=HOUR - 2000))

    assert any("of its TTL left" in each for each in problems(trace)) == is_found


@pytest.mark.parametrize(
    ("detail", "sync"),
    [
        ("100 SYNC AUTO RETRY 5", 2),
        ("timeout=100 sync=auto retry=5", 2),
        ("100 REPLICATE 5 SYNC AUTO RETRY 5", 3),
        ("100 SYNC 1 RETRY 5", 1),
        ("100 RETRY 5", 3),
    ],
)
def test_copies_are_owed_as_many_as_the_add_has_waited_for(detail: str, sync: int) -> None:
    asked = read_options(detail, nodes=3)

    assert (asked.sync, asked.retry) == (sync, 5_000_000)
    assert read_options("100 SYNC AUTO", nodes=3, sync=3).sync == 3


def test_a_job_that_a_power_cut_brings_back_has_its_own_life_and_not_that_of_a_dummy() -> None:
    trace = Trace(config=(("appendonly", "yes"), ("appendfsync", "everysec")))
    trace.add(0, to=("n2",), record=says())
    trace.row(3, "drop", "n2", job=JOB, cause="deljob")
    trace.row(4, "hold", "n2", job=JOB, cause="dummy")
    trace.row(5, "crash", "n2", cause="power")
    trace.row(7, "start", "n2", cause="loaded")
    trace.row(7, "hold", "n2", job=JOB, queue="q", cause="loaded", detail=says(left=HOUR - 7000))
    trace.row(7, "loaded", "n2", cause="kept")

    assert problems(trace) == []
