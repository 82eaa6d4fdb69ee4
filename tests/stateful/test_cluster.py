import re
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings

import disque_trio.testing
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.testing import ClusterStateMachine, plans, verdict_of

QUICK = settings(
    max_examples=25,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
ClusterStateMachine.TestCase.settings = QUICK
TestCluster = ClusterStateMachine.TestCase


@pytest.mark.sample(2)
@pytest.mark.parametrize("examples", [15, 40])
def test_whatever_the_plan_the_judge_is_content(examples: int) -> None:
    @settings(QUICK, max_examples=examples)
    @given(plan=plans())
    def whatever(plan: Plan) -> None:
        verdict = verdict_of(plan)
        assert verdict.ok, verdict.violations

    whatever()


def test_without_hypothesis_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    for name in ("hypothesis", "drawing"):
        monkeypatch.delitem(sys.modules, f"disque_trio.testing.{name}", raising=False)

    with pytest.raises(ImportError, match=r"pip install 'disque-trio\[testing\]'"):
        disque_trio.testing.plans  # noqa: B018


# The page's examples.

EXAMPLES: Final = re.findall(
    r"^```python\n(.*?)^```$",
    (Path(__file__).parents[2] / "docs" / "simulation.md").read_text("utf-8"),
    re.DOTALL | re.MULTILINE,
)


@pytest.mark.parametrize("example", EXAMPLES, ids=["plans", "state machine", "by hand"])
def test_the_examples_of_the_page_are_tests_that_pass(example: str) -> None:
    names: dict[str, Any] = {}

    exec(example, names)

    tests = [test for name, test in names.items() if name.startswith("test_")]
    machines = [case for name, case in names.items() if name.startswith("Test")]
    assert len(tests) + len(machines) > 0
    for test in tests:
        test()
    for case in machines:
        case("runTest").runTest()
