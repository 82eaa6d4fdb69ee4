"""S24, S25, S27 and L11: of the jobs with one key one lives, and its id is told; after a cut the
later one of two yields."""

from zlib import crc32

import pytest

from disque_trio.sim.scenarios.plan import Fault
from tests.sim.checkers.trace import JOB, Trace, broken

OTHER = "D-89abcdef-CCCCCCCCCCCCCCCCCCCCCCCC-003d"
THIRD = "D-89abcdef-DDDDDDDDDDDDDDDDDDDDDDDD-003d"
KEY = crc32(b"k")
OPTIONS = f"replicate=1 retry=10 ttl=3600 unique={KEY}"


def record(body: str, keep: int = 0, key: int = KEY) -> str:
    kept = f" keep={keep}" if keep else ""
    return (
        f"replicate=1 retry=10000 delay=0 made=1000000 body={crc32(body.encode())} key={key}{kept}"
        " left=3600000 due=10000"
    )


def add(
    trace: Trace, time: float, job: str = JOB, *, node: str = "n1", body: str = "b", keep: int = 0
) -> None:
    options = OPTIONS + (f" keep={keep}" if keep else "")
    said = record(body, keep * 1000)
    trace.add(time, job, node=node, to=(), options=options, body=body, record=said)


def ask(trace: Trace, time: float, job: str = JOB, *, refused: bool = False) -> None:
    """A later ADDJOB, which is answered with the id of this job."""
    way = "ifexists=reject " if refused else ""
    trace.row(
        time, "add.invoke", "n2", queue="q", client="p2", ref=77,
        detail=f"timeout=1000 {OPTIONS} {way}body=late",
    )  # fmt: skip
    if refused:
        detail = f"DUPLICATE {job} queued"
        trace.row(
            time + 0.01, "add.refused", "n2", queue="q", client="p2", ref=77,
            cause="DUPLICATE", detail=detail,
        )  # fmt: skip
    else:
        trace.row(time + 0.01, "add.ok", "n2", job=job, client="p2", ref=77)


def end(trace: Trace, time: float, job: str = JOB, node: str = "n1") -> None:
    trace.serve(time, node, job=job)
    trace.ack(time + 0.5, node, job=job)
    trace.collect(time + 0.6, node, job=job)


def test_two_jobs_with_one_key_are_one_too_many() -> None:
    trace = Trace()
    add(trace, 1)
    add(trace, 2, OTHER, node="n2", body="c")

    assert broken(trace.verdict()) == ["S24"]


def test_across_a_cut_there_may_be_two() -> None:
    trace = Trace()
    trace.cut(0.5, ["n1"], ["n2"], until=3)
    add(trace, 1)
    add(trace, 2, OTHER, node="n2", body="c")
    trace.serve(2.2)
    trace.serve(2.3, "n2", client="c2", job=OTHER, body="c")

    verdict = trace.verdict()

    assert "S24" not in broken(verdict)
    assert verdict.marks["unique.twins"] == verdict.marks["unique.both_delivered"] == 1


@pytest.mark.parametrize(("keep", "due"), [(0, []), (30, ["S24"]), (3, [])])
def test_when_the_first_has_ended_its_key_is_free_unless_it_is_kept(
    keep: int, due: list[str]
) -> None:
    trace = Trace()
    add(trace, 1, keep=keep)
    end(trace, 2)

    add(trace, 8, OTHER, body="c")

    assert broken(trace.verdict()) == due


@pytest.mark.parametrize("refused", [True, False])
@pytest.mark.parametrize(("at", "due"), [(2.2, []), (8, ["S25"])])
def test_an_id_is_told_of_a_job_that_lived(refused: bool, at: float, due: list[str]) -> None:
    trace = Trace()
    add(trace, 1)
    end(trace, 2)

    ask(trace, at, refused=refused)

    verdict = trace.verdict()
    assert broken(verdict) == due
    assert verdict.marks["unique.refused" if refused else "unique.returned"] == 1


