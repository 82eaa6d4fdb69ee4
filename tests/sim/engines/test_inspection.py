import pytest

from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.plan import Fault, Plan
from disque_trio.statemachine import lifecycle
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.state import NodeState
from disque_trio.tracing.rows import Row
from tests.sim.mutants.plans.conditions import SECOND, jobs, workers


def rows(kind: str, *faults: Fault) -> list[Row]:
    """Those of that kind of a run of ten seconds with a few jobs."""
    plan = Plan(
        scenario="looked into",
        seed=3,
        nodes=3,
        config=(("cluster-node-timeout", "1000"),),
        adds=jobs(20, nodes=(1, 2, 3)),
        consumers=workers((1,)),
        faults=faults,
        chaos=10 * SECOND,
    )
    found: list[Row] = []
    simulate(plan, found.append)
    return [row for row in found if row.kind == kind]


def test_tables_are_told_when_they_change_and_now_and_then() -> None:
    told = rows("nodes")

    assert {row.detail for row in told} == {"n1 n2 n3", "n2 n1 n3", "n3 n1 n2"}
    assert [row.time // SECOND for row in told if row.node == "n1"][:3] == [1, 5, 10]


def test_a_table_tells_what_a_node_thinks_of_others() -> None:
    told = rows("nodes", Fault(kind="crash", at=2 * SECOND, hold=5 * SECOND, nodes=(3,)))

    assert any("n3:fail" in row.detail or "n3:pfail" in row.detail for row in told)
    assert "fail" not in told[-1].detail


def test_a_table_tells_old_names_from_new_ones() -> None:
    told = rows("nodes", Fault(kind="wipe", at=2 * SECOND, nodes=(3,)))

    assert any("n3~" in row.detail for row in told if row.node == "n1")


def test_states_that_fit_together_are_not_spoken_of() -> None:
    assert rows("invariant", Fault(kind="crash", at=2 * SECOND, hold=SECOND, nodes=(3,))) == []


@pytest.mark.pure
def test_a_state_that_does_not_fit_together_is_told_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    intact = lifecycle.unregister

    def unregister(node: NodeState, job: Job, cause: Cause) -> None:
        intact(node, job, cause)
        node.memory.held += 1

    monkeypatch.setattr(lifecycle, "unregister", unregister)

    told = rows("invariant")
    assert {row.node for row in told} == {"n1", "n2", "n3"}
    assert told[0].detail.startswith("AssertionError: ")
    assert "bytes are on the account" in told[0].detail
