"""What nodes tell of their jobs and queues (S22)."""

from typing import Literal

import attrs
import pytest

from tests.sim.checkers.trace import JOB, Trace

OTHER = "D-01234567-ABBBBBBBBBBBBBBBBBBBBBBB-003d"
RECORD = "replicate=3 retry=10000 delay=0 made={} body=7 left=3600000 due=10000"
SHOWN = "state={} replicate=3 ttl=3590 delay=0 retry=10000 body={} holders={} queue=q"
HOLDERS = "aa,bb,cc"


def problems(trace: Trace) -> list[str]:
    return [v.detail for v in trace.verdict(end=60).violations if v.property == "S22"]


def with_two_jobs() -> Trace:
    """n1 has two jobs queued, of which JOB is the older; n1 to n3 are known as aa, bb and cc."""
    trace = Trace()
    trace.add(0, record=RECORD.format(5))
    trace.add(0.5, OTHER, body="c", record=RECORD.format(6))
    for node, id in (("n1", "aa"), ("n2", "bb"), ("n3", "cc")):
        ask(trace, 1, "hello", id, node=node)
    return trace


def ask(
    trace: Trace,
    at: float,
    command: str,
    reply: str,
    words: str = "",
    *,
    node: str = "n1",
    job: str = "",
    lasts: float = 0.002,
) -> None:
    """A client asks, and has the reply soon, or later."""
    queue = "q" if job or command in {"qlen", "qpeek", "qstat"} else ""
    for time, kind, detail in ((at, "invoke", words), (at + lasts, "ok", reply)):
        trace.row(
            time, f"query.{kind}", node, job=job, queue=queue, client="o1", cause=command,
            detail=detail, ref=round(at * 1000),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("command", "reply", "words", "problem"),
    [
        ("qlen", "2", "", ""),
        ("qlen", "3", "", "QLEN q: 3 jobs, and there are 2"),
        ("qstat", "len=2 in=4 out=1", "", ""),
        ("qstat", "len=1 in=4 out=1", "", "QSTAT q: 1 job, and there are 2"),
        ("qstat", "len=2 in=4 out=3", "", "QSTAT q: 4 jobs came, 3 went, 2 are there"),
        ("qstat", "", "", "QSTAT q: no such queue, and there are 2"),
        ("qpeek", f"{JOB}:7 {OTHER}:7", "5", ""),
        ("qpeek", f"{JOB}:7", "1", ""),
        ("qpeek", f"{OTHER}:7", "-1", ""),
        ("qpeek", f"{OTHER}:7 {JOB}:7", "-5", ""),
        ("qpeek", f"{OTHER}:7", "1", f"QPEEK q: leaves {JOB} out, which is queued"),
        ("qpeek", f"{JOB}:7", "5", f"QPEEK q: leaves {OTHER} out, which is queued"),
        ("qpeek", f"{JOB}:7", "-1", f"QPEEK q: leaves {OTHER} out, which is queued"),
        (
            "qpeek",
            f"{OTHER}:7 {JOB}:7",
            "2",
            f"QPEEK q: shows jobs in the wrong order: {OTHER} {JOB}",
        ),
        ("qpeek", f"{JOB}:8", "1", f"QPEEK q: another body of {JOB} than its first record"),
        ("jscan", f"0 {OTHER} {JOB}", "0 COUNT 9", ""),
        ("jscan", f"0 {JOB}", "0 COUNT 9", f"JSCAN: leaves {OTHER} out, which is queued"),
        ("jscan", f"0 {JOB} {JOB} {OTHER}", "0 COUNT 9", f"JSCAN: names {JOB} twice"),
        ("jscan", f"0 {JOB} {OTHER}", "BUSYLOOP QUEUE q STATE queued", ""),
        (
            "jscan",
            f"0 {JOB}",
            "BUSYLOOP QUEUE q STATE acked",
            f"JSCAN: names {JOB}, which is queued",
        ),
        ("jscan", f"77 {JOB} {OTHER}", "BUSYLOOP", ""),
        ("jscan", f"77 {JOB}", "BUSYLOOP", f"JSCAN: leaves {OTHER} out, which is queued"),
        ("jscan", f"0 {JOB} {OTHER}", "", ""),
        ("jscan", f"0 {JOB} {OTHER}", "0 REPLY all COUNT 9 STATE dead STATE queued", ""),
        (
            "jscan",
            f"0 {JOB}",
            "REPLY id STATE queued",
            f"JSCAN: leaves {OTHER} out, which is queued",
        ),
        ("jscan", "0", "0 STATE backing-off QUEUE q", ""),
        ("jscan", "0", "0 QUEUE r", ""),
        ("jscan", f"0 {JOB}", "0 STATE backing-off", f"JSCAN: names {JOB}, which is queued"),
        ("qscan", "0 q", "0 COUNT 9", ""),
        ("qscan", "0", "0 MINLEN 9", ""),
        ("qscan", "0", "0 COUNT 9", "QSCAN: leaves q out, which has 2 jobs"),
        ("qscan", "0 q r", "0 COUNT 9", "QSCAN: names r, which nobody has asked for"),
        ("qscan", "0 q q", "0 COUNT 9", "QSCAN: names a queue twice: q q"),
        ("info", "registered_jobs=2 registered_queues=1", "", ""),
        (
            "info",
            "registered_jobs=1 registered_queues=1",
            "",
            "INFO: registered_jobs:1, and there are 2",
        ),
        (
            "info",
            "registered_jobs=2 registered_queues=0",
            "",
            "INFO: registered_queues:0, and 1 have jobs",
        ),
    ],
)
def test_a_reply_is_as_it_is_in_the_node(
    command: str, reply: str, words: str, problem: str
) -> None:
    trace = with_two_jobs()
    ask(trace, 2, command, reply, words)

    assert problems(trace) == ([problem] if problem else [])


