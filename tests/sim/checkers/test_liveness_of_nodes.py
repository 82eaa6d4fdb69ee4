"""L5 to L7: nodes take jobs, find each other, and make lost copies again."""

import attrs
import pytest

from tests.sim.checkers.trace import JOB, Trace, broken
from tests.sim.checkers.waits import waiting

# L5


def refused(kind: str, cause: str) -> Trace:
    trace = Trace()
    detail = "timeout=1000 replicate=1 retry=10 body=b"
    trace.row(5, "add.invoke", "n1", queue="q", client="p1", ref=9, detail=detail)
    trace.row(6, kind, "n1", queue="q", client="p1", ref=9, cause=cause)
    return trace


@pytest.mark.parametrize(
    ("kind", "cause", "due"),
    [
        ("add.refused", "NOREPL", ["L5"]),
        ("add.unknown", "timeout", ["L5"]),
        ("add.refused", "PAUSED", []),
    ],
)
def test_a_lone_node_takes_jobs(kind: str, cause: str, due: list[str]) -> None:
    assert broken(refused(kind, cause).verdict()) == due


@pytest.mark.parametrize(
    ("joined", "replicate", "due"),
    [(2, "", []), (2, "replicate=1 ", ["L5"]), (1, "", ["L5"])],
)
def test_by_default_it_wants_copies_once_others_have_joined(
    joined: int, replicate: str, due: list[str]
) -> None:
    """everything, seed 788."""
    trace = Trace(nodes=1, config=(("default-replicate", "4"),))
    for node in range(2, joined + 1):
        trace.row(2, "start", f"n{node}", cause="fresh")
    detail = f"timeout=1000 {replicate}retry=10 body=b"
    trace.row(5, "add.invoke", "n1", queue="q", client="p1", ref=9, detail=detail)
    trace.row(6, "add.refused", "n1", queue="q", client="p1", ref=9, cause="NOREPL")

    assert broken(trace.verdict()) == due


def test_a_node_that_is_stopped_or_leaves_need_not() -> None:
    for kind in ("pause", "leave", "crash"):
        trace = refused("add.unknown", "timeout")
        trace.row(4, kind, "n1")
        assert trace.verdict().ok, kind


@pytest.mark.parametrize(("fell", "due"), [(4.9999, []), (4.5, ["L5"])])
def test_nor_one_that_has_just_come_back_without_its_clients(fell: float, due: list[str]) -> None:
    trace = refused("add.unknown", "disconnect")
    trace.crash(fell, "n1", back=fell)

    assert broken(trace.verdict()) == due


@pytest.mark.parametrize(("start", "due"), [(0.5, []), (0, ["L5"])])
def test_one_that_could_not_sync_its_journal_at_its_start_writes_it_again_first(
    start: float, due: list[str]
) -> None:
    """everything, seed 5349."""
    trace = refused("add.unknown", "MISCONF")
    trace.row(0.4, "disk.error", "n1", detail="yes")
    trace.row(1, "disk.error", "n1", detail="no")
    if start:
        trace.crash(0.3, "n1", back=start)

    assert broken(trace.verdict()) == due


def test_nor_one_that_was_asked_while_it_was_to_leave() -> None:
    trace = refused("add.unknown", "timeout")
    trace.row(4, "leave", "n1", detail="yes")
    trace.row(5.5, "leave", "n1", detail="no")

    assert trace.verdict().ok


@pytest.mark.parametrize(("started", "due"), [(4.005, []), (3.9, ["L5"])])
def test_an_order_to_stay_may_be_missed_at_a_start(started: float, due: list[str]) -> None:
    """everything, seed 6518."""
    trace = refused("add.refused", "NOREPL")
    trace.row(2, "leave", "n1", detail="yes")
    trace.row(4, "leave", "n1", detail="no")
    trace.crash(3, "n1", back=started)

    assert broken(trace.verdict()) == due


@pytest.mark.parametrize(("again", "due"), [("yes", []), ("no", ["L5"])])
def test_a_later_order_to_stay_reaches_it(again: str, due: list[str]) -> None:
    trace = refused("add.refused", "NOREPL")
    trace.row(1, "leave", "n1", detail="yes")
    trace.crash(3, "n1", back=4)
    trace.row(3.995, "leave", "n1", detail="no")
    trace.row(4.5, "leave", "n1", detail=again)

    assert broken(trace.verdict()) == due


