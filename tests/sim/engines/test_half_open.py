"""Connections that are gone at one end, while the other end has not noticed."""

from collections.abc import Callable

import pytest

from disque_trio.sim.checkers.verdict import judge
from disque_trio.sim.engines.heap import run as heap_run
from disque_trio.sim.engines.trio import run as trio_run
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.tracing.rows import Row
from tests.sim.model.faulting import at, pairs
from tests.sim.runs import SECOND, between, of, plan, play

LOST = at(5, "half-open", links=((1, 2),))


def test_what_the_source_sends_arrives_nowhere_until_it_notices() -> None:
    rows = play(plan(LOST))

    (begin,) = of(rows, "half-open")
    (end,) = of(rows, "half-open.end")
    assert (begin.node, begin.peer, begin.time) == ("n1", "n2", 5 * SECOND)
    assert begin.time + SECOND < end.time < begin.time + 4 * SECOND
    meanwhile = between(rows, 5, end.time / SECOND)
    # What n1 answers on links that n2 has dialled since does arrive.
    assert {row.cause for row in of(meanwhile, "recv", node="n2", peer="n1")} <= {"pong"}
    assert of(meanwhile, "lost", node="n1", peer="n2", detail="closed")
    assert of(between(rows, end.time / SECOND, 20), "recv", node="n2", peer="n1")


def test_the_other_direction_and_other_links_go_on() -> None:
    rows = play(plan(LOST))

    (end,) = of(rows, "half-open.end")
    meanwhile = between(rows, 5.2, end.time / SECOND)
    assert of(meanwhile, "recv", node="n1", peer="n2")
    assert of(meanwhile, "recv", node="n3", peer="n1")
    assert not of(rows, "crash", "cut")


def test_connections_that_are_made_later_are_whole() -> None:
    rows = play(plan(at(5, "half-open", links=((1, 2), (2, 1)))))

    assert pairs(of(rows, "half-open.end"))
    assert between(of(rows, "recv", node="n2", peer="n1"), 12, 20)
    assert between(of(rows, "recv", node="n1", peer="n2"), 12, 20)


def test_nodes_that_have_no_connection_have_none_to_lose() -> None:
    rows = play(plan(at(4, "crash", 3, nodes=(2,)), LOST))

    assert not of(rows, "half-open")


Play = Callable[[Plan, Callable[[Row], None]], object]


@pytest.mark.parametrize("play_it", [heap_run.simulate, trio_run.simulate])
def test_nothing_is_lost_by_it_in_machines_and_whole_nodes(play_it: Play) -> None:
    what = plan(at(3, "half-open", nodes=(1,)), at(9, "half-open", nodes=(2,)), jobs=30)
    checkers = judge(what)
    rows: list[Row] = []

    def see(row: Row) -> None:
        rows.append(row)
        checkers.see(row)

    play_it(what, see)
    verdict = checkers.finish()

    assert len(of(rows, "half-open")) == 4
    assert [each.property for each in verdict.violations if each.property[0] != "D"] == []
    assert verdict.lost == 0
    assert verdict.marks["half-open"] == 4