def test_a_kept_key_is_told_too() -> None:
    trace = Trace()
    add(trace, 1, keep=10)
    end(trace, 2)

    ask(trace, 8)

    assert trace.verdict().ok


@pytest.mark.parametrize(("outcome", "due"), [("unknown", []), ("ok", ["S24"])])
def test_a_copy_of_an_addjob_that_has_failed_does_not_have_the_key(
    outcome: str, due: list[str]
) -> None:
    trace = Trace()
    said = record("b")
    trace.add(1, options=OPTIONS, record=said, is_queued=False, outcome=outcome)
    if outcome == "unknown":
        trace.row(1.01, "drop", "n1", job=JOB, cause="add-failed")

    add(trace, 2, OTHER, node="n2", body="c")

    assert [each for each in broken(trace.verdict()) if each == "S24"] == due


def deleted(keep: int = 0) -> Trace:
    """Of a job on n1 and n2 a client has deleted the copy of n1."""
    trace = Trace()
    add(trace, 1, keep=keep)
    trace.copy(1, "n1", "n2", record=record("b", keep * 1000))
    trace.row(2, "deljob.invoke", "n1", job=JOB, client="c1", ref=50)
    trace.row(2, "drop", "n1", job=JOB, cause="client-deljob")
    trace.row(2, "deljob.ok", "n1", job=JOB, client="c1", ref=50, detail="1")
    return trace


def test_deljob_deletes_one_copy_and_the_job_has_its_key_as_long_as_another_lives() -> None:
    trace = deleted()

    ask(trace, 8)

    assert broken(trace.verdict()) == []


@pytest.mark.parametrize(("keep", "due"), [(0, ["S25"]), (6, []), (4, ["S25"])])
def test_then_it_has_ended_with_that_copy(keep: int, due: list[str]) -> None:
    trace = deleted(keep)
    trace.ack(3, "n2")

    ask(trace, 8)

    assert broken(trace.verdict()) == due


def test_that_copy_may_be_deleted_too() -> None:
    trace = deleted()
    trace.row(3, "deljob.invoke", "n2", job=JOB, client="c1", ref=51)
    trace.row(3, "drop", "n2", job=JOB, cause="client-deljob")
    trace.row(3, "deljob.ok", "n2", job=JOB, client="c1", ref=51, detail="1")

    ask(trace, 8)

    assert broken(trace.verdict()) == ["S25"]


def test_an_id_of_no_job_is_not_told() -> None:
    trace = Trace()
    add(trace, 1)

    ask(trace, 2, OTHER)

    assert broken(trace.verdict()) == ["S25"]


def test_an_id_of_a_job_with_another_key_is_not_told() -> None:
    trace = Trace()
    said = record("b", key=KEY + 1)
    trace.add(1, to=(), options=f"replicate=1 retry=10 ttl=3600 unique={KEY + 1}", record=said)

    ask(trace, 2)

    assert broken(trace.verdict()) == ["S25"]


def test_an_id_of_a_job_whose_addjob_has_failed_is_not_told() -> None:
    trace = Trace()
    trace.add(1, to=(), options=OPTIONS, record=record("b"), is_queued=False, outcome="unknown")
    trace.row(1.01, "drop", "n1", job=JOB, cause="add-failed")

    ask(trace, 2)

    assert "S25" in broken(trace.verdict())


def test_the_key_of_the_record_is_that_of_the_addjob() -> None:
    trace = Trace()
    trace.add(1, to=(), options=OPTIONS, record=record("b", key=KEY + 1))

    assert broken(trace.verdict()) == ["S16"]


# Two sides of a cut.


def both(until: float = 3) -> Trace:
    """Each side of a cut adds a job; `JOB` is the earlier one."""
    trace = Trace()
    trace.cut(0.5, ["n1"], ["n2"], until=until)
    add(trace, 1)
    add(trace, 2, OTHER, node="n2", body="c")
    return trace


def yielded(trace: Trace, time: float, job: str, node: str) -> None:
    trace.row(time, "unqueue", node, job=job, queue="q", cause="acked")
    trace.row(time, "acked", node, job=job, queue="q", cause="yielded")