@pytest.mark.parametrize("options", ["timeout=4000 replicate=3", "timeout=4000 replicate=1"])
@pytest.mark.parametrize(("first_ends", "due"), [(12, []), (9.5, ["L5"])])
def test_nor_one_in_a_pipeline_behind_one_that_a_stop_held_up(
    options: str, first_ends: float, due: list[str]
) -> None:
    trace = Trace()
    trace.row(1, "pause", "n1")
    detail = f"{options} retry=10 body=b"
    trace.row(2, "add.invoke", "n1", queue="q", client="p1", ref=8, detail=detail)
    trace.row(5, "resume", "n1")
    detail = detail.replace("4000", "200")
    trace.row(6, "add.invoke", "n1", queue="q", client="p1", ref=9, detail=detail)
    trace.row(first_ends, "add.unknown", "n1", queue="q", client="p1", ref=8, cause="timeout")
    trace.row(12, "add.unknown", "n1", queue="q", client="p1", ref=9, cause="timeout")

    assert broken(trace.verdict()) == due


def test_no_answer_at_all_is_none() -> None:
    trace = Trace()
    detail = "timeout=1000 replicate=1 retry=10 body=b"
    trace.row(5, "add.invoke", "n1", queue="q", client="p1", ref=9, detail=detail)

    assert trace.verdict(end=10).ok
    assert broken(trace.verdict(end=30)) == ["L5"]


@pytest.mark.parametrize(
    ("kind", "cause", "due"),
    [
        ("add.unknown", "timeout", ["L5"]),
        ("add.refused", "NOREPL", ["L5"]),
        ("add.refused", "MAXLEN", []),
    ],
)
def test_in_calm_a_job_that_there_are_nodes_for_is_taken(
    kind: str, cause: str, due: list[str]
) -> None:
    trace = Trace()
    detail = "timeout=2000 replicate=3 retry=10 body=b"
    trace.row(5, "add.invoke", "n1", queue="q", client="p1", ref=9, detail=detail)
    trace.row(12.5, kind, "n1", queue="q", client="p1", ref=9, cause=cause)

    assert broken(trace.verdict()) == due


@pytest.mark.parametrize("options", ["timeout=2000 replicate=4", "timeout=50 replicate=3"])
def test_but_not_one_that_wants_more_nodes_or_less_time(options: str) -> None:
    trace = Trace()
    detail = f"{options} retry=10 body=b"
    trace.row(5, "add.invoke", "n1", queue="q", client="p1", ref=9, detail=detail)
    trace.row(7, "add.refused", "n1", queue="q", client="p1", ref=9, cause="NOREPL")

    assert trace.verdict().ok


def test_nor_one_that_misses_a_node() -> None:
    trace = Trace()
    trace.crash(4, "n3")
    detail = "timeout=2000 replicate=3 retry=10 body=b"
    trace.row(5, "add.invoke", "n1", queue="q", client="p1", ref=9, detail=detail)
    trace.row(7, "add.refused", "n1", queue="q", client="p1", ref=9, cause="NOREPL")

    assert trace.verdict().ok


@pytest.mark.parametrize(
    ("refused", "asked_again", "words", "is_excused"),
    [
        (7.6, 9, "1 can keep a job with extensions", True),
        (7.4, 9, "1 can keep a job with extensions", False),
        (7.6, 9, "", True),
        (7.6, 7.55, "1 can keep a job with extensions", True),
        (7.6, 7.55, "", False),
        (7.8, 7.55, "1 can keep a job with extensions", False),
    ],
)
def test_nor_one_whose_node_has_just_given_up_a_link(
    refused: float, asked_again: float, words: str, *, is_excused: bool
) -> None:
    trace = Trace()
    trace.row(7, "send", "n1", peer="n3", cause="ping", ref=70)
    rows = [
        (asked_again, "send", "n1", "n3", "ping", 71),
        (asked_again + 0.2, "recv", "n1", "n3", "pong", 72),
    ]
    detail = "timeout=2000 replicate=3 retry=10 body=b"
    for time, kind, node, peer, cause, ref in [row for row in rows if row[0] < refused]:
        trace.row(time, kind, node, peer=peer, cause=cause, ref=ref)
    trace.row(refused, "add.invoke", "n1", queue="q", client="p1", ref=9, detail=detail)
    trace.row(
        refused, "add.refused", "n1", queue="q", client="p1", ref=9, cause="NOREPL", detail=words
    )

    assert broken(trace.verdict()) == ([] if is_excused else ["L5"])


