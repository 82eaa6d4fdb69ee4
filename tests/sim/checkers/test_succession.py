"""S24, S28, S29 and L12: a job that follows others with its key is queued when they have ended, and
what it replaces is not served."""

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from disque_trio.sim.scenarios.plan import Fault
from tests.sim.checkers.test_unique import OPTIONS, OTHER, add, ask, end, record
from tests.sim.checkers.trace import JOB, Trace, broken

FOLLOWS = record("c").replace(" left", " follows=1 left").replace("made=1", "made=2")


def changed(text: str, change: Mapping[str, str]) -> str:
    for old, new in change.items():
        text = text.replace(old, new)
    return text


def follower(
    trace: Trace,
    time: float,
    job: str = OTHER,
    *,
    way: str = "replace",
    node: str = "n2",
    change: Mapping[str, str] = MappingProxyType({}),
    is_answered: bool = True,
) -> None:
    """A job that waits for the end of those before it."""
    said = changed(FOLLOWS, change)
    options = changed(f"{OPTIONS} ifexists={way}", change)
    trace.row(
        time, "add.invoke", node, queue="q", client="p", ref=90,
        detail=f"timeout=1000 {options} body=c",
    )  # fmt: skip
    trace.row(time, "hold", node, job=job, queue="q", cause="add", detail=said)
    if is_answered:
        trace.row(time + 0.01, "add.ok", node, job=job, queue="q", client="p", ref=90)


def queue_follower(trace: Trace, time: float, cause: str = "followed") -> None:
    trace.row(time, "queue", "n2", job=OTHER, queue="q", cause=cause)


@pytest.mark.parametrize(
    ("time", "cause", "finds"),
    [
        (5.0, "followed", ["S28"]),
        (5.0, "retry", ["S28"]),
        (5.0, "enqueue", []),
        (10.0, "followed", []),
        (20.0, "followed", ["L12"]),
    ],
)
def test_a_job_that_follows_is_queued_when_the_first_has_ended(
    time: float, cause: str, finds: list[str]
) -> None:
    trace = Trace()
    add(trace, 1)
    follower(trace, 2, way="again")
    if time < 9:
        queue_follower(trace, time, cause)
    end(trace, 9)
    if time > 9:
        queue_follower(trace, time, cause)

    assert [each for each in broken(trace.verdict()) if each in ("S24", "S28", "L12")] == finds


@pytest.mark.parametrize(
    ("asked", "finds"), [(7.0, []), (9.5, ["S28"])], ids=["suspected", "its answer may still come"]
)
def test_it_does_not_wait_for_a_node_that_is_suspected(asked: float, finds: list[str]) -> None:
    trace = Trace()
    add(trace, 1)
    follower(trace, 2, way="again")
    trace.send(asked, "ping", "n2", "n1", "", lag=None)
    queue_follower(trace, 10)

    assert [each for each in broken(trace.verdict()) if each == "S28"] == finds


def outlived(*, ends: bool = False, is_queued: bool = False, forgets: bool = True) -> Trace:
    """n3 queues the follower too early, has its ack, and crashes before it has told n2."""
    trace = Trace()
    add(trace, 1)
    change = {"replicate=1": "replicate=2"}
    follower(trace, 2, way="again", change=change, is_answered=False)
    trace.copy(2.005, "n2", "n3", OTHER, record=changed(FOLLOWS, change))
    trace.row(2.02, "add.ok", "n2", job=OTHER, queue="q", client="p", ref=90)
    trace.row(5, "queue", "n3", job=OTHER, queue="q", cause="followed")
    trace.serve(5.1, "n3", job=OTHER)
    trace.ack(5.2, "n3", job=OTHER)
    trace.send(5.21, "setack", "n3", "n2", OTHER, detail="holders=2", lost=5.22)
    if forgets:
        trace.crash(6, "n3", back=7)
    if is_queued:
        queue_follower(trace, 8)
    if ends:
        end(trace, 9)
    trace.heal(20)
    return trace


def test_a_copy_that_waits_for_another_job_may_outlive_the_ack() -> None:
    assert "L3" not in broken(outlived().verdict(end=400))


@pytest.mark.parametrize(
    "trace",
    [outlived(ends=True), outlived(is_queued=True), outlived(forgets=False)],
    ids=["the other has ended", "it does not wait", "one still knows of the ack"],
)
def test_no_other_copy_may(trace: Trace) -> None:
    assert "L3" in broken(trace.verdict(end=400))


def test_one_that_is_never_queued_is_found_at_the_end() -> None:
    trace = Trace()
    add(trace, 1)
    follower(trace, 2, way="again")
    end(trace, 9)
    trace.row(60, "note", "n1")

    assert "L12" in broken(trace.verdict())


@pytest.mark.parametrize(
    ("crashed", "time", "finds"),
    [("n2", 100.0, False), ("n2", 320.0, True), ("n1", 100.0, True), ("", 100.0, True)],
)
def test_another_holder_queues_it_a_retry_after_its_node_has_crashed(
    crashed: str, time: float, *, finds: bool
) -> None:
    trace = Trace(faults=[Fault(kind="crash", at=3_000_000)])
    add(trace, 1, node="n3")
    long = {"retry=10 ": "retry=300 ", "retry=10000": "retry=300000"}
    follower(trace, 2, way="again", change=long)
    said = changed(FOLLOWS, long)
    trace.row(2.005, "hold", "n3", job=OTHER, queue="q", cause="repljob", detail=said)
    if crashed:
        trace.crash(3, crashed, back=4)
    end(trace, 60, node="n3")
    trace.row(time, "queue", "n3", job=OTHER, queue="q", cause="followed")

    assert ("L12" in broken(trace.verdict())) == finds