@pytest.mark.parametrize(
    ("kind", "file", "journal", "version", "is_told"),
    [
        ("engine", "disque", "yes", "4", False),
        ("engine", "disque", "no", "4", True),
        ("engine", "framed", "yes", "4", True),
        ("loop", "disque", "yes", "4", True),
        ("engine", "framed", "no", "original", False),
        ("engine", "framed", "no", "0", True),
        ("loop", "framed", "no", "original", True),
    ],
)
def test_workers_have_queues_of_dead_jobs_where_nodes_keep_none(
    kind: Literal["engine", "loop"], file: str, journal: str, version: str, *, is_told: bool
) -> None:
    """everything, seed 4092."""
    trace = Trace(config=(("aof-format", file), ("appendonly", journal)))
    [worker] = trace.plan.consumers
    workers = (attrs.evolve(worker, kind=kind),)
    trace.plan = attrs.evolve(trace.plan, consumers=workers, versions=((version,), ("4",)))
    trace.add(0, record=RECORD.format(5))
    ask(trace, 2, "qscan", "0 q dead.q", "0 COUNT 9")

    assert bool(problems(trace)) == is_told


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (SHOWN.format("queued", 7, HOLDERS), ""),
        (SHOWN.format("active", 7, HOLDERS), "state active, and it is queued"),
        (SHOWN.format("wait-repl", 7, HOLDERS), "state wait-repl, and it is queued"),
        (SHOWN.format("queued", 8, HOLDERS), f"another body of {JOB} than its first record"),
        (SHOWN.format("queued", 7, "aa,bb"), "not the holder n3, of which it was told"),
        (SHOWN.format("queued", 7, "aa,bb,cc,dd"), "the holder dd, of which it was not told"),
        (
            SHOWN.format("queued", 7, HOLDERS).replace("retry=10000", "retry=9000"),
            "retry=9000, the first record 10000",
        ),
        (
            SHOWN.format("queued", 7, HOLDERS).replace("ttl=3590", "ttl=3610"),
            "3610 s to live, and it had 3600000 ms when it came",
        ),
        ("", "not held, and it is queued"),
    ],
)
def test_a_job_is_shown_as_it_is(reply: str, problem: str) -> None:
    trace = with_two_jobs()
    ask(trace, 10, "show", reply, job=JOB)

    assert problems(trace) == ([f"SHOW q: {problem}"] if problem else [])