# L6


def test_after_the_heal_the_nodes_find_each_other() -> None:
    assert waiting().verdict(end=30).checks["L6"] == 1


def test_they_may_not_take_for_ever() -> None:
    trace = waiting(consumers=(), rejoins=False)

    assert "L6" in trace.verdict(end=35).not_judged
    assert broken(trace.verdict(end=60)) == ["L6"]


def test_they_may_not_be_late() -> None:
    trace = waiting(consumers=(), rejoins=False)
    trace.row(45, "rejoin")

    assert broken(trace.verdict(end=60)) == ["L6"]


def test_gossip_will_do_where_nobody_looks_into_the_nodes() -> None:
    trace = waiting(consumers=(), rejoins=False)
    for node in ("n1", "n2", "n3"):
        for peer in ("n1", "n2", "n3"):
            if node != peer:
                trace.send(30, "ping", node, peer, job="")

    verdict = trace.verdict(end=60)

    assert verdict.ok
    assert verdict.checks["L6"] == 1


# L7


def lost_on(
    *, after: str = "10", options: str = "replicate=2 retry=10 ttl=3600", core: str = ""
) -> Trace:
    """A node with a copy is gone for good. All is well after 20 s, but for what it had."""
    trace = Trace(4, consumers=(), config=(("replica-repair-after", after),))
    trace.add(0, to=("n2",), options=options)
    trace.row(10, "crash", "n2", cause="kill")
    trace.row(10, "remove", "n2")
    trace.heal(20, core=core)
    return trace


REPAIR = 10 + 2 * 40 + 3 * 15 + 17 + 1


def test_a_copy_that_is_gone_for_good_must_be_made_again() -> None:
    assert broken(lost_on().verdict(end=20 + REPAIR + 1)) == ["L7"]


@pytest.mark.parametrize(("gone", "due"), [(("n2",), ["L7"]), (("n2", "n3"), [])])
def test_before_the_heal_it_must_be_made_again_while_most_nodes_are_left(
    gone: tuple[str, ...], due: list[str]
) -> None:
    trace = Trace(4, consumers=(), config=(("replica-repair-after", "10"),))
    trace.add(0, to=("n2",), options="replicate=2 retry=900")
    for node in gone:
        trace.row(10, "crash", node, cause="kill")
        trace.row(10, "remove", node)
    trace.row(12, "nodes", "n1", detail="n2:fail n3 n4")
    trace.row(10 + REPAIR + 1, "chaos.end")

    assert broken(trace.verdict()) == due


@pytest.mark.parametrize(("came_back", "due"), [("empty", []), ("", ["L7"])])
def test_before_the_heal_nobody_notices_a_node_that_has_come_back_without_its_copy(
    came_back: str, due: list[str]
) -> None:
    """everything, seed 531: its holder takes it for the second one that the job shall have."""
    trace = Trace(4, consumers=(), config=(("replica-repair-after", "10"),))
    trace.add(0, to=("n2", "n3"), options="replicate=2 delay=8 retry=900")
    if came_back:
        trace.row(5, "crash", "n1", cause="kill")
        trace.row(6, "start", "n1", cause=came_back)
    else:
        trace.row(5, "drop", "n1", job=JOB, cause="evicted")
    trace.row(10, "crash", "n3", cause="kill")
    trace.row(10, "remove", "n3")
    trace.row(12, "nodes", "n2", detail="n1 n3:fail n4")
    trace.row(10 + REPAIR + 1, "chaos.end")

    assert [each for each in broken(trace.verdict()) if each == "L7"] == due


