from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.sim.scenarios import plan_file
from disque_trio.sim.scenarios.apps import HandlerAction
from disque_trio.sim.scenarios.plan import (
    Add,
    ClockPlan,
    Consumer,
    Expect,
    Fault,
    Latency,
    LinkPlan,
    Plan,
)
from disque_trio.sim.scenarios.plan_file import PlanError

PLAN = Plan(
    scenario="x",
    seed=5,
    nodes=3,
    link=LinkPlan(model="hostile", latency=Latency(fast=(1, 2), p_slow=0.5), drop=0.25),
    clocks=(ClockPlan(), ClockPlan(drift_ppm=-3)),
    config=(("hz", "100"),),
    adds=(Add(at=1, node=1, producer="p1", queue="q", body="p1-1", retry_s=0, is_async=True),),
    consumers=(
        Consumer(name="c1", node=2, queues=("q", "r"), mix=(("ackjob", 1.0), ("die", 0.5))),
    ),
    faults=(
        Fault(kind="partition", at=5, hold=6, groups=((1,), (2, 3))),
        Fault(kind="cut", at=7, links=((1, 2), (2, 1))),
    ),
    heal="core",
    expect=Expect(duplicates=("D1",), sometimes=("x.y",)),
)


def test_a_plan_survives_being_written() -> None:
    assert plan_file.parse(plan_file.dump(PLAN)) == PLAN


def test_a_plan_of_an_earlier_release_has_keys_of_another_name() -> None:
    text = (
        '{"plan": 1, "scenario": "x", "seed": 1, "nodes": 3, "apps": {"calls": [{"at": 1, '
        '"producer": 1, "jobs": [{"number": 1, "task": "t", "deeds": [{"kind": "error"}]}]}]}}'
    )

    plan = plan_file.parse(text)

    assert plan.apps is not None
    assert plan.apps.calls[0].jobs[0].actions == (HandlerAction(kind="error"),)


def test_what_is_as_by_default_is_left_out() -> None:
    assert plan_file.dump(Plan(scenario="x", seed=1, nodes=3), "from a test") == (
        '{\n  "plan": 1,\n  "note": "from a test",\n'
        '  "scenario": "x",\n  "seed": 1,\n  "nodes": 3\n}\n'
    )


def test_each_item_has_its_line() -> None:
    text = plan_file.dump(PLAN)

    assert '    {"kind": "cut", "at": 7, "links": [[1, 2], [2, 1]]}\n' in text


@given(
    st.builds(
        Fault,
        kind=st.text(),
        at=st.integers(max_value=PLAN.chaos - 1),
        nodes=st.lists(st.integers()).map(tuple),
        links=st.lists(st.tuples(st.integers(), st.integers())).map(tuple),
        mode=st.text(),
    ),
    st.floats(allow_nan=False),
)
def test_any_value_survives(fault: Fault, drop: float) -> None:
    plan = attrs.evolve(PLAN, faults=(fault,), link=LinkPlan(drop=drop))

    assert plan_file.parse(plan_file.dump(plan)) == plan


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "f: not JSON: Expecting property name enclosed in double quotes"),
        ("[]", "f: no plan: a plan is an object that starts with 'plan'"),
        ("{}", "f: no plan: a plan is an object that starts with 'plan'"),
        ('{"plan": 2}', "f: a plan of another version than 1"),
        ('{"plan": 1, "seed": 1, "nodes": 3}', "f: scenario is missing"),
        (
            '{"plan": 1, "scenario": "x", "seed": 1, "nodes": 3, "sede": 1}',
            "f: unknown key 'sede'; known are scenario, seed, nodes, link",
        ),
        (
            '{"plan": 1, "scenario": "x", "seed": true, "nodes": 3}',
            "f.seed: true is not a whole number",
        ),
        (
            (
                '{"plan": 1, "scenario": "x", "seed": 1, "nodes": 3, "faults": [{"kind": "cut", '
                '"links": [[1, 2], [1]]}]}'
            ),
            "f.faults[0].links[1]: [1] is not a list of 2",
        ),
        (
            '{"plan": 1, "scenario": "x", "seed": 1, "nodes": 3, "faults": 3}',
            "f.faults: 3 is not a list",
        ),
        (
            '{"plan": 1, "scenario": "x", "seed": 1, "nodes": 3, "link": 3}',
            "f.link: 3 is not an object",
        ),
        ('{"plan": 1, "scenario": "x", "seed": 1, "nodes": 0}', "f.nodes: 0 is no number of nodes"),
        (
            (
                '{"plan": 1, "scenario": "x", "seed": 1, "nodes": 1, "consumers": [{"name": "c1", '
                '"node": 2, "queues": ["q"]}]}'
            ),
            "f.consumers[0].node: there is no node 2 among 1",
        ),
        (
            (
                '{"plan": 1, "scenario": "x", "seed": 1, "nodes": 1, "chaos": 5, "faults": '
                '[{"kind": "crash", "at": 4, "nodes": [1]}, {"kind": "wipe", "at": 5}]}'
            ),
            "f.faults[1].at: this wipe never happens: it begins at 5 us, and the chaos ends at 5",
        ),
    ],
)
def test_a_file_that_is_no_plan_is_told_where(text: str, reason: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan_file.parse(text, "f")

    assert str(caught.value).startswith(reason)


def test_a_plan_is_loaded_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(plan_file.dump(PLAN, "a note"))

    assert plan_file.load(path) == PLAN


def test_a_file_that_is_no_text_is_no_plan(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(b"\xff")

    with pytest.raises(PlanError, match="not UTF-8"):
        plan_file.load(path)