@pytest.mark.parametrize(
    ("state", "dead", "detail", "problem"),
    [
        ("wait-repl", 0, " wait-repl", ""),
        ("dead", 1, "", ""),
        ("dead", 0, " wait-repl", "SHOW q: state dead, and it is active"),
        ("wait-repl", 1, "", "SHOW q: state wait-repl, and it is dead"),
        ("wait-repl", 1, " wait-repl", "QSTAT q: 1 dead job, and there are 0"),
    ],
)
def test_a_job_that_dies_while_its_addjob_waits_is_shown_as_waiting(
    state: str, dead: int, detail: str, problem: str
) -> None:
    trace = Trace()
    trace.row(0, "add.invoke", "n1", queue="q", client="p1", ref=5, detail="timeout=0 retry=10")
    trace.row(0, "hold", "n1", job=JOB, cause="add", detail=RECORD.format(5))
    trace.row(1, "dead", "n1", job=JOB, cause="jobstate", detail=f"redriven=0 left=3590000{detail}")
    ask(trace, 2, "show", SHOWN.format(state, 7, "aa").replace("3590", "3589"), job=JOB)
    ask(trace, 3, "qstat", f"len=0 in=0 out=0 dead={dead}")

    assert problems(trace) == ([problem] if problem else [])


def test_a_holder_of_which_a_node_was_not_told_is_none() -> None:
    trace = Trace()
    trace.add(0, to=("n2",), options="replicate=2 retry=10 ttl=3600", record=RECORD.format(5))
    for node, id in (("n1", "aa"), ("n2", "bb"), ("n3", "cc")):
        ask(trace, 1, "hello", id, node=node)
    ask(trace, 10, "show", SHOWN.format("queued", 7, HOLDERS), job=JOB)

    assert problems(trace) == ["SHOW q: the holder n3, of which it was not told"]


def test_a_node_to_which_it_gives_the_job_is_a_holder_also_if_the_link_has_ended() -> None:
    """YOURJOBS on a link that has ended leaves no row."""
    trace = Trace()
    trace.add(0, to=("n2",), options="replicate=2 retry=10 ttl=3600", record=RECORD.format(5))
    for node, id in (("n1", "aa"), ("n2", "bb"), ("n3", "cc")):
        ask(trace, 1, "hello", id, node=node)
    trace.row(2, "unqueue", "n1", job=JOB, queue="q", cause="given")
    trace.row(2, "give", "n1", job=JOB, peer="n3", cause="given")
    ask(trace, 10, "show", SHOWN.format("active", 7, HOLDERS), job=JOB)

    assert problems(trace) == []


@pytest.mark.parametrize("word", ["queued", "jobstate", "setack"])
@pytest.mark.parametrize("is_before", [False, True])
def test_a_message_that_comes_with_the_copy_tells_of_its_sender(
    word: str, *, is_before: bool
) -> None:
    trace = Trace()
    record = RECORD.format(5)
    trace.row(0, "hold", "n1", job=JOB, cause="add", detail=record)
    trace.copy(0, "n1", "n3", record=record)
    if is_before:
        trace.send(0.5, word, "n3", "n2", lag=1.5)
    trace.send(1, "repljob", "n1", "n2", lag=1, detail=f"jobs={JOB} holders=n1")
    if not is_before:
        trace.send(1, word, "n3", "n2", lag=1)
    trace.row(2, "hold", "n2", job=JOB, cause="repljob", detail=record)
    for node, id in (("n1", "aa"), ("n2", "bb"), ("n3", "cc")):
        ask(trace, 3, "hello", id, node=node)
    shown = SHOWN.format("active", 7, HOLDERS).replace("3590", "3599")
    ask(trace, 4, "show", shown, node="n2", job=JOB)

    is_told = word != "setack" and not is_before
    missing = ["SHOW q: the holder n3, of which it was not told"]
    assert problems(trace) == ([] if is_told else missing)


@pytest.mark.parametrize("state", ["queued", "acked"])
@pytest.mark.parametrize("word", ["queued", "jobstate", "gotack"])
def test_a_message_of_a_holder_tells_of_its_sender(word: str, state: str) -> None:
    trace = Trace()
    trace.add(0, to=("n2",), options="replicate=2 retry=10 ttl=3600", record=RECORD.format(5))
    if state == "acked":
        trace.row(0.5, "acked", "n1", job=JOB, cause="ackjob")
    trace.send(1, word, "n3", "n1")
    for node, id in (("n1", "aa"), ("n2", "bb"), ("n3", "cc")):
        ask(trace, 2, "hello", id, node=node)
    ask(trace, 10, "show", SHOWN.format(state, 7, HOLDERS), job=JOB)

    missing = ["SHOW q: the holder n3, of which it was not told"]
    assert problems(trace) == (missing if word == "gotack" else [])