@pytest.mark.parametrize(
    ("nodes", "back", "gone", "due"),
    [(3, "n1", "n2", []), (4, "n1", "n2", ["L7"]), (3, "n2", "n1", ["L7"])],
    ids=["no other node", "another node", "holders ask each other"],
)
@pytest.mark.parametrize("is_healed", [False, True])
def test_a_node_that_the_holder_still_lists_is_asked_only_without_the_node_of_the_addjob(
    nodes: int, back: str, gone: str, due: list[str], *, is_healed: bool
) -> None:
    """everything, seeds 6245, 6343 and 6366."""
    trace = Trace(nodes, consumers=(), config=(("replica-repair-after", "10"),))
    trace.add(0, to=("n2", "n3"), options="replicate=3 retry=900 ttl=3600")
    trace.row(5, "crash", back, cause="power")
    trace.row(6, "start", back, cause="empty")
    trace.row(10, "crash", gone, cause="kill")
    trace.row(10, "remove", gone)
    trace.row(12, "nodes", "n3", detail=f"{back} {gone}:fail" + " n4" * (nodes == 4))
    if is_healed:
        trace.heal(20)
    else:
        trace.row(10 + REPAIR + 1, "chaos.end")

    verdict = trace.verdict(end=20 + REPAIR + 1) if is_healed else trace.verdict()

    assert [each for each in broken(verdict) if each == "L7"] == due


@pytest.mark.parametrize(("option", "due"), [("sync=2", ["L7"]), ("async", []), ("sync=3", [])])
def test_copies_for_which_sync_did_not_wait_are_made_and_not_those_of_async(
    option: str, due: list[str]
) -> None:
    """everything, seed 533: ASYNC with `default-sync`."""
    config = (("replica-repair-after", "0"), ("default-sync", "2"))
    trace = Trace(4, consumers=(), config=config)
    trace.add(0, to=("n2",), options=f"replicate=3 retry=900 ttl=3600 {option}")
    trace.heal(20)

    assert [each for each in broken(trace.verdict(end=400)) if each == "L7"] == due


@pytest.mark.parametrize(("copies", "due"), [(3, []), (4, ["L7"])])
def test_a_copy_outside_the_core_counts_where_repair_is_off(copies: int, due: list[str]) -> None:
    """everything, seed 3289."""
    trace = Trace(4, consumers=(), config=(("replica-repair-after", "0"),))
    options = f"replicate={copies} retry=900 ttl=3600 sync=1"
    trace.add(0, to=("n2", "n3"), options=options)
    trace.heal(20, core="n1,n3,n4")

    assert [each for each in broken(trace.verdict(end=400)) if each == "L7"] == due


@pytest.mark.parametrize(
    ("versions", "is_dead", "due"),
    [
        (("original",), True, []),
        (("original",), False, ["L7"]),
        (("original", "2"), True, ["L7"]),
        (("0",), True, ["L7"]),
    ],
)
def test_a_node_of_a_version_without_dead_jobs_takes_no_copy_of_one(
    versions: tuple[str, ...], due: list[str], *, is_dead: bool
) -> None:
    """everything, seed 4092."""
    trace = Trace(4, consumers=(), config=(("replica-repair-after", "10"),))
    lives = (("2",), ("2",), ("2",), versions)
    trace.plan = attrs.evolve(trace.plan, versions=lives)
    trace.add(0, to=("n2", "n3"), options="replicate=4 retry=900 ttl=3600 sync=2")
    if is_dead:
        for node in ("n1", "n2", "n3"):
            trace.row(2, "dead", node, job=JOB, cause="nack-dead", detail="redriven=0 left=604800")
    if len(versions) > 1:
        trace.crash(3, "n4", back=4)
    trace.heal(20)

    assert [each for each in broken(trace.verdict(end=400)) if each == "L7"] == due


def test_of_a_job_whose_only_copy_is_gone_nobody_can_make_another() -> None:
    trace = Trace(4, consumers=(), config=(("replica-repair-after", "10"),))
    trace.add(0, to=(), options="replicate=1 retry=900")
    trace.row(10, "crash", "n1", cause="kill")
    trace.row(10, "remove", "n1")
    trace.row(12, "nodes", "n2", detail="n1:fail n3 n4")
    trace.row(10 + REPAIR + 1, "chaos.end")

    assert broken(trace.verdict()) == []