def test_the_later_one_yields() -> None:
    trace = both()
    yielded(trace, 4, OTHER, "n2")

    verdict = trace.verdict()

    assert "S27" not in broken(verdict)
    assert verdict.marks["unique.yielded"] == verdict.checks["S27"] == 1


def test_the_earlier_one_does_not_yield() -> None:
    trace = both()
    yielded(trace, 4, JOB, "n1")

    assert "S27" in broken(trace.verdict())


def test_a_job_does_not_yield_to_one_that_has_ended() -> None:
    trace = both()
    end(trace, 4)
    yielded(trace, 30, OTHER, "n2")

    assert "S27" in broken(trace.verdict())


@pytest.mark.parametrize(("time", "finds"), [(3.96, False), (3.9, True)])
def test_a_job_may_yield_to_one_that_ends_while_the_nodes_answer(
    time: float, *, finds: bool
) -> None:
    trace = both()
    trace.serve(3.5)
    trace.ack(time)
    trace.collect(time + 0.01, "n1")
    yielded(trace, 4, OTHER, "n2")

    assert ("S27" in broken(trace.verdict())) == finds


@pytest.mark.parametrize(("time", "finds"), [(3.96, False), (3.9, True)])
def test_a_job_may_yield_to_one_that_is_on_its_way_to_another_node(
    time: float, *, finds: bool
) -> None:
    trace = both()
    trace.send(time, "yourjobs", "n1", "n3", detail=f"jobs={JOB} holders=n3")
    trace.row(time, "drop", "n1", job=JOB, queue="q", cause="moved")
    yielded(trace, 4, OTHER, "n2")

    assert ("S27" in broken(trace.verdict())) == finds


@pytest.mark.parametrize(("time", "finds"), [(3.6, False), (3.4, True)])
def test_a_job_may_yield_to_one_that_lived_when_the_last_round_of_questions_began(
    time: float, *, finds: bool
) -> None:
    trace = both()
    trace.serve(3.2)
    for begun, number in ((3.3, "7/1"), (3.5, "7/2")):
        if time < begun:
            trace.ack(time)
            trace.collect(time + 0.01, "n1")
        for peer in ("n1", "n3"):
            trace.row(
                begun, "send", "n2", peer=peer, queue="q", cause="keyclaim",
                detail=f"number={number} key=k",
            )  # fmt: skip
    if time > 3.5:
        trace.ack(time)
        trace.collect(time + 0.01, "n1")
    yielded(trace, 4, OTHER, "n2")

    assert ("S27" in broken(trace.verdict())) == finds


def test_the_key_of_a_job_that_yields_is_not_kept() -> None:
    trace = Trace()
    trace.cut(0.5, ["n1"], ["n2"], until=3)
    add(trace, 1)
    add(trace, 2, OTHER, node="n2", body="c", keep=300)
    yielded(trace, 4, OTHER, "n2")
    end(trace, 60)
    add(trace, 62, "D-89abcdef-DDDDDDDDDDDDDDDDDDDDDDDD-003d", body="d")

    assert "S24" not in broken(trace.verdict())


@pytest.mark.parametrize(("time", "finds"), [(4.0, False), (60.0, True)])
def test_long_after_a_cut_one_of_two_that_nobody_has_taken_is_gone(
    time: float, *, finds: bool
) -> None:
    trace = both()
    trace.serve(time)

    assert ("L11" in broken(trace.verdict())) == finds


def test_one_that_was_queued_again_need_not_go() -> None:
    trace = both()
    trace.row(20, "queue", "n2", job=OTHER, queue="q", cause="retry")
    trace.serve(60)

    assert "L11" not in broken(trace.verdict())