@pytest.mark.parametrize(("node", "added"), [("n1", 0.0), ("n1", 6.0), ("n2", 0.0)])
def test_a_node_whose_disk_was_full_may_have_repaired_a_job_without_sending_it(
    node: str, added: float
) -> None:
    """everything, seed 3555."""
    trace = Trace()
    trace.row(3, "disk.full", node, detail="yes")
    trace.row(5, "disk.full", node, detail="no")
    options = "replicate=2 retry=10 ttl=3600"
    trace.add(added, to=("n2",), options=options, record=RECORD.format(5))
    for host, id in (("n1", "aa"), ("n2", "bb"), ("n3", "cc")):
        ask(trace, 8, "hello", id, node=host)
    ask(trace, added + 10, "show", SHOWN.format("queued", 7, HOLDERS), job=JOB)

    missing = ["SHOW q: the holder n3, of which it was not told"]
    assert problems(trace) == ([] if (node, added) == ("n1", 0.0) else missing)


@pytest.mark.parametrize(("node", "resumed"), [("n1", 1.0), ("n1", 0.9), ("n2", 1.0)])
def test_a_node_that_was_stopped_may_have_sent_a_copy_on_a_link_that_had_ended(
    node: str, resumed: float
) -> None:
    trace = Trace()
    trace.row(0.5, "pause", node)
    trace.row(resumed, "resume", node)
    trace.add(1, to=("n2",), options="replicate=3 retry=10 ttl=3600", record=RECORD.format(5))
    for host, id in (("n1", "aa"), ("n2", "bb"), ("n3", "cc")):
        ask(trace, 2, "hello", id, node=host)
    ask(trace, 11, "show", SHOWN.format("queued", 7, HOLDERS), job=JOB)

    missing = ["SHOW q: the holder n3, of which it was not told"]
    assert problems(trace) == ([] if (node, resumed) == ("n1", 1.0) else missing)


@pytest.mark.parametrize(("mended", "holders"), [(0.5, "aa,bb"), (0.5, HOLDERS), (None, HOLDERS)])
def test_a_node_whose_disk_has_just_had_a_fault_may_learn_of_holders(
    mended: float | None, holders: str
) -> None:
    trace = Trace()
    trace.row(0.2, "disk.error", "n2", detail="yes")
    if mended is not None:
        trace.row(mended, "disk.error", "n2", detail="no")
    trace.add(1, to=("n2",), options="replicate=2 retry=10 ttl=3600", record=RECORD.format(5))
    trace.send(1.1, "repljob", "n1", "n2", detail=f"jobs={JOB} holders=n1,n3")
    for node, id in (("n1", "aa"), ("n2", "bb"), ("n3", "cc")):
        ask(trace, 2, "hello", id, node=node)
    ask(trace, 11, "show", SHOWN.format("active", 7, holders), node="n2", job=JOB)

    assert problems(trace) == []


@pytest.mark.parametrize(
    ("length", "is_so"), [("0", False), ("1", True), ("2", True), ("3", False)]
)
def test_a_reply_may_tell_of_any_moment_since_the_request(length: str, *, is_so: bool) -> None:
    trace = with_two_jobs()
    ask(trace, 2, "qlen", length, lasts=2)
    trace.serve(3)

    assert (problems(trace) == []) == is_so


@pytest.mark.parametrize("last", [JOB, ""])
def test_the_pages_of_a_scan_are_one_reply(last: str) -> None:
    trace = with_two_jobs()
    ask(trace, 2, "jscan", f"77 {OTHER}", "0 COUNT 1")
    ask(trace, 3, "jscan", f"0 {last}".strip(), "77 COUNT 1")

    leaves_out = [f"JSCAN: leaves {JOB} out, which is queued"]
    assert problems(trace) == ([] if last else leaves_out)


def test_what_goes_while_a_scan_runs_may_be_left_out() -> None:
    trace = with_two_jobs()
    ask(trace, 2, "jscan", f"77 {OTHER}", "0 COUNT 1")
    trace.row(2.5, "drop", "n1", job=JOB, cause="client-deljob")
    ask(trace, 3, "jscan", "0", "77 COUNT 1")

    assert problems(trace) == []


