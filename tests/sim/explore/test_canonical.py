"""A form says all that matters of a node, and nothing about when and under which names."""

import ast
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from disque_trio.sim.explore.canonical import DURATIONS, LEFT_OUT, MOMENTS
from disque_trio.sim.explore.machines import Input, Machines
from disque_trio.sim.explore.world import Action, Rules, World
from tests.sim.explore.exploring import small
from tests.trees import STATEMACHINE, modules, tree

ELSEWHERE = (
    "Client", "Cluster", "Config", "DeadState", "Duplicate", "Entry", "Extensions", "GetOptions",
    "Histogram", "HostName", "JobCopy", "JobError", "JobState", "JobTrace", "JobTraces", "KeyFact",
    "Knobs", "LastError", "Limit", "LimitReport", "Memory", "Now", "Options", "Postponed",
    "Process", "QueueLimit", "Record", "ResolvedOptions", "Result", "Sampler", "Setting", "Share",
    "Prefilter", "Shutdown", "Stats", "StoredResult", "Streak", "Unanswered", "Vitals", "_Options",
)  # fmt: skip
"""Records that are in no form, or with durations only."""


def _times(path: Path) -> Iterator[tuple[str, str]]:
    """The records of a module, with their fields in milliseconds."""
    for record in tree(path).body:
        if isinstance(record, ast.ClassDef):
            for field in record.body:
                if isinstance(field, ast.AnnAssign) and "Millis" in ast.unparse(field.annotation):
                    yield record.name, ast.unparse(field.target)


def test_every_time_of_a_node_is_a_moment_or_a_duration_or_left_out() -> None:
    tables = [MOMENTS, DURATIONS, LEFT_OUT]
    known = {
        (kind.__name__, name)
        for table in tables
        for kind, names in table.items()
        for name in names.split()
    }
    times = [time for path in modules(STATEMACHINE) for time in _times(path)]

    assert [time for time in times if time not in known and time[0] not in ELSEWHERE] == []
    assert len(times) > 60


def test_every_listed_field_exists() -> None:
    for table in (MOMENTS, DURATIONS, LEFT_OUT):
        for kind, names in table.items():
            fields = [field.name for field in attrs.fields(kind)]
            assert [name for name in names.split() if name not in fields] == [], kind


def _busy() -> tuple[Rules, World]:
    """A world with a job on two nodes, and a client that has it."""
    rules = Rules(small("requeue"))
    world = rules.begin()
    for _ in range(8):
        world = rules.apply(world, rules.actions(world)[0])
    return rules, world


def test_an_image_revives_as_the_same_node() -> None:
    rules, world = _busy()

    for place, local in enumerate(world.nodes):
        running = rules.machines.revive(local, place)
        now = rules.machines.now(local.at)

        assert rules.machines.image(running, now) is local


def test_the_same_step_at_another_time_leads_to_the_same_image() -> None:
    rules, world = _busy()
    later = attrs.evolve(world, since=tuple(each + 8_000 for each in world.since))
    later = attrs.evolve(later, now=world.now + 8_000)
    action = rules.actions(world)[0]

    assert rules.apply(later, action).nodes == rules.apply(world, action).nodes
    assert rules.key(rules.apply(later, action)) == rules.key(rules.apply(world, action))


def test_a_job_that_is_elsewhere_makes_another_world() -> None:
    rules, world = _busy()

    keys = {rules.key(rules.apply(world, action)) for action in rules.actions(world)}

    assert len(keys) == len(rules.actions(world))


def test_a_step_is_computed_once() -> None:
    rules, world = _busy()
    rules.apply(world, Action("tick", (0,)))
    before = rules.machines.computed

    rules.apply(world, Action("tick", (0,)))

    assert rules.machines.computed == before


def test_a_broken_invariant_is_an_error_of_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    machines = Machines(1, small("once").config, ())
    local = machines.begin(0).local
    monkeypatch.setattr("disque_trio.sim.explore.machines.check", _refuse)

    assert machines.step(0, local, 0, Input("tick")).error == "AssertionError: torn"


def _refuse(_node: object) -> None:
    raise AssertionError("torn")