@pytest.mark.parametrize(("crashed", "finds"), [("n1", False), ("", True)])
def test_another_holder_queues_it_a_retry_after_a_holder_to_which_it_was_left_has_crashed(
    crashed: str, *, finds: bool
) -> None:
    trace = Trace(faults=[Fault(kind="crash", at=3_000_000)])
    add(trace, 1, node="n3")
    long = {"retry=10 ": "retry=300 ", "retry=10000": "retry=300000"}
    follower(trace, 2, way="again", change=long)
    for node in ("n1", "n3"):
        said = changed(FOLLOWS, long)
        trace.row(2.005, "hold", node, job=OTHER, queue="q", cause="repljob", detail=said)
    trace.row(2.02, "drop", "n2", job=OTHER, cause="handed-over")
    if crashed:
        trace.crash(3, crashed, back=4)
    end(trace, 60, node="n3")
    trace.row(100, "queue", "n3", job=OTHER, queue="q", cause="followed")

    assert ("L12" in broken(trace.verdict())) == finds


def test_one_job_waits_for_the_first() -> None:
    trace = Trace()
    add(trace, 1)
    follower(trace, 2, way="again")
    follower(trace, 3, "D-89abcdef-DDDDDDDDDDDDDDDDDDDDDDDD-003d", way="again", node="n3")

    assert "S24" in broken(trace.verdict())


@pytest.mark.parametrize(("is_replaced", "finds"), [(True, False), (False, True)])
def test_what_is_replaced_is_not_served(*, is_replaced: bool, finds: bool) -> None:
    trace = Trace()
    add(trace, 1)
    follower(trace, 2)
    if is_replaced:
        replaced(trace, 2.005)
    else:
        trace.serve(5)

    assert ("S29" in broken(trace.verdict())) == finds


@pytest.mark.parametrize(
    ("asked", "keep", "finds"), [(2.01, 10, False), (3, 10, True), (2.01, 0, True)]
)
def test_a_key_is_free_when_all_have_heard_that_its_job_is_replaced(
    asked: float, keep: int, *, finds: bool
) -> None:
    trace = Trace()
    add(trace, 1, keep=keep)
    follower(trace, 2)
    replaced(trace, 2.005)

    ask(trace, asked)

    assert ("S25" in broken(trace.verdict())) == finds


def test_a_key_may_be_kept_while_the_addjob_that_replaces_its_job_waits() -> None:
    trace = Trace()
    add(trace, 1, keep=10)
    follower(trace, 2, is_answered=False)
    replaced(trace, 2.005)

    ask(trace, 3)

    assert "S25" not in broken(trace.verdict())


def replaced(trace: Trace, time: float) -> None:
    trace.row(time, "unqueue", "n1", job=JOB, queue="q", cause="acked")
    trace.row(time, "acked", "n1", job=JOB, queue="q", cause="replaced")


def test_a_job_is_replaced_only_by_one_that_has_its_copies() -> None:
    trace = Trace()
    add(trace, 1)
    replaced(trace, 2)

    assert "S29" in broken(trace.verdict())


@pytest.mark.parametrize(
    ("options", "default", "finds"),
    [
        ("replicate=2", "0", True),
        ("replicate=2", "1", False),
        ("replicate=2 sync=1", "0", False),
        ("replicate=3 sync=2", "1", True),
    ],
)
def test_these_are_as_many_as_its_addjob_waits_for(
    options: str, default: str, *, finds: bool
) -> None:
    trace = Trace(config=(("default-sync", default),))
    add(trace, 1)
    follower(trace, 2, change={"replicate=1": options}, is_answered=False)
    replaced(trace, 2.005)

    assert ("S29" in broken(trace.verdict())) == finds


@pytest.mark.parametrize(
    ("leaves", "has_copy", "finds"),
    [(True, True, False), (False, True, True), (True, False, True)],
)
def test_more_than_one_copy_is_not_due_if_the_client_of_the_addjob_has_gone(
    *, leaves: bool, has_copy: bool, finds: bool
) -> None:
    """everything, seed 6222."""
    trace = Trace(config=(("default-sync", "0"),))
    add(trace, 1)
    follower(trace, 2, change={"replicate=1": "replicate=2"}, is_answered=False)
    if leaves:
        trace.row(2.004, "add.unknown", "n2", queue="q", client="p", ref=90, cause="quit")
    if not has_copy:
        trace.row(2.0045, "drop", "n2", job=OTHER, cause="unreplicated")
    replaced(trace, 2.005)

    assert ("S29" in broken(trace.verdict())) == finds


def test_a_job_that_a_worker_has_is_not_replaced() -> None:
    trace = Trace()
    add(trace, 1)
    trace.serve(2)
    follower(trace, 3)
    trace.row(3.005, "acked", "n1", job=JOB, queue="q", cause="replaced")

    assert "S29" in broken(trace.verdict())


@pytest.mark.parametrize(
    ("way", "stamp", "finds"), [("again", 2, True), ("replace", 0, True), ("replace", 2, False)]
)
def test_a_job_is_replaced_only_by_a_later_one_that_has_asked_for_it(
    way: str, stamp: int, *, finds: bool
) -> None:
    trace = Trace()
    add(trace, 1)
    follower(trace, 2, way=way, change={"made=2": f"made={stamp}"})
    replaced(trace, 2.02)

    assert ("S29" in broken(trace.verdict())) == finds