@pytest.mark.parametrize("again", ["n2", "n1"])
def test_a_job_is_one_of_the_node_that_made_it_if_an_addjob_was_sent_again(again: str) -> None:
    trace = Trace(faults=[Fault(kind="crash", at=0, nodes=(1,))])
    asked = f"timeout=1000 {OPTIONS} body=b"
    trace.row(1, "add.invoke", "n1", queue="q", client="p1", ref=77, detail=asked)
    trace.row(1, "hold", "n1", job=JOB, cause="add", detail=record("b"))
    trace.copy(1, "n1", "n3", record=record("b"))
    trace.row(1.1, "add.unknown", "n1", queue="q", client="p1", ref=77, cause="closed")
    trace.row(2, "add.invoke", again, queue="q", client="p1", ref=78, detail=asked)
    trace.row(2, "hold", again, job=OTHER, cause="add", detail=record("b"))
    trace.row(2, "queue", again, job=OTHER, cause="first")
    trace.serve(2, again, job=OTHER)
    trace.row(2.01, "add.ok", again, job=OTHER, client="p1", ref=78)
    trace.requeue(11, "n3")
    trace.serve(11, "n3")
    assert "S3" not in broken(trace.verdict())

    trace.row(12, "hold", "n2", job=THIRD, cause="add", detail=record("b"))
    trace.row(12, "queue", "n2", job=THIRD, cause="first")
    trace.serve(12, "n2", job=THIRD)
    assert "S3" in broken(trace.verdict())


@pytest.mark.parametrize(
    ("ended_by", "cause", "keep", "finds"),
    [
        ("cancel", "loaded", 0, []),
        ("replaced", "loaded", 0, []),
        ("yielded", "loaded", 0, []),
        ("ackjob", "loaded", 0, ["S16"]),
        ("cancel", "loaded", 3, ["S16"]),
        ("cancel", "repljob", 0, ["S16"]),
    ],
)
def test_the_journal_has_no_keep_of_a_job_whose_key_is_free(
    ended_by: str, cause: str, keep: int, finds: list[str]
) -> None:
    trace = Trace()
    add(trace, 1, keep=5)
    trace.row(2, "unqueue", "n1", job=JOB, cause="acked")
    trace.row(2, "acked", "n1", job=JOB, queue="q", cause=ended_by)
    trace.row(3, "crash", "n1", cause="kill")
    trace.row(4, "start", "n1", cause="loaded")
    trace.row(4, "hold", "n1", job=JOB, queue="q", cause=cause, detail=record("b", keep * 1000))

    assert [each for each in broken(trace.verdict()) if each == "S16"] == finds


@pytest.mark.parametrize(("node", "finds"), [("n1", []), ("n2", []), ("n3", ["S16"])])
def test_nor_of_a_replaced_job_that_had_ended_before(node: str, finds: list[str]) -> None:
    """everything, seed 8027: n1 frees the key of a job that n2 has, and that was acknowledged."""
    trace = Trace()
    add(trace, 1, node=node, keep=5)
    trace.row(2, "unqueue", node, job=JOB, cause="acked")
    trace.row(2, "acked", node, job=JOB, queue="q", cause="ackjob")
    trace.send(2.5, "keycancel", "n1", "n2", detail="key=k")
    trace.row(3, "crash", node, cause="kill")
    trace.row(4, "start", node, cause="loaded")
    trace.row(4, "hold", node, job=JOB, queue="q", cause="loaded", detail=record("b"))

    assert [each for each in broken(trace.verdict()) if each == "S16"] == finds


def test_a_job_that_follows_does_not_yield() -> None:
    trace = Trace()
    add(trace, 1)
    said = record("c").replace(" left", " follows=1 left").replace("made=1", "made=2")
    trace.add(2, OTHER, node="n2", to=(), options=OPTIONS, body="c", record=said)
    yielded(trace, 4, OTHER, "n2")

    assert "S27" in broken(trace.verdict())


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_a_key_is_kept_after_fastack_too(node: str) -> None:
    trace = Trace()
    add(trace, 1, keep=30)
    trace.serve(2)
    trace.fastack(2.5, node)
    if node != "n1":
        trace.send(2.5, "deljob", node, "n1")
    trace.row(2.6, "drop", "n1", job=JOB, cause="fastack" if node == "n1" else "deljob")

    add(trace, 8, OTHER, body="c")

    assert "S24" in broken(trace.verdict())