@pytest.mark.parametrize(("memory", "due"), [("60kb", []), ("1gb", ["L7"])])
@pytest.mark.parametrize("is_healed", [False, True])
def test_a_node_without_memory_for_it_takes_no_copy(
    memory: str, due: list[str], *, is_healed: bool
) -> None:
    """everything, seeds 1269 and 1280: dead jobs filled the nodes."""
    config = (("replica-repair-after", "10"), ("maxmemory", memory))
    trace = Trace(4, consumers=(), config=config)
    trace.add(0, to=("n2",), options="replicate=2 retry=900")
    trace.row(10, "crash", "n2", cause="kill")
    trace.row(10, "remove", "n2")
    trace.row(12, "nodes", "n1", detail="n2:fail n3 n4")
    if is_healed:
        trace.heal(20)
    else:
        trace.row(10 + REPAIR + 1, "chaos.end")

    found = broken(trace.verdict(end=20 + REPAIR + 1))
    assert [each for each in found if each == "L7"] == due


def test_it_has_been_made_again() -> None:
    trace = lost_on()
    trace.copy(40, "n1", "n3")

    verdict = trace.verdict(end=20 + REPAIR + 1)

    assert broken(verdict) == []
    assert verdict.checks["L7"] == 1
    assert verdict.marks["copy.restored"] == 1


@pytest.mark.parametrize(("core", "due"), [("n1,n3,n4", ["L7"]), ("n3,n4", [])])
def test_only_nodes_of_the_core_that_have_a_copy_can_make_it_again(
    core: str, due: list[str]
) -> None:
    assert broken(lost_on(core=core).verdict(end=20 + REPAIR + 1)) == due


def test_after_a_heal_that_leaves_no_node_there_is_nothing_to_judge() -> None:
    trace = Trace(1, consumers=())
    trace.crash(10, "n1")
    trace.row(10, "remove", "n1")
    trace.row(20, "chaos.end")
    trace.row(20, "heal.end")

    assert broken(trace.verdict(end=100)) == []


def test_making_it_again_takes_a_while() -> None:
    assert "L7" in lost_on().verdict(end=60).not_judged


def test_nothing_is_made_again_where_repair_is_off_or_promised_once() -> None:
    assert "L7" in lost_on(after="0").verdict(end=300).not_judged


@pytest.mark.parametrize(("came_back", "due"), [("loaded", []), ("fresh", ["L7"])])
def test_a_node_that_came_back_without_its_copy_is_not_asked_again_unless_its_name_is_new(
    came_back: str, due: list[str]
) -> None:
    trace = Trace(3, consumers=(), config=(("replica-repair-after", "10"),))
    trace.add(0)
    trace.row(10, "crash", "n2", cause="kill")
    trace.row(10, "remove", "n2")
    trace.row(11, "crash", "n3", cause="power")
    trace.row(12, "start", "n3", cause=came_back)
    trace.heal(20)

    assert broken(trace.verdict(end=20 + REPAIR + 1)) == due


def test_more_copies_than_nodes_are_not_asked_for() -> None:
    trace = Trace(3, consumers=())
    trace.add(0)
    trace.row(10, "crash", "n2", cause="kill")
    trace.row(10, "remove", "n2")
    trace.heal(20)

    verdict = trace.verdict(end=100)

    assert broken(verdict) == []
    assert verdict.checks["L7"] == 1


def test_a_queue_that_is_paused_takes_no_copies() -> None:
    trace = lost_on()
    trace.row(15, "pause-queue", "n3", detail="q in")

    assert "L7" in trace.verdict(end=300).not_judged


@pytest.mark.parametrize("cause", ["repljob", "loaded"])
@pytest.mark.parametrize(
    ("table", "is_due"),
    [("n1 n3:pfail n4", False), ("n1 n3 n4", False), ("n1 n3:fail n4", True), ("n1 n4", True)],
)
def test_a_copy_outside_of_the_core_counts_while_most_nodes_reach_its_node(
    table: str, cause: str, *, is_due: bool
) -> None:
    config = (("replica-repair-after", "10"), ("appendonly", "yes"))
    trace = Trace(4, consumers=(), config=config)
    trace.add(0, to=("n2", "n3"), options="replicate=2 retry=10 ttl=3600")
    if cause == "loaded":
        trace.row(5, "crash", "n1", cause="kill")
        trace.row(6, "start", "n1", cause="loaded")
        trace.row(6, "hold", "n1", job=JOB, queue="q", cause="loaded")
        trace.row(6, "loaded", "n1", cause="kept")
    trace.row(10, "crash", "n2", cause="kill")
    trace.row(10, "remove", "n2")
    trace.heal(20, core="n1,n4")
    trace.row(25, "nodes", "n1", detail=table)

    assert ("L7" in broken(trace.verdict(end=300))) == is_due
