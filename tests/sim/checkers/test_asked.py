"""Options of requests are carried out (S19), and waits after NACKs grow (S32)."""

from typing import Any

import attrs
import pytest

from tests.sim.checkers.trace import JOB, Trace


def _found(trace: Trace, name: str) -> list[str]:
    return [each.detail for each in trace.verdict(end=400).violations if each.property == name]


def _added(**rest: Any) -> Trace:
    trace = Trace(**rest)
    options = "replicate=1 retry=10 ttl=3600 backoff=1 maxbackoff=4"
    trace.add(100, to=(), options=options)
    return trace


def _nack(trace: Trace, kind: str, option: str) -> None:
    trace.row(101, "nack.invoke", "n1", job=JOB, client="c1", ref=7, cause=option)
    trace.row(101.001, kind, "n1", job=JOB, cause="nack", detail="wait=1000")
    trace.row(101.002, "nack.ok", "n1", job=JOB, client="c1", ref=7, detail="1")


@pytest.mark.parametrize(
    ("option", "kind", "is_ignored"),
    [("delay", "postpone", False), ("delay", "queue", True), ("dead", "postpone", True)],
)
def test_a_job_that_is_given_back_is_what_the_option_says(
    option: str, kind: str, *, is_ignored: bool
) -> None:
    trace = _added()
    _nack(trace, kind, option)

    found = [f"nack has ignored {option.upper()}"] if is_ignored else []
    assert _found(trace, "S19") == found


@pytest.mark.parametrize(("taken", "is_more"), [("3", False), ("4", True)])
def test_no_more_jobs_are_redriven_than_were_asked_for(taken: str, *, is_more: bool) -> None:
    trace = Trace()
    trace.row(1, "redrive.invoke", "n1", queue="q", client="a", ref=7, detail="count=3")
    trace.row(2, "redrive.ok", "n1", queue="q", client="a", ref=7, detail=taken)

    assert bool(_found(trace, "S19")) == is_more


@pytest.mark.parametrize(
    ("waits", "is_right"),
    [((1000, 2000, 4000, 4800), True), ((1000, 1000), False), ((1000, 2000, 4000, 8000), False)],
)
def test_each_wait_is_twice_the_last_up_to_the_longest(
    waits: tuple[int, ...], *, is_right: bool
) -> None:
    trace = _added()
    for number, wait in enumerate(waits):
        detail = f"wait={wait}"
        trace.row(110 + 20 * number, "postpone", "n1", job=JOB, cause="nack", detail=detail)

    assert bool(_found(trace, "S32")) != is_right


def _purged(kind: str, *, journal: str = "no", file: str = "framed", passed: bool = False) -> Trace:
    trace = Trace(config=(("appendonly", journal), ("aof-format", file)))
    trace.add(1, to=("n2",))
    trace.row(30, f"{kind}.invoke", "n1", queue="q", client="a", ref=7, cause="bcast")
    if passed:
        trace.send(30.01, "purge", "n1", "n2", job="")
    trace.row(30.02, f"{kind}.ok", "n1", queue="q", client="a", ref=7, detail="0")
    return trace


@pytest.mark.parametrize("kind", ["purge", "purge-dead"])
def test_a_purge_of_all_nodes_is_passed_on(kind: str) -> None:
    assert _found(_purged(kind, passed=True), "S19") == []
    untold = ["PURGE with BCAST has told no other node"]
    assert _found(_purged(kind), "S19") == untold
    assert _found(_purged(kind, file="disque"), "S19") == untold


@pytest.mark.parametrize("kind", ["purge", "purge-dead"])
def test_a_node_beside_which_there_are_some_of_earlier_versions_may_have_none_to_tell(
    kind: str,
) -> None:
    """everything, seed 441: two of three nodes spoke the original's protocol."""
    trace = _purged(kind)
    trace.plan = attrs.evolve(trace.plan, versions=(("2",), ("original",), ("original",)))

    assert _found(trace, "S19") == []


@pytest.mark.parametrize(("kind", "is_due"), [("purge", True), ("purge-dead", False)])
def test_nodes_with_journals_in_the_original_format_are_told_of_no_dead_jobs(
    kind: str, *, is_due: bool
) -> None:
    found = _found(_purged(kind, journal="yes", file="disque"), "S19")

    assert bool(found) == is_due
