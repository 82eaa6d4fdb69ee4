"""Steps are written, read, played and drawn."""

import pytest

from disque_trio.sim.explore import scope, steps
from disque_trio.sim.explore.scope import ScopeError
from disque_trio.sim.explore.steps import Steps
from disque_trio.sim.explore.world import Rules
from disque_trio.sim.picture.page import render
from tests.sim.explore.exploring import small


def _some(count: int = 9) -> Steps:
    """The first steps through a scope."""
    found = small("requeue", late=2, most_faults=1)
    rules = Rules(found)
    world, path = rules.begin(), []
    for _ in range(count):
        path.append(rules.actions(world)[0])
        world = rules.apply(world, path[-1])
    return Steps(scope=found, text=scope.text_of("requeue"), what="nothing", path=tuple(path))


def test_steps_that_are_written_are_read_again() -> None:
    text = steps.dump(_some())

    again = steps.read(text)

    assert steps.dump(again) == text
    assert again.scope == _some().scope


def test_a_line_says_what_happens() -> None:
    text = steps.dump(_some())

    assert '"ask 0          # a  client 0: ADDJOB q one 0 REPLICATE 2 RETRY 1"' in text
    assert '"deliver a b    # a > b  repljob"' in text


def test_played_steps_show_what_the_nodes_do() -> None:
    rows = [row for told in steps.play(_some()) for row in told.rows]

    assert ("hold", "n1", "add") in [(row.kind, row.node, row.cause) for row in rows]
    assert ("hold", "n2", "repljob") in [(row.kind, row.node, row.cause) for row in rows]
    assert "explore requeue" in render(steps.plan_of(small("requeue")), rows, None)


def test_a_step_that_cannot_happen_is_named() -> None:
    text = steps.dump(_some()).replace("deliver a b", "deliver b a", 1)

    with pytest.raises(ScopeError, match="step 2, deliver b a, cannot happen any more"):
        list(steps.play(steps.read(text)))


@pytest.mark.parametrize("text", ["", "{}", '{"steps": [], "text": [], "scope": "x"}'])
def test_another_file_is_refused(text: str) -> None:
    with pytest.raises(ScopeError, match="no steps of an exploration"):
        steps.read(text)