def test_a_scan_does_not_go_on_after_a_restart() -> None:
    trace = with_two_jobs()
    ask(trace, 2, "jscan", f"77 {OTHER}", "0 COUNT 1")
    trace.row(2.5, "crash", "n1", cause="kill")
    trace.row(2.6, "start", "n1", cause="empty")
    ask(trace, 3, "jscan", "0", "77 COUNT 1")

    assert problems(trace) == []


@pytest.mark.parametrize("how", ["refused", "unknown"])
def test_a_query_without_a_reply_is_not_judged(how: str) -> None:
    trace = with_two_jobs()
    for kind in ("invoke", how):
        trace.row(2, f"query.{kind}", "n1", queue="q", client="o1", cause="qlen", ref=9)

    verdict = trace.verdict(end=60)

    assert "S22" in verdict.not_judged


@pytest.mark.parametrize(
    ("cause", "body", "is_right"),
    [("loaded", 0, True), ("loaded", 7, True), ("loaded", 8, False), ("repljob", 0, False)],
)
def test_an_acknowledged_job_of_a_journal_has_no_body(
    cause: str, body: int, *, is_right: bool
) -> None:
    """everything, seeds 19 and 22."""
    trace = Trace()
    trace.add(0, to=("n2",), record=RECORD.format(5))
    trace.row(1, "crash", "n2", cause="kill")
    trace.row(2, "start", "n2", cause="loaded")
    trace.row(2, "hold", "n2", job=JOB, cause=cause, detail=RECORD.format(5))
    trace.row(2, "acked", "n2", job=JOB, cause=cause)
    trace.row(2, "loaded", "n2", cause="kept")
    shown = SHOWN.format("acked", body, "aa,bb").replace("3590", "3599")
    ask(trace, 3, "show", shown, node="n2", job=JOB)

    wrong = [each for each in problems(trace) if "body" in each]
    assert bool(wrong) != is_right


@pytest.mark.parametrize("is_moved_on", [False, True])
def test_a_repaired_copy_stands_where_its_delay_was_over(*, is_moved_on: bool) -> None:
    """everything, seed 75: repair sends the rest of the delay, and moves the creation stamp on."""
    delayed, between = RECORD.replace("delay=0", "delay=2000").format(5), RECORD.format(10**9)
    trace = Trace()
    trace.add(0, to=(), record=delayed)
    trace.add(1, OTHER, node="n2", to=(), record=between)
    record = RECORD.format(2 * 10**9 + 5) if is_moved_on else delayed
    trace.send(3, "repljob", "n1", "n2", detail=f"jobs={JOB} holders=n1")
    trace.row(3.002, "hold", "n2", job=JOB, cause="repljob", detail=record)
    trace.row(3.002, "queue", "n2", job=JOB, cause="import")
    ask(trace, 4, "qpeek", f"{OTHER}:7 {JOB}:7", "5", node="n2")

    wrong = [each for each in problems(trace) if "order" in each]
    assert bool(wrong) != is_moved_on


def test_a_copy_with_the_first_stamp_after_a_repaired_one_stands_at_its_old_place() -> None:
    delayed = RECORD.replace("delay=0", "delay=2000").format(5)
    trace = Trace()
    trace.add(0, to=(), record=delayed)
    trace.add(1, OTHER, node="n2", to=(), record=RECORD.format(10**9))
    for at, record in ((3, RECORD.format(2 * 10**9 + 5)), (4, delayed)):
        trace.send(at, "repljob", "n1", "n2", detail=f"jobs={JOB} holders=n1")
        trace.row(at + 0.002, "hold", "n2", job=JOB, cause="repljob", detail=record)
        trace.row(at + 0.002, "queue", "n2", job=JOB, cause="import")
        if at == 3:
            trace.row(3.5, "unqueue", "n2", job=JOB, cause="yield")
            trace.row(3.5, "drop", "n2", job=JOB, cause="evicted")
    ask(trace, 5, "qpeek", f"{JOB}:7 {OTHER}:7", "5", node="n2")

    assert not [each for each in problems(trace) if "order" in each]
